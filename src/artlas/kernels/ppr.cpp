#include "ppr.hpp"

#include <algorithm>

namespace artlas {

Pusher::Scratch::Scratch(const Network& network, double threshold)
    : node(network.nodes), reserve(network.nodes) {
  for (int64_t v = 0; v < network.nodes; ++v) {
    node[v] = {-1.0, threshold * double(std::max<int64_t>(network.degree(v), 1))};
    reserve[v] = 0.0;
  }
}

// Moves residual mass to the reserve until no node holds more than threshold * degree. A node is in
// the queue from the moment it passes its threshold until it is pushed: no flag is needed.
void Pusher::push(Scratch& s, int64_t centre, const PushOptions& o, int64_t& pushes,
                  uint8_t& stopped) const {
  s.reached.assign(1, int32_t(centre));
  s.queue.assign(1, int32_t(centre));
  s.node[centre].residual = 1.0;
  pushes = 0;
  stopped = 0;
  for (size_t head = 0; head < s.queue.size(); ++head) {
    if (pushes == o.most_pushes) {
      stopped = 1;
      return;
    }
    const int32_t v = s.queue[head];
    if (head > (size_t(1) << 16) && 2 * head > s.queue.size()) {  // forget what was pushed
      s.queue.erase(s.queue.begin(), s.queue.begin() + int64_t(head));
      head = 0;
    }
    const double mass = s.node[v].residual;
    const int64_t begin = network_.row_ptr[v], end = network_.row_ptr[v + 1];
    ++pushes;
    if (begin == end) {  // the walk has nowhere to go and stays
      s.reserve[v] += mass;
      s.node[v].residual = 0.0;
      continue;
    }
    s.reserve[v] += o.restart * mass;
    const double moving = (1.0 - o.restart) * mass;
    const double kept = o.lazy ? 0.5 * moving : 0.0;
    const double share = (moving - kept) / double(end - begin);
    s.node[v].residual = kept;
    if (kept > s.node[v].threshold) s.queue.push_back(v);
    for (int64_t e = begin; e < end; ++e) {
      const int32_t w = network_.col[e];
      Node& n = s.node[w];
      double before = n.residual;
      if (before < 0.0) {
        before = 0.0;
        s.reached.push_back(w);
      }
      n.residual = before + share;
      if (n.residual > n.threshold && before <= n.threshold) s.queue.push_back(w);
    }
  }
}

// Appends the best nodes to what the thread has found, clears the scratch, and returns how many
// nodes had a positive score.
int64_t Pusher::rank(Scratch& s, int64_t centre, const PushOptions& o) const {
  s.ranked.clear();
  double own = 0.0;
  int64_t positive = 0;
  for (const int32_t v : s.reached) {
    const double score = s.reserve[v] + s.node[v].residual;
    s.reserve[v] = 0.0;
    s.node[v].residual = -1.0;
    positive += score > 0.0;
    if (v == centre)
      own = score;
    else if (score > 0.0)
      s.ranked.push_back({score, v});
  }
  const auto better = [](const Candidate& a, const Candidate& b) {
    return a.score != b.score ? a.score > b.score : a.node < b.node;
  };
  const size_t room = size_t(o.most_nodes - 1);
  if (s.ranked.size() > room) {
    std::nth_element(s.ranked.begin(), s.ranked.begin() + int64_t(room), s.ranked.end(), better);
    s.ranked.resize(room);
  }
  std::sort(s.ranked.begin(), s.ranked.end(), better);
  s.nodes.push_back(int32_t(centre));
  s.scores.push_back(float(own));
  for (const Candidate& c : s.ranked) {
    s.nodes.push_back(c.node);
    s.scores.push_back(float(c.score));
  }
  return positive;
}

Egos Pusher::run(const int64_t* centres, int64_t count, const PushOptions& o, int threads) {
  threads = int(std::max<int64_t>(1, std::min<int64_t>(threads, count)));
  while (int(scratch_.size()) < threads) scratch_.emplace_back(network_, threshold_);
  Egos out;
  out.pushes.resize(count);
  out.positive.resize(count);
  out.stopped.resize(count);
  std::vector<Place> places(count);
  std::atomic<int64_t> next{0};
  Team::run(threads, [&](Team&, int rank_) {
    Scratch& s = scratch_[rank_];
    s.nodes.clear();
    s.scores.clear();
    for (int64_t i; (i = next.fetch_add(1)) < count;) {
      push(s, centres[i], o, out.pushes[i], out.stopped[i]);
      const int64_t begin = int64_t(s.nodes.size());
      out.positive[i] = rank(s, centres[i], o);
      places[i] = {rank_, begin, int64_t(s.nodes.size())};
    }
  });
  out.node_ptr.reserve(count + 1);
  for (const Place& p : places) out.node_ptr.push_back(out.node_ptr.back() + p.end - p.begin);
  out.nodes.resize(out.node_ptr.back());
  out.scores.resize(out.node_ptr.back());
  for (int64_t i = 0; i < count; ++i) {
    const Scratch& s = scratch_[places[i].rank];
    std::copy(s.nodes.begin() + places[i].begin, s.nodes.begin() + places[i].end,
              out.nodes.begin() + out.node_ptr[i]);
    std::copy(s.scores.begin() + places[i].begin, s.scores.begin() + places[i].end,
              out.scores.begin() + out.node_ptr[i]);
  }
  return out;
}

namespace {

constexpr int64_t SEARCH = 16;  // neighbours per node of the subgraph from which a search is faster

// The few nodes of one subgraph by their id in the graph: small enough for the nearest cache.
class Members {
 public:
  void open(const int32_t* nodes, int64_t count) {
    size_t slots = 64;
    while (slots < size_t(4 * count)) slots *= 2;
    if (key_.size() != slots) {
      key_.assign(slots, -1);
      value_.resize(slots);
    } else {
      for (const size_t at : used_) key_[at] = -1;
    }
    used_.clear();
    sorted_.clear();
    mask_ = slots - 1;
    for (int64_t i = 0; i < count; ++i) {
      size_t at = slot(nodes[i]);
      while (key_[at] >= 0) at = (at + 1) & mask_;
      key_[at] = nodes[i];
      value_[at] = int32_t(i);
      used_.push_back(at);
      sorted_.push_back({nodes[i], int32_t(i)});
    }
    std::sort(sorted_.begin(), sorted_.end());
  }
  int32_t find(int32_t node) const {  // -1: not a member
    size_t at = slot(node);
    while (key_[at] >= 0 && key_[at] != node) at = (at + 1) & mask_;
    return key_[at] < 0 ? -1 : value_[at];
  }
  const std::vector<std::pair<int32_t, int32_t>>& sorted() const { return sorted_; }

