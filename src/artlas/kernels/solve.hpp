// One graph against one base, by a team of threads that share the scratch: Sinkhorn, rounding, energy.
//
// Rows are worked on in fixed chunks, chunk c always by thread c mod size, and partial results are
// added in the order of the chunks: the bits do not depend on the number of threads.
#pragma once

#include "batch.hpp"

namespace artlas {

struct Saved {
  float* v;      // [steps, MP] scaling of every iteration, relative to its reference
  float* g;      // [steps, MP] reference potential of every iteration
};

class Solver {
 public:
  Solver(const Batch& batch, const Space& space, Team& team, int rank)
      : b_(batch), s_(space), team_(team), rank_(rank), mp_(batch.mp), nu_(1.0f / float(batch.roles)),
        v_(mp_), g_(mp_), column_(mp_), spread_(mp_), sums_(mp_) {}

  // Scratch that depends on the graph alone: the padded measure, where each row's larger
  // neighbours begin, and chi(A).
  void open(int64_t g) {
    g_index_ = g;
    graph_ = b_.graph(g);
    chunks_ = (graph_.n + CHUNK - 1) / CHUNK;
    const float* mu = b_.mu + graph_.first;
    each_chunk([&](int64_t c, int64_t r0, int64_t r1) {
      double total = 0;
      for (int64_t i = r0; i < r1; ++i) {
        s_.mu[i] = mu[i];
        const int64_t begin = graph_.row_ptr[i], end = graph_.row_ptr[i + 1];
        uint32_t smaller = 0;
        double near = 0;
        for (int64_t j = begin; j < end; ++j) {
          const int64_t other = graph_.col[j] - graph_.first;
          smaller += other < i;
          near += mu[other];
        }
        s_.upper[i] = smaller;
        total += near * mu[i];
      }
      for (int64_t i = r1; i < round_up(r1, ROW_ALIGN); ++i) s_.mu[i] = 0;
      s_.sums[c] = total;
    });
    team_.wait();
    graph_energy_ = 0;
    for (int64_t c = 0; c < chunks_; ++c) graph_energy_ += s_.sums[c];
    team_.wait();
  }

  // Couplings of base k into the scratch kernel (row-major); energy and residual are returned.
  double solve(int64_t k, float* residual, const Saved* saved = nullptr) {
    iterate(k, saved);
    *residual = round();
    return energy(k);
  }

  // Sinkhorn: leaves the kernel of the last reference, u and v.
  void iterate(int64_t k, const Saved* saved) {
    const LogitView in = b_.logits(g_index_, k);
    std::copy_n(b_.no_potential.data(), mp_, g_.data());
    const bool hard = fill(in) < HARD;
    for (int64_t a = 0; a < mp_; ++a) v_[a] = a < b_.roles ? 1.0f : 0.0f;
    int64_t step = 0;
    if (hard) {
      first_potential(in);
      keep_step(saved, step++);
      if (b_.steps == 1) first_scaling();
    }
    const float limit = hard ? std::exp(ABSORB) : std::numeric_limits<float>::infinity();
    while (step < b_.steps) {
      bool fixed = false;
      const int64_t done = chunks_ == 1 ? sweep_alone(limit, step, saved, &fixed)
                                        : sweep_chunks(limit, step, saved, &fixed);
      step += done;
      sweeps_ += done;
      // v repeats to the bit: so would every later iteration
      if (fixed) break;
      if (step < b_.steps) {
        for (int64_t a = 0; a < b_.roles; ++a) g_[a] += std::log(v_[a]), v_[a] = 1.0f;
        fill(in);
      }
    }
    for (; step < b_.steps; ++step) keep_step(saved, step);
  }

  // Rounding onto the transport polytope: leaves T', row-major, in the kernel. Returns the residual.
  float round() {
    round_rows();
    each_chunk([&](int64_t c, int64_t r0, int64_t r1) {
      scalar(c) = b_.ops->round_emit(s_.kernel.data(), s_.mu.data(), s_.u.data(), v_.data(),
                                     s_.keep.data(), s_.deficit.data(), spread_.data(), r0, r1,
                                     s_.kernel.data(), partial(c));
    });
    reduce_columns();
    float worst = 0;
    for (int64_t c = 0; c < chunks_; ++c) worst = std::max(worst, last_scalar(c));
    for (int64_t a = 0; a < b_.roles; ++a) worst = std::max(worst, std::fabs(column_[a] - nu_));
    return worst;
  }

  // Row side of the rounding; leaves keep, deficit, row_sum, the column deficits and their spread.
  void round_rows() {
    each_chunk([&](int64_t c, int64_t r0, int64_t r1) {
      scalar(c) = b_.ops->round_rows(s_.kernel.data(), s_.mu.data(), s_.u.data(), v_.data(), r0, r1,
                                     s_.row_sum.data(), s_.keep.data(), s_.deficit.data(), partial(c));
    });
    reduce_columns();
    double total = 0;
    for (int64_t c = 0; c < chunks_; ++c) total += last_scalar(c);
    deficit_total_ = float(total);
    const float inverse = 1.0f / std::max(deficit_total_, DEFICIT_FLOOR);
    for (int64_t a = 0; a < mp_; ++a) {
      column_[a] = a < b_.roles ? std::max(0.0f, nu_ - column_[a] * v_[a]) : 0.0f;
      spread_[a] = column_[a] * inverse;
    }
  }

