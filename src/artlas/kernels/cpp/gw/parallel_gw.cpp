// Solver: mirror steps through the inside of the polytope, then conditional gradients, all with an
// exact line search, so that no step raises the energy.
#include "gw/parallel_gw.hpp"

#include <atomic>
#include <numeric>

namespace artlas {
namespace {

constexpr double WARM =
    0.02;  // entropy of the first prices, relative to the mean range of a row's costs

// Solves one problem after another; its scratch grows to the largest.
class ProblemSolver {
 public:
  ProblemSolver(const GwBatch& batch, const GwOptions& options, const GwOps* ops)
      : b_(batch), o_(options), ops_(ops), stride_(round_up(batch.m, 8)) {}

  GwResult solve(const GwProblem& problem) {
    load(problem);
    GwResult r{};
    const int64_t size = p_.n * stride_;
    ops_->gradient(p_, x_.data(), row_.data(), gradient_.data());
    const double constant = self_energy();
    r.before = constant + ops_->dot(gradient_.data(), x_.data(), size) / 2;
    r.moved = 1;
    for (; r.mirror_steps < o_.mirror_steps && r.moved > o_.mirror_tolerance; ++r.mirror_steps) {
      const double epsilon = o_.epsilon * spread();
      if (!(epsilon > 0)) break;
      r.sinkhorn_steps += ops_->mirror(p_, x_.data(), gradient_.data(), epsilon, o_.sinkhorn_steps,
                                       space_, next_.data());
      r.moved = step(size).second;
    }
    std::fill(price_.begin(), price_.end(), 0.0);
    const double epsilon = WARM * spread();
    if (o_.exact_steps > 0 && epsilon > 0)
      ops_->prices(p_, gradient_.data(), epsilon, space_, next_.data());
    r.gap = NAN;
    do {
      for (r.moved = 1; r.exact_steps < o_.exact_steps && r.moved > o_.tolerance; ++r.exact_steps) {
        ops_->transport(p_, gradient_.data(), space_, next_.data());
        const auto [gap, moved] = step(size);
        r.gap = gap, r.moved = moved;
      }
    } while (r.exact_steps < o_.exact_steps && swap() && ++r.swaps);
    ops_->gradient(p_, x_.data(), row_.data(), gradient_.data());
    r.after = constant + ops_->dot(gradient_.data(), x_.data(), size) / 2;
    for (int64_t i = 0; i < p_.n; ++i)
      std::copy_n(x_.data() + i * stride_, b_.m, problem.coupling + i * b_.m);
    return r;
  }

 private:
  void load(const GwProblem& problem) {
    const int64_t n = problem.n, m = b_.m, size = n * stride_;
    for (auto* part : {&x_, &next_, &gradient_, &ahead_})
      if (int64_t(part->size()) < size) part->resize(size_t(size));
    if (int64_t(listed_.size()) < size) listed_.resize(size_t(size));
    if (int64_t(row_scale_.size()) < n) row_scale_.resize(size_t(n));
    if (int64_t(members_.size()) < n * m) members_.resize(size_t(n * m));
    for (auto* part : {&price_, &excess_, &distance_, &open_, &path_, &scale_, &row_})
      part->resize(size_t(stride_));
    for (auto* part : {&count_, &known_}) part->resize(size_t(stride_));
    for (auto* part : {&change_, &by_}) part->resize(size_t(m * stride_));
    relation_.assign(size_t(m * stride_), 0.0);
    const double* relation = b_.relations + problem.relation * m * m;
    for (int64_t a = 0; a < m; ++a)
      std::copy_n(relation + a * m, m, &relation_[size_t(a * stride_)]);
    p_ = {n,
          m,
          stride_,
          problem.first,
          b_.row_ptr + problem.first,
          b_.col,
          b_.mu + problem.first,
          relation_.data(),
          b_.nu + problem.relation * m};
    space_ = {price_.data(), excess_.data(), distance_.data(), open_.data(),      path_.data(),
              scale_.data(), change_.data(), by_.data(),       row_scale_.data(), count_.data(),
              known_.data(), listed_.data(), members_.data()};
    std::fill_n(x_.data(), size, 0.0);
    for (int64_t i = 0; i < n; ++i)
      std::copy_n(problem.coupling + i * m, m, &x_[size_t(i * stride_)]);
    ops_->round(p_, space_, x_.data());
  }

  // chi_A + chi_B of a binary A
  double self_energy() const {
    double graph = 0, base = 0;
    for (int64_t i = 0; i < p_.n; ++i)
      for (int64_t j = p_.row_ptr[i]; j < p_.row_ptr[i + 1]; ++j)
        graph += p_.mu[i] * p_.mu[p_.col[j] - p_.first];
    for (int64_t a = 0; a < p_.m; ++a)
      for (int64_t b = 0; b < p_.m; ++b) {
        const double x = p_.relation[a * stride_ + b];
        base += x * x * p_.nu[a] * p_.nu[b];
      }
    return graph + base;
  }

