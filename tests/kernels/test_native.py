"""The compiled kernels against the plain float64 method, on every instruction set present."""

import numpy as np
import oracle
import pytest
import torch
from cases import awkward, from_dense, oracle_graphs, problem, random_dense, star

from artlas import kernels
from artlas.graphs.measure import prepare_structure
from artlas.kernels import native, torch_twin

pytestmark = pytest.mark.skipif(not kernels.available(), reason="no compiled kernels")


def compare(graphs, K, M, D, spread, steps, clamp=None, seed=0):
    """Largest error of energies, and largest relative errors of the three gradients."""
    nodes, roles, relations, scale = problem(graphs, K, M, D, spread, seed)
    structure = prepare_structure(graphs, 1e-8)
    inputs = [t.clone().requires_grad_() for t in (nodes, roles, relations)]
    found, residuals = native.energies(*inputs, structure, scale=scale, clamp=clamp, steps=steps)
    weight = torch.randn(found.shape, generator=torch.Generator().manual_seed(seed + 1))
    (found * weight).sum().backward()
    wide = [t.double().requires_grad_() for t in (nodes, roles, relations)]
    exact = oracle.energies(*wide, oracle_graphs(graphs), scale, clamp, steps)
    (exact * weight.double()).sum().backward()
    gradient_errors = [
        ((a.grad - b.grad).abs().max() / b.grad.abs().max()).item()
        for a, b in zip(inputs, wide, strict=True)
    ]
    return (found - exact).abs().max().item(), gradient_errors, residuals.max().item()


@pytest.mark.parametrize("steps", [1, 2, 20])
@pytest.mark.parametrize(("K", "M", "D"), [(3, 32, 64), (2, 5, 17), (2, 40, 16)])
def test_energies_and_gradients_of_the_unrolled_iterations(isa, K, M, D, steps):
    graphs = from_dense(awkward(np.random.default_rng(3)))
    energy, gradients, residual = compare(graphs, K, M, D, spread=3.0, steps=steps)
    assert energy < 5e-7
    assert max(gradients) < 1e-4
    assert residual < 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("steps", [2, 3, 20])
@pytest.mark.parametrize("spread", [15.0, 22.0, 30.0, 60.0, 300.0])
def test_logits_beyond_float32_scaling(isa, spread, steps):
    """Scalings that stay small, that are folded into the kernel, and a start in logs."""
    graphs = from_dense(awkward(np.random.default_rng(4)))
    energy, gradients, residual = compare(graphs, 3, 32, 64, spread=spread, steps=steps)
    assert energy < 5e-6
    assert max(gradients) < 2e-3
    assert residual < 1e-6


def test_single_iteration_in_the_log_domain(isa):
    graphs = from_dense(awkward(np.random.default_rng(5)))
    energy, gradients, residual = compare(graphs, 2, 32, 32, spread=40.0, steps=1)
    assert energy < 5e-6
    assert max(gradients) < 1e-2
    assert residual < 1e-6


def test_clamped_logits_have_no_gradient_outside(isa):
    graphs = from_dense(awkward(np.random.default_rng(6)))
    energy, gradients, _ = compare(graphs, 3, 32, 64, spread=15.0, steps=20, clamp=20.0)
    assert energy < 1e-6
    assert max(gradients) < 5e-4


def test_graphs_of_many_chunks(isa):
    rng = np.random.default_rng(7)
    graphs = from_dense([random_dense(1500, 0.01, rng), random_dense(20, 0.3, rng)])
    for spread in (3.0, 50.0):
        energy, gradients, residual = compare(graphs, 2, 32, 64, spread=spread, steps=20)
        assert energy < 1e-6
        assert max(gradients) < 1e-4
        assert residual < 1e-6


