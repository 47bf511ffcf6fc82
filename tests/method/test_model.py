import pickle

import numpy as np
import oracle
import pytest
import torch
from cases import awkward, from_dense, oracle_graphs, random_dense, sharpened

import artlas
from artlas import ART, ArtConfig, kernels


@pytest.fixture(scope="module")
def graphs():
    dense = awkward(np.random.default_rng(0))
    x = torch.randn(sum(map(len, dense)), 3, generator=torch.Generator().manual_seed(0))
    return from_dense(dense, x=x)


def test_energies_are_those_of_the_whole_method(graphs):
    """Every stage in float64, dense and unrolled, from the model's own weights."""
    model = sharpened()
    a = model.align(graphs)
    wide = sharpened().double()
    with torch.no_grad():
        structure = wide.prepare(graphs)
        nodes = wide.encoder(structure) @ wide.node_projection.weight.T
        relations = wide.atlas.relations()
        roles = wide.role_projection(wide.role_encoder(relations))
        scale = wide.config.sinkhorn_options["scale"]
        exact = oracle.energies(nodes, roles, relations, oracle_graphs(graphs), scale, None, 20)
    assert (a.energies - exact).abs().max() < 2e-5
    assert a.residuals.max() < 1e-6
    assert a.energies.shape == a.residuals.shape == (len(graphs), 16)


def test_alignment_derives_coordinates_and_coverage_from_energies(graphs):
    a = sharpened().align(graphs)
    e = a.energies.double()
    assert torch.allclose(a.coordinates.double(), e.sqrt(), atol=1e-6)
    w = torch.exp(-e / 0.1) / torch.exp(-e / 0.1).sum(1, keepdim=True)
    assert torch.allclose(a.responsibilities.double(), w, atol=1e-6)
    assert torch.allclose(
        a.coverage.double(), -0.1 * torch.log(torch.exp(-e / 0.1).mean(1)), atol=1e-6
    )
    for g in (0, 3, -1):
        T = a.couplings(g)
        assert T.shape == (16, graphs[g].num_nodes, 32)
        assert T.min() >= 0
    assert torch.equal(a.couplings(-1), a.couplings(len(graphs) - 1))
    with pytest.raises(IndexError, match="8 graphs here; got number 8"):
        a.couplings(8)


def test_gain_is_zero_for_one_node_and_positive_somewhere(graphs):
    gain = sharpened().align(graphs).gain
    assert gain[0].abs().max() < 1e-5
    assert gain.abs().max() > 1e-3


def test_representation_is_coordinates_and_transported_features(graphs):
    for config in (ArtConfig(), ArtConfig.released(), ArtConfig(top_k=1)):
        model = sharpened(config)
        a = model.align(graphs)
        z = model.embed(graphs, "paper")
        assert z.shape == (len(graphs), 16 + 32 * 3)
        w = a.responsibilities
        if config.top_k:
            kept = w.topk(config.top_k, 1)
            w = torch.zeros_like(w).scatter(1, kept.indices, kept.values)
            w = w / w.sum(1, keepdim=True)
        for g in range(len(graphs)):
            T = torch.einsum("k,kna->na", w[g], a.couplings(g))
            H = len(T) * T.T @ graphs[g].x
            exact = torch.cat([a.coordinates[g], H.flatten()])
            assert (z[g] - exact).abs().max() < 1e-5
        assert torch.equal(model.embed(graphs, "coordinates"), z[:, :16])
        assert torch.equal(model.embed(graphs, "features"), z[:, 16:])


def test_role_sums_of_the_features_are_degree_weighted(graphs):
    """Rows of T sum to mu, so that the roles of H add up to N mu' X whatever was learned."""
    H = sharpened().embed(graphs, "features").view(len(graphs), 32, 3).sum(1)
    for g, (_, mu) in enumerate(oracle_graphs(graphs)):
        assert (H[g] - len(mu) * mu @ graphs[g].x.double()).abs().max() < 1e-5


def test_graphs_without_features():
    dense = awkward(np.random.default_rng(1))
    graphs = from_dense(dense)
    constant = ART().embed(graphs, "features")
    sizes = graphs.sizes[:, None].float()
    assert torch.allclose(constant, sizes / 32 * torch.ones(1, 32), atol=1e-5)
    degree = ART(ArtConfig(featureless="degree")).embed(graphs, "features")
    assert degree.shape == constant.shape
    assert degree[0].abs().max() == 0  # one node without an edge
    assert not torch.allclose(degree, constant)


def test_mixtures_are_couplings_of_measure_and_roles(graphs):
    T = sharpened().mixtures(graphs)
    mu = torch.cat([mu for _, mu in oracle_graphs(graphs)])
    assert (T.sum(1) - mu).abs().max() < 1e-6
    for part in T.split(graphs.sizes.tolist()):
        assert (part.sum(0) - 1 / 32).abs().max() < 1e-6


def test_training_lowers_the_loss():
    rng = np.random.default_rng(2)
    graphs = from_dense([random_dense(12, p, rng) for p in (0.1, 0.3, 0.6, 0.9) for _ in range(4)])
    model = ART(ArtConfig(bases=4, roles=8, hidden=16))
    optimiser = torch.optim.Adam(model.parameters(), 1e-2)
    losses = []
    for _ in range(80):
        loss = model(graphs)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < 0.97 * losses[0]


