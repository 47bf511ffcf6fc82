// Turns entries of many graphs into undirected, loop-free compressed rows without duplicates.
#pragma once

#include <cstdint>
#include <optional>

#include "ingest/text_table.hpp"

namespace artlas {

struct Entries {  // ends of edges, each `step` numbers behind the one before; nodes count from
                  // `first`
  const int32_t *source, *target;
  int64_t source_step, target_step, count;
  int32_t first;
};

struct Canonical {
  Buffer<int64_t> row_ptr;
  Buffer<int32_t> col;
  int64_t nodes, entries;
  int64_t loops = 0, duplicates = 0, one_way = 0;  // dropped, merged, completed
};

// Empty if a node is out of range.
std::optional<Canonical> canonical(const Entries&, int64_t nodes, int threads);

// Empty if the text is not in the form that Table::edges reads.
std::optional<Canonical> canonical(const Table&, int64_t nodes, int32_t first, int threads);

}  // namespace artlas
