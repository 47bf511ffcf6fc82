// Tables of kernels, one per instruction set: plain data in, plain data out, no allocation.
//
// Symbols: n nodes, M roles (MP when padded), D embedding width, mu the node measure, nu = 1/M.
// The kernel matrix exp(l + g - row maximum) of one (graph, base) pair is kept blocked: L nodes
// (one per 128-bit lane) by four roles in a register, so that Sinkhorn's two products need one
// load per register and hardly any shuffle. Finished couplings are row-major [n, MP].
#pragma once

#include <cstdint>

namespace artlas {

constexpr int64_t BEYOND_CACHE = 1 << 20;  // bytes from which prefetching pays
constexpr int64_t ROW_ALIGN = 8;  // arrays over nodes are padded to this, with zero measure

struct GraphView {
  int64_t n;               // nodes
  int64_t first;           // id of the first node in the collection
  const int64_t* row_ptr;  // of the first node
  const int32_t* col;      // ids in the whole collection, ascending within a row
  const float* weight;     // of the entries; null where all are one
};

struct LogitView {
  const float* q;        // [n, D] projected node embeddings
  const float* roles_t;  // [D, MP] projected role embeddings times the logit scale, transposed
  const float* pad;      // [MP] 1 for padding roles, else 0
  int64_t n, dim, roles;
  float clamp;  // on |logit|; infinity for none
};

struct CouplingOps {
  int width;
  int64_t padded_roles;

  // kernel = exp(l + g - row maximum) for rows r0..r1; the least entry of real roles is returned.
  float (*fill)(const LogitView&, const float* g, int64_t r0, int64_t r1, float* kernel,
                float* row_max);
  // f_i = log mu_i - lse_a(l_ia), and the pieces (maximum, sum) of lse_i(l_ia + f_i) per role.
  void (*log_iteration)(const LogitView&, const float* mu, int64_t r0, int64_t r1, float* f,
                        float* column_max, float* column_sum);
  // one Sinkhorn iteration's sums: colsum = K' u, u = mu / (K v).
  void (*sweep)(const float* kernel, const float* mu, const float* v, int64_t r0, int64_t r1,
                float* colsum);
  // up to `steps` iterations of a graph that is one chunk, v = nu / colsum between them; every v
  // goes to saved_v (may be null), the one before the last to v_prev. Ends early when v repeats to
  // the bit (*fixed), or when an entry leaves [1/limit, limit]. Returns the iterations done.
  int64_t (*sweeps)(const float* kernel, const float* mu, const float* nu, int64_t n, int64_t steps,
                    float limit, float* v, float* v_prev, float* saved_v, bool* fixed);
  // rounding, rows: u = mu / (K v_prev) (u is given where v_prev is null), row sums r of T = u K v;
  // keep = min(1, mu / r); deficit = max(mu - r, 0); colsum of keep T (without the factor v).
  // Returns the sum of the deficits.
  float (*round_rows)(const float* kernel, const float* mu, const float* v_prev, const float* v,
                      int64_t r0, int64_t r1, float* u, float* row_sum, float* keep, float* deficit,
                      float* colsum);
  // T' = keep u K v + deficit spread', row-major into out (may be the kernel itself);
  // colsum of T'; the largest row error is returned.
  float (*round_emit)(const float* kernel, const float* mu, const float* u, const float* v,
                      const float* keep, const float* deficit, const float* spread, int64_t r0,
                      int64_t r1, float* out, float* colsum);
  // sum over rows of <A_ii T_i / 2 + sum_{j > i} A_ij T_j, (T B)_i>: half of <A T, T B>.
  double (*cross)(const GraphView&, const uint32_t* upper, const float* coupling,
                  const float* relation, int64_t roles, int64_t r0, int64_t r1);
  void (*mix)(float old_weight, float weight, const float* coupling, int64_t r0, int64_t r1,
              float* mixture);
  // out[MP, cols] += mixture[r0..r1]' x, x row-major with cols a multiple of the width
  void (*gather_features)(const float* mixture, const float* x, int64_t cols, int64_t r0,
                          int64_t r1, float* out);

