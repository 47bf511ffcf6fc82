// The Python module _ingest: numbers from text, canonical rows, ego-graphs of networks.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <limits>
#include <memory>
#include <stdexcept>

#include "ingest/canonical.hpp"
#include "ingest/ego_graphs.hpp"
#include "ingest/text_table.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace artlas {
namespace {

template <typename T>
using Vector = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <typename T>
using Strided = nb::ndarray<const T, nb::ndim<2>, nb::device::cpu>;
template <typename T>
using Matrix = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

void check(bool ok, const char* what) {
  if (!ok) throw std::invalid_argument(what);
}

// Returns a member as an array that keeps its owner alive.
template <typename Owner, auto Member>
auto vector_of(nb::handle self) {
  auto& values = nb::cast<Owner&>(self).*Member;
  using T = typename std::decay_t<decltype(values)>::value_type;
  return nb::ndarray<nb::numpy, T, nb::ndim<1>>(values.data(), {values.size()}, self);
}

struct TextTable {
  Vector<uint8_t> bytes;
  Table table;
};

struct Graph {  // owns the arrays that a network points to
  Vector<int64_t> row_ptr;
  Vector<int32_t> col;
  Network view() const { return {row_ptr.data(), col.data(), int64_t(row_ptr.shape(0)) - 1}; }
};

struct Walker {
  Graph graph;
  Pusher pusher;
};

// Returns a buffer as an array that keeps its owner alive.
template <typename T>
auto buffer_of(nb::handle owner, const Buffer<T>& values, int64_t size) {
  return nb::ndarray<nb::numpy, T, nb::ndim<1>>(values.data(), {size_t(size)}, owner);
}

template <typename T>
bool parse(TextTable& text, Matrix<T> out) {
  check(int64_t(out.shape(0)) == text.table.rows() && int64_t(out.shape(1)) == text.table.columns(),
        "the output must be [rows, columns]");
  nb::gil_scoped_release release;
  return text.table.parse(out.data());
}

}  // namespace
}  // namespace artlas

NB_MODULE(_ingest, m) {
  using namespace artlas;
  nb::set_leak_warnings(false);

  nb::enum_<Fault>(m, "Fault")
      .value("none", Fault::none)
      .value("value", Fault::value)
      .value("range", Fault::range)
      .value("few", Fault::few)
      .value("many", Fault::many);
  nb::class_<TextTable>(m, "TextTable")
      .def(
          "__init__",
          [](TextTable* self, Vector<uint8_t> bytes, int64_t columns, int64_t skip, int threads) {
            nb::gil_scoped_release release;
            new (self) TextTable{bytes, Table(reinterpret_cast<const char*>(bytes.data()),
                                              int64_t(bytes.shape(0)), columns, skip, threads)};
          },
          "bytes"_a, "columns"_a, "skip"_a, "threads"_a)
      .def_prop_ro("rows", [](const TextTable& t) { return t.table.rows(); })
      .def_prop_ro("columns", [](const TextTable& t) { return t.table.columns(); })
      .def_prop_ro("fault", [](const TextTable& t) { return t.table.fault(); })
      .def_prop_ro("line", [](const TextTable& t) { return t.table.line(); })
      .def_prop_ro("found", [](const TextTable& t) { return t.table.found(); })
      .def_prop_ro("text",
                   [](const TextTable& t) {
                     const std::string cut = t.table.text();
                     return nb::bytes(cut.data(), cut.size());
                   })
      .def("parse", &parse<int32_t>)
      .def("parse", &parse<int64_t>)
      .def("parse", &parse<double>);

  nb::class_<Canonical>(m, "Canonical")
      .def_prop_ro("row_ptr",
                   [](nb::handle self) {
                     const auto& c = nb::cast<const Canonical&>(self);
                     return buffer_of(self, c.row_ptr, c.nodes + 1);
                   })
      .def_prop_ro("col",
                   [](nb::handle self) {
                     const auto& c = nb::cast<const Canonical&>(self);
                     return buffer_of(self, c.col, c.entries);
                   })
      .def_ro("loops", &Canonical::loops)
      .def_ro("duplicates", &Canonical::duplicates)
      .def_ro("one_way", &Canonical::one_way);
  m.def(
      "canonical",
      [](Strided<int32_t> ends, int64_t nodes, int32_t first, int threads) {
        check(ends.shape(0) == 2, "ends must be [2, E]");
        check(nodes >= 0 && nodes <= std::numeric_limits<int32_t>::max(), "too many nodes");
        nb::gil_scoped_release release;
        const int64_t step = ends.stride(1);
        return canonical(
            {ends.data(), ends.data() + ends.stride(0), step, step, int64_t(ends.shape(1)), first},
            nodes, threads);
      },
      "ends"_a, "nodes"_a, "first"_a, "threads"_a);

  m.def(
      "canonical_text",
      [](const TextTable& text, int64_t nodes, int32_t first, int threads) {
        check(nodes >= 0 && nodes <= std::numeric_limits<int32_t>::max(), "too many nodes");
        nb::gil_scoped_release release;
        return canonical(text.table, nodes, first, threads);
      },
      "text"_a, "nodes"_a, "first"_a, "threads"_a);

  nb::class_<Egos>(m, "Egos")
      .def_prop_ro("node_ptr", vector_of<Egos, &Egos::node_ptr>)
      .def_prop_ro("nodes", vector_of<Egos, &Egos::nodes>)
      .def_prop_ro("scores", vector_of<Egos, &Egos::scores>)
      .def_prop_ro("pushes", vector_of<Egos, &Egos::pushes>)
      .def_prop_ro("positive", vector_of<Egos, &Egos::positive>)
      .def_prop_ro("stopped", vector_of<Egos, &Egos::stopped>);
  nb::class_<Walker>(m, "Walker")
      .def("__init__",
           [](Walker* self, Vector<int64_t> row_ptr, Vector<int32_t> col, double threshold) {
             const Graph graph{row_ptr, col};
             new (self) Walker{graph, Pusher(graph.view(), threshold)};
           })
      .def("run", [](Walker& w, Vector<int64_t> centres, double restart, int64_t most_pushes,
                     int64_t most_nodes, bool lazy, int threads) {
        nb::gil_scoped_release release;
        return w.pusher.run(centres.data(), int64_t(centres.shape(0)),
                            {restart, most_pushes, most_nodes, lazy}, threads);
      });

  nb::class_<Induced>(m, "Induced")
      .def_prop_ro("row_ptr", vector_of<Induced, &Induced::row_ptr>)
      .def_prop_ro("col", vector_of<Induced, &Induced::col>);
  m.def(
      "induce",
      [](Vector<int64_t> row_ptr, Vector<int32_t> col, Vector<int64_t> node_ptr,
         Vector<int32_t> nodes, int threads) {
        nb::gil_scoped_release release;
        return induce(Graph{row_ptr, col}.view(), node_ptr.data(), nodes.data(),
                      int64_t(node_ptr.shape(0)) - 1, threads);
      },
      "row_ptr"_a, "col"_a, "node_ptr"_a, "nodes"_a, "threads"_a);
}
