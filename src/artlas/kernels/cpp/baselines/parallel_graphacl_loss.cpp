// GraphACL's error, shared among threads by ranges whose sums are joined in their order, so that
// the number of threads does not change a bit.
#include "core/parallel.hpp"

namespace artlas {

double run_foretelling(const Pattern& p, const Foretelling& given, const float* w, int threads,
                       float* d_w) {
  constexpr int64_t ROWS = 1536;  // of a range
  const ForetellingOps* ops = select_foretelling_ops();
  Foretelling f = given;
  const int64_t size = f.width * f.others;
  const Buffer<float> there(size), back(size);
  select_linear_ops()->pack(w, f.width, f.others, true, there.data());
  select_linear_ops()->pack(w, f.others, f.width, false, back.data());
  f.there = there.data();
  f.back = back.data();
  int64_t most = 0;
  for (int64_t i = 0; i < p.nodes; ++i) most = std::max(most, p.row_ptr[i + 1] - p.row_ptr[i]);
  const int64_t parts = (p.nodes + ROWS - 1) / ROWS;
  std::vector<float> sums(size_t(parts * size));
  std::vector<double> errors(static_cast<size_t>(parts));
  const double work = double(p.nodes) * double(size);
  std::atomic<int64_t> next{0};
  Team::run(int(std::max(1.0, std::min(double(threads), work / 1e6))), [&](Team&, int) {
    const Buffer<float> space(foretelling_space(f.others, most));
    for (int64_t r; (r = next.fetch_add(1)) < parts;)
      errors[size_t(r)] = ops->errors(p, f, r * ROWS, std::min(p.nodes, (r + 1) * ROWS),
                                      space.data(), sums.data() + r * size);
  });
  double total = 0;
  for (int64_t r = 0; r < parts; ++r) total += errors[size_t(r)];
  for (int64_t i = 0; i < size; ++i) {
    double sum = 0;
    for (int64_t r = 0; r < parts; ++r) sum += sums[size_t(r * size + i)];
    d_w[i] = float(sum);
  }
  return total;
}

}  // namespace artlas
