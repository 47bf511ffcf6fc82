"""Ray's workers give equal bits, whatever their number, and whichever of them dies."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import json
import logging
import os
import pickle
import signal
import subprocess
import sys

import numpy as np
import pytest
import torch
from cases import random_dense
from typer.testing import CliRunner

import artlas
from artlas.cli import app
from artlas.embedding import ray_engine
from artlas.embedding import run as embedding_run
from artlas.embedding import table as embedding_table
from artlas.embedding.pieces import Input, Piece
from artlas.embedding.run import Run
from artlas.method import checkpoint

SMALL = artlas.ArtConfig(bases=3, roles=4, hidden=16)
BATCH = 4 * (6 * 16 + 12) * 20  # bytes: parts of at most 20 nodes
BAD = ["bad.json", "missing.csv", "wide.json"]


def node_link(rng, graphs, **more):
    """JSON of random graphs of 3 to 9 nodes; more: attributes of every node."""
    made = []
    for n in rng.integers(3, 10, graphs).tolist():
        ends = np.argwhere(np.triu(random_dense(n, 0.5, rng), 1)).tolist()
        links = [{"source": i, "target": j} for i, j in ends]
        made.append({"nodes": [{"id": i, **more} for i in range(n)], "links": links})
    return json.dumps(made)


@pytest.fixture(scope="module")
def model():
    return artlas.ART(SMALL).eval()


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    """Files of several parts each, and among them three that cannot be used."""
    folder, rng = tmp_path_factory.mktemp("inputs"), np.random.default_rng(0)
    for name, graphs in (("a.json", 7), ("c.json", 12), ("m.json", 1), ("z.json", 9)):
        (folder / name).write_text(node_link(rng, graphs))
    (folder / "bad.json").write_text("{")
    (folder / "wide.json").write_text(node_link(rng, 5, mass=1.5, size=2))
    names = ["a.json", "bad.json", "c.json", "m.json", "missing.csv", "wide.json", "z.json"]
    return [Input(folder / name, name) for name in names]


@pytest.fixture(scope="module")
def local(tmp_path_factory, model, inputs):
    """The table and the summary of the local engine."""
    out = tmp_path_factory.mktemp("local") / "z.npz"
    outcome = Run(out, inputs, model, "plus", BATCH).embed(lambda at: None)
    assert list(outcome.failures) == BAD
    assert outcome.graphs == 7 + 12 + 1 + 9
    return embedding_table.read(out), outcome


@pytest.fixture(scope="module")
def ray():
    """Ray on two CPUs, one for all tests."""
    ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'artlas[cluster]'")
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    ray.init(
        "local",
        num_cpus=2,
        include_dashboard=False,
        log_to_driver=False,
        logging_level=logging.ERROR,
    )
    yield ray
    ray.shutdown()


@pytest.fixture(autouse=True)
def threads():
    """Workers set PyTorch's threads for their own process; some of these tests work in this one."""
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.fixture
def scattered(monkeypatch):
    """Send every piece in a block of its own."""
    monkeypatch.setattr(ray_engine, "BLOCK_BYTES", 1)


def assert_same(out, outcome, local):
    table, found = local[0], embedding_table.read(out)
    for name, values in table.columns.items():
        assert found.columns[name].tobytes() == values.tobytes(), name
        assert found.columns[name].dtype == values.dtype
    assert found.facts == table.facts
    assert outcome == local[1]
    assert list(outcome.failures) == BAD
    assert [path.name for path in out.parent.iterdir()] == [out.name]


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.usefixtures("ray", "scattered")
def test_one_and_two_workers_give_the_bits_of_one_process(tmp_path, model, inputs, local, workers):
    out, seen = tmp_path / "out" / "z.npz", []
    run = Run(out, inputs, model, "plus", BATCH)
    outcome = ray_engine.Cluster(workers).complete(run, seen.append)
    assert_same(out, outcome, local)
    assert (seen[-1].graphs, seen[-1].number, seen[-1].inputs) == (29, 6, 7)
    assert seen[-1].share == 1


