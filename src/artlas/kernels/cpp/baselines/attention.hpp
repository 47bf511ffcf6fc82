// Attention over the neighbours of a node, and its gradient, on a symmetric pattern: what a node
// sends is found in its own row, so that no two threads write to one place.
#pragma once

#include "core/kernel_tables.hpp"
#include "core/simd.hpp"

namespace artlas::ARTLAS_ISA {

struct Attention {
  ARTLAS_INLINE static void add(float factor, const float* from, int64_t width, float* to) {
    const vf by = splat(factor);
    int64_t d = 0;
    for (; d + W <= width; d += W) store(to + d, load(to + d) + by * load(from + d));
    for (; d < width; ++d) to[d] += factor * from[d];
  }

  ARTLAS_INLINE static void scale(float factor, int64_t width, float* to) {
    for (int64_t d = 0; d < width; ++d) to[d] *= factor;
  }

  ARTLAS_INLINE static void clear(int64_t width, float* to) {
    for (int64_t d = 0; d < width; ++d) to[d] = 0;
  }

  // exp of numbers in space for W more than count; 0, or nan if any of them is no finite number:
  // vexp takes what is no number for a very small one
  ARTLAS_INLINE static float exponents(int64_t count, float* x) {
    vf nothing = {};
    int64_t e = 0;
    for (; e + W <= count; e += W) {
      const vf given = load(x + e);
      nothing += given * 0.0f;
      store(x + e, vexp(given));
    }
    float rest = 0;
    for (int64_t k = e; k < count; ++k) rest += x[k] * 0.0f;
    if (e < count) store(x + e, vexp(load(x + e)));
    return hsum(nothing) + rest;
  }

  // A node's neighbours and, last, itself
  ARTLAS_INLINE static int64_t met(const Pattern& p, int64_t i, int64_t e) {
    const int64_t j = p.row_ptr[i] + e;
    return j < p.row_ptr[i + 1] ? int64_t(p.col[j]) : i;
  }

  // one(h, lanes) for all heads, four at a time and then one; signs of scores cannot be foreseen,
  // so that what it does has no branches
  template <typename One>
  ARTLAS_INLINE static void each_head(int64_t heads, One one) {
    int64_t h = 0;
    for (; h + 4 <= heads; h += 4) one(h, v4{});
    for (; h < heads; ++h) one(h, v1{});
  }
  typedef float v1 __attribute__((vector_size(4)));
  template <typename V>
  ARTLAS_INLINE static V get(const float* p) {
    V x;
    __builtin_memcpy(&x, p, sizeof x);
    return x;
  }
  template <typename V>
  ARTLAS_INLINE static void put(float* p, V x) {
    __builtin_memcpy(p, &x, sizeof x);
  }
  template <typename V>
  ARTLAS_INLINE static V leaky(V x, float slope) {
    return x > 0 ? x : slope * x;
  }

  // the sums of four registers
  ARTLAS_INLINE static v4 sums_of_four(const vf x[4]) {
    float out[4];
    ARTLAS_UNROLL
    for (int h = 0; h < 4; h += L) {
      vf lanes[L];
      ARTLAS_UNROLL
      for (int i = 0; i < L; ++i) lanes[i] = x[h + i];
      transpose_lanes(lanes);
      vf sum = lanes[0];
      ARTLAS_UNROLL
      for (int i = 1; i < L; ++i) sum += lanes[i];
      store_per_lane(out + h, lane_sum(sum));
    }
    return get<v4>(out);
  }

