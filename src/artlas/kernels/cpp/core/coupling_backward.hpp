// The exact gradient of the unrolled iterations and of the rounding, for one (graph, base) pair.
//
// With W = T o dE/dT, f = log u, g = log v the unrolled backward pass is
//   column half:  df_s -= Pc_s dg_s,  dl -= Pc_s diag(dg_s),    Pc_s = diag(u_s) K diag(v_s) / nu
//   row half:     dg_{s-1} = -Pr_s' df_s,  dl -= diag(df_s) Pr_s, Pr_s = diag(u_s / mu) K
//   diag(v_{s-1})
// so that dl = W - K o (a product of rank 2 S), and only the scalings need to be saved.
#pragma once

#include "core/coupling_forward.hpp"

namespace artlas::ARTLAS_ISA {

template <int MP>
struct Backward : Forward<MP> {
  using F = Forward<MP>;
  using F::C;
  using F::H;

  static void emit_plain(const float* kernel, const float* u, const float* v, int64_t n,
                         float* out) {
    vf role[C];
    F::spread_roles(v, role);
    for (int64_t r = 0; r < n; r += L) {
      vf t[C];
      F::load_group(kernel + r * MP, t);
      const vf scale = per_lane(u + r);
      ARTLAS_UNROLL
      for (int c = 0; c < C; ++c) t[c] = t[c] * role[c] * scale;
      F::unblock(t, out + r * MP);
    }
  }

  static void neighbours(const GraphView& graph, const float* coupling, float factor, float* out) {
    for (int64_t i = 0; i < graph.n; ++i) {
      vf near[H];
      F::sum_rows(graph, coupling, graph.row_ptr[i], graph.row_ptr[i + 1], near);
      ARTLAS_UNROLL
      for (int h = 0; h < H; ++h) store(out + i * MP + h * W, near[h] * factor);
    }
  }

  static void outer(const float* a, const float* b, int64_t n, int64_t cols_b, float* out) {
    outer_product(a, MP, b, cols_b, n, MP, cols_b, out, cols_b);
  }

  static void times_relation(const float* relation, int64_t roles, float factor, int64_t n,
                             float* grad) {
    for (int64_t r = 0; r < n; r += TILE) {
      alignas(64) float tile[TILE * MP];
      const float* rows[TILE];
      F::row_pointers(grad, MP, r, n, rows);
      tile_product<false>(rows, relation, MP, roles, MP, tile, MP);
      const int64_t count = (n - r < TILE ? n - r : TILE) * MP;
      for (int64_t i = 0; i < count; i += W) store(grad + r * MP + i, load(tile + i) * factor);
    }
  }

  static void round_backward(const float* coupling, const float* mu, const float* row_sum,
                             const float* keep, const float* deficit, const float* column_deficit,
                             float deficit_total, int64_t n, int64_t roles, float* grad, float* df,
                             float* dg) {
    constexpr float FLOOR = 1e-8f;  // of the total deficit, as in the forward pass
    const float inverse = 1.0f / (deficit_total > FLOOR ? deficit_total : FLOOR);
    vf lack[H], toward[H], dcol[H], acc[H];
    double through_total = 0;
    ARTLAS_UNROLL
    for (int h = 0; h < H; ++h) {
      lack[h] = load(column_deficit + h * W);
      toward[h] = lack[h] * inverse;
      dcol[h] = acc[h] = vf{};
    }
    for (int64_t i = 0; i < n; ++i) {
      vf sum = {};
      ARTLAS_UNROLL
      for (int h = 0; h < H; ++h) {
        const vf d = load(grad + i * MP + h * W);
        dcol[h] += d * deficit[i];
        sum += d * toward[h];
      }
      df[i] = hsum(sum);  // d deficit_i, for now
      through_total -= double(deficit[i]) * df[i];
    }
    ARTLAS_UNROLL
    for (int h = 0; h < H; ++h) dcol[h] = (lack[h] > 0.0f) ? dcol[h] * inverse : vf{};
    const float dtotal = deficit_total > FLOOR ? float(through_total * inverse) : 0.0f;
    for (int64_t i = 0; i < n; ++i) {
      const float* t = coupling + i * MP;
      float* d = grad + i * MP;
      vf cut[H], dot = {}, sum = {};
      ARTLAS_UNROLL
      for (int h = 0; h < H; ++h) {
        cut[h] = load(d + h * W) - dcol[h];
        dot += cut[h] * load(t + h * W);
      }
      float drow = 0;
      if (row_sum[i] > mu[i])
        drow = -keep[i] / row_sum[i] * hsum(dot);
      else if (deficit[i] > 0)
        drow = -(df[i] + dtotal);
      ARTLAS_UNROLL
      for (int h = 0; h < H; ++h) {
        const vf w = (cut[h] * keep[i] + drow) * load(t + h * W);
        store(d + h * W, w);
        sum += w;
        acc[h] += w;
      }
      df[i] = hsum(sum);
    }
    ARTLAS_UNROLL
    for (int h = 0; h < H; ++h) store(dg + h * W, acc[h]);
    for (int64_t a = roles; a < MP; ++a) dg[a] = 0;
  }

