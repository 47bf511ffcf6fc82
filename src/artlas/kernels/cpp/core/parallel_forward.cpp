// Forward calls: all threads share a large graph; small graphs get one thread each, largest first.
#include <numeric>

#include "core/parallel.hpp"

namespace artlas {
namespace {

std::vector<int64_t> by_cost(const Batch& b) {
  std::vector<int64_t> order(b.graphs);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t i, int64_t j) { return b.cost(i) > b.cost(j); });
  return order;
}

// Extra scratch of the mixture: [rows, MP], and per chunk a piece of H and packed features.
struct MixSpace {
  Buffer<float> mixture, pieces, packed;
  MixSpace(int64_t rows, int64_t chunks, int64_t mp, int64_t cols, int threads)
      : mixture(rows * mp), pieces(chunks * mp * cols), packed(threads * CHUNK * cols) {}
};

int64_t feature_columns(const Batch& b, const Mixing& mix) {
  return mix.transported ? round_up(mix.features, b.ops->width) : 0;
}

// Computes T_mix = sum_k w_k T_k one base at a time. Weights are relative to the least energy so
// far; a lower one rescales the sum (online soft-max).
class OnlineMixture {
 public:
  explicit OnlineMixture(float temperature) : temperature_(temperature) {}
  // returns the weights of the old mixture and of the new coupling
  std::pair<float, float> add(double energy) {
    const double lower = std::min(least_, energy);
    const double old_weight = total_ > 0 ? std::exp((lower - least_) / temperature_) : 0.0;
    const double weight = std::exp((lower - energy) / temperature_);
    least_ = lower;
    total_ = total_ * old_weight + weight;
    return {float(old_weight), float(weight)};
  }
  double total() const { return total_; }

 private:
  const double temperature_;
  double least_ = std::numeric_limits<double>::infinity(), total_ = 0;
};

void write_mixture(PairSolver& solver, const Batch& b, const Mixing& mix, const MixSpace& scratch,
                   double scale, int rank) {
  const int64_t mp = b.mp, cols = feature_columns(b, mix), first = solver.graph.first;
  if (mix.mixture)
    solver.each_chunk([&](int64_t, int64_t r0, int64_t r1) {
      for (int64_t i = r0; i < r1; ++i)
        for (int64_t a = 0; a < b.roles; ++a)
          mix.mixture[(first + i) * b.roles + a] = float(scratch.mixture[i * mp + a] * scale);
    });
  if (!mix.transported) return;
  solver.each_chunk([&](int64_t c, int64_t r0, int64_t r1) {
    float* piece = scratch.pieces.data() + c * mp * cols;
    std::fill_n(piece, mp * cols, 0.0f);
    const float* x = mix.x + (first + r0) * mix.features;
    if (cols != mix.features) {
      float* packed = scratch.packed.data() + rank * CHUNK * cols;
      std::fill_n(packed, (r1 - r0) * cols, 0.0f);
      for (int64_t i = 0; i < r1 - r0; ++i)
        std::copy_n(x + i * mix.features, mix.features, packed + i * cols);
      x = packed;
    }
    b.ops->gather_features(scratch.mixture.data() + r0 * mp, x, cols, 0, r1 - r0, piece);
  });
  solver.team.wait();
  if (rank == 0) {  // H = N T_mix' X
    float* out = mix.transported + solver.index * b.roles * mix.features;
    const int64_t g = solver.index;
    const double factor = scale * double(b.sizes ? b.sizes[g] : solver.graph.n);
    for (int64_t a = 0; a < b.roles; ++a)
      for (int64_t d = 0; d < mix.features; ++d) {
        double sum = 0;
        for (int64_t c = 0; c < solver.chunks; ++c) sum += scratch.pieces[(c * mp + a) * cols + d];
        out[a * mix.features + d] = float(sum * factor);
      }
  }
  solver.team.wait();
}