  // --- backward ---
  void (*emit_plain)(const float* kernel, const float* u, const float* v, int64_t n, float* out);
  // out_i = factor sum_j A_ij T_j
  void (*neighbours)(const GraphView&, const float* coupling, float factor, float* out);
  // out[MP, MP] += a' b over n rows
  void (*outer)(const float* a, const float* b, int64_t n, int64_t cols_b, float* out);
  // grad <- factor * grad @ relation (rows in place)
  void (*times_relation)(const float* relation, int64_t roles, float factor, int64_t n,
                         float* grad);
  // gradient of the rounding: grad is dE/dT' on entry, T o dE/dT on return; row and column sums of
  // it
  void (*round_backward)(const float* coupling, const float* mu, const float* row_sum,
                         const float* keep, const float* deficit, const float* column_deficit,
                         float deficit_total, int64_t n, int64_t roles, float* grad, float* df,
                         float* dg);
  // one iteration backwards: from p = v dg / nu and the previous v, u and y = df / (K v_prev),
  // df = df_in - u (K p); colsum = K' y. df_in may be null (zero).
  void (*sweep_backward)(const float* kernel, const float* mu, const float* v_prev, const float* p,
                         const float* df_in, int64_t n, float* u, float* y, float* colsum);
  // t = K p per row
  void (*row_product)(const float* kernel, const float* p, int64_t n, float* t);
  // grad -= K o (left' right), left [depth, stride] over nodes, right [depth, MP]
  void (*subtract_products)(const float* kernel, const float* left, int64_t stride,
                            const float* right, int64_t depth, int64_t n, float* grad);
  void (*mask_clamped)(const LogitView&, float* grad);
  // grad_q[n, D] += grad @ roles_s[MP, DP]
  void (*add_node_gradient)(const float* grad, const float* roles_s, int64_t roles, int64_t dim,
                            int64_t padded_dim, int64_t n, float* scratch, float* grad_q);
};

struct EncoderLayer {
  const float *w1, *b1, *w2, *b2, *gamma, *beta;  // w: [DP, DP], input-major
  float self;                                     // 1 + epsilon_l
};

struct EncoderGraph {
  const int64_t* row_ptr;
  const int32_t* col;
  const float* weight;  // of the entries, and the nodes that each node stands for;
  const float* count;   // both are null, or neither
  const float* x;       // normalised degree
  int64_t nodes;
};

struct EncoderOps {
  // h' = LayerNorm(h + MLP(self h + sum of neighbours' h)) for rows r0..r1. The first layer's h is
  // relu(x lift_w + lift_b) of the scalar x, computed on the fly (h null); out may then be
  // projected (project: [DP, DP] or null).
  void (*layer)(const EncoderLayer&, const EncoderGraph&, const float* lift_w, const float* lift_b,
                const float* h, const float* project, int64_t dim, int64_t padded_dim, int64_t r0,
                int64_t r1, float* out);
  // out_i = sum_j A_ij h_j, any width
  void (*neighbour_sum)(const EncoderGraph&, const float* h, int64_t dim, int64_t r0, int64_t r1,
                        float* out);
};

// A graph, a dense relation, and the measures of both, in double precision.
struct GwView {
  int64_t n, m, stride, first;  // stride: of rows over roles, at least m
  const int64_t* row_ptr;
  const int32_t* col;
  const double* mu;        // [n]
  const double* relation;  // [m, stride]
  const double* nu;        // [m]
};

struct TransportSpace {  // scratch of one problem; prices persist between its steps
  double *price, *excess, *distance, *open, *path, *scale;  // [stride]
  double *change, *by;     // [m, stride]: the least cost of changing a node's role, and that node
  double* row_scale;       // [n]
  int64_t *count, *known;  // [stride]: members of a role, and how many of them are in `change`
  uint8_t* listed;         // [n, stride]
  int32_t* members;        // [m, n]
};

struct GwOps {
  void (*gradient)(const GwView&, const double* x, double* row, double* out);
  double (*dot)(const double* x, const double* y, int64_t count);
  void (*prices)(const GwView&, const double* cost, double epsilon, const TransportSpace&,
                 double* x);
  void (*transport)(const GwView&, const double* cost, const TransportSpace&, double* x);
  int64_t (*mirror)(const GwView&, const double* at, const double* gradient, double epsilon,
                    int64_t most, const TransportSpace&, double* x);
  void (*round)(const GwView&, const TransportSpace&, double* x);
  void (*trade)(const GwView&, double* x, double* gradient, int64_t i, int64_t j, int64_t a,
                int64_t b);
};

// One table per instruction set; nullptr if the padded number of roles is not built.
#define ARTLAS_DECLARE_TABLES(isa)                       \
  namespace isa {                                        \
  const CouplingOps* coupling_ops(int64_t padded_roles); \
  const EncoderOps* encoder_ops();                       \
  const GwOps* gw_ops();                                 \
  }
ARTLAS_DECLARE_TABLES(isa_base)
ARTLAS_DECLARE_TABLES(isa_avx2)
ARTLAS_DECLARE_TABLES(isa_avx512)

}  // namespace artlas