  static void sweep_backward(const float* kernel, const float* mu, const float* v_prev,
                             const float* p, const float* df_in, int64_t n, float* u, float* y,
                             float* colsum) {
    vf acc[C];
    alignas(64) float wide[2 * C * W];
    ARTLAS_UNROLL
    for (int c = 0; c < C; ++c) {
      acc[c] = vf{};
      store(wide + 2 * c * W, four(v_prev + 4 * c));
      store(wide + (2 * c + 1) * W, four(p + 4 * c));
    }
    for (int64_t r = 0; r < n; r += L) {
      vf k[C], s[2] = {}, t[2] = {};
      F::load_group(kernel + r * MP, k);
      ARTLAS_UNROLL
      for (int c = 0; c < C; ++c) {
        s[c % 2] += k[c] * load(wide + 2 * c * W);
        t[c % 2] += k[c] * load(wide + (2 * c + 1) * W);
      }
      const vf inverse = reciprocal(lane_sum(s[0] + s[1]));
      const vf scale = per_lane(mu + r) * inverse;
      vf df = -scale * lane_sum(t[0] + t[1]);
      if (df_in) df += per_lane(df_in + r);
      const vf back = df * inverse;
      store_per_lane(u + r, scale);
      store_per_lane(y + r, back);
      ARTLAS_UNROLL
      for (int c = 0; c < C; ++c) acc[c] += k[c] * back;
    }
    F::store_roles(acc, colsum);
  }

  static void row_product(const float* kernel, const float* p, int64_t n, float* t) {
    vf role[C];
    F::spread_roles(p, role);
    for (int64_t r = 0; r < n; r += L) {
      vf k[C];
      F::load_group(kernel + r * MP, k);
      store_per_lane(t + r, F::row_dot(k, role));
    }
  }

  static void subtract_products(const float* kernel, const float* left, int64_t stride,
                                const float* right, int64_t depth, int64_t n, float* grad) {
    for (int64_t r = 0; r < n; r += TILE) {
      alignas(64) float tile[TILE * MP] = {}, plain[TILE * MP];
      outer_product(left + r, stride, right, MP, depth, TILE, MP, tile, MP);
      for (int i = 0; i < TILE; i += L) {
        vf k[C];
        F::load_group(kernel + (r + i) * MP, k);
        F::unblock(k, plain + i * MP);
      }
      const int64_t count = (n - r < TILE ? n - r : TILE) * MP;
      for (int64_t i = 0; i < count; i += W)
        store(grad + r * MP + i, load(grad + r * MP + i) - load(plain + i) * load(tile + i));
    }
  }

  static void mask_clamped(const LogitView& in, float* grad) {
    LogitView plain = in;
    plain.clamp = INFINITY;
    const vf high = splat(in.clamp);
    for (int64_t r = 0; r < in.n; r += TILE) {
      alignas(64) float tile[TILE * MP];
      F::logits(plain, r, tile);
      const int64_t count = (in.n - r < TILE ? in.n - r : TILE) * MP;
      for (int64_t i = 0; i < count; i += W) {
        const vf l = load(tile + i), d = load(grad + r * MP + i);
        store(grad + r * MP + i, (vmax(l, -l) <= high) ? d : vf{});
      }
    }
  }

  static void add_node_gradient(const float* grad, const float* roles_s, int64_t roles, int64_t dim,
                                int64_t padded_dim, int64_t n, float* scratch, float* grad_q) {
    for (int64_t r = 0; r < n; r += TILE) {
      const float* rows[TILE];
      F::row_pointers(grad, MP, r, n, rows);
      tile_product<false>(rows, roles_s, padded_dim, roles, padded_dim, scratch, padded_dim);
      for (int i = 0; i < TILE && r + i < n; ++i)
        for (int64_t d = 0; d < dim; ++d) grad_q[(r + i) * dim + d] += scratch[i * padded_dim + d];
    }
  }
};

}  // namespace artlas::ARTLAS_ISA
