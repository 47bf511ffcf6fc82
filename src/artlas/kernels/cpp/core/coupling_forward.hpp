// From logits to rounded couplings and energies, for one (graph, base) pair and a range of rows.
#pragma once

#include "core/gemm.hpp"
#include "core/kernel_tables.hpp"

namespace artlas::ARTLAS_ISA {

template <int MP>
struct Forward {
  static_assert(MP % W == 0 && MP % 4 == 0);
  static constexpr int C = MP / 4;  // columns of four roles
  static constexpr int H = MP / W;  // registers of one row-major row

  // Rows past the end repeat the last one: without measure they cannot change the maximum.
  ARTLAS_INLINE static void row_pointers(const float* base, int64_t stride, int64_t r, int64_t n,
                                         const float* rows[TILE]) {
    for (int i = 0; i < TILE; ++i) rows[i] = base + (r + i < n ? r + i : n - 1) * stride;
  }

  // l = clamp(q R'), eight rows, row-major
  ARTLAS_INLINE static void logits(const LogitView& in, int64_t r, float* tile) {
    const float* rows[TILE];
    row_pointers(in.q, in.dim, r, in.n, rows);
    tile_product<false>(rows, in.roles_t, MP, in.dim, MP, tile, MP);
    if (in.clamp < INFINITY) {
      const vf high = splat(in.clamp), low = splat(-in.clamp);
      for (int i = 0; i < TILE * MP; i += W) store(tile + i, vmin(vmax(load(tile + i), low), high));
    }
  }

  // row-major rows of four roles <-> lanes of one blocked group
  ARTLAS_INLINE static void block(const float* rows, vf x[C]) {
    ARTLAS_UNROLL
    for (int h = 0; h < H; ++h) {
      vf y[L];
      ARTLAS_UNROLL
      for (int i = 0; i < L; ++i) y[i] = load(rows + i * MP + h * W);
      transpose_lanes(y);
      ARTLAS_UNROLL
      for (int i = 0; i < L; ++i) x[h * L + i] = y[i];
    }
  }
  ARTLAS_INLINE static void unblock(const vf x[C], float* rows) {
    ARTLAS_UNROLL
    for (int h = 0; h < H; ++h) {
      vf y[L];
      ARTLAS_UNROLL
      for (int i = 0; i < L; ++i) y[i] = x[h * L + i];
      transpose_lanes(y);
      ARTLAS_UNROLL
      for (int i = 0; i < L; ++i) store(rows + i * MP + h * W, y[i]);
    }
  }

  static float fill(const LogitView& in, const float* g, int64_t r0, int64_t r1, float* kernel,
                    float* row_max) {
    alignas(64) float potential[C * W], padding[C * W];
    ARTLAS_UNROLL
    for (int c = 0; c < C; ++c) {
      store(potential + c * W, four(g + 4 * c));
      store(padding + c * W, four(in.pad + 4 * c));
    }
    vf least = splat(1.0f);
    for (int64_t r = r0; r < r1; r += TILE) {
      alignas(64) float tile[TILE * MP];
      logits(in, r, tile);
      for (int i = 0; i < TILE; i += L) {
        vf x[C], top[2];
        block(tile + i * MP, x);
        ARTLAS_UNROLL
        for (int c = 0; c < C; ++c) {
          x[c] += load(potential + c * W);
          top[c % 2] = c < 2 ? x[c] : vmax(top[c % 2], x[c]);
        }
        const vf m = lane_max(vmax(top[0], top[1]));
        store_per_lane(row_max + r + i, m);
        ARTLAS_UNROLL
        for (int c = 0; c < C; ++c) {
          const vf k = vexp(x[c] - m);
          least = vmin(least, vmax(k, load(padding + c * W)));
          store(kernel + (r + i) * MP + c * W, k);
        }
      }
    }
    return -hmax(-least);
  }