 private:
  size_t slot(int32_t node) const { return (uint32_t(node) * 2654435769u >> 7) & mask_; }
  std::vector<int32_t> key_, value_;
  std::vector<size_t> used_;
  std::vector<std::pair<int32_t, int32_t>> sorted_;
  size_t mask_ = 0;
};

}  // namespace

Induced induce(const Network& network, const int64_t* node_ptr, const int32_t* nodes,
               int64_t graphs, int threads) {
  threads = int(std::max<int64_t>(1, std::min<int64_t>(threads, graphs)));
  Induced out;
  out.row_ptr.resize(node_ptr[graphs] + 1);
  std::vector<std::vector<int32_t>> cols(threads);
  struct Place {
    int rank;
    int64_t begin, end;
  };
  std::vector<Place> places(graphs);
  std::atomic<int64_t> next{0};
  Team::run(threads, [&](Team&, int rank) {
    Members members;
    std::vector<int32_t>& col = cols[rank];
    for (int64_t g; (g = next.fetch_add(1)) < graphs;) {
      const int64_t first = node_ptr[g], count = node_ptr[g + 1] - first;
      const int64_t begin = int64_t(col.size());
      members.open(nodes + first, count);
      for (int64_t i = 0; i < count; ++i) {
        const int32_t v = nodes[first + i];
        const int32_t* from = network.col + network.row_ptr[v];
        const int32_t* to = network.col + network.row_ptr[v + 1];
        const int64_t row = int64_t(col.size());
        if (to - from > SEARCH * count) {
          for (const auto& [node, local] : members.sorted()) {
            from = std::lower_bound(from, to, node);
            if (from == to) break;
            if (*from == node) col.push_back(int32_t(first) + local);
          }
        } else {
          for (; from < to; ++from)
            if (const int32_t local = members.find(*from); local >= 0)
              col.push_back(int32_t(first) + local);
        }
        std::sort(col.begin() + row, col.end());
        out.row_ptr[first + i + 1] = int64_t(col.size()) - row;
      }
      places[g] = {rank, begin, int64_t(col.size())};
    }
  });
  for (size_t i = 1; i < out.row_ptr.size(); ++i) out.row_ptr[i] += out.row_ptr[i - 1];
  out.col.resize(out.row_ptr.back());
  for (int64_t g = 0; g < graphs; ++g) {
    const std::vector<int32_t>& col = cols[places[g].rank];
    std::copy(col.begin() + places[g].begin, col.begin() + places[g].end,
              out.col.begin() + out.row_ptr[node_ptr[g]]);
  }
  return out;
}

}  // namespace artlas
