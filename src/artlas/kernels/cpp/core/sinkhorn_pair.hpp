// Sinkhorn, rounding and energy of one graph and one base, by a team of threads with one scratch.
//
// Thread c mod size works on chunk c of rows, and partial results are added in the order of the
// chunks: the bits do not depend on the number of threads.
#pragma once

#include "core/batch.hpp"

namespace artlas {

struct Saved {
  float* v;  // [steps, MP] scaling of every iteration, relative to its reference
  float* g;  // [steps, MP] reference potential of every iteration
};

class PairSolver {
 public:
  PairSolver(const Batch& batch, const Space& space, Team& team, int rank)
      : batch(batch),
        space(space),
        team(team),
        rank(rank),
        mp(batch.mp),
        nu(1.0f / float(batch.roles)),
        v(mp),
        v_prev(mp),
        reference(mp),
        column(mp),
        spread(mp),
        sums_(mp) {}

  // Fills the scratch that depends on the graph alone: the padded measure, where each row's larger
  // neighbours begin, and chi(A).
  void load(int64_t g) {
    index = g;
    graph = batch.graph(g);
    chunks = (graph.n + CHUNK - 1) / CHUNK;
    const float* mu = batch.mu + graph.first;
    each_chunk([&](int64_t c, int64_t r0, int64_t r1) {
      double total = 0;
      for (int64_t i = r0; i < r1; ++i) {
        space.mu[i] = mu[i];
        const int64_t begin = graph.row_ptr[i], end = graph.row_ptr[i + 1];
        uint32_t smaller = 0;
        double near = 0;
        for (int64_t j = begin; j < end; ++j) {
          const int64_t other = graph.col[j] - graph.first;
          smaller += other < i;
          near += graph.weight ? double(graph.weight[j]) * mu[other] : mu[other];
        }
        space.upper[i] = smaller;
        total += near * mu[i];
      }
      for (int64_t i = r1; i < round_up(r1, ROW_ALIGN); ++i) space.mu[i] = 0;
      space.sums[c] = total;
    });
    team.wait();
    graph_energy = 0;
    for (int64_t c = 0; c < chunks; ++c) graph_energy += space.sums[c];
    team.wait();
  }

  // Writes the coupling with base k to the scratch kernel (row-major); returns the energy.
  double solve(int64_t k, float* residual, const Saved* saved = nullptr) {
    iterate(k, saved);
    *residual = round();
    return energy(k);
  }

  // Runs Sinkhorn; leaves the kernel of the last reference, v and the v before.
  void iterate(int64_t k, const Saved* saved) {
    const LogitView in = batch.logits(index, k);
    std::copy_n(batch.no_potential.data(), mp, reference.data());
    for (int64_t a = 0; a < mp; ++a) v[a] = a < batch.roles ? 1.0f : 0.0f, v_prev[a] = 0.0f;
    scaled = false;
    const bool tame = fill(in, chunks > 1) >= TAME;
    const float limit = tame ? std::numeric_limits<float>::infinity() : std::exp(ABSORB);
    int64_t step = 0;
    while (step < batch.steps) {
      bool fixed = false;
      const int64_t done = chunks == 1 ? sweep_alone(limit, step, saved, &fixed)
                                       : sweep_chunks(limit, step, saved, &fixed);
      sweeps += done;
      if (step == 0 && !tame && faint()) {
        first_potential(in);
        keep_step(saved, step++);
        if (batch.steps == 1) first_scaling();
        continue;
      }
      step += done;
      // v repeats to the bit, and so would every later iteration
      if (fixed) break;
      if (step < batch.steps) {
        for (int64_t a = 0; a < batch.roles; ++a) reference[a] += std::log(v[a]), v[a] = 1.0f;
        fill(in);
      }
    }
    for (; step < batch.steps; ++step) keep_step(saved, step);
  }

  // Rounds onto the transport polytope: leaves T', row-major, in the kernel. Returns the
  // residual.
  float round() {
    round_rows();
    each_chunk([&](int64_t c, int64_t r0, int64_t r1) {
      scalar(c) = batch.ops->round_emit(space.kernel.data(), space.mu.data(), space.u.data(),
                                        v.data(), space.keep.data(), space.deficit.data(),
                                        spread.data(), r0, r1, space.kernel.data(), partial(c));
    });
    reduce_columns();
    float worst = 0;
    for (int64_t c = 0; c < chunks; ++c) worst = std::max(worst, last_scalar(c));
    for (int64_t a = 0; a < batch.roles; ++a) worst = std::max(worst, std::fabs(column[a] - nu));
    return worst;
  }

