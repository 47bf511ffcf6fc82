// The calls Python makes, on plain pointers.
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

// Graphs whose alike nodes are joined. Nodes of one graph with the same degree and the same
// `rounds` of neighbourhood colours get the same embedding and so the same rows in every coupling;
// one node with their joint measure stands for them exactly.
struct Quotient {
  std::vector<int64_t> node_ptr, row_ptr;
  std::vector<int32_t> col;
  std::vector<float> weight;     // edges between two classes over the product of their counts
  std::vector<float> count;      // nodes of a class
  std::vector<float> degree;     // of each of them
  std::vector<int64_t> classes;  // of every original node
  bool worthwhile = false;       // false: no graph got smaller, the rest is empty
};

// Rows of the nodes of graphs, for the nodes of their structure.
struct AverageView {
  const float* x;           // [nodes, width]
  const double* measure;    // [nodes]: rows are divided by it; or null
  const int64_t* of;        // [nodes]: the class of a node whose mean is taken; or null
  const float* count;       // of a class, with `of`
  const int64_t* sizes;     // [graphs]: nodes, with `of`
  const int64_t* node_ptr;  // [graphs + 1] of the structure
  int64_t graphs, width;
};

// Each returns the number of Sinkhorn iterations run, over all pairs.
int64_t run_energies(const Batch&, const Energies&);
int64_t run_mixtures(const Batch&, const Energies&, const Mixing&);
void run_couplings(const Batch&, float* out);  // one graph: [K, N, M]
void run_backward(const Batch&, const float* saved, const float* grad_energy, const float* roles,
                  float* grad_q, float* grad_roles, float* grad_relations);
void run_encoder(const EncoderView&, float* out);
void run_neighbour_sum(const EncoderGraph&, const float* h, int64_t dim, int threads, float* out);
// [x | s | x s | deg x x - x s] of rows x and of the sums s over their neighbours, [nodes, 4 width]
void run_blocks(const float* x, const float* summed, const float* degree, int64_t nodes,
                int64_t width, int threads, float* out);
void run_additive(const Pattern&, const Additive&, int threads, float* out, float* log_sum);
void run_additive_backward(const Pattern&, const Additive&, const Received&, int threads,
                           float* d_values, float* d_sent, float* d_met);
void run_normalised(const Pattern&, const Normalised&, int threads, float* out);
void run_product(const Pattern&, const Product&, int threads, float* out, float* log_sum);
void run_product_backward(const Pattern&, const Product&, const Received&, int threads,
                          float* d_query, float* d_key, float* d_value);
void run_map(Map, const MapRows&, int64_t rows, int threads, float* out);
void run_map_backward(Map, const MapRows&, const float* grad, int64_t rows, int threads, float* d_x,
                      float* d_y);
void run_moments(const float* x, int64_t rows, int64_t width, int threads, double* mean,
                 double* variance);
void run_columns(const Columns&, int64_t rows, int threads, float* out);
void run_column_sums(const Columns&, const float* grad, int64_t rows, int threads, double* sum,
                     double* along, double* bent);
void run_columns_backward(const Columns&, const float* grad, const float* shift, const float* slope,
                          int64_t rows, int threads, float* out);
// a [rows, depth] times b [depth, cols], or times b' of b [cols, depth]
void run_linear(const float* a, const float* b, const float* bias, int64_t rows, int64_t depth,
                int64_t cols, bool transposed, bool rectify, int threads, float* out);
// gradients of x W' + b, or of its ReLU if `out`, that ReLU, is not null; d_x may be null
void run_linear_backward(const float* x, const float* weight, const float* grad, const float* out,
                         int64_t rows, int64_t depth, int64_t cols, int threads, float* d_x,
                         float* d_weight, float* d_bias);
// the sum of the errors; d_w [others, width] is of the rows w that the panels were made of
double run_foretelling(const Pattern&, const Foretelling&, const float* w, int threads, float* d_w);
void run_averages(const AverageView&, int threads, float* out);
Quotient run_quotient(const int64_t* node_ptr, const int64_t* row_ptr, const int32_t* col,
                      int64_t graphs, int rounds, int threads);

}  // namespace artlas