  // Rows of R registers, shared by four heads; 0: of any heads and width, in memory
  template <int R>
  static void additive_rows(const Pattern& p, const Additive& a, int64_t r0, int64_t r1,
                            float* space, float* out, float* log_sum) {
    const int64_t heads = a.heads, width = a.width, row = heads * width;
    for (int64_t i = r0; i < r1; ++i) {
      const int64_t count = p.row_ptr[i + 1] - p.row_ptr[i] + 1;
      const float* own = a.met + i * heads;
      float *to = out + i * row, *total = log_sum + i * heads;
      for (int64_t h = 0; h < heads; ++h) total[h] = a.sent[i * heads + h];
      for (int64_t e = 0; e + 1 < count; ++e) {  // the largest: exp cannot overflow
        const float* sent = a.sent + met(p, i, e) * heads;
        each_head(heads, [&](int64_t h, auto kind) ARTLAS_LAMBDA {
          const auto most = get<decltype(kind)>(total + h), x = get<decltype(kind)>(sent + h);
          put(total + h, x > most ? x : most);
        });
      }
      each_head(heads, [&](int64_t h, auto kind) ARTLAS_LAMBDA {
        using V = decltype(kind);
        put(total + h, leaky(get<V>(total + h) + get<V>(own + h), a.slope));
      });
      for (int64_t e = 0; e < count; ++e) {
        const float* sent = a.sent + met(p, i, e) * heads;
        each_head(heads, [&](int64_t h, auto kind) ARTLAS_LAMBDA {
          using V = decltype(kind);
          const V score = leaky(get<V>(sent + h) + get<V>(own + h), a.slope);
          put(space + e * heads + h, score - get<V>(total + h));
        });
      }
      const float start = exponents(count * heads, space);
      float* sums = space + count * heads + W;
      for (int64_t h = 0; h < heads; ++h) sums[h] = start;
      [[maybe_unused]] vf acc[R + 1] = {};
      if constexpr (R == 0) clear(row, to);
      for (int64_t e = 0; e < count; ++e) {
        const float *weight = space + e * heads, *value = a.values + met(p, i, e) * row;
        each_head(heads, [&](int64_t h, auto kind) ARTLAS_LAMBDA {
          using V = decltype(kind);
          put(sums + h, get<V>(sums + h) + get<V>(weight + h));
        });
        if constexpr (R > 0) {
          ARTLAS_UNROLL
          for (int r = 0; r < R; ++r) acc[r] += splat(weight[r * 4 / R]) * load(value + r * W);
        } else {
          for (int64_t h = 0; h < heads; ++h)
            add(weight[h], value + h * width, width, to + h * width);
        }
      }
      if constexpr (R > 0)
        for (int r = 0; r < R; ++r) store(to + r * W, acc[r]);
      for (int64_t h = 0; h < heads; ++h) {
        scale(1 / sums[h], width, to + h * width);
        total[h] += std::log(sums[h]);
      }
    }
  }