  // Rounds the rows; leaves keep, deficit, row_sum, the column deficits and their spread.
  void round_rows() {
    const float* before = scaled ? nullptr : v_prev.data();
    each_chunk([&](int64_t c, int64_t r0, int64_t r1) {
      scalar(c) = batch.ops->round_rows(space.kernel.data(), space.mu.data(), before, v.data(), r0,
                                        r1, space.u.data(), space.row_sum.data(), space.keep.data(),
                                        space.deficit.data(), partial(c));
    });
    reduce_columns();
    double total = 0;
    for (int64_t c = 0; c < chunks; ++c) total += last_scalar(c);
    deficit_total = float(total);
    const float inverse = 1.0f / std::max(deficit_total, DEFICIT_FLOOR);
    for (int64_t a = 0; a < mp; ++a) {
      column[a] = a < batch.roles ? std::max(0.0f, nu - column[a] * v[a]) : 0.0f;
      spread[a] = column[a] * inverse;
    }
  }

  double energy(int64_t k) {
    const float* relation = batch.relations.data() + k * mp * mp;
    each_chunk([&](int64_t c, int64_t r0, int64_t r1) {
      space.sums[c] = batch.ops->cross(graph, space.upper.data(), space.kernel.data(), relation,
                                       batch.roles, r0, r1);
    });
    team.wait();
    double half = 0;
    for (int64_t c = 0; c < chunks; ++c) half += space.sums[c];
    team.wait();  // all threads must have read the couplings and sums before they are overwritten
    return std::max(0.0, graph_energy + batch.base_energy[k] - 4.0 * half);
  }

  // Every other pass runs backwards: the rows that the last pass ended with are still cached.
  template <typename Work>
  void each_chunk(Work work) {
    const int64_t own = (chunks - rank + team.size() - 1) / team.size();
    for (int64_t i = 0; i < own; ++i) {
      const int64_t c = rank + team.size() * (backwards ? own - 1 - i : i);
      work(c, c * CHUNK, std::min(graph.n, (c + 1) * CHUNK));
    }
    backwards = !backwards;
  }

  // With `sweep`, the first iteration's sums are computed while the rows are in the cache, which
  // saves a pass over kernels beyond it.
  float fill(const LogitView& in, bool sweep = false) {
    constexpr int64_t HOT = 64;
    each_chunk([&](int64_t c, int64_t r0, int64_t r1) {
      if (!sweep) {
        scalar(c) = batch.ops->fill(in, reference.data(), r0, r1, space.kernel.data(),
                                    space.row_max.data());
        return;
      }
      float least = 1;
      std::fill_n(partial(c), mp, 0.0f);
      for (int64_t r = r0; r < r1; r += HOT) {
        const int64_t end = std::min(r1, r + HOT);
        least = std::min(least, batch.ops->fill(in, reference.data(), r, end, space.kernel.data(),
                                                space.row_max.data()));
        batch.ops->sweep(space.kernel.data(), space.mu.data(), v.data(), r, end, column.data());
        for (int64_t a = 0; a < mp; ++a) partial(c)[a] += column[a];
      }
      scalar(c) = least;
    });
    swept_ = sweep;
    flip();
    float least = 1;
    for (int64_t c = 0; c < chunks; ++c) least = std::min(least, last_scalar(c));
    return least;
  }

  // Whether the first iteration left a column with entries too small for float32.
  bool faint() const {
    for (int64_t a = 0; a < batch.roles; ++a)
      if (v[a] * FAINT > nu) return true;
    return false;
  }

