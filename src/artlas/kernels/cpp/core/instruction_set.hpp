// Which build of the kernels runs: one of the instruction sets that this processor has.
#pragma once

#include <string>

#include "core/kernel_tables.hpp"

namespace artlas {

std::string instruction_set();                      // "avx512", "avx2" or "base"
void set_instruction_set(const std::string& name);  // throws if the processor lacks it

const CouplingOps* select_coupling_ops(int64_t padded_roles);
const EncoderOps* select_encoder_ops();
const GwOps* select_gw_ops();

}  // namespace artlas
