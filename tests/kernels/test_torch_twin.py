"""The PyTorch twin against the plain float64 method of tests/oracle.py."""

import math

import numpy as np
import oracle
import pytest
import torch
from cases import awkward, from_dense, oracle_graphs, problem, random_dense, star

from artlas.graphs.measure import prepare_structure
from artlas.kernels import structure as structure_module
from artlas.kernels import torch_sinkhorn, torch_twin
from artlas.kernels.structure import Structure

WIDE = torch.float64


def graphs_of(seed=0):
    return from_dense(awkward(np.random.default_rng(seed)))


def wide_problem(graphs, K=3, M=5, D=4, spread=2.0, seed=0):
    nodes, roles, relations, scale = problem(graphs, K, M, D, spread, seed)
    inputs = [t.to(WIDE).requires_grad_() for t in (nodes, roles, relations)]
    return inputs, prepare_structure(graphs, 1e-8, dtype=WIDE), scale


def relative(found, exact):
    return ((found - exact).abs().max() / exact.abs().max()).item()


def gradients(energies, inputs, seed=5):
    """Of a random weighted sum of the energies."""
    weight = torch.randn(energies.shape, generator=torch.Generator().manual_seed(seed), dtype=WIDE)
    return torch.autograd.grad((energies * weight).sum(), inputs)


def hard_masks(nodes, roles, structure, scale):
    """Which pairs of each block the twin finds hard."""
    options = {"scale": scale, "clamp": None, "steps": 1}
    return [
        torch_sinkhorn.Block(chunk, rows, roles[bases], options).hard
        for chunk, rows, slices in torch_twin._blocks(nodes, roles, structure)
        for bases in slices
    ]


@pytest.mark.parametrize("spread", [0.5, 5.0, 100.0])
def test_energies_are_the_four_index_sum(spread):
    graphs = graphs_of()
    (nodes, roles, relations), structure, scale = wide_problem(graphs, spread=spread)
    options = {"scale": scale, "clamp": None, "steps": 20}
    found, _ = torch_twin.energies(nodes, roles, relations, structure, **options)
    plain = oracle_graphs(graphs)
    T = oracle.couplings(nodes, roles, plain, **options)
    exact = torch.stack(
        [
            torch.stack([oracle.energy_four_index(A, relations[k], T_g[k]) for k in range(3)])
            for (A, _), T_g in zip(plain, T, strict=True)
        ]
    )
    assert (found - exact).abs().max() < 1e-12


@pytest.mark.parametrize("steps", [1, 2, 20])
@pytest.mark.parametrize(("spread", "clamp"), [(0.3, None), (3.0, None), (3.0, 2.0), (60.0, None)])
def test_gradients_are_those_of_the_unrolled_iterations(steps, spread, clamp):
    graphs = graphs_of(1)
    inputs, structure, scale = wide_problem(graphs, spread=spread)
    options = {"scale": scale, "clamp": clamp, "steps": steps}
    found, _ = torch_twin.energies(*inputs, structure, **options)
    exact = oracle.energies(*inputs, oracle_graphs(graphs), **options)
    assert (found - exact).abs().max() < 1e-12
    for mine, theirs in zip(gradients(found, inputs), gradients(exact, inputs), strict=True):
        assert relative(mine, theirs) < 1e-9


def test_gradcheck():
    graphs = from_dense([star(3), np.zeros((1, 1)), random_dense(5, 0.5, np.random.default_rng(0))])
    (nodes, roles, relations), structure, scale = wide_problem(graphs, K=2, M=3, D=2)

    def energies(nodes, roles, relations):
        return torch_twin.energies(
            nodes, roles, relations, structure, scale=scale, clamp=None, steps=3
        )[0]

    assert torch.autograd.gradcheck(energies, (nodes, roles, relations))


def test_no_gradient_outside_the_clamp():
    graphs = from_dense([random_dense(8, 0.5, np.random.default_rng(2))])
    (nodes, roles, relations), structure, scale = wide_problem(graphs, K=2)
    with torch.no_grad():
        nodes[3] *= 1e6  # every logit of this node is far outside
    found, _ = torch_twin.energies(
        nodes, roles, relations, structure, scale=scale, clamp=2.0, steps=20
    )
    (d_nodes,) = torch.autograd.grad(found.sum(), nodes)
    assert (d_nodes[3] == 0).all()
    assert (d_nodes[[0, 1, 2, 4]] != 0).any(1).all()


