// A SIMD register of floats and its operations, for the instruction set of this translation unit.
// Each instruction set has its own namespace, so that the three builds can share one module.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#if defined(__AVX512F__) || defined(__AVX2__)
#include <immintrin.h>
#endif

#if defined(__AVX512F__)
#define ARTLAS_ISA isa_avx512
#elif defined(__AVX2__)
#define ARTLAS_ISA isa_avx2
#else
#define ARTLAS_ISA isa_base
#endif

#define ARTLAS_INLINE inline __attribute__((always_inline))
#define ARTLAS_LAMBDA __attribute__((always_inline))
#define ARTLAS_UNROLL _Pragma("GCC unroll 64")

namespace artlas::ARTLAS_ISA {

#if defined(__AVX512F__)
constexpr int W = 16;
#elif defined(__AVX2__)
constexpr int W = 8;
#else
constexpr int W = 4;
#endif
// A register holds L lanes of four floats: one lane per node in the blocked kernel layout.
constexpr int L = W / 4;

typedef float vf __attribute__((vector_size(4 * W)));
typedef float v4 __attribute__((vector_size(16)));
typedef int32_t vi __attribute__((vector_size(4 * W)));
typedef float vf_unaligned __attribute__((vector_size(4 * W), aligned(4), may_alias));

ARTLAS_INLINE vf load(const float* p) { return *reinterpret_cast<const vf_unaligned*>(p); }
ARTLAS_INLINE void store(float* p, vf x) { *reinterpret_cast<vf_unaligned*>(p) = x; }

#if defined(__AVX512F__)

ARTLAS_INLINE vf splat(float x) { return _mm512_set1_ps(x); }
ARTLAS_INLINE vf vmax(vf a, vf b) { return _mm512_max_ps(a, b); }
ARTLAS_INLINE vf vmin(vf a, vf b) { return _mm512_min_ps(a, b); }
ARTLAS_INLINE float hsum(vf x) { return _mm512_reduce_add_ps(x); }
ARTLAS_INLINE float hmax(vf x) { return _mm512_reduce_max_ps(x); }
// p[0..3] in every lane
ARTLAS_INLINE vf four(const float* p) { return _mm512_broadcast_f32x4(_mm_loadu_ps(p)); }
// p[lane] in all four places of its lane
ARTLAS_INLINE vf per_lane(const float* p) {
  const __m512i index = _mm512_set_epi32(3, 3, 3, 3, 2, 2, 2, 2, 1, 1, 1, 1, 0, 0, 0, 0);
  return _mm512_permutexvar_ps(index, _mm512_castps128_ps512(_mm_loadu_ps(p)));
}
// the first element of every lane
ARTLAS_INLINE void store_per_lane(float* p, vf x) {
  const __m512i index = _mm512_set_epi32(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 12, 8, 4, 0);
  _mm_storeu_ps(p, _mm512_castps512_ps128(_mm512_permutexvar_ps(index, x)));
}
// the largest, or the sum, of each lane's four elements, in all four places
ARTLAS_INLINE vf lane_max(vf x) {
  x = vmax(x, _mm512_permute_ps(x, 0xB1));
  return vmax(x, _mm512_permute_ps(x, 0x4E));
}
ARTLAS_INLINE vf lane_sum(vf x) {
  x += (vf)_mm512_permute_ps(x, 0xB1);
  return x + (vf)_mm512_permute_ps(x, 0x4E);
}
ARTLAS_INLINE bool any(vi x) { return _mm512_test_epi32_mask((__m512i)x, (__m512i)x); }
ARTLAS_INLINE vf reciprocal(vf x) {
  const vf r = _mm512_rcp14_ps(x);
  return r + r * (1.0f - x * r);  // fused, so that the correction is rounded once
}
// rows of lanes become columns of lanes: out[j].lane[i] = in[i].lane[j]
ARTLAS_INLINE void transpose_lanes(vf x[L]) {
  const vf a = _mm512_shuffle_f32x4(x[0], x[1], 0x44), b = _mm512_shuffle_f32x4(x[0], x[1], 0xEE);
  const vf c = _mm512_shuffle_f32x4(x[2], x[3], 0x44), d = _mm512_shuffle_f32x4(x[2], x[3], 0xEE);
  x[0] = _mm512_shuffle_f32x4(a, c, 0x88);
  x[1] = _mm512_shuffle_f32x4(a, c, 0xDD);
  x[2] = _mm512_shuffle_f32x4(b, d, 0x88);
  x[3] = _mm512_shuffle_f32x4(b, d, 0xDD);
}
ARTLAS_INLINE vf round_even(vf x) { return _mm512_roundscale_ps(x, 0x08); }
ARTLAS_INLINE vf times_power_of_two(vf x, vf n) { return _mm512_scalef_ps(x, n); }

#elif defined(__AVX2__)

ARTLAS_INLINE vf splat(float x) { return _mm256_set1_ps(x); }
ARTLAS_INLINE vf vmax(vf a, vf b) { return _mm256_max_ps(a, b); }
ARTLAS_INLINE vf vmin(vf a, vf b) { return _mm256_min_ps(a, b); }
ARTLAS_INLINE v4 sum_over_lanes(vf x) {
  return _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
}
ARTLAS_INLINE float hsum(vf x) {
  const v4 s = sum_over_lanes(x);
  return (s[0] + s[1]) + (s[2] + s[3]);
}
ARTLAS_INLINE float hmax(vf x) {
  const v4 s = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
  return std::fmax(std::fmax(s[0], s[1]), std::fmax(s[2], s[3]));
}
ARTLAS_INLINE vf four(const float* p) { return _mm256_broadcast_ps((const __m128*)p); }
ARTLAS_INLINE vf per_lane(const float* p) {
  return _mm256_set_m128(_mm_broadcast_ss(p + 1), _mm_broadcast_ss(p));
}
ARTLAS_INLINE void store_per_lane(float* p, vf x) {
  p[0] = x[0];
  p[1] = x[4];
}
ARTLAS_INLINE vf lane_max(vf x) {
  x = vmax(x, _mm256_permute_ps(x, 0xB1));
  return vmax(x, _mm256_permute_ps(x, 0x4E));
}
ARTLAS_INLINE vf lane_sum(vf x) {
  x += (vf)_mm256_permute_ps(x, 0xB1);
  return x + (vf)_mm256_permute_ps(x, 0x4E);
}
ARTLAS_INLINE bool any(vi x) { return !_mm256_testz_si256((__m256i)x, (__m256i)x); }
ARTLAS_INLINE vf reciprocal(vf x) { return 1.0f / x; }
ARTLAS_INLINE void transpose_lanes(vf x[L]) {
  const vf a = x[0], b = x[1];
  x[0] = _mm256_permute2f128_ps(a, b, 0x20);
  x[1] = _mm256_permute2f128_ps(a, b, 0x31);
}
ARTLAS_INLINE vf round_even(vf x) { return _mm256_round_ps(x, 0x08); }
ARTLAS_INLINE vf times_power_of_two(vf x, vf n) {
  const __m256i e =
      _mm256_slli_epi32(_mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127)), 23);
  return x * (vf)_mm256_castsi256_ps(e);
}

