// Gradients of energies with respect to node embeddings, role embeddings and relations.
//
// Graphs are distributed over a fixed number of slots, each with its own sums over graphs, so that
// the result does not depend on the number of threads.
#include <numeric>

#include "core/parallel.hpp"

namespace artlas {
namespace {

constexpr int64_t SLOTS = 16;

struct BackSpace : Space {
  // couplings before and after rounding, their gradient, and the factors of the 2S products
  Buffer<float> plain, rounded, grad, left, right, df, dg, p, q, tile;
  BackSpace(int64_t rows, const Batch& b, int64_t width)
      : Space(rows, b.mp),
        plain(Space::rows * b.mp),
        rounded(Space::rows * b.mp),
        grad(Space::rows * b.mp),
        left(2 * b.steps * Space::rows),
        right(2 * b.steps * b.mp),
        df(Space::rows),
        dg(b.mp),
        p(b.mp),
        q(width == b.dim ? 0 : Space::rows * width),
        tile(ROW_ALIGN * width) {}
};

class PairGradient {
 public:
  PairGradient(const Batch& b, const BackSpace& s, Team& alone)
      : b_(b), s_(s), solver_(b, s, alone, 0) {}

  void load(int64_t g) { solver_.load(g); }

  // Leaves weight * dE/dl in s.grad; adds weight * T' A T' to products.
  void run(int64_t k, const Saved& saved, float weight, float* products) {
    const LogitView in = b_.logits(solver_.index, k);
    const int64_t n = in.n, mp = b_.mp, last = b_.steps - 1;
    in_logs_ = differ(reference_of(saved, 0), b_.no_potential.data());
    reference(in, saved, last);
    solver_.scaled = false;
    if (starts_in_logs(last)) {
      first_row_potential(in);
      solver_.first_scaling();
    } else {
      std::copy_n(previous(saved, last), mp, solver_.v_prev.data());
    }
    std::copy_n(saved.v + last * mp, mp, solver_.v.data());
    couplings(n);

    // dE/dT' = -4 A T' B
    b_.ops->neighbours(solver_.graph, s_.rounded.data(), weight, s_.grad.data());
    b_.ops->outer(s_.rounded.data(), s_.grad.data(), n, mp, products);
    b_.ops->times_relation(b_.relations.data() + k * mp * mp, b_.roles, -4.0f, n, s_.grad.data());
    std::fill_n(s_.df.data(), s_.rows, 0.0f);
    b_.ops->round_backward(s_.plain.data(), s_.mu.data(), s_.row_sum.data(), s_.keep.data(),
                           s_.deficit.data(), solver_.column.data(), solver_.deficit_total, n,
                           b_.roles, s_.grad.data(), s_.df.data(), s_.dg.data());
    iterations(in, saved);
    if (b_.clamp < INFINITY) b_.ops->mask_clamped(in, s_.grad.data());
  }

 private:
  const float* reference_of(const Saved& saved, int64_t step) const {
    return saved.g + step * b_.mp;
  }
  bool differ(const float* one, const float* other) const {
    return std::memcmp(one, other, sizeof(float) * b_.mp) != 0;
  }
  // whether the first iteration ran in the log domain
  bool starts_in_logs(int64_t step) const { return step == 0 && in_logs_; }
  // whether iteration `step` starts a new reference, in which the previous scaling is one
  bool fresh(const Saved& saved, int64_t step) const {
    return step == 0 || differ(reference_of(saved, step), reference_of(saved, step - 1));
  }
  const float* previous(const Saved& saved, int64_t step) {
    if (!fresh(saved, step)) return saved.v + (step - 1) * b_.mp;
    for (int64_t a = 0; a < b_.mp; ++a) ones_[a] = a < b_.roles ? 1.0f : 0.0f;
    return ones_.data();
  }
  void reference(const LogitView& in, const Saved& saved, int64_t step) {
    std::copy_n(reference_of(saved, step), b_.mp, solver_.reference.data());
    b_.ops->fill(in, solver_.reference.data(), 0, in.n, s_.kernel.data(), s_.row_max.data());
  }

