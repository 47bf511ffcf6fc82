// One graph as the blocks of its vector see it, and the hash that they share.
#pragma once

#include <cstdint>

namespace artlas {

// Nodes are numbered from 0; `first` is the number of node 0 in `col`.
struct GraphView {
  const int64_t* row_ptr;  // [nodes + 1]
  const int32_t* col;      // global
  const float* x;          // [nodes, width] or null
  int64_t nodes, width, first;

  int64_t degree(int64_t i) const { return row_ptr[i + 1] - row_ptr[i]; }
  int64_t entries() const { return row_ptr[nodes] - row_ptr[0]; }
  template <typename Visit>
  void neighbours(int64_t i, Visit visit) const {
    for (int64_t e = row_ptr[i]; e < row_ptr[i + 1]; ++e) visit(int64_t(col[e]) - first);
  }
};

// A bijection of 64-bit numbers whose outputs look random (the finaliser of SplitMix64).
inline uint64_t scramble(uint64_t h) {
  h ^= h >> 30;
  h *= 0xbf58476d1ce4e5b9u;
  h ^= h >> 27;
  h *= 0x94d049bb133111ebu;
  return h ^ (h >> 31);
}

}  // namespace artlas
