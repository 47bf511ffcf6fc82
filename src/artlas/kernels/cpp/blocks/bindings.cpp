// The Python module _blocks: vectors of named blocks.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>

#include <stdexcept>

#include "blocks/vector.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace artlas {
namespace {

template <typename T>
using Vector = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <typename T>
using Matrix = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

void embed(Vector<int64_t> node_ptr, Vector<int64_t> row_ptr, Vector<int32_t> col,
           std::optional<Matrix<const float>> x, Matrix<float> out, int rounds, int64_t buckets,
           int threads) {
  BlocksTask task{node_ptr.data(), row_ptr.data(), col.data(), x ? x->data() : nullptr};
  task.graphs = int64_t(node_ptr.shape(0)) - 1;
  task.width = x ? int64_t(x->shape(1)) : 0;
  task.buckets = buckets, task.rounds = rounds, task.threads = threads;
  if (int64_t(out.shape(0)) != task.graphs || int64_t(out.shape(1)) != task.columns())
    throw std::invalid_argument("out must be [graphs, columns]");
  nb::gil_scoped_release release;
  embed_blocks(task, out.data());
}

}  // namespace
}  // namespace artlas

NB_MODULE(_blocks, m) {
  using namespace artlas;
  nb::set_leak_warnings(false);
  m.def("embed", &embed, "node_ptr"_a, "row_ptr"_a, "col"_a, "x"_a.none(), "out"_a, "rounds"_a,
        "buckets"_a, "threads"_a);
}
