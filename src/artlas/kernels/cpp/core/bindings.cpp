// The Python module: checks shapes, releases the interpreter, picks the instruction set.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cmath>
#include <optional>
#include <stdexcept>
#include <string>

#include "gw/parallel_gw.hpp"
#include "core/parallel.hpp"

namespace nb = nanobind;

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

}  // namespace

const Ops* select_ops(int64_t padded_roles) {
  const Ops* ops = nullptr;
  switch (current_isa) {
#if defined(ARTLAS_X86)
    case Isa::avx512:
      ops = isa_avx512::ops(padded_roles);
      break;
    case Isa::avx2:
      ops = isa_avx2::ops(padded_roles);
      break;
#endif
    default:
      ops = isa_base::ops(padded_roles);
  }
  if (!ops) throw std::invalid_argument("at most 128 roles are built in the native kernels");
  return ops;
}

template <typename Table>
const Table* select(const Table* (*base)(), [[maybe_unused]] const Table* (*avx2)(),
                    [[maybe_unused]] const Table* (*avx512)()) {
  switch (current_isa) {
#if defined(ARTLAS_X86)
    case Isa::avx512:
      return avx512();
    case Isa::avx2:
      return avx2();
#endif
    default:
      return base();
  }
}

#if defined(ARTLAS_X86)
#define ARTLAS_SELECT(table) select(isa_base::table, isa_avx2::table, isa_avx512::table)
#else
#define ARTLAS_SELECT(table) isa_base::table()
#endif
const EncoderOps* select_encoder_ops() { return ARTLAS_SELECT(encoder_ops); }
const GwOps* select_gw_ops() { return ARTLAS_SELECT(gw_ops); }
const AttentionOps* select_attention_ops() { return ARTLAS_SELECT(attention_ops); }
const MapOps* select_map_ops() { return ARTLAS_SELECT(map_ops); }
const ColumnOps* select_column_ops() { return ARTLAS_SELECT(column_ops); }
const LinearOps* select_linear_ops() { return ARTLAS_SELECT(linear_ops); }
const ForetellingOps* select_foretelling_ops() { return ARTLAS_SELECT(foretelling_ops); }

