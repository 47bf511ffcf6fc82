"""MDGMIX: fused graphs against dense ones, boundaries against loops, and the reversed gradient."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from cases import from_dense, random_dense

from artlas_paper.methods.batch import Batch
from artlas_paper.methods.mdgmix import MDGMIX, MDGMIXConfig, Pairs, fuse


def sources(width=4):
    rng = np.random.default_rng(0)
    made = {}
    for name, shift, sizes in (("a", 0.0, (5, 1, 8)), ("b", 1.0, (7, 3)), ("c", -1.0, (6, 6, 2))):
        graphs = from_dense([random_dense(n, 0.5, rng) for n in sizes])
        made[name] = graphs.with_features(rng.normal(shift, 1, size=(sum(sizes), width)))
    return made


def together(domains):
    graphs = type(next(iter(domains.values()))).concat(list(domains.values()))
    domain = [i for i, g in enumerate(domains.values()) for _ in range(len(g))]
    return Batch.of(graphs, torch.tensor(domain))


def made(domains, **options):
    config = MDGMIXConfig.for_domains(domains, hidden=8, **options)
    model = MDGMIX(config)
    model.prepare(domains)
    return model


def dense(batch):
    a = torch.zeros(batch.num_nodes, batch.num_nodes)
    a[tuple(batch.edge_index)] = 1
    return a


def naive(batch, u, v, share):
    """Adjacency and features with the fused node first, then the rest of both graphs."""
    a = dense(batch)
    one, two = (
        [i for i in range(batch.num_nodes) if batch.graph_of[i] == batch.graph_of[w] and i != w]
        for w in (u, v)
    )
    size = 1 + len(one) + len(two)
    found = torch.zeros(size, size)
    found[1 : 1 + len(one), 1 : 1 + len(one)] = a[one][:, one]
    found[1 + len(one) :, 1 + len(one) :] = a[two][:, two]
    found[0, 1:] = found[1:, 0] = torch.cat([a[u, one], a[v, two]])
    return found, torch.cat(
        [(share * batch.x[u] + (1 - share) * batch.x[v])[None], batch.x[one], batch.x[two]]
    )


def test_fused_graphs_are_those_of_a_dense_construction():
    batch = together(sources())
    first = torch.tensor([0, 4, 5, 13, 20, 37, 2])
    second = torch.tensor([20, 5, 5, 16, 21, 36, 2])  # the last with itself, one node with itself
    share = torch.linspace(0, 1, 7)
    mixed = fuse(batch, Pairs(first, second, share))
    whole = dense(mixed)
    assert torch.equal(whole, whole.T)
    assert len(mixed.col) == int(whole.sum())  # no entry twice
    for m, (u, v) in enumerate(zip(first.tolist(), second.tolist(), strict=True)):
        a, x = naive(batch, u, v, share[m])
        rows = slice(int(mixed.node_ptr[m]), int(mixed.node_ptr[m + 1]))
        own, features = whole[rows, rows], mixed.x[rows]
        assert own.shape == a.shape
        apart = (features[:, None] - x[None]).abs().sum(2)  # features tell nodes apart
        match = apart.argmin(0)
        assert float(apart.gather(0, match[None]).max()) < 1e-5
        if u != v:  # nodes of the two copies of a graph have the same features
            assert sorted(match.tolist()) == list(range(len(x)))
            assert torch.equal(own[match][:, match], a)
        assert torch.equal(own.sum(1).sort().values, a.sum(1).sort().values)
    assert int(whole.sum()) == sum(
        int(naive(batch, u, v, 0)[0].sum()) for u, v in zip(first, second, strict=True)
    )


@pytest.mark.parametrize("share", [0.05, 0.5])
def test_boundaries_are_those_of_loops(share):
    domains = sources()
    model, batch = made(domains, boundary=share), together(domains)
    centres = [g.x.mean(0) for g in domains.values()]
    wanted, offset = set(), 0
    for d, graphs in enumerate(domains.values()):
        x, sets = graphs.x, []
        for e in range(3):
            if e != d:
                margin = ((x - centres[d]).norm(dim=1) - (x - centres[e]).norm(dim=1)).abs()
                order = margin.argsort()[: max(1, int(len(x) * share))]
                sets.append(set(order.tolist()))
        own = set.intersection(*sets) or set.union(*sets)
        wanted |= {offset + i for i in own}
        offset += len(x)
    found = set((model.boundary_excess(batch) <= 0).nonzero()[:, 0].tolist())
    assert found == wanted


def test_pairs_are_of_the_right_domains():
    domains = sources()
    model, batch = made(domains, boundary=0.3), together(domains)
    domain = batch.domain[batch.graph_of]
    torch.manual_seed(0)
    same, cross = model._same_domain_pairs(batch), model._cross_domain_pairs(batch)
    assert len(same.first) == len(cross.first) == 4
    assert torch.equal(domain[same.first], domain[same.second])
    assert not torch.equal(batch.graph_of[same.first], batch.graph_of[same.second])
    assert (domain[cross.first] != domain[cross.second]).all()
    made_of = model._compositions(batch, cross)
    torch.testing.assert_close(made_of.sum(1), torch.ones(4))
    torch.testing.assert_close(made_of.gather(1, domain[cross.first, None])[:, 0], cross.share)
    assert set(model._compositions(batch, same).flatten().tolist()) == {0.0, 1.0}


def test_the_composition_is_hidden_from_its_predictor():
    domains = sources()
    model, batch = made(domains, dropout=0.0), together(domains)
    for parameter in model.kind.parameters():
        torch.nn.init.zeros_(parameter)  # the kind gives the encoder no gradient
    weight = model.encoder.layers[-1].lin.weight

    def value():
        torch.manual_seed(3)
        return model.loss(batch)

    before = value()
    before.backward()
    with torch.no_grad():
        weight -= 1e-2 * weight.grad / weight.grad.norm()
    assert value() > before
    with torch.no_grad():
        weight += 1e-2 * weight.grad / weight.grad.norm()
        last = model.composition[-1].weight
        last -= 1e-2 * last.grad / last.grad.norm()
    assert value() < before


def test_batches_of_one_domain_and_of_one_node():
    domains = sources()
    model = made(domains)
    for graphs in (domains["a"], domains["a"][[1]]):
        loss = model.loss(Batch.of(graphs))
        loss.backward()
        assert torch.isfinite(loss)


@pytest.mark.parametrize("option", [{"boundary": 0.0}, {"sampled": 0}, {"dropout": 1.0}])
def test_options_are_checked(option):
    with pytest.raises(ValueError, match=next(iter(option))):
        MDGMIXConfig(**option)