def test_initial_weights_depend_on_the_seed_alone():
    torch.manual_seed(1)
    first = ART().state_dict()
    drawn = torch.rand(1)
    torch.manual_seed(2)
    second = ART().state_dict()
    assert all(torch.equal(first[k], second[k]) for k in first)
    torch.manual_seed(1)
    ART()
    assert torch.equal(torch.rand(1), drawn)  # the global generator is left as it was
    other = ART(ArtConfig(seed=7)).state_dict()
    assert not torch.equal(first["atlas.logits"], other["atlas.logits"])


def test_cached_bases_follow_every_change_of_weights(graphs):
    model = sharpened()
    before = model.align(graphs).energies
    optimiser = torch.optim.SGD(model.parameters(), 1.0)
    model(graphs).backward()
    optimiser.step()
    after = model.align(graphs).energies
    assert not torch.equal(before, after)
    model.load_state_dict(sharpened().state_dict())
    assert torch.equal(model.align(graphs).energies, before)
    model.node_projection.weight = torch.nn.Parameter(model.node_projection.weight.detach() * 2)
    assert not torch.equal(model.align(graphs).energies, before)


def test_any_graph_in_three_lines():
    import networkx as nx

    model = artlas.ART()
    assert model.embed(nx.petersen_graph(), "paper").shape == (1, 48)
    assert model.embed([(3, [[0, 1, 1, 2], [1, 0, 2, 1]])], "coordinates").shape == (1, 16)


def test_files_are_graphs_too(tmp_path):
    model, files = artlas.ART(), [tmp_path / "a.tsv", tmp_path / "b.tsv"]
    files[0].write_text("0 1\n1 2\n")
    files[1].write_text("0 1\n1 2\n2 0\n2 3\n")
    path, tail = (2 + 1, [[0, 1], [1, 2]]), (4, [[0, 1, 2, 2], [1, 2, 0, 3]])
    with pytest.warns(artlas.GraphCleaningWarning):
        wanted = model.embed(artlas.Graphs.from_edges([path, tail]))
    assert torch.equal(model.embed(files), wanted)
    assert torch.equal(model.embed(str(files[1])), wanted[1:])
    assert torch.equal(model.align(files[0]).energies, model.align(files).energies[:1])


def test_wrong_arguments_raise_clear_errors(graphs):
    model = ART()
    with pytest.raises(ValueError, match=r"Unknown representation 'best'\. Choose one of blocks"):
        model.embed(graphs, "best")
    with pytest.raises(ValueError, match="made for one graph, got 8"):
        model.couplings(graphs)


@pytest.mark.parametrize("config", [ArtConfig(), ArtConfig.released()])
def test_native_and_twin_give_the_same(graphs, config):
    if not kernels.available():
        pytest.skip("no compiled kernels in this install")
    model = sharpened(config)
    results = []
    for which in ("native", "twin"):
        with kernels.use(which):
            model.zero_grad()
            loss = model(graphs)
            loss.backward()
            grads = {n: p.grad.clone() for n, p in model.named_parameters()}
            results.append((model.align(graphs).energies, model.embed(graphs, "paper"), grads))
    (e1, z1, g1), (e2, z2, g2) = results
    assert (e1 - e2).abs().max() < 1e-5
    assert (z1 - z2).abs().max() < 1e-3 * z1.abs().max()
    overall = max(g.abs().max() for g in g1.values())
    # Without a clamp, a common shift of all nodes, or of all roles, changes no coupling: these
    # gradients are zero
    # in exact arithmetic, and hold nothing but rounding.
    vanishing = {"encoder.layers.1.norm.bias", "role_encoder.layers.4.bias"}
    for name, grad in g1.items():
        if name in vanishing and config.logit_clamp is None:
            assert max(grad.abs().max(), g2[name].abs().max()) < 2e-3 * overall
        else:
            assert (grad - g2[name]).abs().max() < 2e-3 * grad.abs().max() + 1e-4 * overall, name


def test_a_prepared_batch_gives_the_energies_of_its_graphs(graphs):
    model = sharpened()
    prepared = model.prepare(graphs)
    assert model.prepare(prepared) is prepared
    assert torch.equal(model.energies(prepared), model.energies(graphs))
    assert torch.equal(model(prepared), model(graphs))
    other = ART(ArtConfig(measure_epsilon=0.5))
    assert not torch.equal(other.prepare(graphs).measure, prepared.measure)
    assert model.prepare(graphs[2:5]).num_graphs == 3


def test_using_graphs_leaves_nothing_in_them(graphs):
    model, before = ART(), set(vars(graphs))
    model.align(graphs)
    for representation in (None, "plus", "paper"):
        model.embed(graphs, representation)
    assert set(vars(graphs)) - before <= {"degree", "sizes"}
    copied = pickle.loads(pickle.dumps(graphs))
    assert torch.equal(model.embed(copied, "paper"), model.embed(graphs, "paper"))
