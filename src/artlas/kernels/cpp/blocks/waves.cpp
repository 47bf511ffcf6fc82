// Compiled without contraction, and vectorised over waves only: the same bits on every machine.
#include "blocks/waves.hpp"

#include <cmath>

#include "blocks/each_machine.hpp"

namespace artlas {
namespace {

// What a descriptor varies by among nodes of common graphs: fixed, as a vector knows its graph
// only.
constexpr double SPREAD[DESCRIPTORS] = {0.5, 0.5, 0.7, 0.7, 0.3, 0.4, 0.3, 0.15, 0.2};
constexpr double STRUCTURE_SCALE = 0.3, FEATURE_SCALE = 2.0;

// A number near normal with variance 1: a sum of four uniform ones, exact in every bit.
float near_normal(uint64_t h) {
  double sum = -2.0;
  for (int k = 0; k < 4; ++k) sum += (double((h >> (16 * k)) & 0xffff) + 0.5) / 65536.0;
  return float(sum * 1.7320508075688772);
}

// Adds cos(phase + H Omega) of rows h [count, width] to sums [WAVES].
ARTLAS_EACH_MACHINE
void add_waves(const float* h, int64_t count, int64_t width, const float* frequencies,
               const float* phases, float* sums) {
  alignas(64) float angle[WAVES];
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t w = 0; w < WAVES; ++w) angle[w] = phases[w];
    for (int64_t k = 0; k < width; ++k) {
      const float value = h[i * width + k];
      if (value == 0.0f) continue;
      const float* row = frequencies + k * WAVES;
      for (int64_t w = 0; w < WAVES; ++w) angle[w] += value * row[w];
    }
    // cos(2 pi t) for t in turns: the distance r from the nearest whole turn, then a polynomial
    // in r^2 (Taylor to r^14, error below 1e-5).
    for (int64_t w = 0; w < WAVES; ++w) {
      const float turns = angle[w] + 12582912.0f;  // 1.5 * 2^23 rounds to whole numbers
      const float r = (angle[w] - (turns - 12582912.0f)) * 6.28318531f, s = r * r;
      float c = -1.14707456e-11f;
      c = c * s + 2.08767570e-9f;
      c = c * s - 2.75573192e-7f;
      c = c * s + 2.48015873e-5f;
      c = c * s - 1.38888889e-3f;
      c = c * s + 4.16666667e-2f;
      c = c * s - 0.5f;
      sums[w] += c * s + 1.0f;
    }
  }
}

}  // namespace

Frequencies::Frequencies(int64_t width)
    : values_(HOPS * (DESCRIPTORS + width) * WAVES), phases_(WAVES) {
  const double turn = 6.283185307179586;
  const int64_t own = DESCRIPTORS + width;
  for (int hop = 0; hop < HOPS; ++hop)
    for (int64_t j = 0; j < own; ++j)
      for (int64_t w = 0; w < WAVES; ++w) {
        const uint64_t key = (uint64_t(j) * HOPS + uint64_t(hop)) * WAVES + uint64_t(w);
        const double scale = j < DESCRIPTORS ? STRUCTURE_SCALE / SPREAD[j] : FEATURE_SCALE;
        const float z = near_normal(scramble(scramble(key + 0x51ed2701u)));
        values_.data()[(hop * own + j) * WAVES + w] = float(z * scale / turn);
      }
  for (int64_t w = 0; w < WAVES; ++w)
    phases_.data()[w] = float(double(scramble(uint64_t(w) + 0x7f4a7c15u) >> 40) / 16777216.0);
}

void Waves::sum(const GraphView& graph, const Descriptors& descriptors, const Frequencies& omega,
                int threads, double* out) {
  const int64_t own = DESCRIPTORS + graph.width, width = HOPS * own, n = graph.nodes;
  rows_.assign(n * width, 0.0f);
  for (int64_t i = 0; i < n; ++i) {
    float* to = &rows_[i * width];
    for (int j = 0; j < DESCRIPTORS; ++j) to[j] = float(descriptors.values[i * DESCRIPTORS + j]);
    if (!graph.x) continue;
    const float* x = graph.x + i * graph.width;
    int64_t filled = 0;
    for (int64_t j = 0; j < graph.width; ++j) filled += x[j] != 0.0f;
    // Signed logarithms to base 2, so that a flag is 1, over the root of the number of entries.
    const double scale = 1.0 / (std::log(2.0) * std::sqrt(double(std::max<int64_t>(filled, 1))));
    for (int64_t j = 0; j < graph.width; ++j)
      if (x[j] != 0.0f)
        to[DESCRIPTORS + j] =
            float(std::copysign(std::log1p(std::fabs(double(x[j]))), x[j]) * scale);
  }
  const auto blocks = (n + WAVE_ROWS - 1) / WAVE_ROWS;
  for (int hop = 1; hop < HOPS; ++hop)
    for (int64_t i = 0; i < n; ++i) {
      const double share = graph.degree(i) ? 1.0 / double(graph.degree(i)) : 0.0;
      mean_.assign(own, 0.0);  // of double precision: a hub has very many neighbours
      graph.neighbours(i, [&](int64_t j) {
        const float* from = &rows_[j * width + (hop - 1) * own];
        for (int64_t k = 0; k < own; ++k) mean_[k] += double(from[k]);
      });
      float* to = &rows_[i * width + hop * own];
      for (int64_t k = 0; k < own; ++k) to[k] = float(mean_[k] * share);
    }
  partial_.assign(blocks * WAVES, 0.0);
  std::atomic<int64_t> next{0};
  Team::run(int(std::min<int64_t>(threads, blocks)), [&](Team&, int) {
    for (int64_t b; (b = next.fetch_add(1)) < blocks;) {
      alignas(64) float sums[WAVES] = {};
      const int64_t from = b * WAVE_ROWS, count = std::min(n - from, WAVE_ROWS);
      add_waves(&rows_[from * width], count, width, omega.row(0), omega.phases(), sums);
      for (int64_t w = 0; w < WAVES; ++w) partial_[b * WAVES + w] = double(sums[w]);
    }
  });
  std::fill_n(out, WAVES, 0.0);
  for (int64_t b = 0; b < blocks; ++b)
    for (int64_t w = 0; w < WAVES; ++w) out[w] += partial_[b * WAVES + w];
}

}  // namespace artlas