  static void log_iteration(const LogitView& in, const float* mu, int64_t r0, int64_t r1, float* f,
                            float* column_max, float* column_sum) {
    vf top[H], sum[H];
    for (int h = 0; h < H; ++h) top[h] = splat(-INFINITY), sum[h] = vf{};
    for (int64_t r = r0; r < r1; r += TILE) {
      alignas(64) float tile[TILE * MP];
      logits(in, r, tile);
      for (int i = 0; i < TILE && r + i < in.n; ++i) {
        const float* row = tile + i * MP;
        vf x[H], top_of_row = splat(-INFINITY), total = {};
        ARTLAS_UNROLL
        for (int h = 0; h < H; ++h) {
          x[h] = load(row + h * W) - load(in.pad + h * W) * 1e30f;
          top_of_row = vmax(top_of_row, x[h]);
        }
        const float m = hmax(top_of_row);
        ARTLAS_UNROLL
        for (int h = 0; h < H; ++h) total += vexp(x[h] - m);
        const float shift = std::log(mu[r + i]) - m - std::log(hsum(total));
        f[r + i] = shift;
        for (int h = 0; h < H; ++h) {
          const vf y = load(row + h * W) + shift;
          const vf higher = vmax(top[h], y);
          sum[h] = sum[h] * vexp(top[h] - higher) + vexp(y - higher);
          top[h] = higher;
        }
      }
    }
    for (int h = 0; h < H; ++h)
      store(column_max + h * W, top[h]), store(column_sum + h * W, sum[h]);
  }

  ARTLAS_INLINE static void load_group(const float* group, vf k[C]) {
    ARTLAS_UNROLL
    for (int c = 0; c < C; ++c) k[c] = load(group + c * W);
  }
  // (K v) of the group's nodes, in all places of their lanes
  ARTLAS_INLINE static vf row_dot(const vf k[C], const vf v[C]) {
    vf s[4] = {};
    ARTLAS_UNROLL
    for (int c = 0; c < C; ++c) s[c % 4] += k[c] * v[c];
    return lane_sum((s[0] + s[1]) + (s[2] + s[3]));
  }
  ARTLAS_INLINE static void spread_roles(const float* v, vf out[C]) {
    ARTLAS_UNROLL
    for (int c = 0; c < C; ++c) out[c] = four(v + 4 * c);
  }
  // sums over lanes of W / 4 columns of roles: roles h * W to (h + 1) * W in order
  ARTLAS_INLINE static vf role_sums(const vf acc[C], int h) {
    vf x[L];
    ARTLAS_UNROLL
    for (int i = 0; i < L; ++i) x[i] = acc[h * L + i];
    transpose_lanes(x);
    vf sum = x[0];
    ARTLAS_UNROLL
    for (int i = 1; i < L; ++i) sum += x[i];
    return sum;
  }
  ARTLAS_INLINE static void store_roles(const vf acc[C], float* out) {
    ARTLAS_UNROLL
    for (int h = 0; h < H; ++h) store(out + h * W, role_sums(acc, h));
  }
  // acc += K' u over rows r0..r1, u = mu / (K role); FAR prefetches rows beyond the cache
  template <bool FAR>
  ARTLAS_INLINE static void half_steps(const float* kernel, const float* mu, const vf role[C],
                                       int64_t r0, int64_t r1, vf acc[C]) {
    constexpr int64_t AHEAD = 96;  // rows: beyond the page, where the hardware's prefetcher stops
    ARTLAS_UNROLL
    for (int c = 0; c < C; ++c) acc[c] = vf{};
    for (int64_t r = r0; r < r1; r += L) {
      vf k[C];
      load_group(kernel + r * MP, k);
      if constexpr (FAR)
        for (int b = 0; b < L * MP; b += 16) __builtin_prefetch(kernel + (r + AHEAD) * MP + b);
      const vf u = per_lane(mu + r) * reciprocal(row_dot(k, role));
      ARTLAS_UNROLL
      for (int c = 0; c < C; ++c) acc[c] += k[c] * u;
    }
  }

  static void sweep(const float* kernel, const float* mu, const float* v, int64_t r0, int64_t r1,
                    float* colsum) {
    vf role[C], acc[C];
    spread_roles(v, role);
    half_steps<true>(kernel, mu, role, r0, r1, acc);
    store_roles(acc, colsum);
  }

