// The structure-only GIN without gradients, on a range of rows: a row stays in registers or L1.
#pragma once

#include "core/gemm.hpp"
#include "core/kernel_tables.hpp"

namespace artlas::ARTLAS_ISA {

constexpr int64_t MAX_WIDTH = 1024;  // of the hidden layer: the size of the tiles on the stack

struct Encoder {
  ARTLAS_INLINE static void bias_rows(const float* bias, int64_t width, float* tile) {
    for (int i = 0; i < TILE; ++i)
      for (int64_t d = 0; d < width; d += W) store(tile + i * width + d, load(bias + d));
  }
  ARTLAS_INLINE static void tile_rows(const float* tile, int64_t width, const float* rows[TILE]) {
    for (int i = 0; i < TILE; ++i) rows[i] = tile + i * width;
  }

  // own = h_i, out = self h_i + sum_j A_ij count_j h_j, two registers of columns at a time
  template <bool WEIGHTED, typename Row>
  ARTLAS_INLINE static void aggregate(const EncoderGraph& g, Row row, float self, int64_t i,
                                      int64_t d, float* own, float* out) {
    constexpr int REGS = 2;
    vf acc[2][REGS], here[REGS];
    row(i, d, here);
    ARTLAS_UNROLL
    for (int h = 0; h < REGS; ++h) acc[0][h] = acc[1][h] = vf{};
    auto add = [&](int64_t j, vf to[REGS]) ARTLAS_LAMBDA {
      vf x[REGS];
      row(g.col[j], d, x);
      const vf w = WEIGHTED ? splat(g.weight[j] * g.count[g.col[j]]) : vf{};
      ARTLAS_UNROLL
      for (int h = 0; h < REGS; ++h) to[h] += WEIGHTED ? w * x[h] : x[h];
    };
    int64_t j = g.row_ptr[i];
    const int64_t end = g.row_ptr[i + 1];
    for (; j + 2 <= end; j += 2) {
      add(j, acc[0]);
      add(j + 1, acc[1]);
    }
    if (j < end) add(j, acc[0]);
    ARTLAS_UNROLL
    for (int h = 0; h < REGS; ++h) {
      store(own + d + h * W, here[h]);
      store(out + d + h * W, acc[0][h] + acc[1][h] + here[h] * self);
    }
  }

  static void layer(const EncoderLayer& p, const EncoderGraph& g, const float* lift_w,
                    const float* lift_b, const float* h, const float* project, int64_t dim,
                    int64_t width, int64_t r0, int64_t r1, float* out) {
    constexpr int64_t AHEAD = 4;  // rows whose neighbours are prefetched
    alignas(64) float space[3 * TILE * MAX_WIDTH];
    float *own = space, *sum = own + TILE * width, *inner = sum + TILE * width;
    const float* rows[TILE];
    const bool far = h && g.nodes * width * 4 > BEYOND_CACHE;
    auto lifted = [&](int64_t j, int64_t d, vf v[2]) ARTLAS_LAMBDA {
      const vf s = splat(g.x[j]);
      ARTLAS_UNROLL
      for (int k = 0; k < 2; ++k)
        v[k] = vmax(s * load(lift_w + d + k * W) + load(lift_b + d + k * W), vf{});
    };
    auto stored = [&](int64_t j, int64_t d, vf v[2]) ARTLAS_LAMBDA {
      ARTLAS_UNROLL
      for (int k = 0; k < 2; ++k) v[k] = load(h + j * width + d + k * W);
    };
    for (int64_t r = r0; r < r1; r += TILE) {
      for (int i = 0; i < TILE; ++i) {
        const int64_t node = r + i < g.nodes ? r + i : g.nodes - 1;
        if (const int64_t later = r + i + AHEAD; far && later < g.nodes)
          for (int64_t j = g.row_ptr[later]; j < g.row_ptr[later + 1]; ++j)
            for (int64_t b = 0; b < width; b += 16)
              __builtin_prefetch(h + int64_t(g.col[j]) * width + b, 0, 2);
        for (int64_t d = 0; d < width; d += 2 * W) {
          float *here = own + i * width, *to = sum + i * width;
          if (h && g.weight)
            aggregate<true>(g, stored, p.self, node, d, here, to);
          else if (h)
            aggregate<false>(g, stored, p.self, node, d, here, to);
          else if (g.weight)
            aggregate<true>(g, lifted, p.self, node, d, here, to);
          else
            aggregate<false>(g, lifted, p.self, node, d, here, to);
        }
      }
      bias_rows(p.b1, width, inner);
      tile_rows(sum, width, rows);
      tile_product<true>(rows, p.w1, width, dim, width, inner, width);
      for (int64_t d = 0; d < TILE * width; d += W) store(inner + d, vmax(load(inner + d), vf{}));
      bias_rows(p.b2, width, sum);
      tile_rows(inner, width, rows);
      tile_product<true>(rows, p.w2, width, dim, width, sum, width);
      for (int i = 0; i < TILE; ++i) normalise(p, own + i * width, sum + i * width, dim, width);
      if (project) {
        tile_rows(sum, width, rows);
        tile_product<false>(rows, project, width, dim, width, inner, width);
      }
      const float* result = project ? inner : sum;
      for (int i = 0; i < TILE && r + i < r1; ++i)
        for (int64_t d = 0; d < width; d += W)
          store(out + (r + i) * width + d, load(result + i * width + d));
    }
  }