  double energy(int64_t k) {
    const float* relation = b_.relations.data() + k * mp_ * mp_;
    each_chunk([&](int64_t c, int64_t r0, int64_t r1) {
      s_.sums[c] = b_.ops->cross(graph_, s_.upper.data(), s_.kernel.data(), relation, b_.roles, r0, r1);
    });
    team_.wait();
    double half = 0;
    for (int64_t c = 0; c < chunks_; ++c) half += s_.sums[c];
    team_.wait();  // nobody may overwrite the couplings or the sums before all have read them
    return std::max(0.0, graph_energy_ + b_.base_energy[k] - 4.0 * half);
  }

  template <typename Work>
  void each_chunk(Work work) {
    for (int64_t c = rank_; c < chunks_; c += team_.size())
      work(c, c * CHUNK, std::min(graph_.n, (c + 1) * CHUNK));
  }

  float fill(const LogitView& in) {
    each_chunk([&](int64_t c, int64_t r0, int64_t r1) {
      scalar(c) = b_.ops->fill(in, g_.data(), r0, r1, s_.kernel.data(), s_.row_max.data());
    });
    flip();
    float least = 1;
    for (int64_t c = 0; c < chunks_; ++c) least = std::min(least, last_scalar(c));
    return least;
  }

  // The first iteration of a hard pair, in the log domain; its column potential becomes the
  // kernel's reference, so that the scalings that follow stay small.
  void first_potential(const LogitView& in) {
    each_chunk([&](int64_t c, int64_t r0, int64_t r1) {
      b_.ops->log_iteration(in, s_.mu.data(), r0, r1, s_.f.data(), partial(c), partial(c) + mp_);
    });
    flip();
    for (int64_t a = 0; a < b_.roles; ++a) {
      double top = -std::numeric_limits<double>::infinity(), sum = 0;
      for (int64_t c = 0; c < chunks_; ++c) top = std::max(top, double(last_partial(c)[a]));
      for (int64_t c = 0; c < chunks_; ++c)
        sum += last_partial(c)[mp_ + a] * std::exp(last_partial(c)[a] - top);
      g_[a] = float(std::log(double(nu_)) - top - std::log(sum));
    }
    fill(in);
  }
  // u of that first iteration in the new reference: exp(f + row maximum)
  void first_scaling() {
    each_chunk([&](int64_t, int64_t r0, int64_t r1) {
      for (int64_t i = r0; i < r1; ++i) s_.u[i] = std::exp(s_.f[i] + s_.row_max[i]);
      for (int64_t i = r1; i < round_up(r1, ROW_ALIGN); ++i) s_.u[i] = 0;
    });
  }

  const Batch& b_;
  const Space& s_;
  Team& team_;
  const int rank_;
  const int64_t mp_;
  const float nu_;
  Buffer<float> v_, g_, column_, spread_;
  GraphView graph_{};
  int64_t g_index_ = 0, chunks_ = 0;
  double graph_energy_ = 0;
  float deficit_total_ = 0;
  int64_t sweeps_ = 0;

 private:
  // Iterations until all are done, v is fixed, or a scaling passes the limit; how many were done.
  int64_t sweep_alone(float limit, int64_t step, const Saved* saved, bool* fixed) {
    const int64_t done = b_.ops->sweeps(s_.kernel.data(), s_.mu.data(), b_.nu.data(), graph_.n,
                                        b_.steps - step, limit, v_.data(), s_.u.data(),
                                        saved ? saved->v + step * mp_ : nullptr, fixed);
    if (saved)
      for (int64_t s = step; s < step + done; ++s) std::copy_n(g_.data(), mp_, saved->g + s * mp_);
    return done;
  }
  int64_t sweep_chunks(float limit, int64_t step, const Saved* saved, bool* fixed) {
    for (int64_t s = step; s < b_.steps;) {
      each_chunk([&](int64_t c, int64_t r0, int64_t r1) {
        b_.ops->sweep(s_.kernel.data(), s_.mu.data(), v_.data(), r0, r1, s_.u.data(), partial(c));
      });
      reduce_columns();
      bool moved = false, far = false;
      for (int64_t a = 0; a < b_.roles; ++a) {
        const float next = nu_ / column_[a];
        moved |= next != v_[a];
        far |= next > limit || next * limit < 1.0f;
        v_[a] = next;
      }
      keep_step(saved, s++);
      if (*fixed = !moved; *fixed || far) return s - step;
    }
    return b_.steps - step;
  }

  void keep_step(const Saved* saved, int64_t step) {
    if (!saved || rank_ != 0) return;
    std::copy_n(v_.data(), mp_, saved->v + step * mp_);
    std::copy_n(g_.data(), mp_, saved->g + step * mp_);
  }

  // Two sets of partial results in turn: one may be read while the next is written.
  float* partial(int64_t c) const { return s_.partial.data() + (turn_ * s_.chunks + c) * 2 * mp_; }
  float* last_partial(int64_t c) const {
    return s_.partial.data() + ((1 - turn_) * s_.chunks + c) * 2 * mp_;
  }
  float& scalar(int64_t c) const { return s_.scalars[turn_ * s_.chunks + c]; }
  float last_scalar(int64_t c) const { return s_.scalars[(1 - turn_) * s_.chunks + c]; }
  void flip() {
    team_.wait();
    turn_ = 1 - turn_;
  }
  void reduce_columns() {
    flip();
    std::fill_n(sums_.data(), mp_, 0.0);
    for (int64_t c = 0; c < chunks_; ++c) {
      const float* part = last_partial(c);
      for (int64_t a = 0; a < mp_; ++a) sums_[a] += part[a];
    }
    for (int64_t a = 0; a < mp_; ++a) column_[a] = float(sums_[a]);
  }
  Buffer<double> sums_;
  int turn_ = 0;
};

}  // namespace artlas
