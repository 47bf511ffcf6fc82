// Relational Gromov-Wasserstein between a graph and a dense relation, in double precision: the
// gradient, and the two kinds of steps to a better coupling.
//
// Matrices over nodes and roles are [n, stride] with stride >= m; columns beyond m are zero.
#pragma once

#include <cmath>

#include "core/kernel_tables.hpp"
#include "core/simd.hpp"

namespace artlas::ARTLAS_ISA {

// eight doubles at any address
typedef double vd __attribute__((vector_size(64), aligned(8)));
typedef int64_t vl __attribute__((vector_size(64)));
ARTLAS_INLINE vd& eight(double* p) { return *reinterpret_cast<vd*>(p); }
ARTLAS_INLINE const vd& eight(const double* p) { return *reinterpret_cast<const vd*>(p); }

struct Relational {
  static constexpr double FAR = 1e300;

  // out = -4 A X B, the gradient of the energy at X
  static void gradient(const GwView& p, const double* x, double* row, double* out) {
    for (int64_t i = 0; i < p.n; ++i) {
      for (int64_t b = 0; b < p.stride; ++b) row[b] = 0;
      for (int64_t j = p.row_ptr[i]; j < p.row_ptr[i + 1]; ++j) {
        const double* other = x + (p.col[j] - p.first) * p.stride;
        for (int64_t b = 0; b < p.stride; ++b) row[b] += other[b];
      }
      double* to = out + i * p.stride;
      for (int64_t b = 0; b < p.stride; ++b) to[b] = 0;
      for (int64_t a = 0; a < p.m; ++a) {
        const double scaled = -4 * row[a];
        if (scaled == 0) continue;
        const double* relation = p.relation + a * p.stride;
        for (int64_t b = 0; b < p.stride; ++b) to[b] += scaled * relation[b];
      }
    }
  }

  static double dot(const double* x, const double* y, int64_t count) {
    double sum[8] = {};
    int64_t i = 0;
    for (; i + 8 <= count; i += 8)
      for (int k = 0; k < 8; ++k) sum[k] += x[i + k] * y[i + k];
    for (; i < count; ++i) sum[0] += x[i] * y[i];
    return ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
  }

  // The vertex x of the transport polytope with the least <cost, x>, by shortest augmenting paths
  // over the roles. Prices persist between calls; any prices are a valid start.
  static void transport(const GwView& p, const double* cost, const TransportSpace& s, double* x) {
    const double tiny = 1e-15;
    for (int64_t b = 0; b < p.m; ++b) s.excess[b] = -p.nu[b], s.count[b] = 0, s.known[b] = NONE;
    for (int64_t b = p.m; b < p.stride; ++b) s.price[b] = -FAR;  // no node takes a padding role
    for (int64_t i = 0; i < p.n * p.stride; ++i) x[i] = 0, s.listed[i] = 0;
    for (int64_t i = 0; i < p.n; ++i) {
      const double* row = cost + i * p.stride;
      for (int64_t b = 0; b < p.stride; b += 8)
        eight(s.open + b) = eight(row + b) - eight(s.price + b);
      const int64_t best = least(s.open, p.stride);
      move(p, s, x, i, best, p.mu[i]);
      s.excess[best] += p.mu[i];
    }
    double largest = 0;
    for (int64_t i = 0; i < p.n * p.stride; ++i)
      largest = std::fabs(cost[i]) > largest ? std::fabs(cost[i]) : largest;
    // Among paths that are equally short but for rounding, prefer the one with the fewest changes:
    // with tied costs, others move the same small mass back and forth a million times.
    const double hop = 1e-14 * largest;
    // the rest is a rounding error: an excess without a deficit
    for (bool moved = true; moved && shortest_paths(p, cost, s, x, hop, tiny);) {
      moved = false;
      for (int64_t end = 0; end < p.m; ++end) moved |= fill_up(p, s, x, end, tiny);
    }
  }

