// Merges nodes that no coupling can tell apart.
#include "core/parallel.hpp"

namespace artlas {
namespace {

constexpr double WORTHWHILE = 0.8;  // classes per node, above which a graph stays as it is

// With 128 bits, the probability that any two different nodes of a million share a colour is about
// 1e-26.
struct Colour {
  uint64_t a, b;
  bool operator==(const Colour& other) const { return a == other.a && b == other.b; }
};

uint64_t scramble(uint64_t x) {  // the finaliser of splitmix64
  x += 0x9E3779B97F4A7C15ull;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}
Colour scramble(Colour c) {
  return {scramble(c.a ^ 0xD6E8FEB86659FD93ull), scramble(c.b + 0xA0761D6478BD642Full)};
}

struct GraphClasses {
  bool joined = false;
  std::vector<int32_t> of;  // class of every node, in the order of their first nodes
  std::vector<int32_t> count, degree, entries, col;
  std::vector<float> weight;
};

class Refinement {  // one per thread, whose scratch serves one graph after another
 public:
  void open(const GraphView& graph) {
    g_ = graph;
    colour_.resize(size_t(g_.n));
    mixed_.resize(size_t(g_.n));
    for (int64_t i = 0; i < g_.n; ++i) colour_[i] = {degree(i), degree(i)};
  }
  uint64_t degree(int64_t i) const { return uint64_t(g_.row_ptr[i + 1] - g_.row_ptr[i]); }

  // Hashes a node's colour with the multiset of its neighbours' colours, a sum of hashes.
  void step() {
    for (int64_t i = 0; i < g_.n; ++i) mixed_[i] = scramble(colour_[i]);
    for (int64_t i = 0; i < g_.n; ++i) {
      Colour sum{0, 0};
      for (int64_t j = g_.row_ptr[i]; j < g_.row_ptr[i + 1]; ++j) {
        const Colour& c = mixed_[g_.col[j] - g_.first];
        sum.a += c.a;
        sum.b += c.b;
      }
      colour_[i] = scramble({colour_[i].a * 3 + sum.a, colour_[i].b * 5 + sum.b});
    }
  }

  // Counts the colours; writes the class of every node to `of` if it is given.
  int32_t classes(std::vector<int32_t>* of) {
    size_t slots = 16;
    while (slots < size_t(2 * g_.n)) slots *= 2;
    table_.assign(slots, -1);
    int32_t found = 0;
    firsts_.clear();
    if (of) of->resize(g_.n);
    for (int64_t i = 0; i < g_.n; ++i) {
      size_t at = colour_[i].a & (slots - 1);
      while (table_[at] >= 0 && !(colour_[firsts_[table_[at]]] == colour_[i]))
        at = (at + 1) & (slots - 1);
      if (table_[at] < 0) {
        table_[at] = found++;
        firsts_.push_back(i);
      }
      if (of) (*of)[i] = table_[at];
    }
    return found;
  }