  double spread() const {
    double total = 0;
    for (int64_t i = 0; i < p_.n; ++i) {
      const double* row = &gradient_[size_t(i * stride_)];
      const auto [low, high] = std::minmax_element(row, row + p_.m);
      total += p_.mu[i] * (*high - *low);
    }
    return total;
  }

  // Swaps the roles of two neighbours where that lowers the energy most, although no direction does
  // at first order: along such a cycle the energy is concave, E(d) = E + d s + d^2 c.
  bool swap() {
    struct Change {
      double gain;
      int64_t i, j, a, b;
    } best{1e-12, -1, 0, 0, 0};
    held_.clear();
    start_.assign(1, 0);
    for (int64_t i = 0; i < p_.n; ++i) {
      for (int64_t a = 0; a < p_.m; ++a)
        if (x_[size_t(i * stride_ + a)] > 1e-12) held_.push_back(int32_t(a));
      start_.push_back(int64_t(held_.size()));
    }
    for (int64_t i = 0; i < p_.n; ++i)
      for (int64_t e = p_.row_ptr[i]; e < p_.row_ptr[i + 1]; ++e) {
        const int64_t j = p_.col[e] - p_.first;
        if (j < i) continue;
        const double *gi = &gradient_[size_t(i * stride_)], *gj = &gradient_[size_t(j * stride_)];
        const double *xi = &x_[size_t(i * stride_)], *xj = &x_[size_t(j * stride_)];
        for (int64_t k = start_[size_t(i)]; k < start_[size_t(i) + 1]; ++k)
          for (int64_t l = start_[size_t(j)]; l < start_[size_t(j) + 1]; ++l) {
            const int64_t a = held_[size_t(k)], b = held_[size_t(l)];
            if (a == b) continue;
            const double* relation = p_.relation;
            const double bend = relation[a * stride_ + a] + relation[b * stride_ + b] -
                                2 * relation[a * stride_ + b];
            const double amount = std::min(xi[a], xj[b]);
            const double gain = -amount * (gi[b] - gi[a] + gj[a] - gj[b] + 4 * amount * bend);
            if (gain > best.gain) best = {gain, i, j, a, b};
          }
      }
    if (best.i < 0) return false;
    ops_->trade(p_, x_.data(), gradient_.data(), best.i, best.j, best.a, best.b);
    return true;
  }

  // x <- x + t (next - x) with the best t in [0, 1]: E(t) = E + t b + t^2 a. Returns -b,
  // which for an exact direction is the duality gap of the linearised problem, and the L1 mass.
  std::pair<double, double> step(int64_t size) {
    ops_->gradient(p_, next_.data(), row_.data(), ahead_.data());
    double slope = 0, curve = 0, mass = 0;
    for (int64_t i = 0; i < size; ++i) {
      const double d = next_[size_t(i)] - x_[size_t(i)];
      slope += gradient_[size_t(i)] * d;
      curve += (ahead_[size_t(i)] - gradient_[size_t(i)]) * d / 2;
      mass += std::fabs(d);
    }
    if (!(slope < 0)) return {0.0, 0.0};
    const double t = curve > 0 ? std::min(1.0, -slope / (2 * curve)) : 1.0;
    if (!(t * slope + t * t * curve < 0)) return {-slope, 0.0};
    for (int64_t i = 0; i < size; ++i) {
      // rounding errors must not make a coupling negative
      x_[size_t(i)] = std::max(0.0, x_[size_t(i)] + t * (next_[size_t(i)] - x_[size_t(i)]));
      gradient_[size_t(i)] += t * (ahead_[size_t(i)] - gradient_[size_t(i)]);
    }
    return {-slope, t * mass};
  }

  const GwBatch& b_;
  const GwOptions& o_;
  const GwOps* ops_;
  const int64_t stride_;
  GwView p_{};
  TransportSpace space_{};
  std::vector<double> x_, next_, gradient_, ahead_, relation_, row_scale_;
  std::vector<double> price_, excess_, distance_, open_, path_, scale_, row_, change_, by_;
  std::vector<int64_t> count_, known_;
  std::vector<uint8_t> listed_;
  std::vector<int32_t> members_, held_;
  std::vector<int64_t> start_;
};

}  // namespace

void run_gw(const GwBatch& batch, const GwOptions& options, const std::vector<GwProblem>& problems,
            GwResult* out, int threads) {
  std::vector<size_t> order(problems.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t i, size_t j) { return problems[i].n > problems[j].n; });
  const GwOps* ops = select_gw_ops();
  std::atomic<size_t> next{0};
  std::atomic<bool> stopped{false};
  const int team = int(std::max<size_t>(1, std::min<size_t>(size_t(threads), problems.size())));
  Team::run(team, [&](Team&, int rank) {
    ProblemSolver solver(batch, options, ops);
    for (size_t i; !stopped && (i = next.fetch_add(1)) < order.size();) {
      out[order[i]] = solver.solve(problems[order[i]]);
      progress.count(problems[order[i]].n);
      if (rank == 0) progress.check_interrupt(stopped);
    }
  });
  if (stopped) throw Interrupted();
}

}  // namespace artlas