  void first_row_potential(const LogitView& in) {
    b_.ops->log_iteration(in, s_.mu.data(), 0, in.n, s_.f.data(), s_.partial.data(),
                          s_.partial.data() + b_.mp);
  }

  void couplings(int64_t n) {
    solver_.round_rows();
    b_.ops->emit_plain(s_.kernel.data(), s_.u.data(), solver_.v.data(), n, s_.plain.data());
    b_.ops->round_emit(s_.kernel.data(), s_.mu.data(), s_.u.data(), solver_.v.data(),
                       s_.keep.data(), s_.deficit.data(), solver_.spread.data(), 0, n,
                       s_.rounded.data(), s_.p.data());
  }

  void iterations(const LogitView& in, const Saved& saved) {
    const int64_t n = in.n, mp = b_.mp;
    int64_t depth = 0;
    auto flush = [&] {
      b_.ops->subtract_products(s_.kernel.data(), s_.left.data(), s_.rows, s_.right.data(), depth,
                                n, s_.grad.data());
      depth = 0;
    };
    for (int64_t step = b_.steps - 1; step >= 0; --step) {
      const float* v = saved.v + step * mp;
      float* p = s_.right.data() + depth * mp;
      for (int64_t a = 0; a < mp; ++a) p[a] = v[a] * s_.dg[a] * float(b_.roles);
      if (starts_in_logs(step)) {
        log_start(in, flush, depth, step == b_.steps - 1);
        return;
      }
      const float* v_prev = previous(saved, step);
      std::copy_n(v_prev, mp, p + mp);
      b_.ops->sweep_backward(
          s_.kernel.data(), s_.mu.data(), v_prev, p, step == b_.steps - 1 ? s_.df.data() : nullptr,
          n, s_.left.data() + depth * s_.rows, s_.left.data() + (depth + 1) * s_.rows, s_.p.data());
      for (int64_t a = 0; a < mp; ++a) s_.dg[a] = -v_prev[a] * s_.p[a];
      depth += 2;
      if (step > 0 && fresh(saved, step)) {
        flush();
        reference(in, saved, step - 1);
      }
    }
    flush();
  }

  // A first iteration in logs: its column half in the new reference, where u = exp(f +
  // row maximum), its row half in the plain one.
  template <typename Flush>
  void log_start(const LogitView& in, Flush flush, int64_t& depth, bool only) {
    const int64_t n = in.n;
    float* u = s_.left.data() + depth * s_.rows;
    first_row_potential(in);
    b_.ops->row_product(s_.kernel.data(), s_.right.data() + depth * b_.mp, n, s_.row_sum.data());
    for (int64_t i = 0; i < s_.rows; ++i) {
      u[i] = i < n ? std::exp(s_.f[i] + s_.row_max[i]) : 0.0f;
      s_.df[i] = i < n ? (only ? s_.df[i] : 0.0f) - u[i] * s_.row_sum[i] : 0.0f;
    }
    ++depth;
    flush();
    b_.ops->fill(in, b_.no_potential.data(), 0, n, s_.kernel.data(), s_.row_max.data());
    float* ones = s_.right.data();
    for (int64_t a = 0; a < b_.mp; ++a) ones[a] = a < b_.roles ? 1.0f : 0.0f;
    b_.ops->row_product(s_.kernel.data(), ones, n, s_.row_sum.data());
    for (int64_t i = 0; i < s_.rows; ++i) s_.left[i] = i < n ? s_.df[i] / s_.row_sum[i] : 0.0f;
    depth = 1;
    flush();
  }

