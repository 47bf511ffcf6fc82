"""The iterative solver against the four-index sum, POT, and exact optima of tiny structures."""

import networkx as nx
import numpy as np
import ot
import pytest
import torch
from exact_gw import distortion, minimal_energy

import artlas
from artlas import kernels
from artlas.graphs.measure import degree_measure
from artlas.gw import solver
from artlas.gw.solver import MIRROR, SolverConfig

pytestmark = pytest.mark.skipif(not kernels.available(), reason="the solver is compiled code")

EXACT_ONLY, MIRROR_THEN_EXACT = SolverConfig(), SolverConfig(mirror=MIRROR)


def relations(count, roles, rng, diagonal=False):
    drawn = rng.uniform(0, 1, (count, roles, roles))
    drawn = (drawn + drawn.transpose(0, 2, 1)) / 2
    return drawn if diagonal else drawn * (1 - np.eye(roles))


def graphs(count, rng, most=24):
    made = [
        nx.gnp_random_graph(int(rng.integers(1, most)), rng.uniform(0.1, 0.6), seed=int(seed))
        for seed in rng.integers(0, 2**31, count)
    ]
    return artlas.Graphs.from_networkx(made)


def anywhere(bases, roles, rng):
    """A start somewhere inside the polytope, where no two vertices are alike."""

    def start(graph):
        drawn = rng.uniform(0.2, 1, (len(bases), graph.num_nodes, roles))
        mu = degree_measure(graph, 1e-8).numpy()
        made = []
        for coupling in drawn:
            for _ in range(2000):
                coupling = coupling * (mu / coupling.sum(1))[:, None]
                coupling = coupling / coupling.sum(0) / roles
            made.append(coupling)
        return np.array(made)

    return start


def dense(graph):
    return graph.to_scipy(0).toarray().astype(np.float64)


@pytest.mark.slow
@pytest.mark.parametrize("config", [EXACT_ONLY, MIRROR_THEN_EXACT, SolverConfig(mirror=5, exact=0)])
@pytest.mark.parametrize("diagonal", [False, True])
def test_energies_are_those_of_the_couplings_and_never_rise(config, diagonal):
    rng = np.random.default_rng(0)
    many, bases = graphs(12, rng), relations(3, 7, rng, diagonal)
    for start in (solver.product_start(bases), solver.degree_start(bases), anywhere(bases, 7, rng)):
        found = solver.solve(many, bases, [(start, config)])
        assert (found.statistics["after"] <= found.statistics["before"] + 1e-12).all()
        for g, graph in enumerate(many):
            mu = degree_measure(graph, 1e-8).numpy()
            for k, T in enumerate(found.couplings[g]):
                assert T.min() >= 0
                np.testing.assert_allclose(T.sum(1), mu, atol=1e-12)
                np.testing.assert_allclose(T.sum(0), 1 / 7, atol=1e-12)
                exact = distortion(dense(graph), bases[k], T)
                assert found.energies[g, k] == pytest.approx(exact, abs=1e-12)


@pytest.mark.slow
def test_the_direction_is_an_optimum_of_the_transport_problem():
    """After one step from T the gap is <gradient, T - vertex>, whose least value POT knows."""
    rng = np.random.default_rng(1)
    many, bases = graphs(30, rng), relations(2, 9, rng)
    start = anywhere(bases, 9, rng)
    given = {id(graph): start(graph) for graph in [many[g] for g in range(len(many))]}
    kept = list(given.values())
    found = solver.solve(many, bases, [(lambda _: kept.pop(0), SolverConfig(exact=1))])
    for g, T in enumerate(given.values()):
        mu, A = degree_measure(many[g], 1e-8).numpy(), dense(many[g])
        for k in range(2):
            gradient = -4 * A @ T[k] @ bases[k]
            least = ot.emd2(mu / mu.sum(), np.full(9, 1 / 9), gradient - gradient.min())
            wanted = (gradient * T[k]).sum() - least - gradient.min()
            assert found.statistics["gap"][g, k] == pytest.approx(max(wanted, 0), abs=1e-9)


def assert_no_higher_than_pot(many, bases, rng):
    """Starts inside the polytope, so that no tie is broken by chance."""
    roles = bases.shape[1]
    start = anywhere(bases, roles, rng)
    given = [start(many[g]) for g in range(len(many))]
    kept = list(given)
    found = solver.solve(many, bases, [(lambda _: kept.pop(0), EXACT_ONLY)])
    for g, T in enumerate(given):
        mu, A = degree_measure(many[g], 1e-8).numpy(), dense(many[g])
        for k, relation in enumerate(bases):
            _, log = ot.gromov.gromov_wasserstein(
                A,
                relation,
                mu / mu.sum(),
                np.full(roles, 1 / roles),
                "square_loss",
                G0=T[k] / T[k].sum(),
                log=True,
            )
            assert found.energies[g, k] <= log["gw_dist"] + 1e-6


@pytest.mark.slow
def test_energies_are_no_higher_than_pot_finds_from_the_same_start():
    rng = np.random.default_rng(2)
    assert_no_higher_than_pot(graphs(50, rng), relations(4, 8, rng), rng)