  static int64_t sweeps(const float* kernel, const float* mu, const float* nu, int64_t n,
                        int64_t steps, float limit, float* v, float* v_prev, float* saved_v,
                        bool* fixed) {
    *fixed = false;
    for (int64_t step = 0; step < steps;) {
      vf role[C], acc[C], top = {}, low = splat(1.0f);
      vi moved = {};
      spread_roles(v, role);
      half_steps<false>(kernel, mu, role, 0, n, acc);
      ARTLAS_UNROLL
      for (int h = 0; h < H; ++h) {
        // padding roles: nu is 0 and so is v
        const vf total = vmax(role_sums(acc, h), splat(1e-37f));
        const vf old = load(v + h * W), next = load(nu + h * W) * reciprocal(total);
        moved |= (vi)next ^ (vi)old;
        top = vmax(top, next);
        low = vmin(low, next > 0.0f ? next : splat(1.0f));
        store(v_prev + h * W, old);
        store(v + h * W, next);
        if (saved_v) store(saved_v + step * MP + h * W, next);
      }
      ++step;
      if (!any(moved)) {
        *fixed = true;
        return step;
      }
      if (limit < INFINITY && (hmax(top) > limit || -hmax(-low) * limit < 1.0f)) return step;
    }
    return steps;
  }

  static float round_rows(const float* kernel, const float* mu, const float* v_prev, const float* v,
                          int64_t r0, int64_t r1, float* u, float* row_sum, float* keep,
                          float* deficit, float* colsum) {
    vf role[C], before[C], acc[C], missing = {};
    spread_roles(v, role);
    if (v_prev) spread_roles(v_prev, before);
    ARTLAS_UNROLL
    for (int c = 0; c < C; ++c) acc[c] = vf{};
    for (int64_t r = r0; r < r1; r += L) {
      vf k[C];
      load_group(kernel + r * MP, k);
      const vf m = per_lane(mu + r);
      const vf scale = v_prev ? m * reciprocal(row_dot(k, before)) : per_lane(u + r);
      const vf sum = scale * row_dot(k, role);
      // padding rows have sum 0: the floor only avoids 0/0
      const vf part = vmin(splat(1.0f), m * reciprocal(vmax(sum, splat(1e-37f))));
      const vf lack = vmax(m - sum, vf{});
      missing += lack;
      if (v_prev) store_per_lane(u + r, scale);
      store_per_lane(row_sum + r, sum);
      store_per_lane(keep + r, part);
      store_per_lane(deficit + r, lack);
      const vf kept = part * scale;
      ARTLAS_UNROLL
      for (int c = 0; c < C; ++c) acc[c] += k[c] * kept;
    }
    store_roles(acc, colsum);
    return hsum(missing) * 0.25f;
  }

  static float round_emit(const float* kernel, const float* mu, const float* u, const float* v,
                          const float* keep, const float* deficit, const float* spread, int64_t r0,
                          int64_t r1, float* out, float* colsum) {
    vf role[C], extra[C], acc[C], error = {};
    spread_roles(v, role);
    spread_roles(spread, extra);
    ARTLAS_UNROLL
    for (int c = 0; c < C; ++c) acc[c] = vf{};
    for (int64_t r = r0; r < r1; r += L) {
      vf t[C], sum = {};
      load_group(kernel + r * MP, t);
      const vf scale = per_lane(u + r) * per_lane(keep + r), lack = per_lane(deficit + r);
      ARTLAS_UNROLL
      for (int c = 0; c < C; ++c) {
        t[c] = t[c] * role[c] * scale + lack * extra[c];
        sum += t[c];
        acc[c] += t[c];
      }
      const vf off = lane_sum(sum) - per_lane(mu + r);
      error = vmax(error, vmax(off, -off));
      unblock(t, out + r * MP);
    }
    store_roles(acc, colsum);
    return hmax(error);
  }

