// Edges in any order and direction to the rows of a symmetric binary matrix without diagonal.
#pragma once

#include <cstdint>
#include <vector>

#include "team.hpp"

namespace artlas {

struct Rows {
  std::vector<int64_t> row_ptr;
  std::vector<int32_t> col;
  int64_t loops = 0;       // edges of a node with itself, left out
  int64_t duplicates = 0;  // edges that were given before in the same direction
  int64_t one_way = 0;     // edges whose reverse was not given
};

Rows make_rows(const int32_t* from, const int32_t* to, int64_t edges, int64_t nodes, int threads);

}  // namespace artlas
