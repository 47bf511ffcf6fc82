// Linear maps of rows, with a bias and a ReLU behind them or not, and their gradients. Every number
// is one chain of multiply-adds in a fixed order: a row's result does not depend on its place.
#pragma once

#include <algorithm>

#include "core/gemm.hpp"
#include "core/kernel_tables.hpp"

namespace artlas::ARTLAS_ISA {

struct LinearKernels {
  static constexpr int PANEL = REG_COLS * W;

  // b [depth, cols], or b' where it is given as [cols, depth], in panels of columns
  static void pack(const float* b, int64_t depth, int64_t cols, bool transposed, float* out) {
    for (int64_t c = 0; c < cols; c += PANEL)
      for (int64_t k = 0; k < depth; ++k)
        for (int64_t j = 0; j < PANEL; ++j)
          *out++ = transposed ? b[(c + j) * depth + k] : b[k * cols + c + j];
  }

  // out = a b + bias for rows r0..r1, and max(0, .) of it if asked for
  static void product(const Linear& l, int64_t r0, int64_t r1, float* out) {
    const auto rows = l.rectify ? product_rows<true> : product_rows<false>;
    for (int64_t begin = r0; begin < r1; begin += LINEAR_ROWS)
      rows(l, begin, std::min(r1, begin + LINEAR_ROWS), out);
  }

  // sums over rows r0..r1 for the weight and bias, and these rows of the gradient of x if asked for
  static void backward(const LinearGradient& l, int64_t r0, int64_t r1) {
    const int64_t cols = l.cols;
    for (int64_t begin = r0; begin < r1; begin += LINEAR_ROWS) {
      const int64_t count = std::min(r1, begin + LINEAR_ROWS) - begin;
      const float* grad = l.grad + begin * cols;
      if (l.out) {
        const float* out = l.out + begin * cols;
        for (int64_t i = 0; i < count * cols; ++i) l.space[i] = out[i] <= 0 ? 0 : grad[i];
        grad = l.space;
      }
      for (int64_t i = 0; i < count; ++i)
        for (int64_t d = 0; d < cols; d += W)
          store(l.d_bias + d, load(l.d_bias + d) + load(grad + i * cols + d));
      outer_product(grad, cols, l.x + begin * l.depth, l.depth, count, cols, l.depth, l.d_weight,
                    l.depth);
      if (l.d_x)
        product_rows<false>({cols, l.depth, grad, l.panels, nullptr, false}, 0, count,
                            l.d_x + begin * l.depth);
    }
  }

 private:
  template <bool Rectify>
  static void product_rows(const Linear& l, int64_t begin, int64_t end, float* out) {
    for (int64_t c = 0; c < l.cols; c += PANEL)
      for (int64_t r = begin; r < end; r += REG_ROWS) {
        const float* rows[REG_ROWS];  // the last is repeated where there are fewer
        ARTLAS_UNROLL
        for (int i = 0; i < REG_ROWS; ++i) rows[i] = l.a + std::min(r + i, end - 1) * l.depth;
        vf acc[REG_ROWS][REG_COLS];
        ARTLAS_UNROLL
        for (int i = 0; i < REG_ROWS; ++i) ARTLAS_UNROLL
        for (int j = 0; j < REG_COLS; ++j) acc[i][j] = l.bias ? load(l.bias + c + j * W) : vf{};
        multiply_rows<REG_ROWS, REG_COLS>(rows, l.panels + c * l.depth, PANEL, l.depth, acc);
        ARTLAS_UNROLL
        for (int i = 0; i < REG_ROWS; ++i)
          if (r + i < end) ARTLAS_UNROLL
        for (int j = 0; j < REG_COLS; ++j) {
          const vf y = acc[i][j];
          store(out + (r + i) * l.cols + c + j * W, Rectify ? (y < 0 ? vf{} : y) : y);
        }
      }
  }
};

}  // namespace artlas::ARTLAS_ISA
