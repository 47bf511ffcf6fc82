// Columns of rows, shared among threads by ranges whose sums are joined in their order, so that
// the number of threads does not change a bit.
#include "core/parallel.hpp"

namespace artlas {
namespace {

constexpr int64_t ROWS = 512;  // of a range

template <typename Range>
void each_range(int64_t rows, int64_t width, int threads, Range range) {
  const double work = double(rows) * double(width);
  std::atomic<int64_t> next{0};
  Team::run(int(std::max(1.0, std::min(double(threads), work / 2e5))), [&](Team&, int) {
    for (int64_t r; (r = next.fetch_add(1)) * ROWS < rows;)
      range(r, r * ROWS, std::min(rows, (r + 1) * ROWS));
  });
}
int64_t ranges(int64_t rows) { return (rows + ROWS - 1) / ROWS; }

}  // namespace

void run_moments(const float* x, int64_t rows, int64_t width, int threads, double* mean,
                 double* variance) {
  const ColumnOps* ops = select_column_ops();
  std::vector<float> parts(size_t(ranges(rows) * 2 * width));
  each_range(rows, width, threads, [&](int64_t r, int64_t r0, int64_t r1) {
    float* own = parts.data() + r * 2 * width;
    ops->moments(x, width, r0, r1, own, own + width);
  });
  for (int64_t d = 0; d < width; ++d) {
    double count = 0, middle = 0, square = 0;
    for (int64_t r = 0; r < ranges(rows); ++r) {  // Chan, Golub and LeVeque's rule for two parts
      const double more = double(std::min(rows, (r + 1) * ROWS) - r * ROWS);
      const double off = parts[size_t(r * 2 * width + d)] - middle;
      square += parts[size_t((r * 2 + 1) * width + d)] + off * off * count * more / (count + more);
      middle += off * more / (count + more);
      count += more;
    }
    mean[d] = middle;
    variance[d] = square / count;
  }
}

void run_columns(const Columns& c, int64_t rows, int threads, float* out) {
  const ColumnOps* ops = select_column_ops();
  each_range(rows, c.width, threads,
             [&](int64_t, int64_t r0, int64_t r1) { ops->forward(c, r0, r1, out); });
}

void run_column_sums(const Columns& c, const float* grad, int64_t rows, int threads, double* sum,
                     double* along, double* bent) {
  const ColumnOps* ops = select_column_ops();
  const int64_t width = c.width;
  std::vector<float> parts(size_t(ranges(rows) * 3 * width));
  each_range(rows, width, threads, [&](int64_t r, int64_t r0, int64_t r1) {
    float* own = parts.data() + r * 3 * width;
    ops->sums(c, grad, r0, r1, own, own + width, own + 2 * width);
  });
  for (int64_t d = 0; d < width; ++d) {
    sum[d] = along[d] = bent[d] = 0;
    for (int64_t r = 0; r < ranges(rows); ++r) {
      sum[d] += parts[size_t(r * 3 * width + d)];
      along[d] += parts[size_t((r * 3 + 1) * width + d)];
      bent[d] += parts[size_t((r * 3 + 2) * width + d)];
    }
  }
}

void run_columns_backward(const Columns& c, const float* grad, const float* shift,
                          const float* slope, int64_t rows, int threads, float* out) {
  const ColumnOps* ops = select_column_ops();
  each_range(rows, c.width, threads, [&](int64_t, int64_t r0, int64_t r1) {
    ops->backward(c, grad, shift, slope, r0, r1, out);
  });
}

}  // namespace artlas