  // row <- LayerNorm(own + row); padding columns hold zeros before and after
  ARTLAS_INLINE static void normalise(const EncoderLayer& p, const float* own, float* row,
                                      int64_t dim, int64_t width) {
    vf sum = {}, square = {};
    for (int64_t d = 0; d < width; d += W) {
      const vf x = load(own + d) + load(row + d);
      store(row + d, x);
      sum += x;
    }
    const float mean = hsum(sum) / float(dim);
    for (int64_t d = 0; d < width; d += W) {
      const vf x = load(row + d) - mean;
      square += x * x;
    }
    const float excess = float(width - dim) * mean * mean;
    const float inverse = 1.0f / std::sqrt((hsum(square) - excess) / float(dim) + 1e-5f);
    for (int64_t d = 0; d < width; d += W)
      store(row + d, (load(row + d) - mean) * inverse * load(p.gamma + d) + load(p.beta + d));
  }

  template <bool WEIGHTED>
  ARTLAS_INLINE static void sum_neighbours(const EncoderGraph& g, const float* h, int64_t dim,
                                           int64_t i, float* out) {
    const int64_t begin = g.row_ptr[i], end = g.row_ptr[i + 1];
    auto term = [&](int64_t j, int64_t d) ARTLAS_LAMBDA {
      const vf x = load(h + int64_t(g.col[j]) * dim + d);
      return WEIGHTED ? splat(g.weight[j]) * x : x;
    };
    int64_t d = 0;
    for (; d + 4 * W <= dim; d += 4 * W) {
      vf acc[4] = {};
      for (int64_t j = begin; j < end; ++j) ARTLAS_UNROLL
      for (int k = 0; k < 4; ++k) acc[k] += term(j, d + k * W);
      ARTLAS_UNROLL
      for (int k = 0; k < 4; ++k) store(out + d + k * W, acc[k]);
    }
    for (; d + W <= dim; d += W) {
      vf acc = {};
      for (int64_t j = begin; j < end; ++j) acc += term(j, d);
      store(out + d, acc);
    }
    for (; d < dim; ++d) {
      float acc = 0;
      for (int64_t j = begin; j < end; ++j)
        acc += (WEIGHTED ? g.weight[j] : 1.0f) * h[int64_t(g.col[j]) * dim + d];
      out[d] = acc;
    }
  }

  static void neighbour_sum(const EncoderGraph& g, const float* h, int64_t dim, int64_t r0,
                            int64_t r1, float* out) {
    for (int64_t i = r0; i < r1; ++i)
      if (g.weight)
        sum_neighbours<true>(g, h, dim, i, out + i * dim);
      else
        sum_neighbours<false>(g, h, dim, i, out + i * dim);
  }
};

}  // namespace artlas::ARTLAS_ISA