  const Batch& b_;
  const BackSpace& s_;
  PairSolver solver_;
  Buffer<float> ones_{b_.mp};
  bool in_logs_ = false;
};

}  // namespace

void run_backward(const Batch& b, const float* saved, const float* grad_energy, const float* roles,
                  float* grad_q, float* grad_roles, float* grad_relations) {
  const int64_t mp = b.mp, width = round_up(b.dim, 32), slots = std::min(SLOTS, b.graphs);
  std::vector<int64_t> order(b.graphs);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t i, int64_t j) { return b.cost(i) > b.cost(j); });
  std::vector<std::vector<int64_t>> deal(slots);
  std::vector<double> load(slots, 0.0);
  int64_t most = 0;
  for (const int64_t g : order) {
    const auto slot = std::min_element(load.begin(), load.end()) - load.begin();
    deal[slot].push_back(g);
    load[slot] += b.cost(g);
    most = std::max(most, b.size(g));
  }

  Buffer<float> roles_s(b.bases * mp * width);  // scaled roles, row-major, padded
  std::fill_n(roles_s.data(), b.bases * mp * width, 0.0f);
  for (int64_t k = 0; k < b.bases; ++k)
    for (int64_t a = 0; a < b.roles; ++a)
      for (int64_t d = 0; d < b.dim; ++d)
        roles_s[(k * mp + a) * width + d] = roles[(k * b.roles + a) * b.dim + d] * b.scale;

  const int64_t roles_size = b.bases * mp * width, products_size = b.bases * mp * mp;
  Buffer<float> slot_roles(slots * roles_size), slot_products(slots * products_size);
  std::fill_n(slot_roles.data(), slots * roles_size, 0.0f);
  std::fill_n(slot_products.data(), slots * products_size, 0.0f);
  std::fill_n(grad_q, b.nodes * b.dim, 0.0f);

  const int threads = int(std::min<int64_t>(b.useful_threads(3 * b.total_cost()), slots));
  std::vector<BackSpace> spaces;
  for (int t = 0; t < threads; ++t) spaces.emplace_back(most, b, width);
  std::atomic<int64_t> next{0};
  Team::run(threads, [&](Team&, int rank) {
    Team alone(1);
    const BackSpace& s = spaces[rank];
    PairGradient pair(b, s, alone);
    for (int64_t slot; (slot = next.fetch_add(1)) < slots;)
      for (const int64_t g : deal[slot]) {
        const int64_t n = b.size(g), first = b.node_ptr[g];
        const float* q = b.q + first * b.dim;
        if (width != b.dim) {
          std::fill_n(s.q.data(), n * width, 0.0f);
          for (int64_t i = 0; i < n; ++i) std::copy_n(q + i * b.dim, b.dim, s.q.data() + i * width);
          q = s.q.data();
        }
        pair.load(g);
        for (int64_t k = 0; k < b.bases; ++k) {
          const int64_t at = g * b.bases + k;
          if (grad_energy[at] == 0) continue;
          float* v = const_cast<float*>(saved) + at * 2 * b.steps * mp;
          pair.run(k, {v, v + b.steps * mp}, grad_energy[at],
                   slot_products.data() + slot * products_size + k * mp * mp);
          b.ops->add_node_gradient(s.grad.data(), roles_s.data() + k * mp * width, b.roles, b.dim,
                                   width, n, s.tile.data(), grad_q + first * b.dim);
          b.ops->outer(s.grad.data(), q, n, width,
                       slot_roles.data() + slot * roles_size + k * mp * width);
        }
      }
  });

  const double chi = 2.0 / (double(b.roles) * b.roles);
  for (int64_t k = 0; k < b.bases; ++k) {
    double weight = 0;
    for (int64_t g = 0; g < b.graphs; ++g) weight += grad_energy[g * b.bases + k];
    for (int64_t a = 0; a < b.roles; ++a) {
      for (int64_t c = 0; c < b.roles; ++c) {
        double sum = 0;
        for (int64_t s = 0; s < slots; ++s)
          sum += slot_products[s * products_size + (k * mp + a) * mp + c];
        grad_relations[(k * b.roles + a) * b.roles + c] =
            float(weight * chi * b.relations[(k * mp + a) * mp + c] - 2.0 * sum);
      }
      for (int64_t d = 0; d < b.dim; ++d) {
        double sum = 0;
        for (int64_t s = 0; s < slots; ++s)
          sum += slot_roles[s * roles_size + (k * mp + a) * width + d];
        grad_roles[(k * b.roles + a) * b.dim + d] = float(sum * b.scale);
      }
    }
  }
}

}  // namespace artlas
