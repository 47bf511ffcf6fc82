// Compiled once per instruction set (see CMakeLists.txt): the tables the driver calls through.
#include "core/coupling_backward.hpp"
#include "core/encoder.hpp"
#include "gw/gw_kernels.hpp"

namespace artlas::ARTLAS_ISA {

template <int MP>
static const CouplingOps* table() {
  using F = Forward<MP>;
  using B = Backward<MP>;
  static constexpr CouplingOps ops = {
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

const CouplingOps* coupling_ops(int64_t padded_roles) {
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

}  // namespace artlas::ARTLAS_ISA
