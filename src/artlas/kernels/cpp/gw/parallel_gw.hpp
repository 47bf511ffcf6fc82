// Solves many relational Gromov-Wasserstein problems at once, each from its own start.
#pragma once

#include <vector>

#include "core/batch.hpp"

namespace artlas {

struct GwOptions {
  int64_t mirror_steps;     // at most, before the exact ones
  int64_t sinkhorn_steps;   // iterations of each mirror step, at most
  double epsilon;           // of the mirror steps, relative to the spread of the gradient
  int64_t exact_steps;      // at most
  double tolerance;         // a step that moves no more L1 mass is the last
  double mirror_tolerance;  // the same for mirror steps
};

struct GwProblem {  // graph g against relation k
  int64_t first, n;
  int64_t relation;
  double* coupling;  // [n, m], the start, and the result on return
};

struct GwResult {
  double before, after;  // energies
  double gap;            // <gradient, T - vertex> of the last exact step: zero if T is stationary
  double moved;          // L1 mass of the last step
  int64_t mirror_steps, sinkhorn_steps, exact_steps, swaps;
};

struct GwBatch {
  const int64_t* row_ptr;
  const int32_t* col;
  const double* mu;         // of all nodes
  const double* relations;  // [K, m, m]
  const double* nu;         // [K, m]
  int64_t m;
};

void run_gw(const GwBatch&, const GwOptions&, const std::vector<GwProblem>&, GwResult*,
            int threads);

}  // namespace artlas
