// Maps of the hyperboloid (curvature k = -1) and the sphere (k = 1) and their gradients, row by
// row; torch_manifolds.py has the formulas. A point is its time, then its other coordinates.
#pragma once

#include "core/kernel_tables.hpp"
#include "core/simd.hpp"

namespace artlas::ARTLAS_ISA {

struct Manifolds {
  static constexpr float TINY = 1e-6f, FAR = 6, LEAST = 1e-12f;

  struct Turn {  // sinh and cosh, or sin and cos
    float sine, cosine;
  };
  ARTLAS_INLINE static Turn turn(float k, float angle) {
    return k < 0 ? Turn{std::sinh(angle), std::cosh(angle)}
                 : Turn{std::sin(angle), std::cos(angle)};
  }
  // What is no number stays so in each of the comparisons below.
  ARTLAS_INLINE static float length(float square) {
    return std::sqrt((square < 0 ? 0 : square) + TINY * TINY);
  }
  ARTLAS_INLINE static float inner(float k, int64_t w, const float* x, const float* y) {
    return dot(x + 1, y + 1, w) + k * x[0] * y[0];
  }
  // a x + b y, which may be written in the place of either
  ARTLAS_INLINE static void combine(int64_t count, float a, const float* x, float b, const float* y,
                                    float* to) {
    int64_t d = 0;
    for (; d + W <= count; d += W) store(to + d, a * load(x + d) + b * load(y + d));
    for (; d < count; ++d) to[d] = a * x[d] + b * y[d];
  }
  ARTLAS_INLINE static void scale(int64_t count, float a, const float* x, float* to) {
    int64_t d = 0;
    for (; d + W <= count; d += W) store(to + d, a * load(x + d));
    for (; d < count; ++d) to[d] = a * x[d];
  }

  struct FromOrigin {
    static void forward(float k, int64_t w, const float* t, const float*, float* out) {
      const float norm = length(dot(t, t, w));
      const auto [s, c] = turn(k, k < 0 && norm > FAR ? FAR : norm);
      out[0] = c;
      scale(w, s / norm, t, out + 1);
    }
    static void backward(float k, int64_t w, const float* t, const float*, const float* grad,
                         float* d_t, float*) {
      const float norm = length(dot(t, t, w));
      const bool cut = k < 0 && norm > FAR;
      const auto [s, c] = turn(k, cut ? FAR : norm);
      const float by = s / norm, along = dot(grad + 1, t, w);
      const float d_norm = (cut ? 0 : -k * s * grad[0]) + along * ((cut ? 0 : c) - by) / norm;
      combine(w, by, grad + 1, d_norm / norm, t, d_t);
    }
  };

  struct ToOrigin {
    static void forward(float k, int64_t w, const float* x, const float*, float* out) {
      const float norm = length(dot(x + 1, x + 1, w));
      scale(w, (k < 0 ? std::asinh(norm) : std::atan2(norm, x[0])) / norm, x + 1, out);
    }
    static void backward(float k, int64_t w, const float* x, const float*, const float* grad,
                         float* d_x, float*) {
      const float norm = length(dot(x + 1, x + 1, w)), along = dot(grad, x + 1, w);
      const float square = norm * norm + (k < 0 ? 1 : x[0] * x[0]);
      const float by = (k < 0 ? std::asinh(norm) : std::atan2(norm, x[0])) / norm;
      const float slope = k < 0 ? 1 / std::sqrt(square) : x[0] / square;
      d_x[0] = k < 0 ? 0 : -along / square;
      combine(w, by, grad, along * (slope - by) / (norm * norm), x + 1, d_x + 1);
    }
  };

  // Values scaled onto the manifold, in place
  ARTLAS_INLINE static void onto(float k, int64_t w, float* values) {
    scale(w + 1, 1 / length(k * inner(k, w, values, values)), values, values);
  }
  // The gradient of values, in their place
  ARTLAS_INLINE static void onto_backward(float k, int64_t w, const float* grad, float* values) {
    const float square = k * inner(k, w, values, values), by = 1 / length(square);
    const float pull = square < 0 ? 0 : -dot(grad, values, w + 1) * by * by * by;
    values[0] = by * grad[0] + pull * values[0];
    combine(w, by, grad + 1, k * pull, values + 1, values + 1);
  }

