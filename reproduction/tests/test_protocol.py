"""The protocol has the paper's values, and no other module of the reproduction repeats them."""

from __future__ import annotations

import ast
import pathlib

import pytest

import artlas_paper
from artlas_paper import protocol
from artlas_paper.datasets.registry import REGISTRY
from artlas_paper.methods.registry import METHODS

ROOT = pathlib.Path(artlas_paper.__file__).parent
OTHERS = sorted(path for path in ROOT.rglob("*.py") if path.name != "protocol.py")

# The table "Default settings for the cross-domain few-shot transfer experiment".
DEFAULTS = {
    "Support samples per class": (protocol.SHOTS, 5),
    "Maximum query samples per class": (protocol.QUERIES, 50),
    "Number of episodes per target": (protocol.EPISODES, 50),
    "Graph-level downstream head": (protocol.HEAD["graph"], "prototype"),
    "Node-level downstream head": (protocol.HEAD["node"], "linear"),
    "Number of bases K": (protocol.ART_CONFIG.bases, 16),
    "Number of roles per base M": (protocol.ART_CONFIG.roles, 32),
    "Unified node-feature width": (protocol.PADDED_WIDTH, 56),
    "Projected node-feature width": (protocol.PROJECTED_WIDTH, 256),
    "Gaussian projection seed": (protocol.PROJECTION_SEED, 42),
    "Maximum PPR ego-graph size": (protocol.PPR.most_nodes, 400),
    "PPR restart probability": (protocol.PPR.restart, 0.15),
    "Local-push residual threshold": (protocol.PPR.threshold, 1e-4),
    "Maximum local-push operations per center": (protocol.PPR.most_pushes, 10**6),
    "Maximum center nodes per class": (protocol.CENTRES, 300),
    # in the text
    "Sinkhorn iterations": (protocol.ART_CONFIG.steps, 20),
    "GIN layers": (protocol.ART_CONFIG.layers, 2),
    "Message-passing layers of baselines": (protocol.BASELINE_LAYERS, 3),
    "Target objects of a study": (protocol.OBJECTS, 128),
    "Pretraining seeds of the component analysis": (len(protocol.SEEDS), 5),
}
# The authors' code, where the paper is silent.
RELEASED = {
    "epochs": (protocol.art_training("graph").epochs, 60),
    "batch": (protocol.art_training("node").batch, 64),
    "rate": (protocol.art_training("graph").rate, 1e-3),
    "clip": (protocol.art_training("graph").clip, 5.0),
    "optimiser": (protocol.art_training("graph").optimiser, "adam"),
    "weight decay": (protocol.art_training("graph").decay, 0.0),
    "pretraining seed": (protocol.SEED, 42),
    "episode seed": (protocol.EPISODE_SEED, 42),
    "centre seed": (protocol.CENTRE_SEED, 42),
    "hidden": (protocol.ART_CONFIG.hidden, 64),
    "Sinkhorn temperature": (protocol.ART_CONFIG.temperature, 0.1),
    "tau_m": (protocol.ART_CONFIG.coverage_temperature, 0.1),
    "tau_E": (protocol.ART_CONFIG.responsibility_temperature, 0.1),
    "epsilon_u": (protocol.ART_CONFIG.measure_epsilon, 1e-8),
}
# The table "Pretraining configurations of the comparison methods": epochs, batch, rate, decay.
BASELINES = {
    "gcn gat gin": ((100, 512, 1e-3, 0), (100, 256, 1e-3, 0)),
    "graphcl": ((100, 128, 1e-3, 0), (100, 128, 1e-3, 0)),
    "graphmae graphglue": ((100, 128, 1e-3, 5e-4), (100, 128, 1e-3, 5e-4)),
    "graphacl mdgmix": ((100, 128, 1e-3, 1e-6), (100, 128, 1e-3, 5e-4)),
    "gcope": ((100, 128, 1e-3, 1e-5), (100, 128, 1e-3, 5e-4)),
    "git": ((100, 128, 1e-3, 1e-8), (100, 128, 1e-3, 5e-4)),
    "riemanngfm": ((100, 64, 1e-3, 1e-6), (100, 128, 1e-3, 5e-4)),
    "scgfm": ((100, 128, 2e-2, 0), (60, 64, 1e-2, 0)),
}
GRAPH_ADAMW = {"gcn", "gat", "gin", "git"}
NODE_ADAM = {"graphcl", "scgfm"}
NODE_64_WIDE = {"graphcl", "riemanngfm"}


