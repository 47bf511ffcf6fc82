// Compiled once per instruction set (see CMakeLists.txt): the tables the driver calls through.
#include "baselines/attention.hpp"
#include "core/coupling_backward.hpp"
#include "baselines/batch_norm.hpp"
#include "core/encoder.hpp"
#include "baselines/graphacl_loss.hpp"
#include "gw/gw_kernels.hpp"
#include "baselines/linear.hpp"
#include "baselines/hyperbolic_maps.hpp"

namespace artlas::ARTLAS_ISA {

template <int MP>
static const Ops* table() {
  using F = Forward<MP>;
  using B = Backward<MP>;
  static constexpr Ops ops = {
      W,
      MP,
      F::fill,
      F::log_iteration,
      F::sweep,
      F::sweeps,
      F::round_rows,
      F::round_emit,
      F::cross,
      F::mix,
      F::gather_features,
      B::emit_plain,
      B::neighbours,
      B::outer,
      B::times_relation,
      B::round_backward,
      B::sweep_backward,
      B::row_product,
      B::subtract_products,
      B::mask_clamped,
      B::add_node_gradient,
  };
  return &ops;
}

const Ops* ops(int64_t padded_roles) {
  switch (padded_roles) {
    case 16:
      return table<16>();
    case 32:
      return table<32>();
    case 64:
      return table<64>();
    case 128:
      return table<128>();
    default:
      return nullptr;
  }
}

const EncoderOps* encoder_ops() {
  static constexpr EncoderOps ops = {Encoder::layer, Encoder::neighbour_sum};
  return &ops;
}

const GwOps* gw_ops() {
  using R = Relational;
  static constexpr GwOps ops = {R::gradient, R::dot,   R::prices, R::transport,
                                R::mirror,   R::round, R::trade};
  return &ops;
}

const AttentionOps* attention_ops() {
  using A = Attention;
  static constexpr AttentionOps ops = {A::additive, A::additive_backward, A::normalised, A::product,
                                       A::product_backward};
  return &ops;
}

const ColumnOps* column_ops() {
  using C = ColumnKernels;
  static constexpr ColumnOps ops = {C::moments, C::forward, C::sums, C::backward};
  return &ops;
}

const LinearOps* linear_ops() {
  using L = LinearKernels;
  static constexpr LinearOps ops = {L::pack, L::product, L::backward};
  return &ops;
}

const ForetellingOps* foretelling_ops() {
  static constexpr ForetellingOps ops = {ForetellingKernels::errors};
  return &ops;
}

const MapOps* map_ops() {
  using M = Manifolds;
#define ARTLAS_MAP(map)                               \
  {                                                   \
    M::forward_rows<M::map>, M::backward_rows<M::map> \
  }
  static constexpr MapOps ops[int(Map::count)] = {ARTLAS_MAP(FromOrigin), ARTLAS_MAP(ToOrigin),
                                                  ARTLAS_MAP(Mean),       ARTLAS_MAP(Walk),
                                                  ARTLAS_MAP(Carried),    ARTLAS_MAP(Unit)};
  return ops;
}

}  // namespace artlas::ARTLAS_ISA
