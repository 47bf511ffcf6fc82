// Personalised PageRank by local push, and the subgraphs it selects.
#pragma once

#include <cstdint>
#include <vector>

#include "core/thread_pool.hpp"

namespace artlas {

struct Network {  // one graph, symmetric and without loops
  const int64_t* row_ptr;
  const int32_t* col;
  int64_t nodes;
  int64_t degree(int64_t v) const { return row_ptr[v + 1] - row_ptr[v]; }
};

struct PushOptions {
  double restart;
  int64_t most_pushes, most_nodes;
  bool lazy;
};

// Nodes of every centre in turn: the centre, then others by descending score, ties by id.
struct Egos {
  std::vector<int64_t> node_ptr{0};
  std::vector<int32_t> nodes;
  std::vector<float> scores;
  std::vector<int64_t> pushes;    // of a centre
  std::vector<int64_t> positive;  // nodes with a positive score, before the cut
  std::vector<uint8_t> stopped;   // whether the limit of pushes was reached
};

// Keeps the threads' scratch, which is as large as the graph, between calls.
class Pusher {
 public:
  Pusher(Network network, double threshold) : network_(network), threshold_(threshold) {}
  Pusher(Pusher&&) = default;
  Pusher(const Pusher&) = delete;
  Egos run(const int64_t* centres, int64_t count, const PushOptions&, int threads);

 private:
  struct Node {
    double residual;   // negative if not reached yet
    double threshold;  // the node is pushed above this
  };
  struct Candidate {
    double score;
    int32_t node;
  };
  struct Scratch {
    Scratch(const Network&, double threshold);
    Buffer<Node> node;
    Buffer<double> reserve;
    std::vector<int32_t> reached, queue;
    std::vector<Candidate> ranked;
    std::vector<int32_t> nodes;  // found by this thread, for all of its centres
    std::vector<float> scores;
  };
  struct Place {
    int rank;
    int64_t begin, end;
  };
  void push(Scratch&, int64_t centre, const PushOptions&, int64_t& pushes, uint8_t& stopped) const;
  int64_t rank(Scratch&, int64_t centre, const PushOptions&) const;

  Network network_;
  double threshold_;
  std::vector<Scratch> scratch_;
};

// The subgraphs induced by nodes[node_ptr[g]..node_ptr[g + 1]), numbered through the batch.
struct Induced {
  std::vector<int64_t> row_ptr;
  std::vector<int32_t> col;
};
Induced induce(const Network&, const int64_t* node_ptr, const int32_t* nodes, int64_t graphs,
               int threads);

}  // namespace artlas
