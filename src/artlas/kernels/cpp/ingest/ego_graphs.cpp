#include "ingest/ego_graphs.hpp"

#include <algorithm>
#include <functional>
#include <utility>

namespace artlas {

Pusher::Scratch::Scratch(const Network& network, double threshold)
    : node(network.nodes), reserve(network.nodes) {
  for (int64_t v = 0; v < network.nodes; ++v) {
    node[v] = {-1.0, threshold * double(std::max<int64_t>(network.degree(v), 1))};
    reserve[v] = 0.0;
  }
}

// Moves residual mass to the reserve until no node holds more than threshold * degree. A node stays
// in the queue from passing its threshold until it is pushed, so no flag is needed.
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
    if (head > (size_t(1) << 16) && 2 * head > s.queue.size()) {  // drop the pushed nodes
      s.queue.erase(s.queue.begin(), s.queue.begin() + int64_t(head));
      head = 0;
    }
    const double mass = s.node[v].residual;
    const int64_t begin = network_.row_ptr[v], end = network_.row_ptr[v + 1];
    ++pushes;
    if (begin == end) {  // an isolated node: the walk stays
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

// Appends the best nodes to the thread's results, clears the scratch, and returns the number of
// nodes with a positive score.
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

// Induces one subgraph at a time. Rows are scanned for edges, except those of the few nodes with
// the longest rows: other nodes' rows hold their edges, and those among them are found by search.
class Cutter {
 public:
  explicit Cutter(const Network& network) : network_(network), present_(network.nodes / 64 + 1) {}

  // Appends the columns of the subgraph, and writes the length of every row.
  void cut(const int32_t* nodes, int64_t count, int32_t first, std::vector<int32_t>& col,
           int64_t* lengths) {
    open(nodes, count);
    choose_hubs(nodes, count);
    pairs_.clear();
    std::fill(lengths, lengths + count, 0);
    for (int64_t i = 0; i < count; ++i) {
      if (hub_[i]) continue;
      const int32_t v = nodes[i];
      for (int64_t e = network_.row_ptr[v]; e < network_.row_ptr[v + 1]; ++e) {
        const int32_t w = network_.col[e];
        if (!(present_[w >> 6] >> (w & 63) & 1)) continue;
        const int32_t j = find(w);
        pair(int32_t(i), j, lengths);
        if (hub_[j]) pair(j, int32_t(i), lengths);
      }
    }
    for (const int32_t i : hubs_) {
      const int32_t *from = network_.col + network_.row_ptr[nodes[i]],
                    *to = network_.col + network_.row_ptr[nodes[i] + 1];
      for (const int32_t j : hubs_)
        if (std::binary_search(from, to, nodes[j])) pair(i, j, lengths);
    }
    spread(count, first, col, lengths);
    for (int64_t i = 0; i < count; ++i) present_[nodes[i] >> 6] = 0;
  }

 private:
  void open(const int32_t* nodes, int64_t count) {
    size_t slots = 64;
    while (slots < size_t(4 * count)) slots *= 2;
    key_.assign(slots, -1);
    value_.resize(slots);
    mask_ = slots - 1;
    for (int64_t i = 0; i < count; ++i) {
      size_t at = slot(nodes[i]);
      while (key_[at] >= 0) at = (at + 1) & mask_;
      key_[at] = nodes[i];
      value_[at] = int32_t(i);
      present_[nodes[i] >> 6] |= uint64_t(1) << (nodes[i] & 63);
    }
  }
  int32_t find(int32_t node) const {  // the node must be present
    size_t at = slot(node);
    while (key_[at] != node) at = (at + 1) & mask_;
    return value_[at];
  }
  size_t slot(int32_t node) const { return (uint32_t(node) * 2654435769u >> 7) & mask_; }

  // Chooses as hubs the nodes whose rows are several times longer than the number of hubs, because
  // a search among hubs costs a few steps.
  void choose_hubs(const int32_t* nodes, int64_t count) {
    order_.resize(count);
    for (int64_t i = 0; i < count; ++i) order_[i] = {network_.degree(nodes[i]), int32_t(i)};
    std::sort(order_.begin(), order_.end(), std::greater<>());
    int64_t hubs = 0;
    while (hubs < count && order_[hubs].first > 8 * (hubs + 1)) ++hubs;
    hubs_.clear();
    hub_.assign(count, 0);
    for (int64_t h = 0; h < hubs; ++h) {
      hubs_.push_back(order_[h].second);
      hub_[order_[h].second] = 1;
    }
  }
  void pair(int32_t row, int32_t column, int64_t* lengths) {
    pairs_.push_back({row, column});
    ++lengths[row];
  }

  // A is symmetric: passing over the rows in order and appending each entry to the row of its
  // column fills every row in ascending order.
  void spread(int64_t count, int32_t first, std::vector<int32_t>& col, const int64_t* lengths) {
    start_.assign(count + 1, 0);
    for (int64_t i = 0; i < count; ++i) start_[i + 1] = start_[i] + lengths[i];
    fill_.assign(start_.begin(), start_.end() - 1);
    by_row_.resize(pairs_.size());
    for (const auto& [row, column] : pairs_) by_row_[fill_[row]++] = column;
    fill_.assign(start_.begin(), start_.end() - 1);
    const size_t begin = col.size();
    col.resize(begin + pairs_.size());
    for (int64_t i = 0; i < count; ++i)
      for (int64_t e = start_[i]; e < start_[i + 1]; ++e)
        col[begin + size_t(fill_[by_row_[e]]++)] = first + int32_t(i);
  }

  const Network& network_;
  std::vector<uint64_t> present_;
  std::vector<int32_t> key_, value_, hubs_, by_row_;
  std::vector<std::pair<int64_t, int32_t>> order_;
  std::vector<uint8_t> hub_;
  std::vector<std::pair<int32_t, int32_t>> pairs_;
  std::vector<int64_t> start_, fill_;
  size_t mask_ = 0;
};

struct Span {
  int rank;
  int64_t begin, end;
};

}  // namespace

Induced induce(const Network& network, const int64_t* node_ptr, const int32_t* nodes,
               int64_t graphs, int threads) {
  threads = int(std::max<int64_t>(1, std::min<int64_t>(threads, graphs)));
  Induced out;
  out.row_ptr.resize(node_ptr[graphs] + 1);
  std::vector<std::vector<int32_t>> cols(threads);
  std::vector<Span> spans(graphs);
  std::atomic<int64_t> next{0};
  Team::run(threads, [&](Team&, int rank) {
    Cutter cutter(network);
    std::vector<int32_t>& col = cols[rank];
    for (int64_t g; (g = next.fetch_add(1)) < graphs;) {
      const int64_t first = node_ptr[g], begin = int64_t(col.size());
      cutter.cut(nodes + first, node_ptr[g + 1] - first, int32_t(first), col,
                 out.row_ptr.data() + first + 1);
      spans[g] = {rank, begin, int64_t(col.size())};
    }
  });
  for (size_t i = 1; i < out.row_ptr.size(); ++i) out.row_ptr[i] += out.row_ptr[i - 1];
  out.col.resize(out.row_ptr.back());
  for (int64_t g = 0; g < graphs; ++g) {
    const std::vector<int32_t>& col = cols[spans[g].rank];
    std::copy(col.begin() + spans[g].begin, col.begin() + spans[g].end,
              out.col.begin() + out.row_ptr[node_ptr[g]]);
  }
  return out;
}

}  // namespace artlas