  // sum of the couplings' rows over the entries begin..end of A, four at a time
  template <bool WEIGHTED>
  ARTLAS_INLINE static void sum_entries(const GraphView& graph, const float* coupling,
                                        int64_t begin, int64_t end, vf out[H]) {
    constexpr int U = H <= 2 ? 4 : (H <= 4 ? 2 : 1);
    vf acc[U][H];
    ARTLAS_UNROLL
    for (int s = 0; s < U; ++s) ARTLAS_UNROLL
    for (int h = 0; h < H; ++h) acc[s][h] = vf{};
    auto add = [&](int64_t j, vf to[H]) ARTLAS_LAMBDA {
      const float* row = coupling + (graph.col[j] - graph.first) * MP;
      const vf w = WEIGHTED ? splat(graph.weight[j]) : vf{};
      ARTLAS_UNROLL
      for (int h = 0; h < H; ++h) to[h] += WEIGHTED ? w * load(row + h * W) : load(row + h * W);
    };
    int64_t j = begin;
    for (; j + U <= end; j += U) ARTLAS_UNROLL
    for (int s = 0; s < U; ++s) add(j + s, acc[s]);
    for (; j < end; ++j) add(j, acc[0]);
    ARTLAS_UNROLL
    for (int h = 0; h < H; ++h) {
      out[h] = acc[0][h];
      ARTLAS_UNROLL
      for (int s = 1; s < U; ++s) out[h] += acc[s][h];
    }
  }
  ARTLAS_INLINE static void sum_rows(const GraphView& graph, const float* coupling, int64_t begin,
                                     int64_t end, vf out[H]) {
    if (graph.weight)
      sum_entries<true>(graph, coupling, begin, end, out);
    else
      sum_entries<false>(graph, coupling, begin, end, out);
  }

  static double cross(const GraphView& graph, const uint32_t* upper, const float* coupling,
                      const float* relation, int64_t roles, int64_t r0, int64_t r1) {
    constexpr int64_t AHEAD = 16;  // rows whose neighbours' couplings are prefetched
    const bool far = graph.n * MP * 4 > BEYOND_CACHE;
    double total = 0;
    for (int64_t r = r0; r < r1; r += TILE) {
      alignas(64) float tile[TILE * MP];
      const float* rows[TILE];
      row_pointers(coupling, MP, r, graph.n, rows);
      tile_product<false>(rows, relation, MP, roles, MP, tile, MP);
      vf sum = {};
      for (int i = 0; i < TILE && r + i < graph.n; ++i) {
        int64_t begin = graph.row_ptr[r + i] + upper[r + i];
        const int64_t end = graph.row_ptr[r + i + 1];
        if (const int64_t later = r + i + AHEAD; far && later < graph.n)
          for (int64_t j = graph.row_ptr[later] + upper[later]; j < graph.row_ptr[later + 1]; ++j) {
            const float* row = coupling + (graph.col[j] - graph.first) * MP;
            for (int b = 0; b < MP; b += 16) __builtin_prefetch(row + b);
          }
        const float* own = tile + i * MP;
        if (begin < end && graph.col[begin] == graph.first + r + i) {  // a loop counts once
          const vf half = splat(0.5f * graph.weight[begin++]);
          ARTLAS_UNROLL
          for (int h = 0; h < H; ++h)
            sum += half * load(coupling + (r + i) * MP + h * W) * load(own + h * W);
        }
        vf near[H];
        sum_rows(graph, coupling, begin, end, near);
        ARTLAS_UNROLL
        for (int h = 0; h < H; ++h) sum += near[h] * load(own + h * W);
      }
      total += hsum(sum);
    }
    return total;
  }

  static void mix(float old_weight, float weight, const float* coupling, int64_t r0, int64_t r1,
                  float* mixture) {
    const vf a = splat(old_weight), b = splat(weight);
    for (int64_t i = r0 * MP; i < r1 * MP; i += W)
      store(mixture + i, load(mixture + i) * a + load(coupling + i) * b);
  }

  static void gather_features(const float* mixture, const float* x, int64_t cols, int64_t r0,
                              int64_t r1, float* out) {
    outer_product(mixture + r0 * MP, MP, x + r0 * cols, cols, r1 - r0, MP, cols, out, cols);
  }
};

}  // namespace artlas::ARTLAS_ISA
