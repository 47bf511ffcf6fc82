"""The compact vector: 244 columns, made of the full ones by fixed signs."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from blocks.block_graphs import MOSTLY_NATIVE, collection, matrices
from cases import from_dense

from artlas import kernels
from artlas.blocks import VectorConfig, embed, layout, vector

COMPACT = VectorConfig(compact=True)


def test_widths():
    where = layout("compact")
    wanted = {"quantiles": 40, "waves": 64, **dict.fromkeys(where.names[2:], 20)}
    assert dict(zip(where.names, where.widths, strict=True)) == wanted
    assert where.width == 244
    for buckets in (1, 20, 21, 1 << 14):
        wide = layout(VectorConfig(buckets=buckets, compact=True)).width
        assert wide == 104 + 7 * min(buckets, 20)


@pytest.mark.parametrize("buckets", [16, 512])
def test_compact_blocks_are_those_of_the_full_vector(buckets):
    full = layout(VectorConfig(buckets=buckets))
    compact = layout(VectorConfig(buckets=buckets, compact=True))
    assert full.names == compact.names
    for a, b in zip(full.blocks, compact.blocks, strict=True):
        assert len(b.columns) <= len(a.columns)
        if len(b.columns) == len(a.columns):
            assert b == a  # not projected: the same names
        else:
            assert b.columns == tuple(map(str, range(len(b.columns))))
            assert b.floor == 0  # every column is a mixture of all colours, so none is rare


@pytest.mark.parametrize("which", MOSTLY_NATIVE)
@pytest.mark.parametrize("kind", ["none", "wide"])
def test_every_block_is_kept_or_multiplied_by_signs(kind, which):
    graphs = collection(kind)
    with kernels.use(which):
        full, compact = embed(graphs), embed(graphs, "compact")
    where = layout("compact")
    assert compact.shape == (len(graphs), where.width)
    for name, columns in layout():
        block, found = full[:, columns].double(), compact[:, where[name]].double()
        wide, narrow = block.shape[1], found.shape[1]
        if wide == narrow:
            assert torch.equal(block, found)
            continue
        signs = vector._signs(wide, narrow)
        assert signs.abs().eq(1).all()
        wanted = block @ signs / narrow**0.5
        torch.testing.assert_close(found, wanted, rtol=1e-6, atol=1e-5, msg=name)


@pytest.mark.parametrize(("rows", "columns"), [(512, 20), (256, 64), (72, 40)])
def test_signs_look_random(rows, columns):
    signs = vector._signs(rows, columns).numpy()
    assert signs.shape == (rows, columns)
    assert abs(signs.mean()) < 4 / (rows * columns) ** 0.5
    for count, products in ((rows, signs.T @ signs), (columns, signs @ signs.T)):
        apart = products - np.diag(np.diag(products))
        pairs = len(products) * (len(products) - 1)
        assert (apart**2).sum() / pairs == pytest.approx(count, rel=0.25)
        assert np.abs(apart).max() < 6 * count**0.5


@pytest.mark.parametrize("kind", ["none", "wide"])
def test_distances_are_roughly_preserved(kind):
    """Johnson and Lindenstrauss: a squared distance is right on average, up to sqrt(2 / k)."""
    graphs = collection(kind, matrices())
    full, compact = embed(graphs).double(), embed(graphs, "compact").double()
    where = layout("compact")
    upper = np.triu_indices(len(graphs), 1)
    for name, columns in layout():
        k = where[name].stop - where[name].start
        if columns.stop - columns.start == k:
            continue
        before, after = (
            (torch.cdist(part, part)[upper] ** 2).numpy()
            for part in (full[:, columns], compact[:, where[name]])
        )
        ratio = after[before > 1e-6] / before[before > 1e-6]
        assert len(ratio) > 100
        assert ratio.mean() == pytest.approx(1, abs=4 * (2 / k / 9) ** 0.5), name
        assert np.median(np.abs(ratio - 1)) < 1.5 * (2 / k) ** 0.5, name
        assert ratio.max() < 1 + 6 * (2 / k) ** 0.5, name


def test_nearest_neighbours_survive():
    """Graphs of four families, ten each: the nearest graph is of the same family."""
    rng = np.random.default_rng(0)
    parts = []
    for p in (0.05, 0.15, 0.4, 0.8):
        upper = [np.triu(rng.random((30, 30)) < p, 1) for _ in range(10)]
        parts += [A | A.T for A in upper]
    vectors = embed(from_dense(parts), "compact").double()
    apart = torch.cdist(vectors, vectors).fill_diagonal_(torch.inf)
    assert (apart.argmin(1) // 10 == torch.arange(40) // 10).double().mean() > 0.9


def test_few_buckets_are_not_projected():
    config = VectorConfig(buckets=16, compact=True)
    graphs = collection("coded")
    full = embed(graphs, VectorConfig(buckets=16))
    a, b = layout(VectorConfig(buckets=16)), layout(config)
    assert torch.equal(full[:, a["shapes_3"]], embed(graphs, config)[:, b["shapes_3"]])


def test_what_cancels_leaves_the_same_bits_alone_and_in_a_batch():
    """As many plus as minus log 2 leave what rounding does, which depends on the order of sums."""
    cancelled = 0
    for nodes in range(20, 40, 2):  # all of different colours, each counted log 2
        graphs = from_dense([np.zeros((nodes, nodes))] * 9, x=np.tile(np.eye(nodes), (9, 1)))
        found = embed(graphs, "compact")
        assert torch.equal(found, embed(graphs[0], "compact").expand(9, -1))
        total = np.zeros(20)
        weights = vector._signs(512, 20).numpy() / 20**0.5
        counts = embed(graphs)[0, layout()["shapes_0"]].double().numpy()
        for value, row in zip(counts, weights, strict=True):
            total += value * row
        found = found[0, layout("compact")["shapes_0"]]
        assert torch.equal(found, torch.from_numpy(total).float())
        cancelled += int((found.abs() < 1e-8).sum())
    assert cancelled > 10
