// Rows of attention, shared among threads.
#include "core/parallel.hpp"

namespace artlas {
namespace {

template <typename Rows>
void each_range(const Pattern& p, int64_t heads, int64_t width, int threads, Rows rows) {
  constexpr int64_t ROWS = 64, PADDING = 64;  // taken at a time; four registers
  int64_t most = 0;
  for (int64_t i = 0; i < p.nodes; ++i) most = std::max(most, p.row_ptr[i + 1] - p.row_ptr[i]);
  const double work = double(p.row_ptr[p.nodes] + p.nodes) * double(width);
  std::atomic<int64_t> next{0};
  Team::run(int(std::max(1.0, std::min(double(threads), work / 1e6))), [&](Team&, int) {
    const Buffer<float> space(heads * (4 * (most + 1) + 1) + PADDING);
    for (int64_t r0; (r0 = next.fetch_add(ROWS)) < p.nodes;)
      rows(r0, std::min(p.nodes, r0 + ROWS), space.data());
  });
}

}  // namespace

void run_additive(const Pattern& p, const Additive& a, int threads, float* out, float* log_sum) {
  const AttentionOps* ops = select_attention_ops();
  each_range(p, a.heads, a.heads * a.width, threads, [&](int64_t r0, int64_t r1, float* space) {
    ops->additive(p, a, r0, r1, space, out, log_sum);
  });
}

void run_additive_backward(const Pattern& p, const Additive& a, const Received& g, int threads,
                           float* d_values, float* d_sent, float* d_met) {
  const AttentionOps* ops = select_attention_ops();
  each_range(p, a.heads, a.heads * a.width, threads, [&](int64_t r0, int64_t r1, float* space) {
    ops->additive_backward(p, a, g, r0, r1, space, d_values, d_sent, d_met);
  });
}

void run_normalised(const Pattern& p, const Normalised& a, int threads, float* out) {
  const AttentionOps* ops = select_attention_ops();
  each_range(p, 1, a.width, threads,
             [&](int64_t r0, int64_t r1, float*) { ops->normalised(p, a, r0, r1, out); });
}

void run_product(const Pattern& p, const Product& a, int threads, float* out, float* log_sum) {
  const AttentionOps* ops = select_attention_ops();
  each_range(p, 1, a.depth + a.width, threads, [&](int64_t r0, int64_t r1, float* space) {
    ops->product(p, a, r0, r1, space, out, log_sum);
  });
}

void run_product_backward(const Pattern& p, const Product& a, const Received& g, int threads,
                          float* d_query, float* d_key, float* d_value) {
  const AttentionOps* ops = select_attention_ops();
  each_range(p, 1, a.depth + a.width, threads, [&](int64_t r0, int64_t r1, float* space) {
    ops->product_backward(p, a, g, r0, r1, space, d_query, d_key, d_value);
  });
}

}  // namespace artlas
