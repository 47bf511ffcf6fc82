#include "ingest/canonical.hpp"

#include <algorithm>
#include <vector>

namespace artlas {
namespace {

constexpr int64_t PART = 1 << 16;  // least entries that a thread takes at a time

struct Rows {  // sorted, without duplicates
  Buffer<int64_t> ptr;
  Buffer<int32_t> col;  // with space for one more
  int64_t nodes;
  int64_t count() const { return ptr[nodes]; }
  const int32_t* begin(int64_t i) const { return col.data() + ptr[i]; }
  const int32_t* end(int64_t i) const { return col.data() + ptr[i + 1]; }
};

class Reader {
 public:
  Reader(const Entries& entries) : e_(entries) {}
  int32_t source(int64_t i) const { return number(e_.source[i * e_.source_step]); }
  int32_t target(int64_t i) const { return number(e_.target[i * e_.target_step]); }

 private:
  // without overflow: numbers far below the first wrap around to far above the last
  int32_t number(int32_t node) const { return int32_t(uint32_t(node) - uint32_t(e_.first)); }
  Entries e_;
};

struct Part {  // a run of entries, and what the first pass finds in it
  int64_t begin, end;
  int64_t loops = 0, before = 0;  // in this part, and in those before
  bool within = true, sorted = true;
};

template <typename Work>
void each(int threads, int64_t count, Work work) {
  std::atomic<int64_t> next{0};
  Team::run(int(std::min<int64_t>(threads, count)), [&](Team&, int) {
    for (int64_t i; (i = next.fetch_add(1)) < count;) work(i);
  });
}

std::vector<Part> look(const Reader& read, int64_t count, int64_t nodes, int threads) {
  std::vector<Part> parts;
  const int64_t step = std::max(PART, count / (8 * std::max(threads, 1)) + 1);
  for (int64_t at = 0; at < count; at += step) parts.push_back({at, std::min(count, at + step)});
  each(threads, int64_t(parts.size()), [&](int64_t i) {
    Part& part = parts[i];
    int64_t last = -1, loops = 0;
    bool outside = false, falls = false;
    if (part.begin) {
      const int64_t u = read.source(part.begin - 1), v = read.target(part.begin - 1);
      last = u * nodes + v;
    }
    for (int64_t e = part.begin; e < part.end; ++e) {
      const int32_t u = read.source(e), v = read.target(e);
      outside |= uint32_t(u) >= uint32_t(nodes) || uint32_t(v) >= uint32_t(nodes);
      loops += u == v;
      const int64_t key = u * nodes + v;
      falls |= key <= last;
      last = key;
    }
    part.loops = loops;
    part.within = !outside;
    part.sorted = !falls;
  });
  for (size_t i = 1; i < parts.size(); ++i)
    parts[i].before = parts[i - 1].before + parts[i - 1].loops;
  return parts;
}

// Entries in ascending order are only copied.
Rows copy_sorted(const Reader& read, const std::vector<Part>& parts, int64_t nodes, int threads) {
  const int64_t kept =
      parts.empty() ? 0 : parts.back().end - parts.back().before - parts.back().loops;
  Rows rows{Buffer<int64_t>(nodes + 1), Buffer<int32_t>(kept + 1), nodes};
  each(threads, int64_t(parts.size()), [&](int64_t i) {
    int64_t at = parts[i].begin - parts[i].before;
    int64_t row =
        parts[i].begin ? read.source(parts[i].begin - 1) : -1;  // the row whose start is known
    for (int64_t e = parts[i].begin; e < parts[i].end; ++e) {
      const int32_t u = read.source(e), v = read.target(e);
      while (row < u) rows.ptr[++row] = at;
      if (u != v) rows.col[at++] = v;
    }
  });
  const int64_t last = parts.empty() ? -1 : read.source(parts.back().end - 1);
  for (int64_t i = last + 1; i <= nodes; ++i) rows.ptr[i] = kept;
  return rows;
}

// Entries in any order are distributed to their rows, which are then sorted.
Rows deal(const Reader& read, int64_t count, int64_t nodes, int threads) {
  Buffer<int64_t> ptr(nodes + 1);
  std::fill_n(ptr.data(), nodes + 1, 0);
  for (int64_t e = 0; e < count; ++e)
    if (read.source(e) != read.target(e)) ++ptr[read.source(e) + 1];
  for (int64_t i = 0; i < nodes; ++i) ptr[i + 1] += ptr[i];
  Buffer<int32_t> col(ptr[nodes] + 1);
  Buffer<int64_t> fill(nodes);
  std::copy_n(ptr.data(), nodes, fill.data());
  for (int64_t e = 0; e < count; ++e)
    if (read.source(e) != read.target(e)) col[fill[read.source(e)]++] = read.target(e);
  constexpr int64_t ROWS = 4096;
  each(threads, (nodes + ROWS - 1) / ROWS, [&](int64_t part) {
    for (int64_t i = part * ROWS; i < std::min(nodes, (part + 1) * ROWS); ++i) {
      int32_t *begin = col.data() + ptr[i], *end = col.data() + ptr[i + 1];
      std::sort(begin, end);
      fill[i] = std::unique(begin, end) - begin;  // length of the row without duplicates
    }
  });
  int64_t at = 0;
  for (int64_t i = 0; i < nodes; ++i) {
    const int64_t from = ptr[i];
    if (at != from) std::copy_n(col.data() + from, fill[i], col.data() + at);
    ptr[i] = at;
    at += fill[i];
  }
  ptr[nodes] = at;
  return {std::move(ptr), std::move(col), nodes};
}

// Splits the nodes into runs without entries between them, which are independent if symmetric.
std::vector<int64_t> cuts(const Rows& rows) {
  const int64_t least = std::max<int64_t>(1, rows.count() / 64);
  std::vector<int64_t> found{0};
  int64_t reach = 0;
  for (int64_t i = 0; i < rows.nodes; ++i) {
    if (reach <= i && rows.ptr[i] - rows.ptr[found.back()] >= least) found.push_back(i);
    if (rows.ptr[i] < rows.ptr[i + 1]) reach = std::max<int64_t>(reach, rows.end(i)[-1]);
    reach = std::max(reach, i + 1);
  }
  found.push_back(rows.nodes);
  return found;
}

// Checks symmetry in one pass over the entries (u, v) of ascending rows u: the next entry of row v
// must be u. A row read beyond its end continues into the next one; that is detected at the end.
bool symmetric(const Rows& rows, int threads) {
  const std::vector<int64_t> bounds = cuts(rows);
  Buffer<int64_t> next(rows.nodes);
  std::atomic<bool> same{true};
  rows.col[rows.count()] = -1;
  each(threads, int64_t(bounds.size()) - 1, [&](int64_t part) {
    const int64_t low = bounds[part], high = bounds[part + 1];
    bool good = true;
    std::copy(rows.ptr.data() + low, rows.ptr.data() + high, next.data() + low);
    for (int64_t u = low; u < high && good; ++u) {
      const int32_t *v = rows.begin(u), *end = rows.end(u);
      good = v == end || (*v >= low && end[-1] < high);
      for (; v < end && good; ++v) good = rows.col[next[*v]++] == u;
    }
    for (int64_t v = low; v < high && good; ++v) good = next[v] == rows.ptr[v + 1];
    if (!good) same = false;
  });
  return same;
}

Rows transpose(const Rows& rows) {
  Rows out{Buffer<int64_t>(rows.nodes + 1), Buffer<int32_t>(rows.count()), rows.nodes};
  std::fill_n(out.ptr.data(), rows.nodes + 1, 0);
  for (int64_t e = 0; e < rows.count(); ++e) ++out.ptr[rows.col[e] + 1];
  for (int64_t i = 0; i < rows.nodes; ++i) out.ptr[i + 1] += out.ptr[i];
  Buffer<int64_t> fill(rows.nodes);
  std::copy_n(out.ptr.data(), rows.nodes, fill.data());
  for (int64_t u = 0; u < rows.nodes; ++u)
    for (const int32_t* v = rows.begin(u); v < rows.end(u); ++v) out.col[fill[*v]++] = int32_t(u);
  return out;
}

Rows unite(const Rows& a, const Rows& b) {
  Buffer<int64_t> ptr(a.nodes + 1);
  Buffer<int32_t> col(a.count() + b.count());
  int32_t* at = col.data();
  for (int64_t i = 0; i < a.nodes; ++i) {
    ptr[i] = at - col.data();
    at = std::set_union(a.begin(i), a.end(i), b.begin(i), b.end(i), at);
  }
  ptr[a.nodes] = at - col.data();
  return {std::move(ptr), std::move(col), a.nodes};
}

Canonical complete(Rows rows, int64_t loops, int64_t duplicates, int threads) {
  const int64_t given = rows.count();
  auto result = [&](Rows found) {
    const int64_t nodes = found.nodes, count = found.count();
    return Canonical{std::move(found.ptr), std::move(found.col), nodes, count, loops,
                     duplicates,           count - given};
  };
  if (symmetric(rows, threads)) return result(std::move(rows));
  return result(unite(rows, transpose(rows)));
}

}  // namespace

std::optional<Canonical> canonical(const Entries& entries, int64_t nodes, int threads) {
  const Reader read(entries);
  const std::vector<Part> parts = look(read, entries.count, nodes, threads);
  bool within = true, sorted = true;
  int64_t loops = 0;
  for (const Part& part : parts) {
    within &= part.within;
    sorted &= part.sorted;
    loops += part.loops;
  }
  if (!within) return std::nullopt;
  Rows rows =
      sorted ? copy_sorted(read, parts, nodes, threads) : deal(read, entries.count, nodes, threads);
  const int64_t duplicates = entries.count - loops - rows.count();
  return complete(std::move(rows), loops, duplicates, threads);
}

std::optional<Canonical> canonical(const Table& text, int64_t nodes, int32_t first, int threads) {
  Rows rows{Buffer<int64_t>(nodes + 1), Buffer<int32_t>(text.rows() + 1), nodes};
  int64_t loops;
  if (!text.edges(first, nodes, rows.ptr.data(), rows.col.data(), loops)) return std::nullopt;
  return complete(std::move(rows), loops, 0, threads);
}

}  // namespace artlas