namespace {

template <typename T, int Dims>
using Array = nb::ndarray<T, nb::ndim<Dims>, nb::c_contig, nb::device::cpu>;
template <int Dims>
using In = Array<const float, Dims>;
template <int Dims>
using Out = Array<float, Dims>;
using Ids = Array<const int64_t, 1>;
using Exact = Array<double, 1>;
using Cols = Array<const int32_t, 1>;
template <int Dims>
using Doubles = Array<const double, Dims>;

struct Structure {
  Ids node_ptr, row_ptr;
  Cols col;
  In<1> mu;
  std::optional<In<1>> weight;
  std::optional<Ids> sizes;
};

void check(bool ok, const char* what) {
  if (!ok) throw std::invalid_argument(what);
}

Batch make_batch(const Structure& s, const In<2>& q, const In<3>& roles, const In<3>& relations,
                 float scale, float clamp, int64_t steps, int threads) {
  check(roles.shape(2) == q.shape(1), "roles and nodes differ in width");
  check(relations.shape(0) == roles.shape(0) && relations.shape(1) == roles.shape(1) &&
            relations.shape(2) == roles.shape(1),
        "relations must be [K, M, M]");
  check(s.row_ptr.shape(0) == q.shape(0) + 1 && s.mu.shape(0) == q.shape(0),
        "structure and nodes differ in length");
  check(steps >= 1, "at least one Sinkhorn step");
  Batch b(roles.data(), relations.data(), int64_t(roles.shape(0)), int64_t(roles.shape(1)),
          int64_t(roles.shape(2)));
  b.graphs = int64_t(s.node_ptr.shape(0)) - 1;
  b.nodes = int64_t(q.shape(0));
  b.steps = steps;
  b.node_ptr = s.node_ptr.data();
  b.row_ptr = s.row_ptr.data();
  b.col = s.col.data();
  b.weight = s.weight ? s.weight->data() : nullptr;
  b.sizes = s.sizes ? s.sizes->data() : nullptr;
  b.mu = s.mu.data();
  b.q = q.data();
  b.scale = scale;
  b.clamp = clamp;
  b.threads = threads;
  b.prepare_roles();
  return b;
}

EncoderGraph encoder_graph(const Ids& row_ptr, const Cols& col, const std::optional<In<1>>& weight,
                           const std::optional<In<1>>& count) {
  return {row_ptr.data(),
          col.data(),
          weight ? weight->data() : nullptr,
          count ? count->data() : nullptr,
          nullptr,
          int64_t(row_ptr.shape(0)) - 1};
}

Pattern pattern(const Ids& row_ptr, const Cols& col, size_t nodes) {
  check(row_ptr.shape(0) == nodes + 1, "structure and rows differ in length");
  return {int64_t(nodes), row_ptr.data(), col.data()};
}

Additive additive(const In<2>& values, const In<2>& sent, const In<2>& met, float slope) {
  const int64_t heads = int64_t(sent.shape(1));
  check(sent.shape(0) == values.shape(0) && met.shape(0) == values.shape(0) &&
            met.shape(1) == sent.shape(1) && heads > 0 && int64_t(values.shape(1)) % heads == 0,
        "values must be [N, heads c], sent and met [N, heads]");
  return {heads, int64_t(values.shape(1)) / heads, values.data(), sent.data(), met.data(), slope};
}

Product product(const In<2>& query, const In<2>& key, const In<2>& value) {
  check(key.shape(0) == query.shape(0) && value.shape(0) == query.shape(0) &&
            key.shape(1) == query.shape(1),
        "queries and keys must be [N, d], values [N, c]");
  return {int64_t(query.shape(1)), int64_t(value.shape(1)), query.data(), key.data(), value.data()};
}

Columns columns(const In<2>& x, const In<1>& factor, const In<1>& offset, const In<1>& mean,
                Bend bend, float slope, double drop, uint64_t seed) {
  check(
      factor.shape(0) == x.shape(1) && offset.shape(0) == x.shape(1) && mean.shape(0) == x.shape(1),
      "rows and columns differ in width");
  check(drop >= 0 && drop < 1, "a share below 1 can be dropped");
  const Dropping dropping = {uint32_t(std::llround(drop * 4294967296.0)), uint32_t(seed),
                             uint32_t(seed >> 32), float(1 / (1 - drop))};
  return {int64_t(x.shape(1)), x.data(), factor.data(), offset.data(),
          mean.data(),         bend,     slope,         dropping};
}

MapRows map_rows(float curvature, int64_t width, const In<2>& x, const std::optional<In<2>>& y,
                 size_t rows, size_t out_row) {
  check(x.shape(0) == rows && (!y || y->shape(0) == rows), "rows differ in number");
  return {curvature,        width,    int64_t(x.shape(1)),    y ? int64_t(y->shape(1)) : 0,
          int64_t(out_row), x.data(), y ? y->data() : nullptr};
}

// A member of a Quotient as an array that keeps it alive.
template <auto Member>
auto vector_of(nb::handle self) {
  auto& values = nb::cast<Quotient&>(self).*Member;
  using T = typename std::decay_t<decltype(values)>::value_type;
  return nb::ndarray<nb::numpy, T, nb::ndim<1>>(values.data(), {values.size()}, self);
}

struct Problem {  // the arguments every call shares
  Structure structure;
  float scale, clamp;
  int64_t steps;
  int threads;
};

}  // namespace
}  // namespace artlas