@pytest.mark.slow
@pytest.mark.usefixtures("ray", "scattered")
def test_killed_processes_cost_neither_rows_nor_bits(tmp_path, model, inputs, local, monkeypatch):
    marks, real = tmp_path / "marks", ray_engine.read_pieces
    marks.mkdir()

    def die(name):
        with contextlib.suppress(FileExistsError):  # only the first time, by whomever
            (marks / name).touch(exist_ok=False)
            os.kill(os.getpid(), signal.SIGKILL)

    def read_pieces(row, work, budget):
        for i, made in enumerate(real(row, work, budget)):
            yield made
            if i == 2:
                die("reader")

    class Fragile(ray_engine.Worker):
        def __init__(self, work):
            super().__init__(work)
            (marks / f"made-{os.getpid()}").touch()

        def __call__(self, row):
            piece = pickle.loads(row["item"])
            made = super().__call__(row)
            if isinstance(piece, Piece) and piece.name == "c.json" and piece.first > 0:
                die("worker")
            return made

    monkeypatch.setattr(ray_engine, "read_pieces", read_pieces)
    monkeypatch.setattr(ray_engine, "Worker", Fragile)
    out = tmp_path / "out" / "z.npz"
    run = Run(out, inputs, model, "plus", BATCH)
    outcome = ray_engine.Cluster(2).complete(run, lambda at: None)
    names = {path.name for path in marks.iterdir()}
    assert {"reader", "worker"} <= names
    made = names - {"reader", "worker"}  # the model is loaded once a process, not once a chunk
    assert 2 <= len(made) <= 3
    assert_same(out, outcome, local)


@pytest.mark.slow
@pytest.mark.usefixtures("ray")
def test_ray_resumes_a_run_of_the_local_engine(tmp_path, model, inputs, local, monkeypatch):
    checkpoint.save(model, tmp_path / "model")
    out, real = tmp_path / "out" / "z.npz", embedding_run.embed_piece

    def interrupting(model, graphs, representation, name, first=0):
        if "c.json" in name and first > 6:  # parts hold six graphs at most: two came before
            raise KeyboardInterrupt
        return real(model, graphs, representation, name, first)

    monkeypatch.setattr(embedding_run, "embed_piece", interrupting)
    named = [Input(entry.path, str(entry.path)) for entry in inputs]
    begun = Run(out, named, model, "plus", BATCH)
    with pytest.raises(KeyboardInterrupt):
        begun.embed(lambda at: None)
    monkeypatch.undo()
    assert 0 in begun.state.finished
    assert 2 not in begun.state.finished
    assert len(begun.state.saved[2]) >= 2
    words = [*(entry.path for entry in inputs), "--out", out, "--model", tmp_path / "model"]
    more = ["--engine", "ray", "--workers", "1", "--budget", "1", "--representation", "plus"]
    done = CliRunner().invoke(app, ["embed", *map(str, words), *more])
    assert done.exit_code == 1
    assert done.output.count("left out") == len(BAD)
    assert f"29 graphs in {out}" in done.output
    found = embedding_table.read(out)
    for name, values in local[0].columns.items():
        if name != "source":
            assert found.columns[name].tobytes() == values.tobytes(), name


def results(run):
    """What readers and workers return for the inputs that are not finished, in order."""
    for number, entry in enumerate(run.inputs):
        if number in run.state.finished:
            continue
        task = ray_engine.pack((number, entry, frozenset(run.state.saved[number])))
        for row in ray_engine.read_pieces(task, run.work, run.budget):
            item = pickle.loads(row["item"])
            if isinstance(item, Piece) and not item.saved:
                rows = run.work.rows(item.graphs, item.name, item.first)
                yield ray_engine.pack(dataclasses.replace(item, graphs=None, rows=rows))
            else:
                yield row


def items(run):
    return [pickle.loads(row["item"]) for row in results(run)]


def collect(run, coming):
    """What the command does with results."""
    failures = {}
    loaded = ray_engine.group_by_input(run, coming)
    done = run.write(run.usable_pieces(loaded, failures), lambda at: None)
    return dataclasses.replace(done, failures=failures)


@pytest.mark.parametrize("seed", range(6))
def test_a_run_interrupted_at_any_point_resumes(tmp_path, model, inputs, local, seed):
    out = tmp_path / "out" / "z.npz"

    def interrupted(coming, count):
        yield from itertools.islice(coming, count)
        raise KeyboardInterrupt

    run = Run(out, inputs, model, "plus", BATCH)
    every = sum(1 for _ in results(run))
    count = int(np.random.default_rng(seed).integers(1, every))
    with pytest.raises(KeyboardInterrupt):
        collect(run, interrupted(results(run), count))
    again = Run(out, inputs, model, "plus", BATCH)
    if seed % 2:
        assert_same(out, again.embed(lambda at: None), local)
        return
    assert sum(isinstance(item, Piece) and item.saved for item in items(again)) <= count
    assert_same(out, collect(again, results(again)), local)


