// A batch of graphs aligned with all bases: inputs, schedule and scratch that the calls share.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/instruction_set.hpp"
#include "core/thread_pool.hpp"

namespace artlas {

constexpr int64_t CHUNK =
    1024;  // rows reduced together; fixed, so the bits do not depend on threads
constexpr int64_t TEAM_ROWS = 4096;  // graphs of at least this size are shared by all threads
// A kernel holds exp(logit - row maximum), never below exp(-87). Entries down to exp(-70) leave
// scalings room in float32. Below that, scalings beyond exp(25) are absorbed in the kernel: with
// both sides at that limit, an entry that was cut off weighs less than rounding. A first iteration
// with a column sum below exp(-60) may have lost part of it and is repeated in the log domain.
constexpr float TAME = 4e-31f;
constexpr float ABSORB = 25.0f;
constexpr float FAINT = 8.7e-27f;
constexpr float DEFICIT_FLOOR = 1e-8f;
constexpr float PAD_POTENTIAL = -1e30f;

// Counts the work that this process has done and checks for interrupts.
class Progress {
 public:
  bool (*interrupted)() = nullptr;  // whether the user pressed Ctrl-C

  // nodes times bases aligned since the process began
  int64_t aligned() const { return aligned_.load(std::memory_order_relaxed); }
  void count(int64_t nodes) { aligned_.fetch_add(nodes, std::memory_order_relaxed); }

  // Checks every 50 ms at most; only the calling thread may do it.
  void check_interrupt(std::atomic<bool>& stopped) {
    const auto now = std::chrono::steady_clock::now();
    if (!interrupted || now - checked_ < std::chrono::milliseconds(50)) return;
    checked_ = now;
    if (interrupted()) stopped = true;
  }

 private:
  std::atomic<int64_t> aligned_{0};
  static thread_local inline std::chrono::steady_clock::time_point checked_;
};
inline Progress progress;
struct Interrupted {};

inline int64_t round_up(int64_t x, int64_t to) { return (x + to - 1) / to * to; }

struct Batch {
  int64_t graphs, nodes, bases, roles, dim, steps;
  const int64_t* node_ptr;
  const int64_t* row_ptr;
  const int32_t* col;
  const float* weight;   // of the entries, or null
  const int64_t* sizes;  // nodes before alike ones were merged, or null
  const float* mu;
  const float* q;
  float scale, clamp;
  int threads;

  const CouplingOps* ops = nullptr;
  int64_t mp = 0;
  Buffer<float> roles_t, relations, pad, nu, no_potential;
  Buffer<double> base_energy;  // chi(B_k)

  Batch(const float* roles_in, const float* relations_in, int64_t bases, int64_t roles, int64_t dim)
      : bases(bases),
        roles(roles),
        dim(dim),
        mp(padded(roles)),
        roles_t(bases * dim * mp),
        relations(bases * mp * mp),
        pad(mp),
        nu(mp),
        no_potential(mp),
        base_energy(bases),
        roles_(roles_in) {
    ops = select_coupling_ops(mp);
    std::memset(relations.data(), 0, sizeof(float) * bases * mp * mp);
    for (int64_t a = 0; a < mp; ++a) {
      pad[a] = a < roles ? 0.0f : 1.0f;
      nu[a] = a < roles ? 1.0f / float(roles) : 0.0f;
      no_potential[a] = a < roles ? 0.0f : PAD_POTENTIAL;
    }
    for (int64_t k = 0; k < bases; ++k) {
      double total = 0;
      for (int64_t a = 0; a < roles; ++a)
        for (int64_t b = 0; b < roles; ++b) {
          const float x = relations_in[(k * roles + a) * roles + b];
          relations[(k * mp + a) * mp + b] = x;
          total += double(x) * x;
        }
      base_energy[k] = total / (double(roles) * roles);
    }
  }

  void prepare_roles() {
    std::memset(roles_t.data(), 0, sizeof(float) * bases * dim * mp);
    for (int64_t k = 0; k < bases; ++k)
      for (int64_t a = 0; a < roles; ++a)
        for (int64_t d = 0; d < dim; ++d)
          roles_t[(k * dim + d) * mp + a] = roles_[(k * roles + a) * dim + d] * scale;
  }

  static int64_t padded(int64_t roles) {
    int64_t mp = 16;
    while (mp < roles) mp *= 2;
    return mp;
  }

  int64_t size(int64_t g) const { return node_ptr[g + 1] - node_ptr[g]; }
  int64_t entries(int64_t g) const { return row_ptr[node_ptr[g + 1]] - row_ptr[node_ptr[g]]; }
  GraphView graph(int64_t g) const {
    return {size(g), node_ptr[g], row_ptr + node_ptr[g], col, weight};
  }
  LogitView logits(int64_t g, int64_t k) const {
    return {q + node_ptr[g] * dim,
            roles_t.data() + k * dim * mp,
            pad.data(),
            size(g),
            dim,
            roles,
            clamp};
  }
  // approximate multiply-adds of one graph, by which the schedule balances
  double cost(int64_t g) const {
    return double(bases) * mp *
           (double(size(g)) * (dim + 2 * steps + mp) + 0.5 * double(entries(g)));
  }
  // no more threads than the work justifies: starting one costs about ten microseconds
  int useful_threads(double work) const {
    return int(std::max(1.0, std::min(double(threads), work / 2e6)));
  }
  double total_cost() const {
    double total = 0;
    for (int64_t g = 0; g < graphs; ++g) total += cost(g);
    return total;
  }

 private:
  const float* roles_;
};

// Scratch for one graph at a time, with at most `rows` nodes.
struct Space {
  int64_t rows, chunks;
  Buffer<float> kernel, mu, u, row_sum, keep, deficit, f, row_max, partial, scalars;
  Buffer<double> sums;
  Buffer<uint32_t> upper;

  Space(int64_t most_rows, int64_t mp)
      : rows(round_up(most_rows, ROW_ALIGN)),
        chunks((rows + CHUNK - 1) / CHUNK),
        kernel(rows * mp),
        mu(rows),
        u(rows),
        row_sum(rows),
        keep(rows),
        deficit(rows),
        f(rows),
        row_max(rows),
        partial(2 * chunks * 2 * mp),
        scalars(2 * chunks * 2),
        sums(chunks),
        upper(rows) {}
};

}  // namespace artlas