 private:
  GraphView g_{};
  std::vector<Colour> colour_, mixed_;
  std::vector<int32_t> table_;
  std::vector<int64_t> firsts_;
};

void count_entries(const GraphView& g, GraphClasses& out, int32_t classes) {
  std::vector<int32_t> start(classes + 1, 0), members(g.n), seen(classes, 0), touched;
  for (const int32_t c : out.of) ++start[c + 1];
  out.count.assign(start.begin() + 1, start.end());
  for (int32_t c = 0; c < classes; ++c) start[c + 1] += start[c];
  std::vector<int32_t> fill(start.begin(), start.end() - 1);
  for (int64_t i = 0; i < g.n; ++i) members[fill[out.of[i]]++] = int32_t(i);
  out.degree.resize(classes);
  out.entries.resize(classes);
  for (int32_t c = 0; c < classes; ++c) {
    touched.clear();
    for (int32_t m = start[c]; m < start[c + 1]; ++m)
      for (int64_t j = g.row_ptr[members[m]]; j < g.row_ptr[members[m] + 1]; ++j) {
        const int32_t other = out.of[g.col[j] - g.first];
        if (seen[other]++ == 0) touched.push_back(other);
      }
    std::sort(touched.begin(), touched.end());
    for (const int32_t other : touched) {
      out.col.push_back(other);
      out.weight.push_back(float(double(seen[other]) / (double(out.count[c]) * out.count[other])));
      seen[other] = 0;
    }
    const int32_t first = members[start[c]];
    out.degree[c] = int32_t(g.row_ptr[first + 1] - g.row_ptr[first]);
    out.entries[c] = int32_t(touched.size());
  }
}

GraphClasses classes_of(const GraphView& g, int rounds, Refinement& colours) {
  GraphClasses out;
  if (g.n < 4 || g.n > std::numeric_limits<int32_t>::max()) return out;
  colours.open(g);
  const double most = WORTHWHILE * double(g.n);
  for (int round = 0; round < rounds; ++round) {
    colours.step();
    // later rounds only split further: most graphs that cannot shrink are known after the first
    if (colours.classes(nullptr) > most) return out;
  }
  const int32_t found = colours.classes(&out.of);
  out.joined = true;
  count_entries(g, out, found);
  return out;
}

}  // namespace

MergedNodes merge_nodes(const int64_t* node_ptr, const int64_t* row_ptr, const int32_t* col,
                        int64_t graphs, int rounds, int threads) {
  std::vector<GraphClasses> found(graphs);
  auto view = [&](int64_t g) {
    return GraphView{node_ptr[g + 1] - node_ptr[g], node_ptr[g], row_ptr + node_ptr[g], col,
                     nullptr};
  };
  std::atomic<int64_t> next{0};
  const double work = double(row_ptr[node_ptr[graphs]]) + 10.0 * double(node_ptr[graphs]);
  Team::run(int(std::max(1.0, std::min(double(threads), work / 1e5))), [&](Team&, int) {
    Refinement colours;
    for (int64_t g; (g = next.fetch_add(1)) < graphs;)
      found[g] = classes_of(view(g), rounds, colours);
  });
  MergedNodes q;
  for (const GraphClasses& one : found) q.worthwhile |= one.joined;
  if (!q.worthwhile) return q;

  int64_t nodes = 0, entries = 0;
  q.node_ptr = {0};
  for (int64_t g = 0; g < graphs; ++g) {
    const GraphView v = view(g);
    nodes += found[g].joined ? int64_t(found[g].count.size()) : v.n;
    entries += found[g].joined ? int64_t(found[g].col.size()) : v.row_ptr[v.n] - v.row_ptr[0];
    q.node_ptr.push_back(nodes);
  }
  q.row_ptr.resize(nodes + 1);
  q.col.resize(entries);
  q.weight.resize(entries);
  q.count.resize(nodes);
  q.degree.resize(nodes);
  q.class_of.resize(node_ptr[graphs]);
  int64_t entry = 0;
  for (int64_t g = 0; g < graphs; ++g) {
    const GraphClasses& one = found[g];
    const GraphView v = view(g);
    const int64_t first = q.node_ptr[g], size = q.node_ptr[g + 1] - first;
    const int32_t shift = int32_t(first - (one.joined ? 0 : v.first));
    const int32_t* from = one.joined ? one.col.data() : col + v.row_ptr[0];
    for (int64_t c = 0, at = 0; c < size; ++c) {
      const int64_t own = one.joined ? one.entries[c] : v.row_ptr[c + 1] - v.row_ptr[c];
      q.row_ptr[first + c] = entry;
      q.count[first + c] = one.joined ? float(one.count[c]) : 1.0f;
      q.degree[first + c] = float(one.joined ? one.degree[c] : own);
      for (int64_t e = 0; e < own; ++e, ++at, ++entry) {
        q.col[entry] = from[at] + shift;
        q.weight[entry] = one.joined ? one.weight[at] : 1.0f;
      }
    }
    for (int64_t i = 0; i < v.n; ++i)
      q.class_of[v.first + i] = first + (one.joined ? one.of[i] : i);
  }
  q.row_ptr[nodes] = entry;
  return q;
}

}  // namespace artlas