def test_no_table_is_written_before_all_results_are_there(tmp_path, model, inputs):
    out = tmp_path / "z.npz"
    for missing in (1, 2, 8):
        run = Run(out, inputs, model, "plus", BATCH)
        coming = list(results(run))[:-missing]
        with pytest.raises(ray_engine.ClusterError, match="run the same command again"):
            collect(run, iter(coming))
        assert not out.exists()
    run = Run(out, inputs, model, "plus", BATCH)
    assert len(inputs) - 1 not in run.state.finished
    assert run.state.finished[0] == {"graphs": 7, "width": 0}


def test_graphs_of_saved_parts_are_not_sent(tmp_path, model, inputs):
    run = Run(tmp_path / "z.npz", inputs[:1], model, "plus", BATCH)
    sent = items(run)[1:]
    assert len(sent) > 2
    for piece in sent[:2]:
        run.state.add(piece)
    run.state.save_pending()
    again = items(run)[1:]
    assert [item.rows is None for item in again] == [True, True] + [False] * len(sent[2:])
    assert [item.graphs for item in again] == [None] * len(sent)
    assert [item.count for item in again] == [item.count for item in sent]


def test_warnings_and_errors_of_other_machines_are_reported(tmp_path, model):
    (tmp_path / "loop.csv").write_text("0,0\n0,1\n")
    entry = Input(tmp_path / "loop.csv", "loop.csv")
    run = Run(tmp_path / "z.npz", [entry], model, "plus")
    report, piece = results(run)
    coming = iter([report, {**piece, "software": "artlas 0.0.1 with avx2 kernels"}])
    with (
        pytest.warns(artlas.GraphCleaningWarning, match="self-loops dropped: 1"),
        pytest.warns(RuntimeWarning, match=r"artlas 0\.0\.1 with avx2.* not to the bit"),
    ):
        assert collect(run, coming).graphs == 1
    unseen = ray_engine.ReadReport(0, error=f"{entry.path}: nothing there", visible=False)
    run = Run(tmp_path / "y.npz", [entry], model, "plus")
    failures = collect(run, iter([ray_engine.pack(unseen)])).failures
    assert "storage that all machines share" in failures["loop.csv"]


def test_a_finished_run_needs_no_ray(tmp_path, model, inputs, monkeypatch):
    out = tmp_path / "out" / "z.npz"
    run = Run(out, inputs[:1], model, "plus", BATCH)
    for item in items(run):
        if isinstance(item, Piece):
            run.state.add(item)
    run.state.save_pending()
    monkeypatch.setattr(ray_engine, "import_ray", lambda: None)
    monkeypatch.setattr(ray_engine, "connected", None)
    assert ray_engine.Cluster(1).complete(run, lambda at: None).graphs == 7
    assert len(embedding_table.read(out)) == 7


@pytest.mark.slow
def test_failures_of_ray_are_explained(ray):
    trace = "trace\nMemoryError: 9 GB\n\nThe above exception was the direct cause of ...\nadvice"
    with (
        pytest.raises(ray_engine.ClusterError, match=r"up: MemoryError: 9 GB\. Finished work"),
        ray_engine.connected(None, 1),
    ):
        raise ray.exceptions.RayError(trace)
    with pytest.raises(OSError, match="No space"), ray_engine.connected(None, 1):
        raise OSError("No space left on device")
    assert ray.is_initialized()  # the caller's Ray is not shut down


def test_an_address_where_nothing_listens_fails_at_once(monkeypatch):
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'artlas[cluster]'")
    import ray

    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    with (
        pytest.raises(ray_engine.ClusterError, match=r"cannot be reached at '127\.0\.0\.1:1'"),
        ray_engine.connected("127.0.0.1:1", 1),
    ):
        pass


def test_without_ray_the_error_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ImportError, match=r"pip install 'artlas\[cluster\]'"):
        ray_engine.Cluster()
    words = ["embed", "a.csv", "--out", str(tmp_path / "z.npz")]
    done = CliRunner().invoke(app, [*words, "--engine", "ray"])
    assert done.exit_code == 1
    assert "artlas[cluster]" in done.output
    assert list(tmp_path.iterdir()) == []
    done = CliRunner().invoke(app, [*words, "--workers", "2"])
    assert done.exit_code == 1
    assert "add --engine ray" in done.output
    with pytest.raises(ValueError, match="got -1"):
        ray_engine.Cluster(-1)


@pytest.mark.slow
def test_import_does_not_load_ray():
    code = """if True:
        import sys, artlas, artlas.cli, artlas.embedding.ray_engine
        sys.exit("ray" in sys.modules)
    """
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
