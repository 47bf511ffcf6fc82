#include "blocks/vector.hpp"

#include <exception>
#include <memory>
#include <mutex>

#include "blocks/colours.hpp"
#include "blocks/descriptors.hpp"
#include "blocks/waves.hpp"

namespace artlas {
namespace {

constexpr int QUANTILES = 8;
constexpr int64_t LARGE = 1 << 16;  // graphs of at least this size get all threads in turn

double signed_log(double v) { return std::copysign(std::log1p(std::fabs(v)), v); }

// Runs work(0), ..., work(count - 1) on at most this many threads; rethrows a failure.
template <typename Work>
void run_all(int threads, int count, Work work) {
  std::atomic<int> next{0};
  std::exception_ptr failure;  // must not leave a thread of its own
  std::mutex guard;
  Team::run(threads, [&](Team&, int) {
    try {
      for (int i; (i = next.fetch_add(1)) < count;) work(i);
    } catch (...) {
      const std::lock_guard lock(guard);
      failure = std::current_exception();
      next = count;
    }
  });
  if (failure) std::rethrow_exception(failure);
}

// What one thread needs to embed one graph after another.
class Embedder {
 public:
  Embedder(const BlocksTask& task, const Frequencies& frequencies)
      : task_(task), frequencies_(frequencies) {}

  void embed(const GraphView& graph, int threads, float* out) {
    descriptors_.compute(graph);
    float* const features = out + 3 + 3 * DESCRIPTORS + QUANTILES * DESCRIPTORS;
    float* const waves = features + 4 * graph.width;
    float* const colours = waves + 2 * WAVES;
    float* const shapes = colours + (task_.rounds - (graph.x ? 0 : 1)) * task_.buckets;
    run_all(threads, DESCRIPTORS + 4, [&](int part) {
      if (part == 0) return write_colours(graph, false, colours);
      if (part == 1) return write_colours(graph, true, shapes);
      if (part == 2) return write_features(graph, features);
      if (part == 3) return write_moments(graph, out);
      write_quantiles(graph, part - 4, out + 3 + 3 * DESCRIPTORS + (part - 4) * QUANTILES);
    });
    double sums[WAVES];
    waves_.sum(graph, descriptors_, frequencies_, threads, sums);
    for (int64_t w = 0; w < WAVES; ++w) waves[w] = float(signed_log(sums[w]));
    for (int64_t w = 0; w < WAVES; ++w) waves[WAVES + w] = float(sums[w] / double(graph.nodes));
  }

 private:
  void write_moments(const GraphView& graph, float* out) const {
    const double nodes = double(graph.nodes), edges = double(graph.entries()) / 2.0;
    double sums[DESCRIPTORS] = {}, spread[DESCRIPTORS] = {};
    const double* values = descriptors_.values.data();
    for (int64_t i = 0; i < graph.nodes; ++i)
      for (int j = 0; j < DESCRIPTORS; ++j) sums[j] += values[i * DESCRIPTORS + j];
    for (int64_t i = 0; i < graph.nodes; ++i)
      for (int j = 0; j < DESCRIPTORS; ++j) {
        const double off = values[i * DESCRIPTORS + j] - sums[j] / nodes;
        spread[j] += off * off;
      }
    *out++ = float(std::log(nodes));
    *out++ = float(std::log1p(edges));
    *out++ = float(std::log1p(edges) - std::log(nodes));
    for (const double sum : sums) *out++ = float(signed_log(sum));
    for (const double sum : sums) *out++ = float(sum / nodes);
    for (const double sum : spread) *out++ = float(std::sqrt(sum / nodes));
  }

