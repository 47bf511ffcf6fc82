// The Python module _core: checks shapes, then calls the kernels without the interpreter's lock.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <optional>
#include <stdexcept>

#include "core/instruction_set.hpp"
#include "core/parallel.hpp"
#include "gw/parallel_gw.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace artlas {
namespace {

template <typename T, int Dims>
using Array = nb::ndarray<T, nb::ndim<Dims>, nb::c_contig, nb::device::cpu>;
template <int Dims>
using In = Array<const float, Dims>;
template <int Dims>
using Out = Array<float, Dims>;
template <int Dims>
using Doubles = Array<const double, Dims>;
template <int Dims>
using DoublesOut = Array<double, Dims>;
using Ids = Array<const int64_t, 1>;
using Cols = Array<const int32_t, 1>;
template <typename T>
using Maybe = std::optional<T>;

constexpr int64_t ENCODER_WIDTH_UNIT = 32, MOST_ENCODER_WIDTH = 1024;
constexpr int64_t GW_STATISTICS = 8;

void check(bool ok, const char* what) {
  if (!ok) throw std::invalid_argument(what);
}

template <typename T>
auto pointer(const Maybe<T>& array) {
  return array ? array->data() : nullptr;
}

// What all calls share that align graphs with bases.
struct Problem {
  Ids node_ptr, row_ptr;
  Cols col;
  In<1> measure;
  Maybe<In<1>> weight;  // of the entries, where alike nodes are merged
  Maybe<Ids> sizes;     // of the graphs before that
  float scale, clamp;
  int64_t steps;
  int threads;

