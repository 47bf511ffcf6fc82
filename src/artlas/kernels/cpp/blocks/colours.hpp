// Colours of nodes by Weisfeiler-Lehman refinement, counted in hashed buckets.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "blocks/graph_view.hpp"

namespace artlas {

class Colours {
 public:
  // Start from the columns of x that are one. Where all entries of a node are whole numbers from 0
  // to 127 and two or more of them exceed one, as in coded fields of atoms, their values count too.
  void start(const GraphView& graph) {
    colour_.assign(graph.nodes, 0), next_.resize(graph.nodes);
    for (int64_t i = 0; i < graph.nodes; ++i) {
      const float* x = graph.x + i * graph.width;
      int above = 0;
      bool whole = true;
      for (int64_t j = 0; j < graph.width; ++j) {
        whole = whole && x[j] >= 0.0f && x[j] <= 127.0f && x[j] == std::floor(x[j]);
        above += x[j] > 1.0f;
      }
      const bool coded = whole && above > 1;
      uint64_t sum = 0;
      for (int64_t j = 0; j < graph.width; ++j)
        if (coded ? x[j] != 0.0f : x[j] == 1.0f)
          sum += scramble(uint64_t(j + 1) * 0x9e3779b97f4a7c15u + uint64_t(x[j] - 1.0f));
      colour_[i] = scramble(sum);
    }
  }

  // Start from a single colour.
  void start_alike(int64_t nodes) { colour_.assign(nodes, 0), next_.resize(nodes); }

  // Also tell apart nodes by their core number and by up to three triangles.
  void refine_by_shape(const std::vector<int64_t>& triangles, const std::vector<int64_t>& core) {
    for (size_t i = 0; i < colour_.size(); ++i) {
      const uint64_t t = uint64_t(std::min<int64_t>(triangles[i], 3));
      colour_[i] = scramble(colour_[i] + scramble(t + 11) + scramble(uint64_t(core[i]) + 31));
    }
  }

  // One round: a node's new colour is a hash of its own and of the multiset of its neighbours'.
  void refine(const GraphView& graph, int round) {
    for (auto& h : colour_) h = scramble(h + 0x1234567u);
    for (int64_t i = 0; i < graph.nodes; ++i) {
      uint64_t sum = 0;
      graph.neighbours(i, [&](int64_t j) { sum += colour_[j]; });
      next_[i] = scramble(3 * colour_[i] + sum + uint64_t(round));
    }
    colour_.swap(next_);
  }

  // Writes the sums of log(1 + count) over the colours of every bucket into out [buckets].
  void count(float* out, int64_t buckets) {
    sums_.assign(buckets, 0.0);  // in double precision: a bucket may hold very many colours
    next_ = colour_;
    std::sort(next_.begin(), next_.end());
    for (size_t from = 0, to; from < next_.size(); from = to) {
      for (to = from; to < next_.size() && next_[to] == next_[from];) ++to;
      sums_[scramble(next_[from] + 77) % uint64_t(buckets)] += std::log1p(double(to - from));
    }
    for (int64_t b = 0; b < buckets; ++b) out[b] = float(sums_[b]);
    next_.resize(colour_.size());
  }

 private:
  std::vector<uint64_t> colour_, next_;
  std::vector<double> sums_;
};

}  // namespace artlas
