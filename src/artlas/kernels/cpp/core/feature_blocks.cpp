// Feature rows for couplings to transport: blocks of products, and averages over merged nodes.
//
// Compiled without contraction, for the same bits as the same steps in PyTorch.
#include "core/parallel.hpp"

namespace artlas {
namespace {

constexpr int64_t ROWS = 2048;  // that a thread takes at a time

template <typename Work>
void each(int threads, int64_t count, double work, Work one) {
  std::atomic<int64_t> next{0};
  Team::run(int(std::max(1.0, std::min(double(threads), work / 1e5))), [&](Team&, int) {
    for (int64_t i; (i = next.fetch_add(1)) < count;) one(i);
  });
}

}  // namespace

void run_blocks(const EncoderGraph& graph, const float* x, const float* degree, int64_t width,
                int threads, float* out) {
  const int64_t nodes = graph.nodes;
  const Buffer<float> summed(nodes * width);
  run_neighbour_sum(graph, x, width, threads, summed.data());
  each(threads, (nodes + ROWS - 1) / ROWS, double(nodes * width), [&](int64_t part) {
    for (int64_t i = part * ROWS; i < std::min(nodes, (part + 1) * ROWS); ++i) {
      const float *own = x + i * width, *near = summed.data() + i * width;
      float* to = out + 4 * i * width;
      std::copy_n(own, width, to);
      std::copy_n(near, width, to + width);
      for (int64_t j = 0; j < width; ++j) {
        const float across = own[j] * near[j];
        to[2 * width + j] = across;
        to[3 * width + j] = degree[i] * own[j] * own[j] - across;
      }
    }
  });
}

void run_averages(const AverageView& a, int threads, float* out) {
  std::vector<int64_t> first{0}, cuts{0};  // nodes before every graph; graphs where a part begins
  for (int64_t g = 0; g < a.graphs; ++g) {
    first.push_back(first.back() + (a.sizes ? a.sizes[g] : a.node_ptr[g + 1] - a.node_ptr[g]));
    if (first.back() - first[cuts.back()] >= ROWS || g + 1 == a.graphs) cuts.push_back(g + 1);
  }
  each(threads, int64_t(cuts.size()) - 1, double(first.back() * a.width), [&](int64_t part) {
    const int64_t low = cuts[part], high = cuts[part + 1], d = a.width;
    if (a.class_of) std::fill(out + a.node_ptr[low] * d, out + a.node_ptr[high] * d, 0.0f);
    for (int64_t i = first[low]; i < first[high]; ++i) {
      const float* from = a.x + i * d;
      float* to = out + (a.class_of ? a.class_of[i] : i) * d;
      const double measure = a.measure ? a.measure[i] : 1.0;
      if (a.class_of)
        for (int64_t j = 0; j < d; ++j) to[j] += float(double(from[j]) / measure);
      else
        for (int64_t j = 0; j < d; ++j) to[j] = float(double(from[j]) / measure);
    }
    if (a.class_of)
      for (int64_t c = a.node_ptr[low]; c < a.node_ptr[high]; ++c)
        for (int64_t j = 0; j < d; ++j) out[c * d + j] /= a.count[c];
  });
}

}  // namespace artlas