  Batch batch(const In<2>& nodes, const In<3>& roles, const In<3>& relations) const {
    check(roles.shape(2) == nodes.shape(1), "roles and nodes differ in width");
    check(relations.shape(0) == roles.shape(0) && relations.shape(1) == roles.shape(1) &&
              relations.shape(2) == roles.shape(1),
          "relations must be [K, M, M]");
    check(row_ptr.shape(0) == nodes.shape(0) + 1 && measure.shape(0) == nodes.shape(0),
          "structure and nodes differ in length");
    check(steps >= 1, "at least one Sinkhorn step");
    Batch b(roles.data(), relations.data(), int64_t(roles.shape(0)), int64_t(roles.shape(1)),
            int64_t(roles.shape(2)));
    b.graphs = int64_t(node_ptr.shape(0)) - 1;
    b.nodes = int64_t(nodes.shape(0));
    b.steps = steps;
    b.node_ptr = node_ptr.data();
    b.row_ptr = row_ptr.data();
    b.col = col.data();
    b.weight = pointer(weight);
    b.sizes = pointer(sizes);
    b.mu = measure.data();
    b.q = nodes.data();
    b.scale = scale;
    b.clamp = clamp;
    b.threads = threads;
    b.prepare_roles();
    return b;
  }
};

EncoderGraph encoder_graph(const Ids& row_ptr, const Cols& col, const Maybe<In<1>>& weight,
                           const Maybe<In<1>>& count) {
  const int64_t nodes = int64_t(row_ptr.shape(0)) - 1;
  return {row_ptr.data(), col.data(), pointer(weight), pointer(count), nullptr, nodes};
}

// A vector of the merged nodes as an array that keeps them alive.
template <auto Member>
auto vector_of(nb::handle self) {
  auto& values = nb::cast<MergedNodes&>(self).*Member;
  using T = typename std::decay_t<decltype(values)>::value_type;
  return nb::ndarray<nb::numpy, T, nb::ndim<1>>(values.data(), {values.size()}, self);
}

void bind_process(nb::module_& m) {
  m.def("isa", &instruction_set);
  m.def("set_isa", &set_instruction_set);
  m.def("padded_roles", &Batch::padded);
  m.def("aligned", [] { return progress.aligned(); });
  progress.interrupted = [] {
    nb::gil_scoped_acquire acquire;
    return PyErr_CheckSignals() != 0;
  };
  nb::register_exception_translator([](const std::exception_ptr& error, void*) {
    try {
      std::rethrow_exception(error);
    } catch (const Interrupted&) {  // Python's own error is set already
    }
  });
}

void bind_couplings(nb::module_& m) {
  nb::class_<Problem>(m, "Problem")
      .def(
          "__init__",
          [](Problem* self, Ids node_ptr, Ids row_ptr, Cols col, In<1> measure, Maybe<In<1>> weight,
             Maybe<Ids> sizes, float scale, float clamp, int64_t steps, int threads) {
            new (self) Problem{node_ptr, row_ptr, col,   measure, weight,
                               sizes,    scale,   clamp, steps,   threads};
          },
          "node_ptr"_a, "row_ptr"_a, "col"_a, "measure"_a, "weight"_a.none(), "sizes"_a.none(),
          "scale"_a, "clamp"_a, "steps"_a, "threads"_a);

  m.def(
      "energies",
      [](const Problem& p, In<2> nodes, In<3> roles, In<3> relations, Out<2> energy,
         Out<2> residual, Maybe<Out<5>> saved) {
        nb::gil_scoped_release release;
        return run_energies(p.batch(nodes, roles, relations),
                            {energy.data(), residual.data(), pointer(saved)});
      },
      "problem"_a, "nodes"_a, "roles"_a, "relations"_a, "energy"_a, "residual"_a, "saved"_a.none());

  m.def(
      "backward",
      [](const Problem& p, In<2> nodes, In<3> roles, In<3> relations, In<5> saved,
         In<2> grad_energy, Out<2> grad_nodes, Out<3> grad_roles, Out<3> grad_relations) {
        nb::gil_scoped_release release;
        run_backward(p.batch(nodes, roles, relations), saved.data(), grad_energy.data(),
                     roles.data(), grad_nodes.data(), grad_roles.data(), grad_relations.data());
      },
      "problem"_a, "nodes"_a, "roles"_a, "relations"_a, "saved"_a, "grad_energy"_a, "grad_nodes"_a,
      "grad_roles"_a, "grad_relations"_a);

  m.def(
      "mixtures",
      [](const Problem& p, In<2> nodes, In<3> roles, In<3> relations, Out<2> energy,
         Out<2> residual, float temperature, int64_t top, Maybe<In<2>> x, Maybe<Out<3>> transported,
         Maybe<Out<2>> mixture) {
        nb::gil_scoped_release release;
        check(!transported || x, "features are needed to transport them");
        const int64_t features = x ? int64_t(x->shape(1)) : 0;
        return run_mixtures(
            p.batch(nodes, roles, relations), {energy.data(), residual.data(), nullptr},
            {temperature, top, pointer(x), features, pointer(transported), pointer(mixture)});
      },
      "problem"_a, "nodes"_a, "roles"_a, "relations"_a, "energy"_a, "residual"_a, "temperature"_a,
      "top"_a, "x"_a = nb::none(), "transported"_a = nb::none(), "mixture"_a = nb::none());

  m.def(
      "couplings",
      [](const Problem& p, In<2> nodes, In<3> roles, In<3> relations, Out<3> out) {
        nb::gil_scoped_release release;
        const Batch b = p.batch(nodes, roles, relations);
        check(b.graphs == 1, "couplings are computed one graph at a time");
        run_couplings(b, out.data());
      },
      "problem"_a, "nodes"_a, "roles"_a, "relations"_a, "out"_a);
}

void bind_structure(nb::module_& m) {
  nb::class_<MergedNodes>(m, "MergedNodes")
      .def_ro("worthwhile", &MergedNodes::worthwhile)
      .def_prop_ro("node_ptr", vector_of<&MergedNodes::node_ptr>)
      .def_prop_ro("row_ptr", vector_of<&MergedNodes::row_ptr>)
      .def_prop_ro("col", vector_of<&MergedNodes::col>)
      .def_prop_ro("weight", vector_of<&MergedNodes::weight>)
      .def_prop_ro("count", vector_of<&MergedNodes::count>)
      .def_prop_ro("degree", vector_of<&MergedNodes::degree>)
      .def_prop_ro("class_of", vector_of<&MergedNodes::class_of>);
  m.def(
      "merge_nodes",
      [](Ids node_ptr, Ids row_ptr, Cols col, int rounds, int threads) {
        nb::gil_scoped_release release;
        return merge_nodes(node_ptr.data(), row_ptr.data(), col.data(),
                           int64_t(node_ptr.shape(0)) - 1, rounds, threads);
      },
      "node_ptr"_a, "row_ptr"_a, "col"_a, "rounds"_a, "threads"_a);

  m.def(
      "neighbour_sum",
      [](Ids row_ptr, Cols col, Maybe<In<1>> weight, In<2> h, Out<2> out, int threads) {
        nb::gil_scoped_release release;
        check(h.shape(0) + 1 == row_ptr.shape(0), "structure and rows differ in length");
        run_neighbour_sum(encoder_graph(row_ptr, col, weight, std::nullopt), h.data(),
                          int64_t(h.shape(1)), threads, out.data());
      },
      "row_ptr"_a, "col"_a, "weight"_a.none(), "h"_a, "out"_a, "threads"_a);

  m.def(
      "blocks",
      [](Ids row_ptr, Cols col, In<2> x, In<1> degree, Out<2> out, int threads) {
        nb::gil_scoped_release release;
        check(x.shape(0) + 1 == row_ptr.shape(0), "structure and rows differ in length");
        check(x.shape(0) == degree.shape(0) && x.shape(0) == out.shape(0) &&
                  4 * x.shape(1) == out.shape(1),
              "rows, degrees and blocks differ in shape");
        const int64_t width = int64_t(x.shape(1));
        run_blocks(encoder_graph(row_ptr, col, std::nullopt, std::nullopt), x.data(), degree.data(),
                   width, threads, out.data());
      },
      "row_ptr"_a, "col"_a, "x"_a, "degree"_a, "out"_a, "threads"_a);

  m.def(
      "averages",
      [](In<2> x, Ids node_ptr, Out<2> out, Maybe<Doubles<1>> measure, Maybe<Ids> class_of,
         Maybe<In<1>> count, Maybe<Ids> sizes, int threads) {
        nb::gil_scoped_release release;
        check(!measure || measure->shape(0) == x.shape(0), "rows and measure differ in length");
        check(!class_of || (class_of->shape(0) == x.shape(0) && count && sizes),
              "rows and classes differ");
        check(x.shape(1) == out.shape(1), "rows and their averages differ in width");
        run_averages({x.data(), pointer(measure), pointer(class_of),
                      class_of ? count->data() : nullptr, class_of ? sizes->data() : nullptr,
                      node_ptr.data(), int64_t(node_ptr.shape(0)) - 1, int64_t(x.shape(1))},
                     threads, out.data());
      },
      "x"_a, "node_ptr"_a, "out"_a, "measure"_a.none(), "class_of"_a.none(), "count"_a.none(),
      "sizes"_a.none(), "threads"_a);
}

void bind_encoder(nb::module_& m) {
  m.def(
      "encode",
      [](Ids row_ptr, Cols col, In<1> x, Out<2> out, Maybe<In<1>> weight, Maybe<In<1>> count,
         In<1> lift_weight, In<1> lift_bias, In<3> weights, In<3> vectors, In<1> self_weight,
         In<2> projection, int threads) {
        nb::gil_scoped_release release;
        // weights [layers, 2, width * width], vectors [layers, 4, width]: b1, b2, gamma, beta
        const int64_t width = int64_t(vectors.shape(2)), layers = int64_t(self_weight.shape(0));
        check(width % ENCODER_WIDTH_UNIT == 0 && width <= MOST_ENCODER_WIDTH,
              "the hidden width must be padded to 32 and at most 1024");
        check(x.shape(0) + 1 == row_ptr.shape(0), "structure and degrees differ in length");
        EncoderView e{encoder_graph(row_ptr, col, weight, count),
                      int64_t(out.shape(1)),
                      width,
                      lift_weight.data(),
                      lift_bias.data(),
                      projection.data(),
                      {},
                      threads};
        e.graph.x = x.data();
        for (int64_t l = 0; l < layers; ++l) {
          const float* w = weights.data() + l * 2 * width * width;
          const float* v = vectors.data() + l * 4 * width;
          e.layers.push_back({w, v, w + width * width, v + width, v + 2 * width, v + 3 * width,
                              self_weight.data()[l]});
        }
        run_encoder(e, out.data());
      },
      "row_ptr"_a, "col"_a, "x"_a, "out"_a, "weight"_a.none(), "count"_a.none(), "lift_weight"_a,
      "lift_bias"_a, "weights"_a, "vectors"_a, "self_weight"_a, "projection"_a, "threads"_a);
}

void bind_gw(nb::module_& m) {
  m.def(
      "solve_gw",
      // couplings: of every graph in turn, [K, n, m], the starts on entry
      [](Ids node_ptr, Ids row_ptr, Cols col, Doubles<1> measure, Doubles<3> relations,
         Doubles<2> role_measures, DoublesOut<1> couplings, DoublesOut<2> statistics,
         int64_t mirror_steps, int64_t sinkhorn_steps, double epsilon, int64_t exact_steps,
         double tolerance, double mirror_tolerance, int threads) {
        const int64_t graphs = int64_t(node_ptr.shape(0)) - 1;
        const int64_t bases = int64_t(relations.shape(0)), m = int64_t(relations.shape(1));
        const int64_t* first = node_ptr.data();
        check(int64_t(relations.shape(2)) == m && int64_t(role_measures.shape(0)) == bases &&
                  int64_t(role_measures.shape(1)) == m,
              "relations must be [K, M, M] and their measures [K, M]");
        check(int64_t(statistics.shape(0)) == graphs * bases &&
                  int64_t(statistics.shape(1)) == GW_STATISTICS,
              "statistics must be [graphs * relations, 8]");
        check(int64_t(couplings.shape(0)) == (first[graphs] - first[0]) * bases * m,
              "couplings must be [K, n, M] of every graph");
        nb::gil_scoped_release release;
        std::vector<GwProblem> problems;
        double* coupling = couplings.data();
        for (int64_t g = 0; g < graphs; ++g)
          for (int64_t k = 0; k < bases; ++k) {
            const int64_t n = first[g + 1] - first[g];
            problems.push_back({first[g], n, k, coupling});
            coupling += n * m;
          }
        std::vector<GwResult> results(problems.size());
        run_gw(
            {row_ptr.data(), col.data(), measure.data(), relations.data(), role_measures.data(), m},
            {mirror_steps, sinkhorn_steps, epsilon, exact_steps, tolerance, mirror_tolerance},
            problems, results.data(), threads);
        double* row = statistics.data();
        for (const GwResult& r : results)
          for (const double value :
               {r.before, r.after, r.gap, r.moved, double(r.mirror_steps), double(r.sinkhorn_steps),
                double(r.exact_steps), double(r.swaps)})
            *row++ = value;
      },
      "node_ptr"_a, "row_ptr"_a, "col"_a, "measure"_a, "relations"_a, "role_measures"_a,
      nb::kw_only(), "couplings"_a, "statistics"_a, "mirror_steps"_a, "sinkhorn_steps"_a,
      "epsilon"_a, "exact_steps"_a, "tolerance"_a, "mirror_tolerance"_a, "threads"_a);
}

}  // namespace
}  // namespace artlas

NB_MODULE(_core, m) {
  // Arrays made here may be alive when the interpreter ends: no leak, and nothing to print.
  nb::set_leak_warnings(false);
  artlas::bind_process(m);
  artlas::bind_couplings(m);
  artlas::bind_structure(m);
  artlas::bind_encoder(m);
  artlas::bind_gw(m);
}
