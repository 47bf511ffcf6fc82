// Small matrix products that keep a tile of the result in registers. Every element is one chain of
// multiply-adds in a fixed order, wherever the row lies: equal rows give equal bits.
#pragma once

#include "core/simd.hpp"

namespace artlas::ARTLAS_ISA {

// acc[r] += sum_k a[r][k] * b[k, :], R rows by V registers, both fully in registers.
template <int R, int V>
ARTLAS_INLINE void multiply_rows(const float* const* a, const float* b, int64_t ldb, int64_t depth,
                                 vf acc[R][V]) {
  for (int64_t k = 0; k < depth; ++k) {
    vf bk[V];
    ARTLAS_UNROLL
    for (int j = 0; j < V; ++j) bk[j] = load(b + k * ldb + j * W);
    ARTLAS_UNROLL
    for (int r = 0; r < R; ++r) {
      const vf ark = splat(a[r][k]);
      ARTLAS_UNROLL
      for (int j = 0; j < V; ++j) acc[r][j] += ark * bk[j];
    }
  }
}

// The register tile: rows held at once, registers per row.
constexpr int TILE = 8;
constexpr int REG_ROWS = W == 16 ? 8 : 4;
constexpr int REG_COLS = 2;

// out[8, cols] = a(8 rows of depth) @ b[depth, cols] (+ out when ADD); cols a multiple of W.
template <bool ADD>
ARTLAS_INLINE void tile_product(const float* const rows[TILE], const float* b, int64_t ldb,
                                int64_t depth, int64_t cols, float* out, int64_t ldo) {
  for (int r = 0; r < TILE; r += REG_ROWS) {
    int64_t c = 0;
    for (; c + REG_COLS * W <= cols; c += REG_COLS * W) {
      vf acc[REG_ROWS][REG_COLS];
      ARTLAS_UNROLL
      for (int i = 0; i < REG_ROWS; ++i) ARTLAS_UNROLL
      for (int j = 0; j < REG_COLS; ++j)
        acc[i][j] = ADD ? load(out + (r + i) * ldo + c + j * W) : vf{};
      multiply_rows<REG_ROWS, REG_COLS>(rows + r, b + c, ldb, depth, acc);
      ARTLAS_UNROLL
      for (int i = 0; i < REG_ROWS; ++i) ARTLAS_UNROLL
      for (int j = 0; j < REG_COLS; ++j) store(out + (r + i) * ldo + c + j * W, acc[i][j]);
    }
    for (; c < cols; c += W) {
      vf acc[REG_ROWS][1];
      ARTLAS_UNROLL
      for (int i = 0; i < REG_ROWS; ++i) acc[i][0] = ADD ? load(out + (r + i) * ldo + c) : vf{};
      multiply_rows<REG_ROWS, 1>(rows + r, b + c, ldb, depth, acc);
      ARTLAS_UNROLL
      for (int i = 0; i < REG_ROWS; ++i) store(out + (r + i) * ldo + c, acc[i][0]);
    }
  }
}

// out[rows, cols] += sum_i a[i, rows] b[i, cols]: the transposed product, nodes innermost.
// rows a multiple of REG_ROWS, cols a multiple of W.
ARTLAS_INLINE void outer_product(const float* a, int64_t lda, const float* b, int64_t ldb,
                                 int64_t n, int64_t rows, int64_t cols, float* out, int64_t ldo) {
  for (int64_t r = 0; r < rows; r += REG_ROWS) {
    int64_t c = 0;
    for (; c + REG_COLS * W <= cols; c += REG_COLS * W) {
      vf acc[REG_ROWS][REG_COLS];
      ARTLAS_UNROLL
      for (int i = 0; i < REG_ROWS; ++i) ARTLAS_UNROLL
      for (int j = 0; j < REG_COLS; ++j) acc[i][j] = load(out + (r + i) * ldo + c + j * W);
      for (int64_t k = 0; k < n; ++k) {
        vf bk[REG_COLS];
        ARTLAS_UNROLL
        for (int j = 0; j < REG_COLS; ++j) bk[j] = load(b + k * ldb + c + j * W);
        ARTLAS_UNROLL
        for (int i = 0; i < REG_ROWS; ++i) {
          const vf aki = splat(a[k * lda + r + i]);
          ARTLAS_UNROLL
          for (int j = 0; j < REG_COLS; ++j) acc[i][j] += aki * bk[j];
        }
      }
      ARTLAS_UNROLL
      for (int i = 0; i < REG_ROWS; ++i) ARTLAS_UNROLL
      for (int j = 0; j < REG_COLS; ++j) store(out + (r + i) * ldo + c + j * W, acc[i][j]);
    }
    for (; c < cols; c += W) {
      vf acc[REG_ROWS];
      ARTLAS_UNROLL
      for (int i = 0; i < REG_ROWS; ++i) acc[i] = load(out + (r + i) * ldo + c);
      for (int64_t k = 0; k < n; ++k) {
        const vf bk = load(b + k * ldb + c);
        ARTLAS_UNROLL
        for (int i = 0; i < REG_ROWS; ++i) acc[i] += splat(a[k * lda + r + i]) * bk;
      }
      ARTLAS_UNROLL
      for (int i = 0; i < REG_ROWS; ++i) store(out + (r + i) * ldo + c, acc[i]);
    }
  }
}

}  // namespace artlas::ARTLAS_ISA