def test_energies_clamped_at_zero_have_no_gradient():
    """Only rounding errors take an energy below zero, so one graph is pushed there by hand."""
    graphs = from_dense([random_dense(6, 0.5, np.random.default_rng(g)) for g in range(3)])
    inputs, structure, scale = wide_problem(graphs)
    structure.__dict__["self_energy"] = structure.self_energy - torch.tensor([0.0, 9.0, 0.0])
    options = {"scale": scale, "clamp": None, "steps": 3}
    found, _ = torch_twin.energies(*inputs, structure, **options)
    assert (found[1] == 0).all()
    assert (found[[0, 2]] > 0).all()
    d_nodes, _, d_relations = torch.autograd.grad(found.sum(), inputs)
    assert (d_nodes[6:12] == 0).all()
    assert (d_nodes[:6] != 0).any()
    exact = oracle.energies(*inputs, oracle_graphs(graphs), **options)[[0, 2]]
    assert relative(d_relations, torch.autograd.grad(exact.sum(), inputs[2])[0]) < 1e-9


@pytest.mark.parametrize("steps", [1, 20])
def test_hard_pairs_in_float32(steps):
    """Logits of +-1e3, and easy and hard pairs side by side in one block."""
    graphs = graphs_of(3)
    nodes, roles, relations, scale = problem(graphs, 4, 8, 4, 1.0)
    roles[0] *= 0.5  # easy
    roles[1] *= 15.0  # some pairs hard
    roles[2:] *= 1e3 / (scale * nodes @ roles[2:].flatten(0, 1).T).abs().max()
    structure = prepare_structure(graphs, 1e-8)
    masks = hard_masks(nodes, roles, structure, scale)
    hard = torch.stack([m.view(4, -1).any(1) for m in masks if m is not None]).any(0)
    assert any(m is not None and 0 < m.sum() < len(m) for m in masks)
    assert hard.tolist() == [False, True, True, True]

    options = {"scale": scale, "clamp": None, "steps": steps}
    inputs = [t.requires_grad_() for t in (nodes, roles, relations)]
    found, residual = torch_twin.energies(*inputs, structure, **options)
    wide = [t.detach().to(WIDE).requires_grad_() for t in inputs]
    exact = oracle.energies(*wide, oracle_graphs(graphs), **options)
    assert (found - exact).abs().max() < 2e-6
    assert residual.max() < 1e-6
    for mine, theirs in zip(gradients(found, inputs), gradients(exact, wide), strict=True):
        assert mine.isfinite().all()
        for part, whole in zip(mine, theirs, strict=True) if mine.dim() == 3 else [(mine, theirs)]:
            assert (part - whole).abs().max() <= 2e-3 * whole.abs().max() + 1e-7


def test_widest_easy_rows_in_float32():
    """Rows just narrow enough for the scaling form, all sloping alike: v spans 17 decades."""
    graphs = graphs_of(4)
    nodes, roles, relations, scale = problem(graphs, 2, 6, 3, 1.0)
    nodes[:, 0], roles[0, :, 0], roles[1, :, 0] = 1, torch.arange(6) * 9.0, -torch.arange(6) * 9.0
    logits = scale * nodes @ roles.transpose(1, 2)
    roles *= 39.9 / (logits.amax(-1) - logits.amin(-1)).max()
    structure = prepare_structure(graphs, 1e-8)
    assert not any(m is not None for m in hard_masks(nodes, roles, structure, scale))
    options = {"scale": scale, "clamp": None, "steps": 20}
    inputs = [t.requires_grad_() for t in (nodes, roles, relations)]
    found, _ = torch_twin.energies(*inputs, structure, **options)
    wide = [t.detach().to(WIDE).requires_grad_() for t in inputs]
    exact = oracle.energies(*wide, oracle_graphs(graphs), **options)
    assert (found - exact).abs().max() < 2e-6
    for mine, theirs in zip(gradients(found, inputs), gradients(exact, wide), strict=True):
        assert relative(mine, theirs) < 1e-3


@pytest.mark.parametrize("spread", [0.0, 1.0, 10.0, 500.0])
@pytest.mark.parametrize("steps", [1, 20])
def test_marginals_after_rounding(spread, steps):
    graphs = from_dense([*awkward(np.random.default_rng(7)), star(2000)])
    nodes, roles, relations, scale = problem(graphs, 3, 32, 8, spread)
    structure = prepare_structure(graphs, 1e-8)
    options = {"scale": scale, "clamp": None, "steps": steps}
    _, residual = torch_twin.energies(nodes, roles, relations, structure, **options)
    found = torch_twin.couplings(nodes, roles, structure, **options)
    for T, mu, reported in zip(
        found, structure.measure.split(structure.sizes), residual, strict=True
    ):
        assert (T >= 0).all()
        rows = (T.to(WIDE).sum(2) - mu).abs().amax(1)
        columns = (T.to(WIDE).sum(1) - 1 / 32).abs().amax(1)
        error = torch.maximum(rows, columns)
        assert error.max() < 1e-6
        assert (reported - error).abs().max() < 2e-7


