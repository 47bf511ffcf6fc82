// Picks the best instruction set when the module is loaded.
#include "core/instruction_set.hpp"

#include <stdexcept>

namespace artlas {
namespace {

enum class Isa { base, avx2, avx512 };

Isa best_isa() {
#if defined(ARTLAS_X86)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"))
    return Isa::avx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return Isa::avx2;
#endif
  return Isa::base;
}

Isa current_isa = best_isa();

template <typename Build>
Build select(Build base, [[maybe_unused]] Build avx2, [[maybe_unused]] Build avx512) {
  switch (current_isa) {
#if defined(ARTLAS_X86)
    case Isa::avx512:
      return avx512;
    case Isa::avx2:
      return avx2;
#endif
    default:
      return base;
  }
}

#if defined(ARTLAS_X86)
#define ARTLAS_SELECT(table) select(isa_base::table, isa_avx2::table, isa_avx512::table)
#else
#define ARTLAS_SELECT(table) isa_base::table
#endif

}  // namespace

std::string instruction_set() {
  return current_isa == Isa::avx512 ? "avx512" : current_isa == Isa::avx2 ? "avx2" : "base";
}

void set_instruction_set(const std::string& name) {
  const Isa wanted = name == "avx512" ? Isa::avx512 : name == "avx2" ? Isa::avx2 : Isa::base;
  if (wanted > best_isa()) throw std::invalid_argument("this processor lacks that instruction set");
  current_isa = wanted;
}

const CouplingOps* select_coupling_ops(int64_t padded_roles) {
  const CouplingOps* ops = ARTLAS_SELECT(coupling_ops)(padded_roles);
  if (!ops) throw std::invalid_argument("the native kernels take at most 128 roles");
  return ops;
}
const EncoderOps* select_encoder_ops() { return ARTLAS_SELECT(encoder_ops)(); }
const GwOps* select_gw_ops() { return ARTLAS_SELECT(gw_ops)(); }

}  // namespace artlas