  // Means of descriptor j over eight parts of equal mass of its sorted values.
  void write_quantiles(const GraphView& graph, int j, float* out) {
    const int64_t n = graph.nodes;
    std::vector<double>& sorted = sorted_[j];
    sorted.resize(n);
    for (int64_t i = 0; i < n; ++i) sorted[i] = descriptors_.values[i * DESCRIPTORS + j];
    std::sort(sorted.begin(), sorted.end());
    for (int q = 0; q < QUANTILES; ++q) {
      // Part q covers the places from q n / 8 to (q + 1) n / 8, which may cut a value.
      double sum = 0.0;
      int64_t at = q * n;  // in eighths of a place
      for (const int64_t end = at + n; at < end;) {
        const int64_t i = at / QUANTILES, next = std::min((i + 1) * QUANTILES, end);
        sum += sorted[i] * double(next - at);
        at = next;
      }
      out[q] = float(sum / double(n));
    }
  }

  // Signed logarithms of the sums over nodes of X, AX, X o AX and X o (deg X - AX). The last is the
  // sum over edges of (x_i - x_j)^2, which loses no digits where large features hardly differ.
  void write_features(const GraphView& graph, float* out) {
    if (!graph.x) return;
    const int64_t d = graph.width;
    sums_.assign(4 * d, 0.0), near_.resize(d);
    for (int64_t i = 0; i < graph.nodes; ++i) {
      const float* x = graph.x + i * d;
      std::fill(near_.begin(), near_.end(), 0.0);
      graph.neighbours(i, [&](int64_t j) {
        const float* y = graph.x + j * d;
        for (int64_t k = 0; k < d; ++k) near_[k] += double(y[k]);
        if (j > i) return;
        for (int64_t k = 0; k < d; ++k) {
          const double off = double(x[k]) - double(y[k]);
          sums_[3 * d + k] += off * off;
        }
      });
      for (int64_t k = 0; k < d; ++k) {
        sums_[k] += double(x[k]);
        sums_[d + k] += near_[k];
        sums_[2 * d + k] += double(x[k]) * near_[k];
      }
    }
    for (const double sum : sums_) *out++ = float(signed_log(sum));
  }

  void write_colours(const GraphView& graph, bool shapes, float* out) {
    Colours& colours = colours_[shapes];
    if (graph.x)
      colours.start(graph);
    else
      colours.start_alike(graph.nodes);
    if (shapes) colours.refine_by_shape(descriptors_.triangles, descriptors_.core);
    for (int round = 0; round < task_.rounds; ++round) {
      if (round) colours.refine(graph, round);
      if (!graph.x && !shapes && !round) continue;
      colours.count(out, task_.buckets);
      out += task_.buckets;
    }
  }

  const BlocksTask& task_;
  const Frequencies& frequencies_;
  Descriptors descriptors_;
  Waves waves_;
  Colours colours_[2];
  std::vector<double> sorted_[DESCRIPTORS], sums_, near_;
};

}  // namespace

int64_t BlocksTask::columns() const {
  const int64_t counts = (2 * rounds - (x ? 0 : 1)) * buckets;
  return 3 + 3 * DESCRIPTORS + QUANTILES * DESCRIPTORS + (x ? 4 * width : 0) + 2 * WAVES + counts;
}

void embed_blocks(const BlocksTask& task, float* out) {
  const Frequencies frequencies(task.x ? task.width : 0);
  const int64_t columns = task.columns();
  const auto embed = [&](Embedder& embedder, int64_t g, int threads) {
    const int64_t first = task.node_ptr[g], nodes = task.node_ptr[g + 1] - first;
    const float* x = task.x ? task.x + first * task.width : nullptr;
    const int64_t width = task.x ? task.width : 0;
    embedder.embed({task.row_ptr + first, task.col, x, nodes, width, first}, threads,
                   out + g * columns);
  };
  const auto large = [&](int64_t g) { return task.node_ptr[g + 1] - task.node_ptr[g] >= LARGE; };
  {
    Embedder embedder(task, frequencies);
    for (int64_t g = 0; g < task.graphs; ++g)
      if (large(g)) embed(embedder, g, task.threads);
  }
  std::atomic<int64_t> next{0};
  const int threads = int(std::min<int64_t>(task.threads, task.graphs));
  run_all(threads, threads, [&](int) {
    Embedder embedder(task, frequencies);
    for (int64_t g; (g = next.fetch_add(1)) < task.graphs;)
      if (!large(g)) embed(embedder, g, 1);
  });
}

}  // namespace artlas