void one_graph(PairSolver& solver, const Batch& b, const Energies& out, const Mixing* mix,
               const MixSpace* scratch, int64_t g, int rank, bool caller,
               std::atomic<bool>& stopped) {
  solver.load(g);
  const bool online = mix && mix->top >= b.bases;
  OnlineMixture weights(mix ? mix->temperature : 1.0f);
  auto blend = [&](float old_weight, float weight) {
    solver.each_chunk([&](int64_t, int64_t r0, int64_t r1) {
      float* rows = scratch->mixture.data();
      if (old_weight == 0) std::fill_n(rows + r0 * b.mp, (r1 - r0) * b.mp, 0.0f);
      b.ops->mix(old_weight, weight, solver.space.kernel.data(), r0, r1, rows);
    });
  };
  std::vector<double> energy(b.bases);
  for (int64_t k = 0; k < b.bases; ++k) {
    float residual;
    const int64_t pair = g * b.bases + k;
    float* at = out.saved ? out.saved + pair * 2 * b.steps * b.mp : nullptr;
    const Saved saved{at, at ? at + b.steps * b.mp : nullptr};
    energy[k] = solver.solve(k, &residual, at ? &saved : nullptr);
    if (rank == 0) out.energy[pair] = float(energy[k]), out.residual[pair] = residual;
    if (online) {
      const auto [old_weight, weight] = weights.add(energy[k]);
      blend(old_weight, weight);
    }
    if (rank == 0) progress.count(b.sizes ? b.sizes[g] : b.size(g));
    if (caller) progress.check_interrupt(stopped);
    solver.team.wait();
    if (stopped) return;
  }
  if (!mix) return;
  if (!online) {  // the best bases are known only now: compute their couplings again
    std::vector<int64_t> order(b.bases);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](int64_t i, int64_t j) { return energy[i] < energy[j]; });
    order.resize(mix->top);
    std::sort(order.begin(), order.end());
    for (const int64_t k : order) {
      float residual;
      const double e = solver.solve(k, &residual);
      const auto [old_weight, weight] = weights.add(e);
      blend(old_weight, weight);
    }
  }
  write_mixture(solver, b, *mix, *scratch, 1.0 / weights.total(), rank);
}

int64_t run(const Batch& b, const Energies& out, const Mixing* mix) {
  const std::vector<int64_t> order = by_cost(b);
  const int threads = b.useful_threads(b.total_cost());
  int64_t large = 0, most_large = 0, most_small = 0;
  for (int64_t g = 0; g < b.graphs; ++g) {
    const bool shared = threads > 1 && b.size(g) >= TEAM_ROWS;
    large += shared;
    (shared ? most_large : most_small) = std::max(shared ? most_large : most_small, b.size(g));
  }
  const int64_t cols = mix ? feature_columns(b, *mix) : 0;
  std::atomic<int64_t> sweeps{0};
  std::atomic<bool> stopped{false};
  auto with_mix = [&](int64_t rows, int64_t chunks, int parts) {
    return mix ? MixSpace(rows, chunks, b.mp, cols, parts) : MixSpace(0, 0, 0, 0, 0);
  };
  if (large) {
    const Space space(most_large, b.mp);
    const MixSpace scratch = with_mix(space.rows, space.chunks, threads);
    Team::run(threads, [&](Team& team, int rank) {
      PairSolver solver(b, space, team, rank);
      for (const int64_t g : order)
        if (b.size(g) >= TEAM_ROWS && !stopped)
          one_graph(solver, b, out, mix, &scratch, g, rank, rank == 0, stopped);
      if (rank == 0) sweeps += solver.sweeps;
    });
  }
  if (stopped) throw Interrupted();
  if (large == b.graphs) return sweeps;
  std::vector<Space> spaces;
  std::vector<MixSpace> scratches;
  for (int t = 0; t < threads; ++t) {
    spaces.emplace_back(most_small, b.mp);
    scratches.push_back(with_mix(spaces.back().rows, spaces.back().chunks, 1));
  }
  std::atomic<size_t> next{0};
  Team::run(threads, [&](Team&, int rank) {
    Team alone(1);
    PairSolver solver(b, spaces[rank], alone, 0);
    for (size_t i; !stopped && (i = next.fetch_add(1)) < order.size();) {
      const int64_t g = order[i];
      if (threads > 1 && b.size(g) >= TEAM_ROWS) continue;
      one_graph(solver, b, out, mix, &scratches[rank], g, 0, rank == 0, stopped);
    }
    sweeps += solver.sweeps;
  });
  if (stopped) throw Interrupted();
  return sweeps;
}

}  // namespace