  template <int R>
  static void additive_backward_rows(const Pattern& p, const Additive& a, const Received& g,
                                     int64_t r0, int64_t r1, float* space, float* d_values,
                                     float* d_sent, float* d_met) {
    const int64_t heads = a.heads, width = a.width, row = heads * width;
    for (int64_t i = r0; i < r1; ++i) {
      const int64_t count = p.row_ptr[i + 1] - p.row_ptr[i] + 1, size = count * heads + W;
      // weights where i receives and where it sends, and these times the slopes of LeakyReLU
      float *there = space, *back = there + size, *steep = back + size, *steep_back = steep + size;
      const float *sent = a.sent + i * heads, *own = a.met + i * heads;
      const float *log_sum = g.log_sum + i * heads, *along = g.along + i * heads;
      for (int64_t e = 0; e < count; ++e) {
        const int64_t other = met(p, i, e) * heads, at = e * heads;
        each_head(heads, [&](int64_t h, auto kind) ARTLAS_LAMBDA {
          using V = decltype(kind);
          const V slope = V{} + a.slope, one = V{} + 1.0f;
          const V x = get<V>(a.sent + other + h) + get<V>(own + h);
          const V y = get<V>(sent + h) + get<V>(a.met + other + h);
          put(there + at + h, leaky(x, a.slope) - get<V>(log_sum + h));
          put(back + at + h, leaky(y, a.slope) - get<V>(g.log_sum + other + h));
          put(steep + at + h, x > 0 ? one : slope);
          put(steep_back + at + h, y > 0 ? one : slope);
        });
      }
      exponents(count * heads, there);
      exponents(count * heads, back);
      for (int64_t k = 0; k < count * heads; k += W) {
        store(steep + k, load(steep + k) * load(there + k));
        store(steep_back + k, load(steep_back + k) * load(back + k));
      }
      const float *value = a.values + i * row, *grad = g.grad + i * row;
      float* to = d_values + i * row;
      [[maybe_unused]] vf acc[R + 1] = {};
      [[maybe_unused]] v4 sends = {}, receives = {};
      if constexpr (R == 0) {
        clear(row, to);
        clear(heads, d_sent + i * heads);
        clear(heads, d_met + i * heads);
      }
      for (int64_t e = 0; e < count; ++e) {
        const int64_t j = met(p, i, e), at = e * heads;
        const float *near_value = a.values + j * row, *near_grad = g.grad + j * row;
        if constexpr (R > 0) {
          vf in[4] = {}, out[4] = {};
          ARTLAS_UNROLL
          for (int r = 0; r < R; ++r) {
            const vf given = load(near_grad + r * W);
            acc[r] += splat(back[at + r * 4 / R]) * given;
            in[r * 4 / R] += load(grad + r * W) * load(near_value + r * W);
            out[r * 4 / R] += load(value + r * W) * given;
          }
          const v4 others = get<v4>(g.along + j * 4);
          receives += get<v4>(steep + at) * (sums_of_four(in) - get<v4>(along));
          sends += get<v4>(steep_back + at) * (sums_of_four(out) - others);
        } else {
          for (int64_t h = 0; h < heads; ++h) {
            const int64_t k = h * width;
            add(back[at + h], near_grad + k, width, to + k);
            const float in = dot(grad + k, near_value + k, width) - along[h];
            const float out = dot(value + k, near_grad + k, width) - g.along[j * heads + h];
            d_met[i * heads + h] += steep[at + h] * in;
            d_sent[i * heads + h] += steep_back[at + h] * out;
          }
        }
      }
      if constexpr (R > 0) {
        for (int r = 0; r < R; ++r) store(to + r * W, acc[r]);
        put(d_sent + i * 4, sends);
        put(d_met + i * 4, receives);
      }
    }
  }

  // four heads of 64 or 128 numbers a row, as in GAT, are kept in registers; 0: are not
  ARTLAS_INLINE static int64_t in_registers(const Additive& a) {
    const int64_t row = a.heads * a.width;
    return (row == 64 || row == 128) && a.heads == 4 && a.width % W == 0 ? row : 0;
  }
  static void additive(const Pattern& p, const Additive& a, int64_t r0, int64_t r1, float* space,
                       float* out, float* log_sum) {
    const int64_t row = in_registers(a);
    const auto rows = row == 64    ? additive_rows<64 / W>
                      : row == 128 ? additive_rows<128 / W>
                                   : additive_rows<0>;
    rows(p, a, r0, r1, space, out, log_sum);
  }
  static void additive_backward(const Pattern& p, const Additive& a, const Received& g, int64_t r0,
                                int64_t r1, float* space, float* d_values, float* d_sent,
                                float* d_met) {
    const int64_t row = in_registers(a);
    const auto rows = row == 64    ? additive_backward_rows<64 / W>
                      : row == 128 ? additive_backward_rows<128 / W>
                                   : additive_backward_rows<0>;
    rows(p, a, g, r0, r1, space, d_values, d_sent, d_met);
  }