@pytest.mark.parametrize(("ours", "expected"), [*DEFAULTS.values(), *RELEASED.values()])
def test_values_are_those_of_the_paper_or_of_the_released_code(ours, expected):
    assert ours == expected


def test_datasets_are_the_papers():
    assert protocol.TARGETS["graph"] == (
        *("NCI1", "BZR", "COLLAB", "IMDB-BINARY", "PROTEINS"),
        *("COLORS-3", "ogbg-molhiv"),
    )
    assert protocol.TARGETS["node"] == (
        *("Cora", "CiteSeer", "PubMed", "Computers", "Photo"),
        *("Reddit", "ogbn-arxiv"),
    )
    for level in protocol.LEVELS:
        assert len(protocol.SOURCES[level]) == 5
        for name in protocol.TARGETS[level]:
            assert REGISTRY[name].level == level
            assert REGISTRY[name].role == (
                "source" if name in protocol.SOURCES[level] else "target"
            )


def test_baselines_are_pretrained_as_in_the_paper():
    assert {name for names in BASELINES for name in names.split()} == set(METHODS)
    for names, rows in BASELINES.items():
        for name in names.split():
            for level, row in zip(protocol.LEVELS, rows, strict=True):
                own = METHODS[name].training[level]
                assert (own.epochs, own.batch, own.rate, own.decay) == row, (name, level)
                adamw = name in GRAPH_ADAMW if level == "graph" else name not in NODE_ADAM
                assert own.optimiser == ("adamw" if adamw else "adam"), (name, level)
                narrow = level == "graph" or name in NODE_64_WIDE
                assert METHODS[name].hidden[level] == (64 if narrow else 128), (name, level)


def test_only_node_level_ends_by_a_plateau():
    assert protocol.art_training("graph").plateau is None
    node = protocol.art_training("node")
    assert (node.plateau, node.patience) == (0.05, 1)


# Settings by the names of parameters and fields that take them, as a number would repeat them.
WRITTEN_OUT = {
    "epochs": {60, 100},
    "shots": {5},
    "queries": {50},
    "per_class": {300},
    "centres": {300},
    "seed": {42},
    "plateau": {0.05},
    "most_nodes": {400},
}


def definitions(tree):
    """(name, value or None, line) of module constants, keywords, parameters and fields."""
    for node in tree.body:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                for name in ast.walk(target):
                    if isinstance(name, ast.Name):
                        yield name.id, None, node.lineno
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and isinstance(node.value, ast.Constant):
            yield node.arg, node.value.value, node.value.lineno
        elif isinstance(node, ast.AnnAssign) and isinstance(node.value, ast.Constant):
            yield getattr(node.target, "id", None), node.value.value, node.lineno
        elif isinstance(node, ast.FunctionDef):
            plain = node.args.args[len(node.args.args) - len(node.args.defaults) :]
            pairs = [*zip(plain, node.args.defaults, strict=True)]
            pairs += zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
            for argument, default in pairs:
                if isinstance(default, ast.Constant):
                    yield argument.arg, default.value, default.lineno


@pytest.mark.parametrize("path", OTHERS, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_other_module_repeats_the_protocol(path):
    constants = {name for name in vars(protocol) if name.isupper()} - {"TARGETS"}  # a study's own
    repeated = [
        f"{path.name}:{line}: {name}"
        for name, value, line in definitions(ast.parse(path.read_text()))
        if (value is None and name in constants)
        or (type(value) in (int, float) and value in WRITTEN_OUT.get(name, ()))
    ]
    assert repeated == []
