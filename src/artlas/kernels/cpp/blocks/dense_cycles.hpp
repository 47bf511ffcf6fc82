// Triangles and weighted cycles of small dense graphs, by rows of the squared adjacency.
#pragma once

#include <vector>

#include "blocks/graph_view.hpp"

namespace artlas {

constexpr int64_t DENSE = 1024;  // nodes that a dense matrix is kept for

class DenseCycles {
 public:
  // Adds the triangles of every node, and the probabilities that a random walk from it returns
  // after three and four steps.
  void walk(const GraphView&, const std::vector<double>& inverse, std::vector<int64_t>& triangles,
            std::vector<double>& three, std::vector<double>& four);

 private:
  std::vector<double> rows_, paths_;  // A [n, n]; a row of A D^-1 A
  std::vector<uint64_t> bits_;
};

}  // namespace artlas
