// Relational Gromov-Wasserstein between a graph and a dense relation, in double precision: the
// gradient, two ways to a better coupling, and the step towards it.
//
// Matrices over nodes and roles are [n, stride] with stride >= m; what lies beyond m is zero.
#pragma once

#include <cmath>

#include "ops.hpp"
#include "simd.hpp"

namespace artlas::ARTLAS_ISA {

struct Relational {
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
  // over the roles. v: their prices, kept between calls; any prices are a valid start.
  static void transport(const GwView& p, const double* cost, const TransportSpace& s, double* x) {
    const double tiny = 1e-15;
    for (int64_t b = 0; b < p.m; ++b) s.excess[b] = -p.nu[b], s.count[b] = 0;
    for (int64_t i = 0; i < p.n * p.stride; ++i) x[i] = 0, s.listed[i] = 0;
    for (int64_t i = 0; i < p.n; ++i) {
      const double* row = cost + i * p.stride;
      int64_t best = 0;
      double least = row[0] - s.price[0];
      for (int64_t b = 1; b < p.m; ++b)
        if (row[b] - s.price[b] < least) least = row[b] - s.price[b], best = b;
      move(p, s, x, i, best, p.mu[i]);
      s.excess[best] += p.mu[i];
    }
    for (;;) {
      const int64_t end = shortest_path(p, cost, s, x, tiny);
      if (end < 0) return;
      double amount = -s.excess[end];
      int64_t start = end;
      for (; s.from[start] >= 0; start = s.from[start]) {
        const double held = x[s.via[start] * p.stride + s.from[start]];
        if (held < amount) amount = held;
      }
      if (s.excess[start] < amount) amount = s.excess[start];
      for (int64_t b = end; s.from[b] >= 0; b = s.from[b]) {
        double& held = x[s.via[b] * p.stride + s.from[b]];
        held = held - amount < tiny ? 0 : held - amount;
        move(p, s, x, s.via[b], b, amount);
      }
      s.excess[start] -= amount;
      s.excess[end] += amount;
    }
  }

  // T exp(-gradient / epsilon), scaled to both measures by at most `most` iterations and rounded:
  // the mirror step. Returns the iterations.
  static int64_t mirror(const GwView& p, const double* at, const double* gradient, double epsilon,
                        int64_t most, const TransportSpace& s, double* x) {
    for (int64_t i = 0; i < p.n; ++i) {
      const double *g = gradient + i * p.stride, *t = at + i * p.stride;
      double least = g[0];
      for (int64_t b = 1; b < p.m; ++b) least = g[b] < least ? g[b] : least;
      double* to = x + i * p.stride;
      for (int64_t b = 0; b < p.stride; ++b)
        to[b] = b < p.m ? t[b] * std::exp((least - g[b]) / epsilon) : 0;
    }
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
    for (int64_t i = 0; i < p.n; ++i)
      for (int64_t b = 0; b < p.stride; ++b) x[i * p.stride + b] *= s.row_scale[i] * v[b];
    round(p, s, x);
    return step;
  }

  // rows and columns cut down to their measures, and what is then missing added as a product
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

  // node i gives of role a what node j takes of it for b, as much as lowers the energy
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
    for (int side = 0; side < 2; ++side) {  // the neighbours of i see b for a, those of j a for b
      const int64_t node = side ? j : i;
      const double factor = side ? 4 * amount : -4 * amount;
      for (int64_t e = p.row_ptr[node]; e < p.row_ptr[node + 1]; ++e) {
        double* g = gradient + (p.col[e] - p.first) * p.stride;
        for (int64_t c = 0; c < p.stride; ++c) g[c] += factor * (rb[c] - ra[c]);
      }
    }
  }

 private:
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

  // From the roles that have too much to the nearest that has too little, over nodes that can
  // change from one role to another; prices rise with the distance, so that lengths stay positive.
  static int64_t shortest_path(const GwView& p, const double* cost, const TransportSpace& s,
                               const double* x, double tiny) {
    const double far = 1e300;
    bool any = false;
    for (int64_t b = 0; b < p.m; ++b) {
      const bool source = s.excess[b] > tiny;
      any |= source;
      s.distance[b] = source ? 0 : far;
      s.from[b] = -1;
      s.closed[b] = 0;
    }
    for (int64_t b = p.m; b < p.stride; ++b) s.distance[b] = -far;  // never reached
    if (!any) return -1;
    for (;;) {
      int64_t a = -1;
      double nearest = far;
      for (int64_t b = 0; b < p.m; ++b)
        if (!s.closed[b] && s.distance[b] < nearest) nearest = s.distance[b], a = b;
      if (a < 0) return -1;
      if (s.excess[a] < -tiny) {
        for (int64_t b = 0; b < p.m; ++b)
          s.price[b] += s.distance[b] < nearest ? s.distance[b] : nearest;
        return a;
      }
      s.closed[a] = 1;
      int32_t* member = s.members + a * p.n;
      for (int64_t k = 0; k < s.count[a];) {
        const int64_t i = member[k];
        if (x[i * p.stride + a] <= 0) {
          s.listed[i * p.stride + a] = 0;
          member[k] = member[--s.count[a]];
          continue;
        }
        const double* row = cost + i * p.stride;
        const double base = nearest - (row[a] - s.price[a]);
        for (int64_t b = 0; b < p.stride; ++b) {
          double length = base + (row[b] - s.price[b]);
          length = length < nearest ? nearest : length;
          const bool better = length < s.distance[b];
          s.distance[b] = better ? length : s.distance[b];
          s.via[b] = better ? i : s.via[b];
          s.from[b] = better ? a : s.from[b];
        }
        ++k;
      }
    }
  }
};

}  // namespace artlas::ARTLAS_ISA
