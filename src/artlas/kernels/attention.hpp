// Attention over the neighbours of a node, and its gradient, on a symmetric pattern: what a node
// sends is found in its own row, so that no two threads write to one place.
#pragma once

#include "ops.hpp"
#include "simd.hpp"

namespace artlas::ARTLAS_ISA {

struct Attention {
  ARTLAS_INLINE static float dot(const float* a, const float* b, int64_t width) {
    vf sum = {};
    int64_t d = 0;
    for (; d + W <= width; d += W) sum += load(a + d) * load(b + d);
    float rest = 0;
    for (; d < width; ++d) rest += a[d] * b[d];
    return hsum(sum) + rest;
  }

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

  // exp of numbers in space for W more than count
  ARTLAS_INLINE static void exponents(int64_t count, float* x) {
    for (int64_t e = 0; e < count; e += W) store(x + e, vexp(load(x + e)));
  }

  // Signs of scores cannot be foreseen: no branches.
  ARTLAS_INLINE static float leaky(float x, float slope) {
    return (x > 0 ? x : 0) + slope * (x < 0 ? x : 0);
  }

  // A node's neighbours and, last, itself
  ARTLAS_INLINE static int64_t met(const Pattern& p, int64_t i, int64_t e) {
    const int64_t j = p.row_ptr[i] + e;
    return j < p.row_ptr[i + 1] ? int64_t(p.col[j]) : i;
  }

  static void additive(const Pattern& p, const Additive& a, int64_t r0, int64_t r1, float* space,
                       float* out, float* log_sum) {
    const int64_t heads = a.heads, width = a.width, row = heads * width;
    for (int64_t i = r0; i < r1; ++i) {
      const int64_t count = p.row_ptr[i + 1] - p.row_ptr[i] + 1;
      const float* own = a.met + i * heads;
      float *to = out + i * row, *total = log_sum + i * heads;
      for (int64_t h = 0; h < heads; ++h) {  // the largest: exp cannot overflow
        float most = a.sent[i * heads + h];
        for (int64_t e = 0; e + 1 < count; ++e) {
          const float x = a.sent[met(p, i, e) * heads + h];
          most = x > most ? x : most;
        }
        total[h] = leaky(most + own[h], a.slope);
      }
      for (int64_t e = 0; e < count; ++e)
        for (int64_t h = 0, j = met(p, i, e); h < heads; ++h)
          space[e * heads + h] = leaky(a.sent[j * heads + h] + own[h], a.slope) - total[h];
      exponents(count * heads, space);
      clear(row, to);
      for (int64_t e = 0; e < count; ++e)
        for (int64_t h = 0, j = met(p, i, e); h < heads; ++h)
          add(space[e * heads + h], a.values + j * row + h * width, width, to + h * width);
      for (int64_t h = 0; h < heads; ++h) {
        float sum = 0;
        for (int64_t e = 0; e < count; ++e) sum += space[e * heads + h];
        scale(1 / sum, width, to + h * width);
        total[h] += std::log(sum);
      }
    }
  }

  static void additive_backward(const Pattern& p, const Additive& a, const Received& g, int64_t r0,
                                int64_t r1, float* space, float* d_values, float* d_sent,
                                float* d_met) {
    const int64_t heads = a.heads, width = a.width, row = heads * width;
    for (int64_t i = r0; i < r1; ++i) {
      const int64_t count = p.row_ptr[i + 1] - p.row_ptr[i] + 1;
      float *there = space, *back = space + count * heads + W;  // i receives, i sends
      for (int64_t e = 0; e < count; ++e)
        for (int64_t h = 0, j = met(p, i, e); h < heads; ++h) {
          const int64_t here = i * heads + h, other = j * heads + h;
          there[e * heads + h] = leaky(a.sent[other] + a.met[here], a.slope) - g.log_sum[here];
          back[e * heads + h] = leaky(a.sent[here] + a.met[other], a.slope) - g.log_sum[other];
        }
      exponents(count * heads, there);
      exponents(count * heads, back);
      clear(row, d_values + i * row);
      const float gate[2] = {a.slope, 1.0f};
      for (int64_t h = 0; h < heads; ++h) {
        const int64_t here = i * heads + h, begin = here * width;
        float sent = 0, received = 0;
        for (int64_t e = 0; e < count; ++e) {
          const int64_t other = met(p, i, e) * heads + h;
          const float *value = a.values + other * width, *grad = g.grad + other * width;
          const float into = dot(g.grad + begin, value, width) - g.along[here];
          const float from = dot(grad, a.values + begin, width) - g.along[other];
          received += there[e * heads + h] * into * gate[a.sent[other] + a.met[here] > 0];
          sent += back[e * heads + h] * from * gate[a.sent[here] + a.met[other] > 0];
          add(back[e * heads + h], grad, width, d_values + begin);
        }
        d_sent[here] = sent;
        d_met[here] = received;
      }
    }
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
      float most = -INFINITY, sum = 0;
      for (int64_t e = 0; e < count; ++e) {
        space[e] = dot(a.query + i * a.depth, a.key + near[e] * a.depth, a.depth);
        most = space[e] > most ? space[e] : most;
      }
      for (int64_t e = 0; e < count; ++e) space[e] -= most;
      exponents(count, space);
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