  // T exp(-gradient / epsilon), scaled to both measures by at most `most` iterations and rounded:
  // the mirror step. Returns the iterations.
  static int64_t mirror(const GwView& p, const double* at, const double* gradient, double epsilon,
                        int64_t most, const TransportSpace& s, double* x) {
    kernel(p, at, gradient, epsilon, x);
    const int64_t steps = scale(p, most, s, x);
    for (int64_t i = 0; i < p.n; ++i)
      for (int64_t b = 0; b < p.stride; ++b) x[i * p.stride + b] *= s.row_scale[i] * s.scale[b];
    round(p, s, x);
    return steps;
  }

  // Approximates the prices for the first transport by those of the problem with entropy.
  // Overwrites x.
  static void prices(const GwView& p, const double* cost, double epsilon, const TransportSpace& s,
                     double* x) {
    kernel(p, nullptr, cost, epsilon, x);
    scale(p, 50, s, x);
    for (int64_t b = 0; b < p.m; ++b)
      s.price[b] = s.scale[b] > 0 ? epsilon * std::log(s.scale[b]) : 0;
  }

  // Cuts rows and columns down to their measures and adds the missing mass as a product.
  static void round(const GwView& p, const TransportSpace& s, double* x) {
    double *column = s.distance, missing = 0;
    for (int64_t b = 0; b < p.stride; ++b) column[b] = 0;
    for (int64_t i = 0; i < p.n; ++i) {
      double *row = x + i * p.stride, sum = 0;
      for (int64_t b = 0; b < p.m; ++b) sum += row[b];
      const double keep = sum > p.mu[i] ? p.mu[i] / sum : 1;
      for (int64_t b = 0; b < p.stride; ++b) column[b] += row[b] *= keep;
    }
    for (int64_t b = 0; b < p.m; ++b) {
      const double keep = column[b] > p.nu[b] ? p.nu[b] / column[b] : 1;
      s.scale[b] = keep;
      const double lack = p.nu[b] - keep * column[b];
      column[b] = lack > 0 ? lack : 0;
    }
    for (int64_t i = 0; i < p.n; ++i) {
      double *row = x + i * p.stride, sum = 0;
      for (int64_t b = 0; b < p.m; ++b) sum += row[b] *= s.scale[b];
      s.row_scale[i] = p.mu[i] > sum ? p.mu[i] - sum : 0;
      missing += s.row_scale[i];
    }
    if (!(missing > 0)) return;
    for (int64_t i = 0; i < p.n; ++i)
      for (int64_t b = 0; b < p.m; ++b) x[i * p.stride + b] += s.row_scale[i] * column[b] / missing;
  }

  // Moves node i from role a to b and node j from b to a, by the amount that lowers the energy.
  static void trade(const GwView& p, double* x, double* gradient, int64_t i, int64_t j, int64_t a,
                    int64_t b) {
    double *xi = x + i * p.stride, *xj = x + j * p.stride;
    const double *gi = gradient + i * p.stride, *gj = gradient + j * p.stride;
    const double *ra = p.relation + a * p.stride, *rb = p.relation + b * p.stride;
    const double slope = gi[b] - gi[a] + gj[a] - gj[b];
    const double curve = near(p, i, j) ? 4 * (ra[a] + rb[b] - 2 * ra[b]) : 0;
    double amount = xi[a] < xj[b] ? xi[a] : xj[b];
    if (curve > 0 && -slope < 2 * curve * amount) amount = -slope / (2 * curve);
    xi[a] = xi[a] - amount, xi[b] += amount;
    xj[b] = xj[b] - amount, xj[a] += amount;
    for (int side = 0; side < 2; ++side) {  // for the neighbours of i, then for those of j
      const int64_t node = side ? j : i;
      const double factor = side ? 4 * amount : -4 * amount;
      for (int64_t e = p.row_ptr[node]; e < p.row_ptr[node + 1]; ++e) {
        double* g = gradient + (p.col[e] - p.first) * p.stride;
        for (int64_t c = 0; c < p.stride; ++c) g[c] += factor * (rb[c] - ra[c]);
      }
    }
  }