def test_couplings_approach_the_entropic_optimum():
    ot = pytest.importorskip("ot")
    graphs = from_dense([random_dense(11, 0.4, np.random.default_rng(8))])
    (nodes, roles, _), structure, scale = wide_problem(graphs, K=2, M=6)
    (found,) = torch_twin.couplings(nodes, roles, structure, scale=scale, clamp=None, steps=1000)
    for k in range(2):
        cost = (-scale * nodes @ roles[k].T).detach().numpy()
        mu, nu = structure.measure.numpy(), np.full(6, 1 / 6)
        exact = ot.sinkhorn(mu, nu, cost, reg=1.0, stopThr=1e-14, numItermax=10000)
        assert np.abs(found[k].numpy() - exact).max() < 1e-10


@pytest.mark.parametrize("budget", [1, 150, 1000])
def test_chunks_do_not_change_results(monkeypatch, budget):
    graphs = graphs_of(9)
    inputs, structure, scale = wide_problem(graphs, spread=20.0)
    options = {"scale": scale, "clamp": None, "steps": 7}
    mixing = {"temperature": 0.1, "top_k": 2}

    def run(structure):
        found, _ = torch_twin.energies(*inputs, structure, **options)
        mixed = torch_twin.mixtures(*inputs, structure, **options, **mixing)[2]
        T = torch_twin.couplings(*inputs[:2], structure, **options)
        return [found, *gradients(found, inputs), mixed, *T]

    def count():
        return len(hard_masks(*inputs[:2], structure, scale))

    few, whole = count(), run(structure)
    monkeypatch.setattr(torch_twin, "CACHE_BUDGET", budget)
    assert count() > few
    for part, expected in zip(run(structure), whole, strict=True):
        assert (part - expected).abs().max() <= 1e-12 * max(1.0, expected.abs().max().item())


@pytest.mark.parametrize("top_k", [None, 1, 2, 3, 8])
@pytest.mark.parametrize("spread", [3.0, 60.0])
def test_mixtures_are_weighted_couplings(top_k, spread):
    graphs = graphs_of(10)
    (nodes, roles, relations), structure, scale = wide_problem(graphs, spread=spread)
    options = {"scale": scale, "clamp": None, "steps": 20}
    e, residual, mixed = torch_twin.mixtures(
        nodes, roles, relations, structure, **options, temperature=0.05, top_k=top_k
    )
    plain = oracle_graphs(graphs)
    exact = oracle.energies(nodes, roles, relations, plain, **options)
    assert (e - exact).abs().max() < 1e-12
    assert residual.shape == e.shape
    parts = []
    for energy, T in zip(exact, oracle.couplings(nodes, roles, plain, **options), strict=True):
        w = (-energy / 0.05).exp()
        if top_k is not None:
            w = torch.where(w >= w.sort(descending=True).values[:top_k][-1], w, 0)
        parts.append(torch.einsum("k,knm->nm", w / w.sum(), T))
    assert (mixed - torch.cat(parts)).abs().max() < 1e-12


def test_neighbour_sum():
    graphs = graphs_of(11)
    structure = prepare_structure(graphs, 1e-8, dtype=WIDE)
    A = torch.block_diag(*[a for a, _ in oracle_graphs(graphs)])
    h = torch.randn(structure.num_nodes, 3, dtype=WIDE, requires_grad=True)
    assert torch.allclose(torch_twin.neighbour_sum(h, structure), A @ h, rtol=0, atol=1e-13)
    assert torch.autograd.gradcheck(lambda x: torch_twin.neighbour_sum(x, structure), h)


def test_products_without_csr_support_are_the_same(monkeypatch):
    structure = prepare_structure(graphs_of(12), 1e-8, dtype=WIDE)
    h = torch.randn(structure.num_nodes, 4, dtype=WIDE)
    expected = structure.adjacency.multiply(h)
    dirty = torch.full_like(h, math.nan)
    assert (structure.adjacency.multiply(h, dirty) == expected).all()  # out is not read
    monkeypatch.setattr(structure_module, "CSR_DEVICES", ())
    assert torch.allclose(structure.adjacency.multiply(h), expected, rtol=0, atol=1e-13)


