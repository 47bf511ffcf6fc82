// Linear maps of rows, shared among threads by ranges whose sums are joined in their order, so that
// the number of threads does not change a bit.
#include "core/parallel.hpp"

namespace artlas {
namespace {

constexpr int64_t ROWS = 1536;  // of a range

template <typename Range>
void each_range(int64_t rows, double work, int threads, Range range) {
  std::atomic<int64_t> next{0};
  Team::run(int(std::max(1.0, std::min(double(threads), work / 1e6))), [&](Team&, int) {
    for (int64_t r; (r = next.fetch_add(1)) * ROWS < rows;)
      range(r, r * ROWS, std::min(rows, (r + 1) * ROWS));
  });
}

}  // namespace

void run_linear(const float* a, const float* b, const float* bias, int64_t rows, int64_t depth,
                int64_t cols, bool transposed, bool rectify, int threads, float* out) {
  const LinearOps* ops = select_linear_ops();
  const Buffer<float> panels(depth * cols);
  ops->pack(b, depth, cols, transposed, panels.data());
  const Linear l = {depth, cols, a, panels.data(), bias, rectify};
  each_range(rows, double(rows) * double(depth * cols), threads,
             [&](int64_t, int64_t r0, int64_t r1) { ops->product(l, r0, r1, out); });
}

void run_linear_backward(const float* x, const float* weight, const float* grad, const float* out,
                         int64_t rows, int64_t depth, int64_t cols, int threads, float* d_x,
                         float* d_weight, float* d_bias) {
  const LinearOps* ops = select_linear_ops();
  const Buffer<float> panels(d_x ? depth * cols : 0);
  if (d_x) ops->pack(weight, cols, depth, false, panels.data());
  const int64_t parts = (rows + ROWS - 1) / ROWS, size = depth * cols + cols;
  std::vector<float> sums(size_t(parts * size));
  each_range(
      rows, double(rows) * double(depth * cols), threads, [&](int64_t r, int64_t r0, int64_t r1) {
        const Buffer<float> space(out ? LINEAR_ROWS * cols : 0);
        float* own = sums.data() + r * size;
        ops->backward(
            {depth, cols, x, grad, out, panels.data(), d_x, own, own + depth * cols, space.data()},
            r0, r1);
      });
  for (int64_t i = 0; i < size; ++i) {
    double total = 0;
    for (int64_t r = 0; r < parts; ++r) total += sums[size_t(r * size + i)];
    (i < depth * cols ? d_weight[i] : d_bias[i - depth * cols]) = float(total);
  }
}

}  // namespace artlas
