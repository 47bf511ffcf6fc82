// Batch normalisation: columns brought to mean 0 and variance 1, scaled and shifted, with a ReLU
// behind it or not, and its gradient. What is no number stays so.
#pragma once

#include "ops.hpp"
#include "simd.hpp"

namespace artlas::ARTLAS_ISA {

struct ColumnKernels {
  // means of rows r0..r1, and sums of squares about them
  static void moments(const float* x, int64_t width, int64_t r0, int64_t r1, float* __restrict mean,
                      float* __restrict square) {
    for (int64_t d = 0; d < width; ++d) mean[d] = square[d] = 0;
    for (int64_t i = r0; i < r1; ++i)
      for (int64_t d = 0; d < width; ++d) mean[d] += x[i * width + d];
    for (int64_t d = 0; d < width; ++d) mean[d] /= float(r1 - r0);
    for (int64_t i = r0; i < r1; ++i)
      for (int64_t d = 0; d < width; ++d) {
        const float off = x[i * width + d] - mean[d];
        square[d] += off * off;
      }
  }

  static void forward(const Columns& c, int64_t r0, int64_t r1, float* out) {
    (c.rectify ? forward_rows<true> : forward_rows<false>)(c, r0, r1, out);
  }
  // sums over rows r0..r1 of the gradient before the ReLU, and of it times x - mean
  static void sums(const Columns& c, const float* grad, int64_t r0, int64_t r1, float* sum,
                   float* along) {
    for (int64_t d = 0; d < c.width; ++d) sum[d] = along[d] = 0;
    (c.rectify ? sum_rows<true> : sum_rows<false>)(c, grad, r0, r1, sum, along);
  }
  // factor g - shift - slope (x - mean)
  static void backward(const Columns& c, const float* grad, const float* shift, const float* slope,
                       int64_t r0, int64_t r1, float* out) {
    (c.rectify ? backward_rows<true> : backward_rows<false>)(c, grad, shift, slope, r0, r1, out);
  }

 private:
  template <bool Rectify>
  static void forward_rows(const Columns& c, int64_t r0, int64_t r1, float* __restrict out) {
    const int64_t width = c.width;
    const float* __restrict x = c.x, * __restrict factor = c.factor, * __restrict offset = c.offset;
    for (int64_t i = r0 * width; i < r1 * width; i += width)
      for (int64_t d = 0; d < width; ++d) {
        const float y = factor[d] * x[i + d] + offset[d];
        out[i + d] = Rectify && y < 0 ? 0 : y;
      }
  }
  template <bool Rectify>
  static void sum_rows(const Columns& c, const float* __restrict grad, int64_t r0, int64_t r1,
                       float* __restrict sum, float* __restrict along) {
    const int64_t width = c.width;
    const float* __restrict x = c.x, * __restrict mean = c.mean;
    const float* __restrict factor = c.factor, * __restrict offset = c.offset;
    for (int64_t i = r0 * width; i < r1 * width; i += width)
      for (int64_t d = 0; d < width; ++d) {
        const bool off = Rectify && factor[d] * x[i + d] + offset[d] <= 0;
        const float g = off ? 0 : grad[i + d];
        sum[d] += g;
        along[d] += g * (x[i + d] - mean[d]);
      }
  }
  template <bool Rectify>
  static void backward_rows(const Columns& c, const float* __restrict grad,
                            const float* __restrict shift, const float* __restrict slope,
                            int64_t r0, int64_t r1, float* __restrict out) {
    const int64_t width = c.width;
    const float* __restrict x = c.x, * __restrict mean = c.mean;
    const float* __restrict factor = c.factor, * __restrict offset = c.offset;
    for (int64_t i = r0 * width; i < r1 * width; i += width)
      for (int64_t d = 0; d < width; ++d) {
        const bool off = Rectify && factor[d] * x[i + d] + offset[d] <= 0;
        const float g = off ? 0 : grad[i + d];
        out[i + d] = factor[d] * g - shift[d] - slope[d] * (x[i + d] - mean[d]);
      }
  }
};

}  // namespace artlas::ARTLAS_ISA