#else  // four floats at a time in portable vector arithmetic: SSE2, NEON

ARTLAS_INLINE vf splat(float x) { return vf{x, x, x, x}; }
ARTLAS_INLINE vf vmax(vf a, vf b) { return a > b ? a : b; }
ARTLAS_INLINE vf vmin(vf a, vf b) { return a < b ? a : b; }
ARTLAS_INLINE float hsum(vf x) { return (x[0] + x[1]) + (x[2] + x[3]); }
ARTLAS_INLINE float hmax(vf x) { return std::fmax(std::fmax(x[0], x[1]), std::fmax(x[2], x[3])); }
ARTLAS_INLINE vf four(const float* p) { return load(p); }
ARTLAS_INLINE vf per_lane(const float* p) { return splat(p[0]); }
ARTLAS_INLINE void store_per_lane(float* p, vf x) { p[0] = x[0]; }
ARTLAS_INLINE vf lane_max(vf x) { return splat(hmax(x)); }
ARTLAS_INLINE vf lane_sum(vf x) { return splat(hsum(x)); }
ARTLAS_INLINE bool any(vi x) { return x[0] | x[1] | x[2] | x[3]; }
ARTLAS_INLINE vf reciprocal(vf x) { return 1.0f / x; }
ARTLAS_INLINE void transpose_lanes(vf*) {}
ARTLAS_INLINE vf round_even(vf x) {
  // adding and subtracting 1.5 * 2^23 rounds to the nearest integer below 2^22
  const vf magic = splat(12582912.0f);
  volatile vf shifted = x + magic;
  return shifted - magic;
}
ARTLAS_INLINE vf times_power_of_two(vf x, vf n) {
  const vi e = (__builtin_convertvector(n, vi) + 127) << 23;
  return x * (vf)e;
}

#endif

ARTLAS_INLINE float dot(const float* a, const float* b, int64_t width) {
  vf sum = {};
  int64_t d = 0;
  for (; d + W <= width; d += W) sum += load(a + d) * load(b + d);
  float rest = 0;
  for (; d < width; ++d) rest += a[d] * b[d];
  return hsum(sum) + rest;
}

// exp to about one unit in the last place; below -87.3 the result stays at the smallest normal.
ARTLAS_INLINE vf vexp(vf x) {
  x = vmin(vmax(x, splat(-87.3f)), splat(88.0f));
  const vf n = round_even(x * 1.44269504088896341f);
  vf r = x - n * 0.693359375f;
  r = r - n * -2.12194440e-4f;
  vf p = splat(1.9875691500e-4f);
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  return times_power_of_two(p * (r * r) + (r + 1.0f), n);
}

}  // namespace artlas::ARTLAS_ISA