  // Rows of R registers; 0: of any width, in memory
  template <int R, bool Scaled>
  static void normalised_rows(const Pattern& p, const Normalised& a, int64_t r0, int64_t r1,
                              float* out) {
    const int64_t row = a.width;
    for (int64_t i = r0; i < r1; ++i) {
      const int64_t end = p.row_ptr[i + 1];
      float* to = out + i * row;
      [[maybe_unused]] vf acc[R + 1] = {};
      if constexpr (R == 0) clear(row, to);
      for (int64_t e = p.row_ptr[i]; e <= end; ++e) {  // neighbours and, last, the node itself
        const int64_t j = e < end ? int64_t(p.col[e]) : i;
        const float* value = a.values + j * row;
        const float weight = (Scaled ? a.scale[j] : 1) * (e < end ? 1 : a.own);
        if constexpr (R > 0) {
          const vf by = splat(weight);
          ARTLAS_UNROLL
          for (int r = 0; r < R; ++r) acc[r] += by * load(value + r * W);
        } else {
          add(weight, value, row, to);
        }
      }
      if constexpr (R > 0) {
        const vf by = splat(Scaled ? a.scale[i] : 1);
        for (int r = 0; r < R; ++r)
          store(to + r * W, by * acc[r] + (a.bias ? load(a.bias + r * W) : vf{}));
      } else {
        if (Scaled) scale(a.scale[i], row, to);
        if (a.bias) add(1, a.bias, row, to);
      }
    }
  }
  static void normalised(const Pattern& p, const Normalised& a, int64_t r0, int64_t r1,
                         float* out) {
    (a.scale ? normalised_by_width<true> : normalised_by_width<false>)(p, a, r0, r1, out);
  }
  template <bool Scaled>
  static void normalised_by_width(const Pattern& p, const Normalised& a, int64_t r0, int64_t r1,
                                  float* out) {
    const auto rows = a.width == 64    ? normalised_rows<64 / W, Scaled>
                      : a.width == 128 ? normalised_rows<128 / W, Scaled>
                                       : normalised_rows<0, Scaled>;
    rows(p, a, r0, r1, out);
  }

  static void product(const Pattern& p, const Product& a, int64_t r0, int64_t r1, float* space,
                      float* out, float* log_sum) {
    for (int64_t i = r0; i < r1; ++i) {
      const int64_t begin = p.row_ptr[i], count = p.row_ptr[i + 1] - begin;
      const int32_t* near = p.col + begin;
      float* to = out + i * a.width;
      clear(a.width, to);
      log_sum[i] = 0;
      if (count == 0) continue;
      float most = -INFINITY;
      for (int64_t e = 0; e < count; ++e) {
        space[e] = dot(a.query + i * a.depth, a.key + near[e] * a.depth, a.depth);
        most = space[e] > most ? space[e] : most;
      }
      for (int64_t e = 0; e < count; ++e) space[e] -= most;
      float sum = exponents(count, space);
      for (int64_t e = 0; e < count; ++e) {
        sum += space[e];
        add(space[e], a.value + near[e] * a.width, a.width, to);
      }
      scale(1 / sum, a.width, to);
      log_sum[i] = most + std::log(sum);
    }
  }

  static void product_backward(const Pattern& p, const Product& a, const Received& g, int64_t r0,
                               int64_t r1, float* space, float* d_query, float* d_key,
                               float* d_value) {
    const int64_t depth = a.depth, width = a.width;
    for (int64_t i = r0; i < r1; ++i) {
      const int64_t begin = p.row_ptr[i], count = p.row_ptr[i + 1] - begin;
      const int32_t* near = p.col + begin;
      const float *query = a.query + i * depth, *key = a.key + i * depth;
      const float *value = a.value + i * width, *grad = g.grad + i * width;
      float *there = space, *back = space + count + W;  // i receives, i sends
      for (int64_t e = 0; e < count; ++e) {
        const int64_t j = near[e];
        there[e] = dot(query, a.key + j * depth, depth) - g.log_sum[i];
        back[e] = dot(key, a.query + j * depth, depth) - g.log_sum[j];
      }
      exponents(count, there);
      exponents(count, back);
      clear(depth, d_query + i * depth);
      clear(depth, d_key + i * depth);
      clear(width, d_value + i * width);
      for (int64_t e = 0; e < count; ++e) {
        const int64_t j = near[e];
        const float into = there[e] * (dot(grad, a.value + j * width, width) - g.along[i]);
        const float from = back[e] * (dot(g.grad + j * width, value, width) - g.along[j]);
        add(into, a.key + j * depth, depth, d_query + i * depth);
        add(from, a.query + j * depth, depth, d_key + i * depth);
        add(back[e], g.grad + j * width, width, d_value + i * width);
      }
    }
  }
};

}  // namespace artlas::ARTLAS_ISA
