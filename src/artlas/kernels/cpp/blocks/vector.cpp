#include "blocks/vector.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <vector>

#include "blocks/colours.hpp"
#include "blocks/descriptors.hpp"
#include "blocks/waves.hpp"

namespace artlas {
namespace {

constexpr int QUANTILES = 8;
constexpr int64_t LARGE = 1 << 16;  // graphs of at least this size get all threads in turn

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
    float* const waves = out + QUANTILES * DESCRIPTORS;
    float* const colours = waves + WAVES;
    float* const shapes = colours + (task_.rounds - 1) * task_.buckets;
    run_all(threads, DESCRIPTORS + 2, [&](int part) {
      if (part == 0) return write_colours(graph, false, colours);
      if (part == 1) return write_colours(graph, true, shapes);
      write_quantiles(graph, part - 2, out + (part - 2) * QUANTILES);
    });
    double sums[WAVES];
    waves_.sum(graph, descriptors_, frequencies_, threads, sums);
    for (int64_t w = 0; w < WAVES; ++w) waves[w] = float(sums[w] / double(graph.nodes));
  }

 private:
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

  void write_colours(const GraphView& graph, bool shapes, float* out) {
    Colours& colours = colours_[shapes];
    if (graph.x)
      colours.start(graph);
    else
      colours.start_alike(graph.nodes);
    if (shapes) colours.refine_by_shape(descriptors_.triangles, descriptors_.core);
    for (int round = 0; round < task_.rounds; ++round) {
      if (round) colours.refine(graph, round);
      if (!shapes && !round) continue;  // counts of labels alone: the waves know them
      colours.count(out, task_.buckets);
      out += task_.buckets;
    }
  }

  const BlocksTask& task_;
  const Frequencies& frequencies_;
  Descriptors descriptors_;
  Waves waves_;
  Colours colours_[2];
  std::vector<double> sorted_[DESCRIPTORS];
};

}  // namespace

int64_t BlocksTask::columns() const {
  return QUANTILES * DESCRIPTORS + WAVES + (2 * rounds - 1) * buckets;
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