 private:
  // x = at o exp(-cost / epsilon), each row up to a factor; `at` is ones if null
  static void kernel(const GwView& p, const double* at, const double* cost, double epsilon,
                     double* x) {
    for (int64_t i = 0; i < p.n; ++i) {
      const double* row = cost + i * p.stride;
      double least = row[0];
      for (int64_t b = 1; b < p.m; ++b) least = row[b] < least ? row[b] : least;
      for (int64_t b = 0; b < p.stride; ++b) {
        const int64_t e = i * p.stride + b;
        x[e] = b < p.m ? (at ? at[e] : 1) * std::exp((least - row[b]) / epsilon) : 0;
      }
    }
  }

  // Scales rows and columns of x to both measures in at most `most` iterations.
  static int64_t scale(const GwView& p, int64_t most, const TransportSpace& s, const double* x) {
    double *v = s.scale, *sum = s.distance;
    for (int64_t b = 0; b < p.stride; ++b) v[b] = 1;
    int64_t step = 0;
    for (double error = 1; step < most && error > 1e-4; ++step) {
      for (int64_t b = 0; b < p.stride; ++b) sum[b] = 0;
      for (int64_t i = 0; i < p.n; ++i) {
        const double* row = x + i * p.stride;
        const double total = dot(row, v, p.stride);
        const double u = total > 0 ? p.mu[i] / total : 0;
        s.row_scale[i] = u;
        for (int64_t b = 0; b < p.stride; ++b) sum[b] += u * row[b];
      }
      error = 0;
      for (int64_t b = 0; b < p.m; ++b) {
        error += std::fabs(sum[b] * v[b] - p.nu[b]);
        v[b] = sum[b] > 0 ? p.nu[b] / sum[b] : 0;
      }
    }
    return step;
  }

  static bool near(const GwView& p, int64_t i, int64_t j) {
    for (int64_t e = p.row_ptr[i]; e < p.row_ptr[i + 1]; ++e)
      if (p.col[e] - p.first == j) return true;
    return false;
  }

  static void move(const GwView& p, const TransportSpace& s, double* x, int64_t i, int64_t b,
                   double amount) {
    x[i * p.stride + b] += amount;
    if (s.listed[i * p.stride + b]) return;
    s.listed[i * p.stride + b] = 1;
    s.members[b * p.n + s.count[b]++] = int32_t(i);
  }

  static constexpr int64_t NONE = -1;
  struct Change {
    int64_t node, role;
  };
  // the node that changes to a role on the shortest path, and its role before
  static Change before(const GwView& p, const TransportSpace& s, int64_t role) {
    const int64_t from = int64_t(s.path[role]);
    return {int64_t(s.by[from * p.stride + role]), from};
  }

  // index of the smallest of `count` values, a multiple of eight
  ARTLAS_INLINE static int64_t least(const double* values, int64_t count) {
    vd best = eight(values), at = {0, 1, 2, 3, 4, 5, 6, 7}, here = at;
    for (int64_t b = 8; b < count; b += 8) {
      here += 8;
      const vd value = eight(values + b);
      at = value < best ? here : at;
      best = value < best ? value : best;
    }
    int64_t found = 0;
    for (int k = 1; k < 8; ++k)
      if (best[k] < best[found]) found = k;
    return int64_t(at[found]);
  }

