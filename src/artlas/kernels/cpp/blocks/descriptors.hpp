// Descriptors of nodes that know the structure around them, exact at any size.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "blocks/dense_cycles.hpp"

namespace artlas {

constexpr int DESCRIPTORS = 9;

// Descriptors [nodes, 9] of one graph, and the triangles and core number of every node.
//
// log(1 + degree), log(1 + mean degree of neighbours), log(1 + sum of their degrees),
// log(1 + triangles), clustering coefficient, log(1 + core number), and the probabilities that a
// random walk has returned after 2, 3 and 4 steps.
class Descriptors {
 public:
  std::vector<double> values;
  std::vector<int64_t> triangles, core;

  void compute(const GraphView& graph) {
    const int64_t n = graph.nodes;
    values.resize(n * DESCRIPTORS);
    find_cores(graph);
    walk_cycles(graph);
    for (int64_t i = 0; i < n; ++i) {
      double around = 0.0;
      const double degree = double(graph.degree(i)), t = double(triangles[i]);
      graph.neighbours(i, [&](int64_t j) { around += double(graph.degree(j)); });
      const double pairs = degree * (degree - 1.0);
      double* to = &values[i * DESCRIPTORS];
      to[0] = std::log1p(degree);
      to[1] = std::log1p(around / std::max(degree, 1.0));
      to[2] = std::log1p(around);
      to[3] = std::log1p(t);
      to[4] = pairs > 0.0 ? 2.0 * t / pairs : 0.0;
      to[5] = std::log1p(double(core[i]));
      to[6] = inverse_[i] * reach_[i];
      to[7] = three_[i];
      to[8] = four_[i];
    }
  }

 private:
  // Core numbers by removing nodes of the lowest remaining degree (Batagelj and Zaversnik).
  void find_cores(const GraphView& graph) {
    const int64_t n = graph.nodes;
    core.resize(n), place_.resize(n), order_.resize(n);
    int64_t most = 0;
    for (int64_t i = 0; i < n; ++i) most = std::max(most, core[i] = graph.degree(i));
    start_.assign(most + 2, 0);
    for (int64_t i = 0; i < n; ++i) ++start_[core[i] + 1];
    for (int64_t d = 0; d <= most; ++d) start_[d + 1] += start_[d];
    for (int64_t i = 0; i < n; ++i) order_[place_[i] = start_[core[i]]++] = i;
    for (int64_t d = most; d > 0; --d) start_[d] = start_[d - 1];
    start_[0] = 0;
    for (int64_t k = 0; k < n; ++k) {
      const int64_t i = order_[k];
      graph.neighbours(i, [&](int64_t j) {
        if (core[j] <= core[i]) return;
        const int64_t begin = start_[core[j]]++, other = order_[begin];
        std::swap(order_[place_[j]], order_[begin]);
        std::swap(place_[j], place_[other]);
        --core[j];
      });
    }
  }

  // Triangles of every node, and probabilities to return after three and four steps.
  void walk_cycles(const GraphView& graph) {
    const int64_t n = graph.nodes;
    inverse_.resize(n), reach_.assign(n, 0.0);
    triangles.assign(n, 0), three_.assign(n, 0.0), four_.assign(n, 0.0);
    for (int64_t i = 0; i < n; ++i)
      inverse_[i] = graph.degree(i) ? 1.0 / double(graph.degree(i)) : 0.0;
    double lower = 0.0;  // the sum over edges of the lower degree
    for (int64_t i = 0; i < n; ++i)
      graph.neighbours(i, [&](int64_t j) {
        reach_[i] += inverse_[j];
        lower += double(std::min(graph.degree(i), graph.degree(j)));
      });
    if (n <= DENSE && double(graph.entries()) * double(n) < 8.0 * lower)
      dense_.walk(graph, inverse_, triangles, three_, four_);
    else
      walk_sparse(graph);
  }

  // Every cycle is found once, from its node of the highest degree (Chiba and Nishizeki): the cost
  // is the sum over edges of the lower degree.
  void walk_sparse(const GraphView& graph) {
    const int64_t n = graph.nodes;
    paths_.assign(n, Paths{}), adjacent_.assign(n, 0);
    // Walks that are no cycles: i - a - i - c - i, and i - a - b - a - i for b other than i.
    for (int64_t i = 0; i < n; ++i) {
      four_[i] = inverse_[i] * inverse_[i] * reach_[i] * reach_[i];
      graph.neighbours(i, [&](int64_t a) {
        four_[i] += inverse_[i] * inverse_[a] * inverse_[a] * (reach_[a] - inverse_[i]);
      });
    }
    for (int64_t top = 0; top < n; ++top) {
      if (graph.degree(top) < 2) continue;
      const auto below = [&](int64_t a, int64_t b) {
        return graph.degree(a) != graph.degree(b) ? graph.degree(a) < graph.degree(b) : a < b;
      };
      graph.neighbours(top, [&](int64_t u) { adjacent_[u] = 1; });
      graph.neighbours(top, [&](int64_t u) {
        if (!below(u, top)) return;
        graph.neighbours(u, [&](int64_t w) {
          if (w == top || !below(w, top)) return;
          if (paths_[w].count++ == 0) ends_.push_back(w);
          paths_[w].once += inverse_[u];
          paths_[w].squares += inverse_[u] * inverse_[u];
          if (!adjacent_[w] || w > u) return;
          const double weight = inverse_[top] * inverse_[u] * inverse_[w];
          for (const int64_t i : {top, u, w}) ++triangles[i], three_[i] += 2.0 * weight;
        });
      });
      for (const int64_t w : ends_) {
        if (paths_[w].count < 2) continue;
        const Paths& p = paths_[w];
        // Twice the pairs of middles: a cycle can be walked in two directions.
        const double pairs = (p.once * p.once - p.squares) * inverse_[top] * inverse_[w];
        four_[top] += pairs, four_[w] += pairs;
      }
      graph.neighbours(top, [&](int64_t u) {
        adjacent_[u] = 0;
        if (!below(u, top)) return;
        double sum = 0.0;
        graph.neighbours(u, [&](int64_t w) {
          if (paths_[w].count > 1) sum += inverse_[w] * (paths_[w].once - inverse_[u]);
        });
        four_[u] += 2.0 * inverse_[top] * inverse_[u] * sum;
      });
      for (const int64_t w : ends_) paths_[w] = {};
      ends_.clear();
    }
  }

  struct Paths {  // of two edges, from the top node to another
    int64_t count = 0;
    double once = 0.0, squares = 0.0;  // sums over their middles of 1 / degree, and of its square
  };
  std::vector<int64_t> place_, order_, start_, ends_;
  std::vector<double> inverse_, reach_, three_, four_;
  std::vector<Paths> paths_;
  std::vector<uint8_t> adjacent_;
  DenseCycles dense_;
};

}  // namespace artlas
