// Graphs to vectors of named blocks.
#pragma once

#include <cstdint>

namespace artlas {

// Many graphs in one CSR, and the form of their vectors.
struct BlocksTask {
  const int64_t *node_ptr, *row_ptr;
  const int32_t* col;
  const float* x;  // [nodes, width] or null
  int64_t graphs, width, buckets;
  int rounds, threads;
  // Columns of one vector: quantiles, waves, then colours and shapes of every round.
  int64_t columns() const;
};

// Writes the vectors [graphs, columns].
void embed_blocks(const BlocksTask&, float* out);

}  // namespace artlas