def test_gradients_match_finite_differences():
    """Independent of any backward pass: a central difference of the float64 oracle's energies."""
    graphs = from_dense([random_dense(9, 0.4, np.random.default_rng(8))])
    nodes, roles, relations, scale = problem(graphs, 2, 8, 6, spread=2.0)
    structure = prepare_structure(graphs, 1e-8)
    inputs = [t.clone().requires_grad_() for t in (nodes, roles, relations)]
    found, _ = native.energies(*inputs, structure, scale=scale, clamp=None, steps=5)
    found.sum().backward()
    dense = oracle_graphs(graphs)
    gen = torch.Generator().manual_seed(9)
    for i in range(3):
        step = torch.randn(inputs[i].shape, generator=gen).double()
        if i == 2:  # relations stay symmetric
            step = step + step.transpose(1, 2)
        ends = []
        for sign in (1, -1):
            wide = [t.double() for t in (nodes, roles, relations)]
            wide[i] = wide[i] + sign * 1e-5 * step
            ends.append(oracle.energies(*wide, dense, scale, None, 5).sum())
        slope = (ends[0] - ends[1]) / 2e-5
        assert (inputs[i].grad.double() * step).sum().item() == pytest.approx(
            slope.item(), rel=2e-4, abs=1e-7
        )


def test_logit_gradient_alone():
    """With identity roles the node inputs are the logits themselves."""
    graphs = from_dense([random_dense(11, 0.4, np.random.default_rng(10))])
    M = 6
    logits = torch.randn(11, M, generator=torch.Generator().manual_seed(1)).requires_grad_()
    roles, relations = torch.eye(M)[None], problem(graphs, 1, M, M, 1.0)[2]
    structure = prepare_structure(graphs, 1e-8)
    found, _ = native.energies(logits, roles, relations, structure, scale=1.0, clamp=None, steps=20)
    found.sum().backward()
    wide = logits.detach().double().requires_grad_()
    ((A, mu),) = oracle_graphs(graphs)
    T = oracle.round_to_polytope(oracle.coupling(wide, mu, 20), mu)
    oracle.energy(A, relations[0].double(), T, mu).backward()
    assert (logits.grad - wide.grad).abs().max() < 1e-5 * wide.grad.abs().max()


def test_couplings_mixtures_and_features_agree_with_the_oracle(isa):
    graphs = from_dense(awkward(np.random.default_rng(11)))
    nodes, roles, relations, scale = problem(graphs, 4, 32, 16, spread=3.0)
    structure = prepare_structure(graphs, 1e-8)
    options = {"scale": scale, "clamp": None, "steps": 20}
    exact = oracle.couplings(nodes.double(), roles.double(), oracle_graphs(graphs), scale, None, 20)
    energy = oracle.energies(
        nodes.double(), roles.double(), relations.double(), oracle_graphs(graphs), scale, None, 20
    )
    starts = graphs.node_ptr.tolist()
    for g, T in enumerate(exact):
        one = prepare_structure(graphs[g], 1e-8)
        rows = nodes[starts[g] : starts[g + 1]]
        (got,) = native.couplings(rows, roles, one, **options)
        assert (got - T).abs().max() < 1e-6
    x = torch.randn(graphs.num_nodes, 5, generator=torch.Generator().manual_seed(2))
    for top_k in (None, 2):
        w = torch.softmax(-energy / 0.05, 1)
        if top_k:
            kept = w.topk(top_k, 1)
            w = torch.zeros_like(w).scatter(1, kept.indices, kept.values)
            w = w / w.sum(1, keepdim=True)
        mixed = [torch.einsum("k,kna->na", w[g], T) for g, T in enumerate(exact)]
        mixing = {"temperature": 0.05, "top_k": top_k}
        _, _, T_mix = native.mixtures(nodes, roles, relations, structure, **options, **mixing)
        assert (T_mix - torch.cat(mixed)).abs().max() < 1e-6
        _, _, H = native.transport_features(
            nodes, roles, relations, structure, x, **options, **mixing
        )
        for g, T in enumerate(mixed):
            rows = x[starts[g] : starts[g + 1]].double()
            assert (H[g] - len(T) * T.T @ rows).abs().max() < 1e-5