  // Moves mass along the shortest path to role `end`: the least of its deficit, the excess of the
  // path's first role, and what the nodes between can pass on.
  static bool fill_up(const GwView& p, const TransportSpace& s, double* x, int64_t end,
                      double tiny) {
    double amount = -s.excess[end];
    if (amount <= tiny) return false;
    int64_t start = end;
    while (s.path[start] >= 0) {
      const auto [node, role] = before(p, s, start);
      const double held = x[node * p.stride + role];
      if (held < amount) amount = held;
      start = role;
    }
    if (s.excess[start] < amount) amount = s.excess[start];
    if (amount <= 0) return false;
    for (int64_t b = end; s.path[b] >= 0;) {
      const auto [node, role] = before(p, s, b);
      double& held = x[node * p.stride + role];
      held = held - amount < tiny ? 0 : held - amount;
      if (held == 0) s.known[role] = NONE;
      move(p, s, x, node, b, amount);
      b = role;
    }
    s.excess[start] -= amount;
    s.excess[end] += amount;
    return true;
  }

  // Updates the least cost at which a member of role a changes to each other role. New members are
  // compared with the known costs; after a member has left, all members are.
  static void learn(const GwView& p, const double* cost, const TransportSpace& s, const double* x,
                    int64_t a) {
    double *change = s.change + a * p.stride, *by = s.by + a * p.stride;
    int32_t* member = s.members + a * p.n;
    if (s.known[a] == NONE) {
      int64_t left = 0;
      for (int64_t k = 0; k < s.count[a]; ++k) {
        const int64_t i = member[k];
        if (x[i * p.stride + a] > 0)
          member[left++] = int32_t(i);
        else
          s.listed[i * p.stride + a] = 0;
      }
      s.count[a] = left, s.known[a] = 0;
      for (int64_t b = 0; b < p.stride; ++b) change[b] = FAR;
    }
    for (; s.known[a] < s.count[a]; ++s.known[a]) {
      const int64_t i = member[s.known[a]];
      const double* row = cost + i * p.stride;
      const vd node = vd{} + double(i), here = vd{} + row[a];
      for (int64_t b = 0; b < p.stride; b += 8) {
        const vd other = eight(row + b) - here;
        const vl better = other < eight(change + b);
        eight(change + b) = better ? other : eight(change + b);
        eight(by + b) = better ? node : eight(by + b);
      }
    }
  }

  // From the roles that have too much to all others, over nodes that can change from one role to
  // another. Prices rise by the distance: lengths stay positive, and those on the paths are zero
  // (but for `hop`, which every change costs), so that all of them can be used. False if no role
  // has too much.
  static bool shortest_paths(const GwView& p, const double* cost, const TransportSpace& s,
                             const double* x, double hop, double tiny) {
    bool any = false;
    for (int64_t b = 0; b < p.stride; ++b) {
      const bool source = b < p.m && s.excess[b] > tiny;
      any |= source;
      s.distance[b] = source ? 0 : FAR;
      s.path[b] = -1;
      s.open[b] = b < p.m ? s.distance[b] : 2 * FAR;
    }
    if (!any) return false;
    for (;;) {
      const int64_t a = least(s.open, p.stride);
      const double nearest = s.open[a];
      if (nearest >= FAR) break;
      s.open[a] = 2 * FAR;
      learn(p, cost, s, x, a);
      const double *change = s.change + a * p.stride, base = nearest + s.price[a];
      for (int64_t b = 0; b < p.stride; b += 8) {
        vd length = base + (eight(change + b) - eight(s.price + b));
        length = (length < nearest ? vd{} + nearest : length) + hop;
        const vl better = (length < eight(s.distance + b)) & (eight(s.open + b) <= FAR);
        eight(s.distance + b) = better ? length : eight(s.distance + b);
        eight(s.open + b) = better ? length : eight(s.open + b);
        eight(s.path + b) = better ? vd{} + double(a) : eight(s.path + b);
      }
    }
    for (int64_t b = 0; b < p.m; ++b) s.price[b] += s.distance[b] < FAR ? s.distance[b] : 0;
    return true;
  }
};

}  // namespace artlas::ARTLAS_ISA
