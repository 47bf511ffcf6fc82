// Batch normalisation: columns brought to mean 0 and variance 1, scaled and shifted, with a ReLU or
// a leaky one and dropout behind it or not, and its gradient. What is no number stays so.
#pragma once

#include "core/kernel_tables.hpp"
#include "core/simd.hpp"

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
    each_kind(c, [&]<Bend B, bool Drop>() { forward_rows<B, Drop>(c, r0, r1, out); });
  }
  // sums over rows r0..r1 of the gradient before the bend, of it times x - mean, and of the
  // gradient of a leaky bend's slope
  static void sums(const Columns& c, const float* grad, int64_t r0, int64_t r1, float* sum,
                   float* along, float* bent) {
    for (int64_t d = 0; d < c.width; ++d) sum[d] = along[d] = bent[d] = 0;
    each_kind(c,
              [&]<Bend B, bool Drop>() { sum_rows<B, Drop>(c, grad, r0, r1, sum, along, bent); });
  }
  // factor g - shift - slope (x - mean)
  static void backward(const Columns& c, const float* grad, const float* shift, const float* slope,
                       int64_t r0, int64_t r1, float* out) {
    each_kind(c, [&]<Bend B, bool Drop>() {
      backward_rows<B, Drop>(c, grad, shift, slope, r0, r1, out);
    });
  }

 private:
  template <typename Kind>
  static void each_kind(const Columns& c, Kind kind) {
    const auto dropping = [&]<Bend B>() {
      c.dropping.below ? kind.template operator()<B, true>() : kind.template operator()<B, false>();
    };
    switch (c.bend) {
      case Bend::none:
        return dropping.template operator()<Bend::none>();
      case Bend::relu:
        return dropping.template operator()<Bend::relu>();
      case Bend::leaky:
        return dropping.template operator()<Bend::leaky>();
    }
  }

  ARTLAS_INLINE static uint32_t mixed(uint32_t h) {
    h = (h ^ (h >> 16)) * 0x7feb352du;
    h = (h ^ (h >> 15)) * 0x846ca68bu;
    return h ^ (h >> 16);
  }
  // what an entry is multiplied by
  template <bool Drop>
  ARTLAS_INLINE static float weight(const Dropping& d, uint32_t entry) {
    if constexpr (!Drop) return 1;
    return mixed(mixed(entry ^ d.first) + d.second) < d.below ? 0 : d.scale;
  }

  template <Bend B, bool Drop>
  static void forward_rows(const Columns& c, int64_t r0, int64_t r1, float* __restrict out) {
    const int64_t width = c.width;
    const float* __restrict x = c.x, * __restrict factor = c.factor, * __restrict offset = c.offset;
    const Dropping dropping = c.dropping;
    const float low = B == Bend::leaky ? c.slope : 0;
    for (int64_t i = r0 * width; i < r1 * width; i += width)
      for (int64_t d = 0; d < width; ++d) {
        const float y = factor[d] * x[i + d] + offset[d];
        const float bent = B == Bend::leaky ? low * y : 0;
        const float by = weight<Drop>(dropping, uint32_t(i) + uint32_t(d));
        out[i + d] = (B != Bend::none && y < 0 ? bent : y) * by;
      }
  }
  template <Bend B, bool Drop>
  static void sum_rows(const Columns& c, const float* __restrict grad, int64_t r0, int64_t r1,
                       float* __restrict sum, float* __restrict along, float* __restrict bent) {
    const int64_t width = c.width;
    const float* __restrict x = c.x, * __restrict mean = c.mean;
    const float* __restrict factor = c.factor, * __restrict offset = c.offset;
    const Dropping dropping = c.dropping;
    const float low = B == Bend::leaky ? c.slope : 0;
    for (int64_t i = r0 * width; i < r1 * width; i += width)
      for (int64_t d = 0; d < width; ++d) {
        const float y = factor[d] * x[i + d] + offset[d];
        const bool off = B != Bend::none && y <= 0;
        const float given = grad[i + d] * weight<Drop>(dropping, uint32_t(i) + uint32_t(d));
        const float g = off ? (B == Bend::leaky ? low * given : 0) : given;
        sum[d] += g;
        along[d] += g * (x[i + d] - mean[d]);
        if constexpr (B == Bend::leaky) bent[d] += off ? given * y : 0;
      }
  }
  template <Bend B, bool Drop>
  static void backward_rows(const Columns& c, const float* __restrict grad,
                            const float* __restrict shift, const float* __restrict slope,
                            int64_t r0, int64_t r1, float* __restrict out) {
    const int64_t width = c.width;
    const float* __restrict x = c.x, * __restrict mean = c.mean;
    const float* __restrict factor = c.factor, * __restrict offset = c.offset;
    const Dropping dropping = c.dropping;
    const float low = B == Bend::leaky ? c.slope : 0;
    for (int64_t i = r0 * width; i < r1 * width; i += width)
      for (int64_t d = 0; d < width; ++d) {
        const bool off = B != Bend::none && factor[d] * x[i + d] + offset[d] <= 0;
        const float given = grad[i + d] * weight<Drop>(dropping, uint32_t(i) + uint32_t(d));
        const float g = off ? (B == Bend::leaky ? low * given : 0) : given;
        out[i + d] = factor[d] * g - shift[d] - slope[d] * (x[i + d] - mean[d]);
      }
  }
};

}  // namespace artlas::ARTLAS_ISA