  // Repeats the first iteration in the log domain. Its column potential becomes the kernel's
  // reference, so that later scalings stay small.
  void first_potential(const LogitView& in) {
    for (int64_t a = 0; a < batch.roles; ++a) v[a] = 1.0f;
    each_chunk([&](int64_t c, int64_t r0, int64_t r1) {
      batch.ops->log_iteration(in, space.mu.data(), r0, r1, space.f.data(), partial(c),
                               partial(c) + mp);
    });
    flip();
    for (int64_t a = 0; a < batch.roles; ++a) {
      double top = -std::numeric_limits<double>::infinity(), sum = 0;
      for (int64_t c = 0; c < chunks; ++c) top = std::max(top, double(last_partial(c)[a]));
      for (int64_t c = 0; c < chunks; ++c)
        sum += last_partial(c)[mp + a] * std::exp(last_partial(c)[a] - top);
      reference[a] = float(std::log(double(nu)) - top - std::log(sum));
    }
    fill(in);
  }
  // u of that first iteration in the new reference: exp(f + row maximum)
  void first_scaling() {
    scaled = true;
    each_chunk([&](int64_t, int64_t r0, int64_t r1) {
      for (int64_t i = r0; i < r1; ++i) space.u[i] = std::exp(space.f[i] + space.row_max[i]);
      for (int64_t i = r1; i < round_up(r1, ROW_ALIGN); ++i) space.u[i] = 0;
    });
  }

  const Batch& batch;
  const Space& space;
  Team& team;
  const int rank;
  const int64_t mp;
  const float nu;
  Buffer<float> v, v_prev, reference, column, spread;
  GraphView graph{};
  int64_t index = 0, chunks = 0;
  double graph_energy = 0;
  float deficit_total = 0;
  bool backwards = false;
  bool scaled = false;  // u is set already and must not be computed from v_prev
  int64_t sweeps = 0;

 private:
  // Iterates until all steps are done, v is fixed, or a scaling passes the limit; returns the
  // number of iterations.
  int64_t sweep_alone(float limit, int64_t step, const Saved* saved, bool* fixed) {
    const int64_t done = batch.ops->sweeps(
        space.kernel.data(), space.mu.data(), batch.nu.data(), graph.n, batch.steps - step, limit,
        v.data(), v_prev.data(), saved ? saved->v + step * mp : nullptr, fixed);
    if (saved)
      for (int64_t s = step; s < step + done; ++s)
        std::copy_n(reference.data(), mp, saved->g + s * mp);
    return done;
  }
  int64_t sweep_chunks(float limit, int64_t step, const Saved* saved, bool* fixed) {
    for (int64_t s = step; s < batch.steps;) {
      if (!swept_) {
        each_chunk([&](int64_t c, int64_t r0, int64_t r1) {
          batch.ops->sweep(space.kernel.data(), space.mu.data(), v.data(), r0, r1, partial(c));
        });
        flip();
      }
      swept_ = false;
      sum_columns();
      bool moved = false, far = false;
      for (int64_t a = 0; a < batch.roles; ++a) {
        const float next = nu / column[a];
        v_prev[a] = v[a];
        moved |= next != v[a];
        far |= next > limit || next * limit < 1.0f;
        v[a] = next;
      }
      keep_step(saved, s++);
      if (*fixed = !moved; *fixed || far) return s - step;
    }
    return batch.steps - step;
  }

  void keep_step(const Saved* saved, int64_t step) {
    if (!saved || rank != 0) return;
    std::copy_n(v.data(), mp, saved->v + step * mp);
    std::copy_n(reference.data(), mp, saved->g + step * mp);
  }

  // Two alternating sets of partial results: one may be read while the other is written.
  float* partial(int64_t c) const {
    return space.partial.data() + (turn_ * space.chunks + c) * 2 * mp;
  }
  float* last_partial(int64_t c) const {
    return space.partial.data() + ((1 - turn_) * space.chunks + c) * 2 * mp;
  }
  float& scalar(int64_t c) const { return space.scalars[turn_ * space.chunks + c]; }
  float last_scalar(int64_t c) const { return space.scalars[(1 - turn_) * space.chunks + c]; }
  void flip() {
    team.wait();
    turn_ = 1 - turn_;
  }
  void reduce_columns() {
    flip();
    sum_columns();
  }
  void sum_columns() {
    std::fill_n(sums_.data(), mp, 0.0);
    for (int64_t c = 0; c < chunks; ++c) {
      const float* part = last_partial(c);
      for (int64_t a = 0; a < mp; ++a) sums_[a] += part[a];
    }
    for (int64_t a = 0; a < mp; ++a) column[a] = float(sums_[a]);
  }
  Buffer<double> sums_;
  int turn_ = 0;
  bool swept_ = false;  // the partial sums are those of the next iteration already
};

}  // namespace artlas
