#include "ingest/text_table.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <limits>
#include <type_traits>

namespace artlas {
namespace {

constexpr int64_t PART = 1 << 20;  // least bytes that a thread takes at a time
constexpr int64_t TAIL = 32;       // bytes at the end of a text that must not be read ahead

bool blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v'; }
bool separator(char c) { return c == ',' || c == ';'; }

const char* line_end(const char* p, const char* end) {
  const void* found = std::memchr(p, '\n', size_t(end - p));
  return found ? static_cast<const char*>(found) : end;
}

const char* skip_blanks(const char* p, const char* end) {
  while (p < end && blank(*p)) ++p;
  return p;
}

bool holds_row(const char* p, const char* end) {
  p = skip_blanks(p, end);
  return p < end && *p != '#' && *p != '%';
}

int64_t count_values(const char* p, const char* end) {
  int64_t found = 0;
  for (p = skip_blanks(p, end); p < end; p = skip_blanks(p, end)) {
    ++found;
    while (p < end && !blank(*p) && !separator(*p)) ++p;
    p = skip_blanks(p, end);
    if (p < end && separator(*p)) ++p;
  }
  return found;
}

// Parses up to seven digits at p, where eight bytes must be readable. Reports 0 digits if there are
// none or more.
int digits(const char* p, uint32_t& out) {
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
  uint64_t word;
  std::memcpy(&word, p, 8);
  word ^= 0x3030303030303030u;  // digits become their values; no other byte is below ten
  const uint64_t others = ((word + 0x7676767676767676u) | word) & 0x8080808080808080u;
  const int count = others ? __builtin_ctzll(others) / 8 : 0;
  if (count == 0) return 0;
  word <<= 64 - 8 * count;
  word = word * 10 + (word >> 8);  // pairs of digits, then four, then eight
  word = ((word & 0x000000FF000000FFu) * 0x000F424000000064u +
          ((word >> 16) & 0x000000FF000000FFu) * 0x0000271000000001u) >>
         32;
  out = uint32_t(word);
  return count;
#else
  return 0;
#endif
}

// Parses a line of whole numbers in the common form, one separator and at most one blank between
// two of them, and returns its end; null for any other line, which parse_part handles.
template <typename T>
const char* plain_row(const char* p, const char* end, int64_t columns, T* out) {
  constexpr int64_t WIDEST = 10;  // bytes of a value and its separator
  if (std::is_floating_point_v<T> || end - p < (columns + 1) * WIDEST) return nullptr;
  for (int64_t i = 0; i < columns; ++i) {
    uint32_t value;
    const int count = digits(p, value);
    if (count == 0) return nullptr;
    out[i] = T(value);
    p += count;
    if (i + 1 == columns) break;
    if (*p != ',' && *p != ' ' && *p != '\t') return nullptr;
    p += *p == ',' && p[1] == ' ' ? 2 : 1;
  }
  return *p == '\n' ? p : nullptr;
}

// Counts the lines of a text by a vectorised pass over its bytes; -1 if a line may begin with
// anything but a digit.
int64_t plain_lines(const char* p, const char* end) {
  constexpr int64_t BLOCK = 128;  // lines that a byte can count
  int64_t lines = 0, odd = uint8_t(*p - '0') > 9;
  const char* last = end - 1;
  while (p < last) {
    const int64_t size = std::min<int64_t>(BLOCK, last - p);
    uint8_t breaks = 0, others = 0;
    for (int64_t i = 0; i < size; ++i) {
      const uint8_t line = p[i] == '\n';
      breaks += line;
      others += line & uint8_t(uint8_t(p[i + 1] - '0') > 9);
    }
    lines += breaks;
    odd += others;
    p += size;
  }
  return odd ? -1 : lines + 1;
}

// Whether a float out of its type's range is too small, not too large.
bool tiny(const char* p, const char* end) {
  const char* exponent = std::find_if(p, end, [](char c) { return c == 'e' || c == 'E'; });
  if (exponent < end) return exponent + 1 < end && exponent[1] == '-';
  if (p < end && *p == '-') ++p;
  return p < end && (*p == '0' || *p == '.');
}

template <typename T>
Fault parse_value(const char*& p, const char* end, T& out) {
  if (p < end && *p == '+') {
    ++p;
    if (p < end && *p == '-') return Fault::value;
  }
  const std::from_chars_result done = std::from_chars(p, end, out);
  const bool whole = done.ptr == end || blank(*done.ptr) || separator(*done.ptr);
  if (!whole || done.ec == std::errc::invalid_argument) return Fault::value;
  if (done.ec == std::errc::result_out_of_range) {
    if (!std::is_floating_point_v<T> || !tiny(p, done.ptr)) return Fault::range;
    out = 0;
  }
  p = done.ptr;
  return Fault::none;
}

}  // namespace

Table::Table(const char* text, int64_t size, int64_t columns, int64_t skip, int threads)
    : end_(text + size), columns_(columns), skipped_(skip), threads_(threads) {
  if (size >= 3 && std::memcmp(text, "\xef\xbb\xbf", 3) == 0) text += 3;  // byte-order mark
  for (; skip > 0 && text < end_; --skip) text = std::min(line_end(text, end_) + 1, end_);
  if (columns_ < 1) {
    columns_ = 0;
    for (const char* p = text; p < end_ && columns_ == 0;) {
      const char* stop = line_end(p, end_);
      if (holds_row(p, stop)) columns_ = count_values(p, stop);
      p = stop + 1;
    }
  }
  const int64_t step = std::max(PART, (end_ - text) / (8 * std::max(threads, 1)) + 1);
  for (const char* p = text; p < end_;) {
    const char* stop = end_ - p > step ? std::min(line_end(p + step, end_) + 1, end_) : end_;
    parts_.push_back({p, stop});
    p = stop;
  }
  std::vector<int64_t> rows(parts_.size() + 1), lines(parts_.size() + 1);
  std::atomic<int64_t> next{0};
  const int team = int(std::min<int64_t>(threads_, int64_t(parts_.size())));
  Team::run(team, [&](Team&, int) {
    for (int64_t i; (i = next.fetch_add(1)) < int64_t(parts_.size());) {
      int64_t r = plain_lines(parts_[i].begin, parts_[i].end), l = r;
      if (r < 0) {
        r = l = 0;
        for (const char* p = parts_[i].begin; p < parts_[i].end; ++l) {
          const char* stop = line_end(p, parts_[i].end);
          r += holds_row(p, stop);
          p = stop + 1;
        }
      }
      rows[i + 1] = r;
      lines[i + 1] = l;
    }
  });
  for (size_t i = 0; i < parts_.size(); ++i) {
    parts_[i].first_row = rows[i];
    parts_[i].first_line = lines[i];
    rows[i + 1] += rows[i];
    lines[i + 1] += lines[i];
  }
  rows_ = rows.back();
}

template <typename T>
void Table::parse_part(Part& part, T* out) const {
  T* to = out + part.first_row * columns_;
  int64_t line = part.first_line;
  for (const char* p = part.begin; p < part.end; ++line) {
    if (const char* stop = plain_row(p, part.end, columns_, to)) {
      p = stop + 1;
      to += columns_;
      continue;
    }
    const char *begin = p, *stop = line_end(p, part.end);
    p = stop + 1;
    if (!holds_row(begin, stop)) continue;
    const char* at = skip_blanks(begin, stop);
    Fault fault = Fault::none;
    int64_t found = 0;
    while (fault == Fault::none) {
      if (found == columns_) {
        fault = at < stop ? Fault::many : Fault::none;
        break;
      }
      if (at == stop) {
        fault = Fault::few;
        break;
      }
      fault = parse_value(at, stop, *to);
      if (fault != Fault::none) break;
      ++to;
      ++found;
      at = skip_blanks(at, stop);
      if (at < stop && separator(*at)) {
        at = skip_blanks(at + 1, stop);
        if (at == stop) fault = Fault::value;  // no value after the separator
      }
    }
    if (fault != Fault::none) {
      part.fault = fault;
      part.at = begin;
      part.line = line;
      part.found = fault == Fault::many || fault == Fault::few ? count_values(begin, stop) : found;
      return;
    }
  }
}

template <typename T>
bool Table::parse(T* out) {
  std::atomic<int64_t> next{0};
  const int team = int(std::min<int64_t>(threads_, int64_t(parts_.size())));
  Team::run(team, [&](Team&, int) {
    for (int64_t i; (i = next.fetch_add(1)) < int64_t(parts_.size());) parse_part(parts_[i], out);
  });
  for (const Part& part : parts_)
    if (part.fault != Fault::none) {
      fault_ = part.fault;
      at_ = part.at;
      line_ = part.line + 1 + skipped_;
      found_ = part.found;
      return false;
    }
  return true;
}

bool Table::edges(int32_t first, int64_t nodes, int64_t* row_ptr, int32_t* col,
                  int64_t& loops) const {
  if (columns_ != 2) return false;
  struct Span {  // range of a part's edges, as source * nodes + target
    int64_t low = 0, high = -1, count = 0, loops = 0;
  };
  std::vector<Span> spans(parts_.size());
  std::atomic<int64_t> next{0};
  std::atomic<bool> plain{true};
  const int team = int(std::min<int64_t>(threads_, int64_t(parts_.size())));
  Team::run(team, [&](Team&, int) {
    for (int64_t i; plain && (i = next.fetch_add(1)) < int64_t(parts_.size());) {
      const Part& part = parts_[i];
      Span span;
      int32_t* to = col + part.first_row;
      int64_t row = -1;
      for (const char* p = part.begin; p < part.end;) {
        int32_t pair[2];
        const char* stop = plain_row(p, end_, 2, pair);
        if (!stop &&
            end_ - p < TAIL) {  // the last rows are too close to the end of the readable bytes
          char last[2 * TAIL] = {};
          std::copy(p, end_, last);
          if (end_[-1] != '\n') last[end_ - p] = '\n';
          if ((stop = plain_row(last, last + 2 * TAIL, 2, pair))) stop = p + (stop - last);
        }
        if (!stop) {
          plain = false;
          return;
        }
        const int64_t u = pair[0] - int64_t(first), v = pair[1] - int64_t(first);
        const int64_t key = u * nodes + v;
        if (u < 0 || v < 0 || u >= nodes || v >= nodes || key <= span.high) {
          plain = false;
          return;
        }
        if (row < 0) span.low = key, row = u;
        while (row < u) row_ptr[++row] = to - col;
        if (u != v) *to++ = int32_t(v);
        span.loops += u == v;
        span.high = key;
        p = stop + 1;
      }
      span.count = to - (col + part.first_row);
      spans[i] = span;
    }
  });
  if (!plain) return false;
  // Joins the parts: the rows between them, and the loops before them.
  int64_t row = -1, last = -1;
  loops = 0;
  for (size_t i = 0; i < parts_.size(); ++i) {
    const Span& span = spans[i];
    if (span.high < 0) continue;
    if (span.low <= last) return false;
    const int64_t begin = parts_[i].first_row - loops;
    while (row < span.low / nodes) row_ptr[++row] = begin;
    if (loops) {
      for (; row < span.high / nodes; ++row) row_ptr[row + 1] -= loops;
      std::copy_n(col + parts_[i].first_row, span.count, col + begin);
    }
    row = span.high / nodes;
    last = span.high;
    loops += span.loops;
  }
  while (row < nodes) row_ptr[++row] = rows_ - loops;
  return true;
}

std::string Table::text() const {
  if (!at_) return "";
  return std::string(at_, size_t(std::min<int64_t>(line_end(at_, end_) - at_, 60)));
}

template bool Table::parse<int32_t>(int32_t*);
template bool Table::parse<int64_t>(int64_t*);
template bool Table::parse<double>(double*);

}  // namespace artlas