def test_star_of_ten_thousand_leaves():
    graphs = from_dense([star(50)]), _star_graphs(10_000)
    for one in graphs:
        nodes, roles, relations, scale = problem(one, 2, 32, 16, spread=4.0)
        structure = prepare_structure(one, 1e-8)
        found, residual = native.energies(
            nodes, roles, relations, structure, scale=scale, clamp=None, steps=20
        )
        twin, _ = torch_twin.energies(
            nodes.double(),
            roles.double(),
            relations.double(),
            structure.to(dtype=torch.float64),
            scale=scale,
            clamp=None,
            steps=20,
        )
        assert (found - twin).abs().max() < 1e-6
        assert residual.max() < 1e-6


def _star_graphs(leaves):
    from artlas import Graphs

    hub = np.zeros(leaves, dtype=np.int64)
    leaf = np.arange(1, leaves + 1)
    edges = np.stack([np.concatenate([hub, leaf]), np.concatenate([leaf, hub])])
    return Graphs.from_edges([(leaves + 1, edges)])


@pytest.mark.parametrize("spread", [1.0, 80.0])
def test_gradients_do_not_depend_on_the_number_of_threads(spread):
    rng = np.random.default_rng(12)
    graphs = from_dense([random_dense(n, 0.2, rng) for n in rng.integers(5, 90, 40)])
    nodes, roles, relations, scale = problem(graphs, 4, 32, 16, spread=spread)
    results = []
    before = torch.get_num_threads()
    try:
        for threads in (1, 2, 5):
            torch.set_num_threads(threads)
            inputs = [t.clone().requires_grad_() for t in (nodes, roles, relations)]
            structure = prepare_structure(graphs, 1e-8)
            found, _ = native.energies(*inputs, structure, scale=scale, clamp=None, steps=20)
            found.sum().backward()
            results.append([found.detach(), *(t.grad for t in inputs)])
    finally:
        torch.set_num_threads(before)
    for other in results[1:]:
        for a, b in zip(results[0], other, strict=True):
            assert torch.equal(a, b)


def test_neighbour_sum_and_its_gradient():
    graphs = from_dense(awkward(np.random.default_rng(13)))
    structure = prepare_structure(graphs, 1e-8)
    blocks = torch.block_diag(*(A for A, _ in oracle_graphs(graphs)))
    for width in (1, 7, 64, 70):
        h = torch.randn(graphs.num_nodes, width, generator=torch.Generator().manual_seed(width))
        h.requires_grad_()
        out = native.neighbour_sum(h, structure)
        assert (out - blocks @ h.detach().double()).abs().max() < 1e-5
        weight = torch.randn(out.shape, generator=torch.Generator().manual_seed(1))
        (out * weight).sum().backward()
        assert (h.grad - blocks @ weight.double()).abs().max() < 1e-5


def test_an_iteration_that_repeats_changes_nothing():
    """Early exit is exact: 20 iterations and 2,000 of a pair that settles give the same bits."""
    graphs = from_dense([random_dense(30, 0.2, np.random.default_rng(14))])
    nodes, roles, relations, scale = problem(graphs, 3, 32, 16, spread=0.01)
    structure = prepare_structure(graphs, 1e-8)
    few, many = (
        native.energies(nodes, roles, relations, structure, scale=scale, clamp=None, steps=s)[0]
        for s in (200, 2000)
    )
    assert torch.equal(few, many)


def test_wrong_shapes_are_refused():
    graphs = from_dense([random_dense(6, 0.5, np.random.default_rng(15))])
    nodes, roles, relations, scale = problem(graphs, 2, 8, 4, 1.0)
    structure = prepare_structure(graphs, 1e-8)
    options = {"scale": scale, "clamp": None, "steps": 3}
    with pytest.raises(ValueError, match="differ in width"):
        native.energies(nodes[:, :3], roles, relations, structure, **options)
    with pytest.raises(ValueError, match="differ in length"):
        native.energies(nodes[:4], roles, relations, structure, **options)
    with pytest.raises(ValueError, match=r"\[K, M, M\]"):
        native.energies(nodes, roles, relations[:1], structure, **options)


def test_use_names_what_it_accepts():
    with pytest.raises(ValueError, match="'native' or 'twin'"), kernels.use("cuda"):
        pass