@pytest.mark.slow
def test_energies_are_no_higher_than_pot_finds_on_real_graphs(raw):
    whole = artlas.read(raw("BZR") / "TUDataset" / "BZR" / "raw", verbose=False)
    bases = artlas.load("graph").atlas.relations().detach().double().numpy()[::4]
    assert_no_higher_than_pot(whole[::16][:25], bases, np.random.default_rng(3))


@pytest.mark.slow
def test_the_optimum_of_tiny_structures_is_found():
    rng = np.random.default_rng(3)
    missed = []
    for _ in range(60):
        one = nx.gnp_random_graph(int(rng.integers(2, 5)), 0.6, seed=int(rng.integers(1e6)))
        graph, bases = artlas.Graphs.from_networkx(one), relations(1, 3, rng)
        starts = [
            (solver.product_start(bases), MIRROR_THEN_EXACT),
            (solver.degree_start(bases), MIRROR_THEN_EXACT),
            (anywhere(bases, 3, rng), EXACT_ONLY),
        ]
        found = solver.solve(graph, bases, starts).energies[0, 0]
        mu = degree_measure(graph, 1e-8).numpy()
        best = minimal_energy((dense(graph), mu), (bases[0], np.full(3, 1 / 3)))
        assert found >= best - 1e-9
        missed.append(found > best + 1e-6)
    assert np.mean(missed) <= 0.1, f"{sum(missed)} of {len(missed)} missed"


def test_refinement_lowers_energies_and_keeps_couplings():
    model, rng = artlas.load("graph"), np.random.default_rng(4)
    many = graphs(10, rng)
    plain, refined = model.align(many), model.align(many, refine=10)
    assert (refined.energies <= plain.energies + 1e-6).all()
    assert refined.energies.mean() < plain.energies.mean()
    assert float(refined.residuals.max()) < 1e-6
    more = model.align(many, refine=50)
    assert (more.energies <= refined.energies + 1e-6).all()
    B = model.atlas.relations().detach().double().numpy()
    for g in range(len(many)):
        for k in (0, 7):
            T = refined.couplings(g)[k].double().numpy()
            exact = distortion(dense(many[g]), B[k], T)
            assert float(refined.energies[g, k]) == pytest.approx(exact, abs=1e-5)
    mixed = torch.einsum("k,knm->nm", refined.responsibilities[3], refined.couplings(3))
    torch.testing.assert_close(refined.mixture(3), mixed)
    torch.testing.assert_close(refined.roles(3).sum(1), torch.ones(many[3].num_nodes))


def test_threads_and_other_graphs_change_no_bits():
    rng = np.random.default_rng(5)
    many, bases = graphs(9, rng), relations(3, 6, rng)
    starts = [
        (solver.product_start(bases), MIRROR_THEN_EXACT),
        (solver.degree_start(bases), EXACT_ONLY),
    ]
    before, found = torch.get_num_threads(), []
    try:
        for threads in (1, 3):
            torch.set_num_threads(threads)
            found.append(solver.solve(many, bases, starts).energies)
    finally:
        torch.set_num_threads(before)
    np.testing.assert_array_equal(*found)
    np.testing.assert_array_equal(solver.solve(many[4], bases, starts).energies[0], found[0][4])


def test_discrepancies_of_a_graph_with_itself_and_with_others():
    path, cycle = nx.path_graph(5), nx.cycle_graph(6)
    many = artlas.Graphs.from_networkx([path, nx.relabel_nodes(path, {0: 4, 4: 0}), cycle])
    same, one, other = solver.discrepancies(many, [(0, 1), (0, 2), (2, 0)])
    assert same == pytest.approx(0, abs=1e-6)
    assert one == other > 0.1


def test_wrong_arguments_raise_clear_errors():
    rng = np.random.default_rng(6)
    many, bases = graphs(2, rng), relations(2, 4, rng)
    with pytest.raises(ValueError, match=r"relations must be \[K, M, M\]"):
        solver.solve(many, bases[0], [(solver.product_start(bases), EXACT_ONLY)])
    with pytest.raises(ValueError, match="finite and symmetric"):
        solver.solve(
            many, rng.uniform(0, 1, (2, 4, 4)), [(solver.product_start(bases), EXACT_ONLY)]
        )
    with pytest.raises(ValueError, match="must give couplings"):
        solver.solve(many, bases, [(lambda graph: np.ones((2, 1, 3)), EXACT_ONLY)])
    with pytest.raises(ValueError, match="At least one start"):
        solver.solve(many, bases, [])
    with pytest.raises(ValueError, match="exact must be a whole number"):
        SolverConfig(exact=-1)


def test_rounding_differences_between_measures_end_the_search():
    """Equal masses in thirds and sevenths: sums differ in the last bits, and nothing more moves."""
    rng = np.random.default_rng(7)
    many = artlas.Graphs.from_networkx([nx.cycle_graph(n) for n in range(3, 60)])
    for roles in (3, 7, 9, 32):
        bases = relations(2, roles, rng)
        found = solver.solve(many, bases, [(solver.product_start(bases), EXACT_ONLY)])
        assert np.isfinite(found.energies).all()
