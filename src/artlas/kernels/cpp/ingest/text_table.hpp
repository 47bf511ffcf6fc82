// Parses tables of numbers in text with several threads.
#pragma once

#include <cstdint>
#include <string>

#include "core/thread_pool.hpp"

namespace artlas {

enum class Fault { none, value, range, few, many };

// One row a line; values separated by a comma, a semicolon or blanks. Blank lines, lines that start
// with # or %, and the first `skip` lines are skipped.
class Table {
 public:
  Table(const char* text, int64_t size, int64_t columns, int64_t skip, int threads);

  int64_t rows() const { return rows_; }
  int64_t columns() const { return columns_; }

  // Writes [rows, columns]; false at the first row that does not fit, which the getters report.
  template <typename T>
  bool parse(T* out);

  // Edges in ascending order of source and target, nodes counted from `first`, straight into
  // row_ptr [nodes + 1] and col [rows], without loops; false for any other text, which
  // parse must read.
  bool edges(int32_t first, int64_t nodes, int64_t* row_ptr, int32_t* col, int64_t& loops) const;

  Fault fault() const { return fault_; }
  int64_t line() const { return line_; }  // from 1
  std::string text() const;               // of that line, cut
  int64_t found() const { return found_; }

 private:
  struct Part {
    const char *begin, *end;
    int64_t first_row = 0, first_line = 0;
    Fault fault = Fault::none;
    const char* at = nullptr;
    int64_t line = 0, found = 0;
  };
  template <typename T>
  void parse_part(Part&, T* out) const;

  const char* end_;
  std::vector<Part> parts_;
  int64_t rows_ = 0, columns_, skipped_ = 0;
  int threads_;
  Fault fault_ = Fault::none;
  const char* at_ = nullptr;
  int64_t line_ = 0, found_ = 0;
};

}  // namespace artlas