int64_t run_energies(const Batch& b, const Energies& out) { return run(b, out, nullptr); }
int64_t run_mixtures(const Batch& b, const Energies& out, const Mixing& mix) {
  return run(b, out, &mix);
}

void run_couplings(const Batch& b, float* out) {
  const int threads = b.size(0) >= TEAM_ROWS ? b.useful_threads(b.total_cost()) : 1;
  const Space space(b.size(0), b.mp);
  Team::run(threads, [&](Team& team, int rank) {
    PairSolver solver(b, space, team, rank);
    solver.load(0);
    for (int64_t k = 0; k < b.bases; ++k) {
      float residual;
      solver.solve(k, &residual);
      solver.each_chunk([&](int64_t, int64_t r0, int64_t r1) {
        for (int64_t i = r0; i < r1; ++i)
          std::copy_n(space.kernel.data() + i * b.mp, b.roles,
                      out + (k * solver.graph.n + i) * b.roles);
      });
      team.wait();
    }
  });
}

void run_encoder(const EncoderView& e, float* out) {
  const EncoderOps* ops = select_encoder_ops();
  constexpr int64_t ROWS = 32;
  const int64_t nodes = e.graph.nodes;
  const size_t depth = e.layers.size();
  // hidden states of all layers but the last, in turn
  const Buffer<float> first(depth > 1 ? nodes * e.width : 0),
      second(depth > 2 ? nodes * e.width : 0);
  const Buffer<float> padded(e.width == e.dim ? 0 : nodes * e.width);
  const double entries = double(e.graph.row_ptr[nodes]);
  const double work = double(depth) * e.width * (2.0 * double(e.width) * nodes + entries);
  const int threads = int(std::max(1.0, std::min(double(e.threads), work / 2e6)));
  std::vector<std::atomic<int64_t>> next(depth);
  Team::run(threads, [&](Team& team, int) {
    const float* h = nullptr;
    for (size_t l = 0; l < depth; ++l) {
      const bool last = l + 1 == depth;
      float* to = last ? (e.width == e.dim ? out : padded.data()) : (l % 2 ? second : first).data();
      for (int64_t r0; (r0 = next[l].fetch_add(ROWS)) < nodes;)
        ops->layer(e.layers[l], e.graph, e.lift_w, e.lift_b, h, last ? e.project : nullptr, e.dim,
                   e.width, r0, std::min(nodes, r0 + ROWS), to);
      h = to;
      team.wait();
    }
  });
  if (e.width != e.dim)
    for (int64_t i = 0; i < nodes; ++i)
      std::copy_n(padded.data() + i * e.width, e.dim, out + i * e.dim);
}

void run_neighbour_sum(const EncoderGraph& graph, const float* h, int64_t dim, int threads,
                       float* out) {
  constexpr int64_t ROWS = 256;
  const EncoderOps* ops = select_encoder_ops();
  const double work = double(graph.row_ptr[graph.nodes]) * double(dim);
  std::atomic<int64_t> next{0};
  Team::run(int(std::max(1.0, std::min(double(threads), work / 4e6))), [&](Team&, int) {
    for (int64_t r0; (r0 = next.fetch_add(ROWS)) < graph.nodes;)
      ops->neighbour_sum(graph, h, dim, r0, std::min(graph.nodes, r0 + ROWS), out);
  });
}

}  // namespace artlas