def test_memory_does_not_grow_with_the_steps():
    """Only the scalings v_s, G K M numbers a step, are added; couplings have N K M."""
    graphs = from_dense([random_dense(40, 0.2, np.random.default_rng(0)) for _ in range(3)])
    nodes, roles, relations, scale = problem(graphs, 2, 8, 4, 1.0)
    nodes.requires_grad_()
    structure = prepare_structure(graphs, 1e-8)

    def saved(steps):
        sizes = []
        with torch.autograd.graph.saved_tensors_hooks(
            lambda t: sizes.append(t.numel()) or t, lambda t: t
        ):
            torch_twin.energies(
                nodes, roles, relations, structure, scale=scale, clamp=None, steps=steps
            )
        return sum(sizes)

    assert saved(30) - saved(10) == 20 * 3 * 2 * 8
    inputs = nodes.numel() + roles.numel() + relations.numel()
    assert saved(1) < inputs + 2 * (120 * 2 * 8)


def test_gradients_that_are_not_asked_for():
    graphs = graphs_of(13)
    inputs, structure, scale = wide_problem(graphs)
    options = {"scale": scale, "clamp": None, "steps": 5}
    with torch.no_grad():
        plain, _ = torch_twin.energies(*inputs, structure, **options)
    full, residual = torch_twin.energies(*inputs, structure, **options)
    assert (plain == full).all()
    assert not residual.requires_grad
    expected = gradients(full, inputs)
    for i, whole in enumerate(expected):
        only = [t.detach().requires_grad_(j == i) for j, t in enumerate(inputs)]
        found, _ = torch_twin.energies(*only, structure, **options)
        assert (gradients(found, [only[i]])[0] == whole).all()


def test_autocast_does_not_reach_the_iterations():
    graphs = graphs_of(14)
    nodes, roles, relations, scale = problem(graphs, 2, 5, 4, 2.0)
    structure = prepare_structure(graphs, 1e-8)
    options = {"scale": scale, "clamp": None, "steps": 20}
    nodes.requires_grad_()
    expected, _ = torch_twin.energies(nodes, roles, relations, structure, **options)
    with torch.autocast("cpu", torch.bfloat16):
        found, _ = torch_twin.energies(nodes, roles, relations, structure, **options)
    assert (found == expected).all()


@pytest.mark.parametrize("limit", [1, 64, 4000])
def test_chunks_hold_every_graph_once_with_little_padding(limit):
    rng = np.random.default_rng(15)
    sizes = rng.integers(1, 200, 60)
    structure = prepare_structure(from_dense([random_dense(n, 0.1, rng) for n in sizes]), 1e-8)
    chunks = structure.chunks(limit)
    assert sorted(torch.cat([c.graphs for c in chunks]).tolist()) == list(range(60))
    A = structure.adjacency.matrix.to_dense()
    for chunk in chunks:
        assert chunk.rows <= limit or len(chunk.graphs) == 1
        assert chunk.rows <= max(1.25 * len(chunk.nodes), 256)
        padded = chunk.adjacency.matrix.to_dense()
        assert (padded[chunk.slots][:, chunk.slots] == A[chunk.nodes][:, chunk.nodes]).all()
        assert padded.sum() == A[chunk.nodes].sum()
        assert torch.allclose(chunk.measure.sum(1), torch.ones(len(chunk.graphs)))


def test_structure_in_another_dtype():
    structure = prepare_structure(graphs_of(16), 1e-8)
    assert structure.to() is structure
    wide = structure.to(dtype=WIDE)
    assert isinstance(wide, Structure)
    assert (wide.dtype, wide.adjacency.matrix.dtype) == (WIDE, WIDE)
    assert torch.equal(wide.col, structure.col)
    chi = [mu @ A @ mu for A, mu in oracle_graphs(graphs_of(16))]
    assert (structure.self_energy - torch.stack(chi)).abs().max() < 1e-7


def test_inputs_that_do_not_fit_are_named():
    graphs = graphs_of(17)
    nodes, roles, relations, scale = problem(graphs, 2, 5, 4, 2.0)
    structure = prepare_structure(graphs, 1e-8)
    options = {"scale": scale, "clamp": None, "steps": 3}
    with pytest.raises(
        ValueError, match=r"relations is torch.float64 .* structure is torch.float32"
    ):
        torch_twin.energies(nodes, roles, relations.double(), structure, **options)
    with pytest.raises(ValueError, match="nodes must have shape"):
        torch_twin.couplings(nodes[1:], roles, structure, **options)
    with pytest.raises(ValueError, match="steps must be at least 1, got 0"):
        torch_twin.energies(nodes, roles, relations, structure, **{**options, "steps": 0})
    with pytest.raises(ValueError, match="top_k must be None or at least 1, got 0"):
        torch_twin.mixtures(nodes, roles, relations, structure, **options, temperature=0.1, top_k=0)
    with pytest.raises(ValueError, match=r"expected \d+ rows of torch.float32"):
        torch_twin.neighbour_sum(nodes.double(), structure)