NB_MODULE(_art, m) {
  using namespace artlas;
  m.def("isa", [] {
    return current_isa == Isa::avx512 ? "avx512" : current_isa == Isa::avx2 ? "avx2" : "base";
  });
  m.def("set_isa", [](const std::string& name) {
    const Isa wanted = name == "avx512" ? Isa::avx512 : name == "avx2" ? Isa::avx2 : Isa::base;
    check(wanted <= best_isa(), "this processor lacks that instruction set");
    current_isa = wanted;
  });
  m.def("padded_roles", &Batch::padded);
  m.def("done", [] { return watch.done(); });
  watch.interrupted = [] {
    nb::gil_scoped_acquire acquire;
    return PyErr_CheckSignals() != 0;
  };
  nb::register_exception_translator([](const std::exception_ptr& error, void*) {
    try {
      std::rethrow_exception(error);
    } catch (const Interrupted&) {  // Python's own error is set already
    }
  });

  // Tensors made here may be alive when the interpreter ends: no leak, and nothing to print.
  nb::set_leak_warnings(false);
  nb::class_<Problem>(m, "Problem")
      .def(
          "__init__",
          [](Problem* self, Ids node_ptr, Ids row_ptr, Cols col, In<1> mu,
             std::optional<In<1>> weight, std::optional<Ids> sizes, float scale, float clamp,
             int64_t steps, int threads) {
            new (self)
                Problem{{node_ptr, row_ptr, col, mu, weight, sizes}, scale, clamp, steps, threads};
          },
          nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg().none(), nb::arg().none(), nb::arg(),
          nb::arg(), nb::arg(), nb::arg());

  nb::class_<Quotient>(m, "Quotient")
      .def_ro("worthwhile", &Quotient::worthwhile)
      .def_prop_ro("node_ptr", vector_of<&Quotient::node_ptr>)
      .def_prop_ro("row_ptr", vector_of<&Quotient::row_ptr>)
      .def_prop_ro("col", vector_of<&Quotient::col>)
      .def_prop_ro("weight", vector_of<&Quotient::weight>)
      .def_prop_ro("count", vector_of<&Quotient::count>)
      .def_prop_ro("degree", vector_of<&Quotient::degree>)
      .def_prop_ro("classes", vector_of<&Quotient::classes>);

  m.def("quotient", [](Ids node_ptr, Ids row_ptr, Cols col, int rounds, int threads) {
    nb::gil_scoped_release release;
    return run_quotient(node_ptr.data(), row_ptr.data(), col.data(), int64_t(node_ptr.shape(0)) - 1,
                        rounds, threads);
  });

  m.def(
      "energies",
      [](const Problem& p, In<2> q, In<3> roles, In<3> relations, Out<2> energy, Out<2> residual,
         std::optional<Out<5>> saved) {
        nb::gil_scoped_release release;
        const Batch b =
            make_batch(p.structure, q, roles, relations, p.scale, p.clamp, p.steps, p.threads);
        return run_energies(b, {energy.data(), residual.data(), saved ? saved->data() : nullptr});
      },
      nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg().none());

  m.def("backward", [](const Problem& p, In<2> q, In<3> roles, In<3> relations, In<5> saved,
                       In<2> grad_energy, Out<2> grad_q, Out<3> grad_roles, Out<3> grad_relations) {
    nb::gil_scoped_release release;
    const Batch b =
        make_batch(p.structure, q, roles, relations, p.scale, p.clamp, p.steps, p.threads);
    run_backward(b, saved.data(), grad_energy.data(), roles.data(), grad_q.data(),
                 grad_roles.data(), grad_relations.data());
  });

  m.def(
      "mixtures",
      [](const Problem& p, In<2> q, In<3> roles, In<3> relations, float temperature, int64_t top,
         std::optional<In<2>> x, Out<2> energy, Out<2> residual, std::optional<Out<3>> transported,
         std::optional<Out<2>> mixture) {
        nb::gil_scoped_release release;
        const Batch b =
            make_batch(p.structure, q, roles, relations, p.scale, p.clamp, p.steps, p.threads);
        check(!transported || x, "features are needed to transport them");
        const Mixing mix{temperature,
                         top,
                         x ? x->data() : nullptr,
                         x ? int64_t(x->shape(1)) : 0,
                         transported ? transported->data() : nullptr,
                         mixture ? mixture->data() : nullptr};
        return run_mixtures(b, {energy.data(), residual.data(), nullptr}, mix);
      },
      nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg().none(), nb::arg(),
      nb::arg(), nb::arg().none(), nb::arg().none());

  m.def("couplings", [](const Problem& p, In<2> q, In<3> roles, In<3> relations, Out<3> out) {
    nb::gil_scoped_release release;
    const Batch b =
        make_batch(p.structure, q, roles, relations, p.scale, p.clamp, p.steps, p.threads);
    check(b.graphs == 1, "couplings are made one graph at a time");
    run_couplings(b, out.data());
  });

  m.def("gw", [](Ids row_ptr, Cols col, Doubles<1> mu, Doubles<3> relations, Doubles<2> nu,
                 Ids first, Ids count, Ids relation, Ids offset, Array<double, 1> couplings,
                 int64_t mirror_steps, int64_t sinkhorn, double epsilon, int64_t exact_steps,
                 double mass, double mirror_mass, int threads, Array<double, 2> stats) {
    constexpr int64_t COLUMNS = 8;
    const int64_t m = int64_t(relations.shape(1)), problems = int64_t(first.shape(0));
    check(int64_t(relations.shape(2)) == m && nu.shape(0) == relations.shape(0) &&
              int64_t(nu.shape(1)) == m,
          "relations must be [K, M, M] and their measures [K, M]");
    check(int64_t(stats.shape(0)) == problems && stats.shape(1) == COLUMNS,
          "stats must be [problems, 8]");
    nb::gil_scoped_release release;
    const GwBatch batch{row_ptr.data(), col.data(), mu.data(), relations.data(), nu.data(), m};
    std::vector<GwProblem> all;
    for (int64_t i = 0; i < problems; ++i)
      all.push_back({first.data()[i], count.data()[i], relation.data()[i],
                     couplings.data() + offset.data()[i]});
    std::vector<GwResult> found(all.size());
    run_gw(batch, {mirror_steps, sinkhorn, epsilon, exact_steps, mass, mirror_mass}, all,
           found.data(), threads);
    for (int64_t i = 0; i < problems; ++i) {
      const GwResult& r = found[size_t(i)];
      const double row[COLUMNS] = {r.before,
                                   r.after,
                                   r.gap,
                                   r.moved,
                                   double(r.mirror_steps),
                                   double(r.sinkhorn),
                                   double(r.exact_steps),
                                   double(r.swaps)};
      std::copy_n(row, COLUMNS, stats.data() + COLUMNS * i);
    }
  });

  m.def(
      "encode",
      [](Ids row_ptr, Cols col, std::optional<In<1>> weight, std::optional<In<1>> count, In<1> x,
         In<1> lift_w, In<1> lift_b, In<3> weights, In<3> vectors, In<1> self, In<2> project,
         int64_t dim, int threads, Out<2> out) {
        nb::gil_scoped_release release;
        // weights [layers, 2, width * width], vectors [layers, 4, width]: b1, b2, gamma, beta
        const int64_t width = int64_t(vectors.shape(2)), layers = int64_t(self.shape(0));
        check(width % 32 == 0 && width <= 1024,
              "the hidden width must be padded to 32 and at most 1024");
        check(x.shape(0) + 1 == row_ptr.shape(0), "structure and degrees differ in length");
        EncoderView e{encoder_graph(row_ptr, col, weight, count),
                      dim,
                      width,
                      lift_w.data(),
                      lift_b.data(),
                      project.data(),
                      {},
                      threads};
        e.graph.x = x.data();
        for (int64_t l = 0; l < layers; ++l) {
          const float* w = weights.data() + l * 2 * width * width;
          const float* v = vectors.data() + l * 4 * width;
          e.layers.push_back(
              {w, v, w + width * width, v + width, v + 2 * width, v + 3 * width, self.data()[l]});
        }
        run_encoder(e, out.data());
      },
      nb::arg(), nb::arg(), nb::arg().none(), nb::arg().none(), nb::arg(), nb::arg(), nb::arg(),
      nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg());

  m.def(
      "neighbour_sum",
      [](Ids row_ptr, Cols col, std::optional<In<1>> weight, In<2> h, int threads, Out<2> out) {
        nb::gil_scoped_release release;
        check(h.shape(0) + 1 == row_ptr.shape(0), "structure and rows differ in length");
        run_neighbour_sum(encoder_graph(row_ptr, col, weight, std::nullopt), h.data(),
                          int64_t(h.shape(1)), threads, out.data());
      },
      nb::arg(), nb::arg(), nb::arg().none(), nb::arg(), nb::arg(), nb::arg());

  m.def("additive", [](Ids row_ptr, Cols col, In<2> values, In<2> sent, In<2> met, float slope,
                       int threads, Out<2> out, Out<2> log_sum) {
    nb::gil_scoped_release release;
    run_additive(pattern(row_ptr, col, values.shape(0)), additive(values, sent, met, slope),
                 threads, out.data(), log_sum.data());
  });
  m.def("additive_backward",
        [](Ids row_ptr, Cols col, In<2> values, In<2> sent, In<2> met, float slope, In<2> grad,
           In<2> log_sum, In<2> along, int threads, Out<2> d_values, Out<2> d_sent, Out<2> d_met) {
          nb::gil_scoped_release release;
          run_additive_backward(pattern(row_ptr, col, values.shape(0)),
                                additive(values, sent, met, slope),
                                {grad.data(), log_sum.data(), along.data()}, threads,
                                d_values.data(), d_sent.data(), d_met.data());
        });
  m.def(
      "normalised",
      [](Ids row_ptr, Cols col, In<2> values, std::optional<In<1>> bias, std::optional<In<1>> scale,
         float own, int threads, Out<2> out) {
        nb::gil_scoped_release release;
        check(!scale || values.shape(0) == scale->shape(0), "rows and scales differ in length");
        check(!bias || bias->shape(0) == values.shape(1), "bias and rows differ in width");
        run_normalised(pattern(row_ptr, col, values.shape(0)),
                       {int64_t(values.shape(1)), values.data(), bias ? bias->data() : nullptr,
                        scale ? scale->data() : nullptr, own},
                       threads, out.data());
      },
      nb::arg(), nb::arg(), nb::arg(), nb::arg().none(), nb::arg().none(), nb::arg(), nb::arg(),
      nb::arg());
  m.def("product", [](Ids row_ptr, Cols col, In<2> query, In<2> key, In<2> value, int threads,
                      Out<2> out, Out<1> log_sum) {
    nb::gil_scoped_release release;
    run_product(pattern(row_ptr, col, query.shape(0)), product(query, key, value), threads,
                out.data(), log_sum.data());
  });
  m.def("product_backward",
        [](Ids row_ptr, Cols col, In<2> query, In<2> key, In<2> value, In<2> grad, In<1> log_sum,
           In<1> along, int threads, Out<2> d_query, Out<2> d_key, Out<2> d_value) {
          nb::gil_scoped_release release;
          run_product_backward(pattern(row_ptr, col, query.shape(0)), product(query, key, value),
                               {grad.data(), log_sum.data(), along.data()}, threads, d_query.data(),
                               d_key.data(), d_value.data());
        });

  m.def("moments", [](In<2> x, int threads, Exact mean, Exact variance) {
    nb::gil_scoped_release release;
    run_moments(x.data(), int64_t(x.shape(0)), int64_t(x.shape(1)), threads, mean.data(),
                variance.data());
  });
  nb::enum_<Bend>(m, "Bend")
      .value("none", Bend::none)
      .value("relu", Bend::relu)
      .value("leaky", Bend::leaky);
  m.def("columns", [](In<2> x, In<1> factor, In<1> offset, In<1> mean, Bend bend, float slope,
                      double drop, uint64_t seed, int threads, Out<2> out) {
    nb::gil_scoped_release release;
    run_columns(columns(x, factor, offset, mean, bend, slope, drop, seed), int64_t(x.shape(0)),
                threads, out.data());
  });
  m.def("column_sums",
        [](In<2> x, In<1> factor, In<1> offset, In<1> mean, Bend bend, float slope, double drop,
           uint64_t seed, In<2> grad, int threads, Exact sum, Exact along, Exact bent) {
          nb::gil_scoped_release release;
          run_column_sums(columns(x, factor, offset, mean, bend, slope, drop, seed), grad.data(),
                          int64_t(x.shape(0)), threads, sum.data(), along.data(), bent.data());
        });
  m.def("columns_backward", [](In<2> x, In<1> factor, In<1> offset, In<1> mean, Bend bend,
                               float low, double drop, uint64_t seed, In<2> grad, In<1> shift,
                               In<1> slope, int threads, Out<2> out) {
    nb::gil_scoped_release release;
    run_columns_backward(columns(x, factor, offset, mean, bend, low, drop, seed), grad.data(),
                         shift.data(), slope.data(), int64_t(x.shape(0)), threads, out.data());
  });

  m.attr("linear_width") = LINEAR_WIDTH;
  m.def(
      "linear",
      [](In<2> a, In<2> b, std::optional<In<1>> bias, bool transposed, bool rectify, int threads,
         Out<2> out) {
        nb::gil_scoped_release release;
        const int64_t depth = int64_t(a.shape(1)), cols = int64_t(b.shape(transposed ? 0 : 1));
        check(int64_t(b.shape(transposed ? 1 : 0)) == depth, "rows and weights differ in width");
        check(depth % LINEAR_WIDTH == 0 && cols % LINEAR_WIDTH == 0, "widths must be multiples");
        check(!bias || int64_t(bias->shape(0)) == cols, "bias and result differ in width");
        run_linear(a.data(), b.data(), bias ? bias->data() : nullptr, int64_t(a.shape(0)), depth,
                   cols, transposed, rectify, threads, out.data());
      },
      nb::arg(), nb::arg(), nb::arg().none(), nb::arg(), nb::arg(), nb::arg(), nb::arg());
  m.def(
      "linear_backward",
      [](In<2> x, In<2> weight, In<2> grad, std::optional<In<2>> out, int threads,
         std::optional<Out<2>> d_x, Out<2> d_weight, Out<1> d_bias) {
        nb::gil_scoped_release release;
        const int64_t depth = int64_t(x.shape(1)), cols = int64_t(weight.shape(0));
        check(x.shape(0) == grad.shape(0) && int64_t(grad.shape(1)) == cols &&
                  int64_t(weight.shape(1)) == depth,
              "rows, weights and gradients differ in shape");
        check(depth % LINEAR_WIDTH == 0 && cols % LINEAR_WIDTH == 0, "widths must be multiples");
        run_linear_backward(x.data(), weight.data(), grad.data(), out ? out->data() : nullptr,
                            int64_t(x.shape(0)), depth, cols, threads, d_x ? d_x->data() : nullptr,
                            d_weight.data(), d_bias.data());
      },
      nb::arg(), nb::arg(), nb::arg(), nb::arg().none(), nb::arg(), nb::arg().none(), nb::arg(),
      nb::arg());

  m.def("foretelling", [](Ids row_ptr, Cols col, In<2> q, In<2> u, In<2> v, In<2> w,
                          int64_t counted, float inverse, float shift, float weight, int threads,
                          Out<2> d_q, Out<2> d_v, Out<2> d_w) {
    nb::gil_scoped_release release;
    const int64_t width = int64_t(q.shape(1)), others = int64_t(w.shape(0));
    for (const auto& rows : {u, v})
      check(rows.shape(0) == q.shape(0) && rows.shape(1) == q.shape(1), "rows differ in shape");
    check(int64_t(w.shape(1)) == width && counted <= others, "rows differ in width or number");
    check(width % LINEAR_WIDTH == 0 && others % LINEAR_WIDTH == 0, "widths must be multiples");
    return run_foretelling(pattern(row_ptr, col, q.shape(0)),
                           {width, others, counted, q.data(), u.data(), v.data(), nullptr, nullptr,
                            inverse, shift, weight, d_q.data(), d_v.data()},
                           w.data(), threads, d_w.data());
  });

  nb::enum_<Map>(m, "Map")
      .value("from_origin", Map::from_origin)
      .value("to_origin", Map::to_origin)
      .value("mean", Map::mean)
      .value("walk", Map::walk)
      .value("carried", Map::carried)
      .value("unit", Map::unit);
  m.def(
      "map",
      [](Map map, float curvature, int64_t width, In<2> x, std::optional<In<2>> y, int threads,
         Out<2> out) {
        nb::gil_scoped_release release;
        run_map(map, map_rows(curvature, width, x, y, out.shape(0), out.shape(1)),
                int64_t(out.shape(0)), threads, out.data());
      },
      nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg().none(), nb::arg(), nb::arg());
  m.def(
      "map_backward",
      [](Map map, float curvature, int64_t width, In<2> x, std::optional<In<2>> y, In<2> grad,
         int threads, Out<2> d_x, std::optional<Out<2>> d_y) {
        nb::gil_scoped_release release;
        run_map_backward(map, map_rows(curvature, width, x, y, grad.shape(0), grad.shape(1)),
                         grad.data(), int64_t(grad.shape(0)), threads, d_x.data(),
                         d_y ? d_y->data() : nullptr);
      },
      nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg().none(), nb::arg(), nb::arg(), nb::arg(),
      nb::arg().none());

  m.def("blocks", [](In<2> x, In<2> summed, In<1> degree, int threads, Out<2> out) {
    nb::gil_scoped_release release;
    check(x.shape(0) == summed.shape(0) && x.shape(1) == summed.shape(1) &&
              x.shape(0) == degree.shape(0) && x.shape(0) == out.shape(0) &&
              4 * x.shape(1) == out.shape(1),
          "rows, sums, degrees and blocks differ in shape");
    run_blocks(x.data(), summed.data(), degree.data(), int64_t(x.shape(0)), int64_t(x.shape(1)),
               threads, out.data());
  });

  m.def(
      "averages",
      [](In<2> x, std::optional<Array<const double, 1>> measure, std::optional<Ids> of,
         std::optional<In<1>> count, std::optional<Ids> sizes, Ids node_ptr, int threads,
         Out<2> out) {
        nb::gil_scoped_release release;
        check(!measure || measure->shape(0) == x.shape(0), "rows and measure differ in length");
        check(!of || (of->shape(0) == x.shape(0) && count && sizes), "rows and classes differ");
        check(x.shape(1) == out.shape(1), "rows and their averages differ in width");
        run_averages({x.data(), measure ? measure->data() : nullptr, of ? of->data() : nullptr,
                      of ? count->data() : nullptr, of ? sizes->data() : nullptr, node_ptr.data(),
                      int64_t(node_ptr.shape(0)) - 1, int64_t(x.shape(1))},
                     threads, out.data());
      },
      nb::arg(), nb::arg().none(), nb::arg().none(), nb::arg().none(), nb::arg().none(), nb::arg(),
      nb::arg(), nb::arg());
}
