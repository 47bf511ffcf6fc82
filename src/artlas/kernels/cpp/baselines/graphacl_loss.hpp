// GraphACL's error and all its gradients in one pass over the nodes: few rows of the matrix of
// exponentials at a time, which stay in cache until both products of the gradients are made.
#pragma once

#include "baselines/attention.hpp"
#include "baselines/linear.hpp"

namespace artlas::ARTLAS_ISA {

struct ForetellingKernels {
  // rows r0..r1: d_q and d_v of them, sums over them added to d_w, and the sum of their errors
  static double errors(const Pattern& p, const Foretelling& f, int64_t r0, int64_t r1, float* space,
                       float* d_w) {
    float *terms = space, *sums = terms + LINEAR_ROWS * f.others, *row = sums + LINEAR_ROWS;
    double total = 0;
    for (int64_t begin = r0; begin < r1; begin += LINEAR_ROWS) {
      const int64_t count = std::min(r1, begin + LINEAR_ROWS) - begin;
      const float* v = f.v + begin * f.width;
      LinearKernels::product({f.width, f.others, v, f.there, nullptr, false}, 0, count, terms);
      for (int64_t i = 0; i < count; ++i) sums[i] = exponentials(f, terms + i * f.others);
      for (int64_t i = 0; i < count; ++i) {
        double slope;
        total += row_error(p, f, begin + i, sums[i], row, slope);
        Attention::scale(float(slope / sums[i]), f.others, terms + i * f.others);
      }
      LinearKernels::product({f.others, f.width, terms, f.back, nullptr, false}, 0, count,
                             f.d_v + begin * f.width);
      outer_product(terms, f.others, v, f.width, count, f.others, f.width, d_w, f.width);
    }
    return total;
  }

 private:
  // exp of a row, 0 where it is padded, and its sum; what is no number is not hidden
  ARTLAS_INLINE static float exponentials(const Foretelling& f, float* x) {
    vf sum = {};
    for (int64_t k = 0; k < f.others; k += W) {
      const vf given = load(x + k), made = vexp(given) + given * 0.0f;
      store(x + k, made);
      sum += made;
    }
    float rest = hsum(sum);
    for (int64_t k = f.counted; k < f.others; ++k) {
      rest -= x[k];
      x[k] = 0;
    }
    return rest;
  }

  // the mean over a node and its neighbours of softplus(r - s); slope: of r
  static double row_error(const Pattern& p, const Foretelling& f, int64_t i, float sum, float* row,
                          double& slope) {
    const int64_t count = p.row_ptr[i + 1] - p.row_ptr[i] + 1, width = f.width;
    const float rest = std::log(sum) + f.shift, share = f.weight / float(count);
    const float* q = f.q + i * width;
    double total = 0, product = 1;
    for (int64_t e = 0; e < count; ++e) {
      const float gap = rest - f.inverse * dot(q, f.u + Attention::met(p, i, e) * width, width);
      total += std::max(gap, 0.0f);
      row[e] = gap;
      row[count + W + e] = -std::fabs(gap);
    }
    Attention::exponents(count, row + count + W);
    float* d_q = f.d_q + i * width;
    Attention::clear(width, d_q);
    slope = 0;
    for (int64_t e = 0; e < count; ++e) {
      // the sum of log(1 + e^-|gap|) is the logarithm of a product, taken before that overflows
      const float small = row[count + W + e], one = 1 / (1 + small);
      product *= 1 + double(small);
      if (product > 1e100) {
        total += std::log(product);
        product = 1;
      }
      const float weight = share * (row[e] >= 0 ? one : small * one);
      slope += weight;
      Attention::add(-f.inverse * weight, f.u + Attention::met(p, i, e) * width, width, d_q);
    }
    return share * (total + std::log(product));
  }
};

}  // namespace artlas::ARTLAS_ISA
