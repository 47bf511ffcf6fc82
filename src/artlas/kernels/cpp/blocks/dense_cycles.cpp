// Compiled without contraction, and vectorised over columns only: the same bits on every machine.
#include "blocks/dense_cycles.hpp"

#include <algorithm>
#include <bit>

#include "blocks/each_machine.hpp"

namespace artlas {
namespace {

ARTLAS_EACH_MACHINE
void add_row(const double* from, double scale, int64_t count, double* to) {
  for (int64_t j = 0; j < count; ++j) to[j] += scale * from[j];
}

}  // namespace

void DenseCycles::walk(const GraphView& graph, const std::vector<double>& inverse,
                       std::vector<int64_t>& triangles, std::vector<double>& three,
                       std::vector<double>& four) {
  const int64_t n = graph.nodes, words = (n + 63) / 64;
  bits_.assign(n * words, 0);
  for (int64_t i = 0; i < n; ++i)
    graph.neighbours(i, [&](int64_t j) { bits_[i * words + j / 64] |= uint64_t(1) << (j % 64); });
  for (int64_t i = 0; i < n; ++i)
    graph.neighbours(i, [&](int64_t j) {
      if (j > i) return;
      int64_t common = 0;
      for (int64_t w = 0; w < words; ++w)
        common += std::popcount(bits_[i * words + w] & bits_[j * words + w]);
      triangles[i] += common, triangles[j] += common;
    });
  for (int64_t i = 0; i < n; ++i) triangles[i] /= 2;

  // W_ij, the sum over common neighbours k of 1 / degree(k), for j below i and for i itself.
  rows_.assign(n * n, 0.0), paths_.resize(n);
  for (int64_t i = 0; i < n; ++i) graph.neighbours(i, [&](int64_t j) { rows_[i * n + j] = 1.0; });
  for (int64_t i = 0; i < n; ++i) {
    std::fill_n(paths_.begin(), i + 1, 0.0);
    graph.neighbours(i, [&](int64_t k) { add_row(&rows_[k * n], inverse[k], i + 1, &paths_[0]); });
    graph.neighbours(i, [&](int64_t j) {
      if (j > i) return;
      const double share = inverse[i] * inverse[j] * paths_[j];
      three[i] += share, three[j] += share;
    });
    four[i] += inverse[i] * inverse[i] * paths_[i] * paths_[i];
    for (int64_t j = 0; j < i; ++j) {
      const double share = inverse[i] * inverse[j] * paths_[j] * paths_[j];
      four[i] += share, four[j] += share;
    }
  }
}

}  // namespace artlas
