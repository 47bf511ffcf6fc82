// Random Fourier features of nodes, summed over a graph: a fixed nonlinearity before the sum.
#pragma once

#include <cstdint>
#include <vector>

#include "blocks/descriptors.hpp"
#include "core/thread_pool.hpp"

namespace artlas {

constexpr int64_t WAVES = 256;
constexpr int HOPS = 3;              // a node's own values, and means over one and two steps
constexpr int64_t WAVE_ROWS = 1024;  // nodes summed in float32; fixed, so threads change no bits

// Frequencies [HOPS (DESCRIPTORS + width), WAVES] and phases [WAVES], the same everywhere.
class Frequencies {
 public:
  explicit Frequencies(int64_t width);
  const float* row(int64_t k) const { return values_.data() + k * WAVES; }
  const float* phases() const { return phases_.data(); }

 private:
  Buffer<float> values_, phases_;
};

class Waves {
 public:
  // Writes sums over the nodes of cos(H Omega + b), [WAVES].
  void sum(const GraphView&, const Descriptors&, const Frequencies&, int threads, double* out);

 private:
  std::vector<float> rows_;  // H [nodes, HOPS (DESCRIPTORS + width)]
  std::vector<double> mean_, partial_;
};

}  // namespace artlas
