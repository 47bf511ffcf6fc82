#include "table.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <limits>
#include <type_traits>

namespace artlas {
namespace {

constexpr int64_t PART = 1 << 20;  // bytes a thread takes at a time, at least

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

// Whether a float that its type cannot hold is too small for it, and not too large.
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
      int64_t r = 0, l = 0;
      for (const char* p = parts_[i].begin; p < parts_[i].end; ++l) {
        const char* stop = line_end(p, parts_[i].end);
        r += holds_row(p, stop);
        p = stop + 1;
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
        if (at == stop) fault = Fault::value;  // nothing after the separator
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

std::string Table::text() const {
  if (!at_) return "";
  return std::string(at_, size_t(std::min<int64_t>(line_end(at_, end_) - at_, 60)));
}

template bool Table::parse<int32_t>(int32_t*);
template bool Table::parse<int64_t>(int64_t*);
template bool Table::parse<double>(double*);

}  // namespace artlas
