"""The exported logits against the model's own couplings."""

import networkx as nx
import pytest
import torch
from oracle import coupling, round_to_polytope

import artlas
from artlas.graphs.measure import degree_measure, normalised_degree
from artlas.method.export import Logits, export

GRAPHS = [nx.path_graph(2), nx.petersen_graph(), nx.Graph(nx.karate_club_graph().edges)]


def inputs(graphs):
    source = torch.repeat_interleave(torch.arange(graphs.num_nodes), graphs.row_ptr.diff())
    return normalised_degree(graphs.degree, graphs.node_ptr), source, graphs.col.long()


@pytest.mark.parametrize("graph", GRAPHS, ids=lambda graph: f"{len(graph)} nodes")
def test_sinkhorn_of_the_logits_gives_the_couplings(graph):
    model, graphs = artlas.load("graph"), artlas.Graphs.from_networkx(graph)
    logits = Logits(model)(*inputs(graphs)).detach().double() / model.config.temperature
    mu = degree_measure(graphs, model.config.measure_epsilon)
    for made, own in zip(logits, model.couplings(graphs), strict=True):
        wanted = round_to_polytope(coupling(made, mu, model.config.steps), mu)
        torch.testing.assert_close(own.double(), wanted, atol=2e-6, rtol=0)


@pytest.mark.slow
def test_the_exported_program_takes_any_graphs_and_survives_its_file(tmp_path):
    model = artlas.load("node")
    torch.export.save(export(model), tmp_path / "logits.pt2")
    program = torch.export.load(tmp_path / "logits.pt2").module()
    for graphs in [*GRAPHS, GRAPHS, nx.empty_graph(4)]:
        given = inputs(artlas.Graphs.from_networkx(graphs))
        torch.testing.assert_close(program(*given), Logits(model)(*given))
