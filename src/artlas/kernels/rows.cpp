#include "rows.hpp"

#include <algorithm>
#include <atomic>

namespace artlas {
namespace {

constexpr int SHIFT = 16;           // 2^16 nodes a bucket: their rows are made within the cache
constexpr int64_t EDGES = 1 << 18;  // what a thread is worth

struct End {  // an end of an edge: its node, the other end, and whether it was given from there
  int32_t node;
  uint32_t entry;
};
uint32_t entry(int32_t neighbour, uint32_t reverse) { return uint32_t(neighbour) << 1 | reverse; }

class Maker {
 public:
  Maker(const int32_t* from, const int32_t* to, int64_t edges, int64_t nodes, int threads)
      : from_(from),
        to_(to),
        edges_(edges),
        nodes_(nodes),
        team_(int(std::clamp<int64_t>(edges / EDGES, 1, std::max(threads, 1)))),
        buckets_((nodes >> SHIFT) + 1),
        at_(size_t(team_ * buckets_) + 1, 0) {}

  Rows make() {
    count_ends();
    const Buffer<End> ends(at_.back());
    sort_into_buckets(ends);
    Rows out;
    out.row_ptr.resize(size_t(nodes_) + 1, 0);
    each_bucket([&](int64_t b, std::vector<int64_t>& fill, std::vector<uint32_t>& entries) {
      make_bucket(b, ends, fill, entries, out.row_ptr.data() + 1);
    });
    for (int64_t i = 0; i < nodes_; ++i) out.row_ptr[size_t(i) + 1] += out.row_ptr[size_t(i)];
    out.col.resize(size_t(out.row_ptr.back()));
    each_bucket([&](int64_t b, auto&, auto&) {
      const auto* made = reinterpret_cast<const uint32_t*>(ends.data() + begin(b));
      const int64_t first = out.row_ptr[size_t(b << SHIFT)];
      const int64_t last = out.row_ptr[size_t(std::min(nodes_, (b + 1) << SHIFT))];
      std::copy_n(made, last - first, out.col.data() + first);
    });
    for (int64_t e = 0; e < edges_; ++e) out.loops += from_[e] == to_[e];
    out.duplicates = duplicates_;
    out.one_way = one_way_;
    return out;
  }

 private:
  // Where the ends of a bucket begin; those that a share of the edges gives lie in its order.
  int64_t begin(int64_t bucket) const { return at_[size_t(bucket * team_)]; }

  // use(share, node, neighbour, reverse) for both ends of every edge that is no loop
  template <typename Use>
  void each_end(Use use) {
    const int64_t size = (edges_ + team_ - 1) / team_;
    Team::run(team_, [&](Team& crew, int rank) {
      // fewer threads than asked for take several shares each
      for (int64_t share = rank; share < team_; share += crew.size())
        for (int64_t e = share * size; e < std::min(edges_, (share + 1) * size); ++e) {
          if (from_[e] == to_[e]) continue;
          use(share, from_[e], to_[e], 0);
          use(share, to_[e], from_[e], 1);
        }
    });
  }

  void count_ends() {
    auto counts = std::vector(size_t(team_), std::vector<int64_t>(size_t(buckets_), 0));
    each_end([&](int64_t share, int32_t node, int32_t, uint32_t) {
      ++counts[size_t(share)][size_t(node >> SHIFT)];
    });
    for (int64_t b = 0; b < buckets_; ++b)
      for (int64_t share = 0; share < team_; ++share) {
        const size_t slot = size_t(b * team_ + share);
        at_[slot + 1] = at_[slot] + counts[size_t(share)][size_t(b)];
      }
  }

  void sort_into_buckets(const Buffer<End>& ends) {
    auto next = std::vector(size_t(team_), std::vector<int64_t>(size_t(buckets_)));
    for (int64_t share = 0; share < team_; ++share)
      for (int64_t b = 0; b < buckets_; ++b)
        next[size_t(share)][size_t(b)] = at_[size_t(b * team_ + share)];
    each_end([&](int64_t share, int32_t node, int32_t neighbour, uint32_t reverse) {
      ends[next[size_t(share)][size_t(node >> SHIFT)]++] = {node, entry(neighbour, reverse)};
    });
  }

  template <typename Work>
  void each_bucket(Work work) {
    std::atomic<int64_t> next{0};
    Team::run(int(std::min<int64_t>(team_, buckets_)), [&](Team&, int) {
      std::vector<int64_t> fill;
      std::vector<uint32_t> entries;
      for (int64_t b; (b = next.fetch_add(1)) < buckets_;) work(b, fill, entries);
    });
  }

  // The rows of a bucket, in the place of its ends, and their lengths. Every edge has an entry in
  // two rows: what was given is counted where it starts.
  void make_bucket(int64_t b, const Buffer<End>& ends, std::vector<int64_t>& fill,
                   std::vector<uint32_t>& entries, int64_t* length) {
    const int64_t first = b << SHIFT, count = std::min(nodes_ - first, int64_t(1) << SHIFT);
    const End *from = ends.data() + begin(b), *to = ends.data() + begin(b + 1);
    fill.assign(size_t(count) + 2, 0);
    entries.resize(size_t(to - from));
    for (const End* end = from; end < to; ++end) ++fill[size_t(end->node - first) + 2];
    for (int64_t i = 0; i < count; ++i) fill[size_t(i) + 2] += fill[size_t(i) + 1];
    for (const End* end = from; end < to; ++end)
      entries[size_t(fill[size_t(end->node - first) + 1]++)] = end->entry;
    auto* kept = reinterpret_cast<uint32_t*>(ends.data() + begin(b));
    int64_t repeated = 0, single = 0;
    for (int64_t i = 0; i < count; ++i) {
      uint32_t *at = entries.data() + fill[size_t(i)], *end = entries.data() + fill[size_t(i) + 1];
      const uint32_t* start = kept;
      if (!std::is_sorted(at, end)) std::sort(at, end);
      while (at < end) {
        const uint32_t neighbour = *at >> 1;
        int64_t forward = 0, backward = 0;
        for (; at < end && *at >> 1 == neighbour; ++at) ++(*at & 1 ? backward : forward);
        repeated += std::max<int64_t>(forward - 1, 0);
        single += forward == 0;
        *kept++ = neighbour;
      }
      length[first + i] = kept - start;
    }
    duplicates_ += repeated;
    one_way_ += single;
  }

  const int32_t *from_, *to_;
  const int64_t edges_, nodes_;
  const int team_;
  const int64_t buckets_;
  std::vector<int64_t> at_;
  std::atomic<int64_t> duplicates_{0}, one_way_{0};
};

}  // namespace

Rows make_rows(const int32_t* from, const int32_t* to, int64_t edges, int64_t nodes, int threads) {
  return Maker(from, to, edges, nodes, threads).make();
}

}  // namespace artlas
