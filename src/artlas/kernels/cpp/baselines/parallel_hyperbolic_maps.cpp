// Rows of points on manifolds, shared among threads.
#include "core/parallel.hpp"

namespace artlas {
namespace {

template <typename Rows>
void each_range(const MapRows& m, int64_t count, int threads, Rows rows) {
  constexpr int64_t ROWS = 256;  // taken at a time
  const double work = double(count) * double(m.width);
  std::atomic<int64_t> next{0};
  Team::run(int(std::max(1.0, std::min(double(threads), work / 2e5))), [&](Team&, int) {
    for (int64_t r0; (r0 = next.fetch_add(ROWS)) < count;) rows(r0, std::min(count, r0 + ROWS));
  });
}

}  // namespace

void run_map(Map map, const MapRows& m, int64_t count, int threads, float* out) {
  const MapOps& ops = select_map_ops()[int(map)];
  each_range(m, count, threads, [&](int64_t r0, int64_t r1) { ops.forward(m, r0, r1, out); });
}

void run_map_backward(Map map, const MapRows& m, const float* grad, int64_t count, int threads,
                      float* d_x, float* d_y) {
  const MapOps& ops = select_map_ops()[int(map)];
  each_range(m, count, threads,
             [&](int64_t r0, int64_t r1) { ops.backward(m, grad, r0, r1, d_x, d_y); });
}

}  // namespace artlas
