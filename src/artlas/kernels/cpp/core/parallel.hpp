// The calls behind the Python module, on plain pointers: each shares its work among threads.
#pragma once

#include "core/sinkhorn_pair.hpp"

namespace artlas {

struct Energies {
  float* energy;    // [G, K]
  float* residual;  // [G, K]
  float* saved;     // [G, K, 2, steps, MP] or null
};

struct Mixing {
  float temperature;
  int64_t top;     // bases kept; K for all
  const float* x;  // [N, features] or null
  int64_t features;
  float* transported;  // [G, M, features] or null
  float* mixture;      // [N, M] or null
};

struct EncoderView {
  EncoderGraph graph;
  int64_t dim, width;
  const float *lift_w, *lift_b, *project;
  std::vector<EncoderLayer> layers;
  int threads;
};

// Graphs whose alike nodes are merged. Nodes of one graph with the same degree and the same
// `rounds` of neighbourhood colours get the same embedding and so the same rows in every coupling;
// one node with their joint measure stands for them exactly.
struct MergedNodes {
  std::vector<int64_t> node_ptr, row_ptr;
  std::vector<int32_t> col;
  std::vector<float> weight;      // edges between two classes over the product of their counts
  std::vector<float> count;       // nodes of a class
  std::vector<float> degree;      // of each of them
  std::vector<int64_t> class_of;  // of every original node
  bool worthwhile = false;        // false: no graph got smaller, the rest is empty
};

// Feature rows of nodes, to be averaged over the classes of their structure.
struct AverageView {
  const float* x;           // [nodes, width]
  const double* measure;    // [nodes]: rows are divided by it; or null
  const int64_t* class_of;  // [nodes]: the class of a node whose mean is taken; or null
  const float* count;       // of a class, with `class_of`
  const int64_t* sizes;     // [graphs]: nodes, with `class_of`
  const int64_t* node_ptr;  // [graphs + 1] of the structure
  int64_t graphs, width;
};

// Both return the number of Sinkhorn iterations over all pairs.
int64_t run_energies(const Batch&, const Energies&);
int64_t run_mixtures(const Batch&, const Energies&, const Mixing&);
void run_couplings(const Batch&, float* out);  // one graph: [K, N, M]
void run_backward(const Batch&, const float* saved, const float* grad_energy, const float* roles,
                  float* grad_q, float* grad_roles, float* grad_relations);
void run_encoder(const EncoderView&, float* out);
void run_neighbour_sum(const EncoderGraph&, const float* h, int64_t dim, int threads, float* out);
// [x | s | x s | deg x x - x s] of rows x and of the sums s over their neighbours, [nodes, 4 width]
void run_blocks(const EncoderGraph&, const float* x, const float* degree, int64_t width,
                int threads, float* out);
void run_averages(const AverageView&, int threads, float* out);
MergedNodes merge_nodes(const int64_t* node_ptr, const int64_t* row_ptr, const int32_t* col,
                        int64_t graphs, int rounds, int threads);

}  // namespace artlas