  struct Mean {
    static void forward(float k, int64_t w, const float* x, const float* y, float* out) {
      combine(w + 1, 1, x, 1, y, out);
      onto(k, w, out);
    }
    static void backward(float k, int64_t w, const float* x, const float* y, const float* grad,
                         float* d_x, float* d_y) {
      combine(w + 1, 1, x, 1, y, d_x);
      onto_backward(k, w, grad, d_x);
      scale(w + 1, 1, d_x, d_y);
    }
  };

  struct Walk {
    static void forward(float k, int64_t w, const float* x, const float* y, float* out) {
      combine(w + 1, 1, y, -k * inner(k, w, x, y), x, out);
      const float norm = length(inner(k, w, out, out));
      const auto [s, c] = turn(k, norm);
      combine(w + 1, c, x, s / norm, out, out);
      onto(k, w, out);
    }
    static void backward(float k, int64_t w, const float* x, const float* y, const float* grad,
                         float* d_x, float* d_y) {
      const float share = k * inner(k, w, x, y);
      combine(w + 1, 1, y, -share, x, d_y);  // the tangent u
      const float square = inner(k, w, d_y, d_y), norm = length(square);
      const auto [s, c] = turn(k, norm);
      const float by = s / norm;
      combine(w + 1, c, x, by, d_y, d_x);
      onto_backward(k, w, grad, d_x);  // of c x + by u
      const float d_norm = -k * s * dot(d_x, x, w + 1) + (c - by) / norm * dot(d_x, d_y, w + 1);
      const float pull = square < 0 ? 0 : d_norm / norm;
      d_y[0] = by * d_x[0] + k * pull * d_y[0];
      combine(w, by, d_x + 1, pull, d_y + 1, d_y + 1);  // of u
      const float d_share = -dot(d_y, x, w + 1);
      const float d_time = c * d_x[0] - share * d_y[0] + d_share * y[0];
      combine(w + 1, c, d_x, -share, d_y, d_x);
      combine(w, 1, d_x + 1, k * d_share, y + 1, d_x + 1);
      d_x[0] = d_time;
      d_y[0] += d_share * x[0];
      combine(w, 1, d_y + 1, k * d_share, x + 1, d_y + 1);
    }
  };

  struct Carried {
    static void forward(float k, int64_t w, const float* x, const float* y, float* out) {
      const float over = 1 + x[0] < TINY ? TINY : 1 + x[0];
      combine(w, 1, y, -k * dot(x + 1, y, w) / over, x + 1, out);
    }
    static void backward(float k, int64_t w, const float* x, const float* y, const float* grad,
                         float* d_x, float* d_y) {
      const bool cut = 1 + x[0] < TINY;
      const float over = cut ? TINY : 1 + x[0], share = k * dot(x + 1, y, w) / over;
      const float d_share = -dot(grad, x + 1, w) / over;
      d_x[0] = cut ? 0 : -d_share * share;
      combine(w, -share, grad, k * d_share, y, d_x + 1);
      combine(w, 1, grad, k * d_share, x + 1, d_y);
    }
  };

  struct Unit {
    static void forward(float, int64_t w, const float* x, const float*, float* out) {
      const float norm = std::sqrt(dot(x, x, w));
      scale(w, 1 / (norm < LEAST ? LEAST : norm), x, out);
    }
    static void backward(float, int64_t w, const float* x, const float*, const float* grad,
                         float* d_x, float*) {
      const float norm = std::sqrt(dot(x, x, w));
      const float by = 1 / (norm < LEAST ? LEAST : norm);
      combine(w, by, grad, norm < LEAST ? 0 : -dot(grad, x, w) * by * by * by, x, d_x);
    }
  };

  template <typename One>
  static void forward_rows(const MapRows& m, int64_t r0, int64_t r1, float* out) {
    for (int64_t i = r0; i < r1; ++i)
      One::forward(m.curvature, m.width, m.x + i * m.x_row, m.y + i * m.y_row, out + i * m.out_row);
  }
  template <typename One>
  static void backward_rows(const MapRows& m, const float* grad, int64_t r0, int64_t r1, float* d_x,
                            float* d_y) {
    for (int64_t i = r0; i < r1; ++i)
      One::backward(m.curvature, m.width, m.x + i * m.x_row, m.y + i * m.y_row,
                    grad + i * m.out_row, d_x + i * m.x_row, d_y + i * m.y_row);
  }
};

}  // namespace artlas::ARTLAS_ISA
