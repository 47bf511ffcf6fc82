"""The same work by Ray's workers: equal bits, whatever the order, the number, and who dies."""

from __future__ import annotations

import contextlib
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
from artlas.embedding import ray_engine, ray_session
from artlas.embedding import run as embedding_run
from artlas.embedding import table as embedding_table
from artlas.embedding.run import Input, Run
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
    """What one process makes of them: the table and the outcome."""
    out = tmp_path_factory.mktemp("local") / "z.npz"
    outcome = Run(out, inputs, model, "plus").work(lambda at: None, BATCH)
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
    """Every chunk travels alone, however small."""
    monkeypatch.setattr(ray_engine, "BLOCK", 1)


def assert_same(out, outcome, local):
    table, found = local[0], embedding_table.read(out)
    for name, values in table.arrays().items():
        assert getattr(found, name).tobytes() == values.tobytes(), name
        assert getattr(found, name).dtype == values.dtype
    assert found.facts == table.facts
    assert outcome == local[1]
    assert list(outcome.failures) == BAD
    assert [path.name for path in out.parent.iterdir()] == [out.name]


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.usefixtures("ray", "scattered")
def test_one_and_two_workers_give_the_bits_of_one_process(tmp_path, model, inputs, local, workers):
    out, seen = tmp_path / "out" / "z.npz", []
    run = Run(out, inputs, model, "plus")
    outcome = ray_engine.Cluster(workers).work(run, seen.append, BATCH)
    assert_same(out, outcome, local)
    assert (seen[-1].graphs, seen[-1].number, seen[-1].inputs) == (29, 4, 7)


@pytest.mark.usefixtures("ray", "scattered")
def test_killed_processes_cost_neither_rows_nor_bits(tmp_path, model, inputs, local, monkeypatch):
    marks, real = tmp_path / "marks", ray_engine.read_job
    marks.mkdir()

    def die(name):
        with contextlib.suppress(FileExistsError):  # only the first time, by whomever
            (marks / name).touch(exist_ok=False)
            os.kill(os.getpid(), signal.SIGKILL)

    def read_job(row, model, budget):
        for i, made in enumerate(real(row, model, budget)):
            yield made
            if i == 2:
                die("reader")

    class Fragile(ray_engine.Worker):
        def __init__(self, model, representation):
            super().__init__(model, representation)
            (marks / f"made-{os.getpid()}").touch()

        def __call__(self, row):
            chunk = pickle.loads(row["item"])
            made = super().__call__(row)
            if isinstance(chunk, ray_engine.Chunk) and chunk.name == "c.json" and chunk.first > 0:
                die("worker")
            return made

    monkeypatch.setattr(ray_engine, "read_job", read_job)
    monkeypatch.setattr(ray_engine, "Worker", Fragile)
    out = tmp_path / "out" / "z.npz"
    outcome = ray_engine.Cluster(2).work(Run(out, inputs, model, "plus"), lambda at: None, BATCH)
    names = {path.name for path in marks.iterdir()}
    assert {"reader", "worker"} <= names
    made = names - {"reader", "worker"}  # the model is loaded once a process, not once a chunk
    assert 2 <= len(made) <= 3
    assert_same(out, outcome, local)


@pytest.mark.usefixtures("ray")
def test_what_one_process_began_the_command_finishes_by_ray(
    tmp_path, model, inputs, local, monkeypatch
):
    checkpoint.save(model, tmp_path / "model")
    out, real = tmp_path / "out" / "z.npz", embedding_run.describe

    def break_off(model, graphs, representation, name, first=0):
        if "c.json" in name and first > 6:  # parts hold six graphs at most: two came before
            raise KeyboardInterrupt
        return real(model, graphs, representation, name, first)

    monkeypatch.setattr(embedding_run, "describe", break_off)
    begun = Run(out, [Input(entry.path, str(entry.path)) for entry in inputs], model, "plus")
    with pytest.raises(KeyboardInterrupt):
        begun.work(lambda at: None, BATCH)
    monkeypatch.undo()
    assert begun.finished(0) is not None
    assert begun.finished(2) is None
    assert len(begun.begun()[2]) >= 2
    words = [*(entry.path for entry in inputs), "--out", out, "--model", tmp_path / "model"]
    more = ["--engine", "ray", "--workers", "1", "--budget", "1"]
    done = CliRunner().invoke(app, ["embed", *map(str, words), *more])
    assert done.exit_code == 1
    assert done.output.count("left out") == len(BAD)
    assert f"29 graphs in {out}" in done.output
    found = embedding_table.read(out)
    for name, values in local[0].arrays().items():
        if name != "source":
            assert getattr(found, name).tobytes() == values.tobytes(), name


def items(inputs, model, begun=None, finished=lambda number: None):
    """What readers and workers give for all inputs, in order."""
    for number, entry in enumerate(inputs):
        if finished(number) is not None:
            continue
        kept = frozenset((begun or {}).get(number, ()))
        job = ray_engine._packed(ray_engine.Job(number, entry, kept))
        for item in map(ray_engine._unpacked, ray_engine.read_job(job, model, BATCH)):
            if isinstance(item, ray_engine.Chunk):
                rows = embedding_run.describe(model, item.graphs, "plus", item.name, item.first)
                count = len(item.graphs)
                yield ray_engine.Part(number, item.first, count, rows, ray_engine.maker())
            else:
                yield item


@pytest.mark.parametrize("seed", range(6))
def test_the_order_in_which_parts_come_does_not_matter(tmp_path, model, inputs, local, seed):
    run = Run(tmp_path / "out" / "z.npz", inputs, model, "plus")
    books, coming = ray_engine._Books(run, lambda at: None), list(items(inputs, model))
    coming += coming[::3] if seed % 2 else []  # and what comes twice counts once
    for i in np.random.default_rng(seed).permutation(len(coming)):
        books.take(coming[i])
    assert_same(run.out, run.join(books.outcome()), local)


@pytest.mark.parametrize("seed", range(4))
def test_a_run_broken_off_at_any_point_goes_on(tmp_path, model, inputs, local, seed):
    rng, out = np.random.default_rng(seed), tmp_path / "out" / "z.npz"
    run, coming = Run(out, inputs, model, "plus"), list(items(inputs, model))
    run.cut_by(BATCH)
    books = ray_engine._Books(run, lambda at: None)
    for i in rng.permutation(len(coming))[: len(coming) * 2 // 3]:
        books.take(coming[i])
    again = Run(out, inputs, model, "plus")
    if seed % 2:
        assert_same(out, again.work(lambda at: None, BATCH), local)
        return
    books = ray_engine._Books(again, lambda at: None)
    left = list(items(inputs, model, again.begun(), again.finished))
    for i in rng.permutation(len(left)):
        books.take(left[i])
    assert sum(isinstance(item, ray_engine.Part) and item.rows is not None for item in left) < 10
    assert_same(out, again.join(books.outcome()), local)


def test_an_input_whose_parts_are_not_all_there_is_no_end(tmp_path, model, inputs):
    run = Run(tmp_path / "z.npz", inputs, model, "plus")
    books, coming = ray_engine._Books(run, lambda at: None), list(items(inputs, model))
    for item in coming[:-1]:
        books.take(item)
    with pytest.raises(ray_session.ClusterError, match="run the same command again"):
        books.outcome()
    assert run.finished(len(inputs) - 1) is None
    assert run.finished(0) == {"graphs": 7, "width": 0}


def test_graphs_that_are_embedded_already_are_not_sent(model, inputs):
    sent = list(items(inputs[:1], model))
    firsts = [item.first for item in sent[1:]]
    assert len(firsts) > 2
    again = list(items(inputs[:1], model, {0: firsts[:2]}))
    assert [item.rows is None for item in again[1:]] == [True, True] + [False] * len(firsts[2:])
    assert [item.graphs for item in again[1:]] == [item.graphs for item in sent[1:]]


def test_workers_are_heard(tmp_path, model, inputs):
    (tmp_path / "loop.csv").write_text("0,0\n0,1\n")
    entry = Input(tmp_path / "loop.csv", "loop.csv")
    found, part = items([entry], model)
    run = Run(tmp_path / "z.npz", [entry], model, "plus")
    books = ray_engine._Books(run, lambda at: None)
    with pytest.warns(artlas.GraphCleaningWarning, match="self-loops dropped: 1"):
        books.take(found)
    other = ray_engine.Part(0, 0, part.graphs, part.rows, "artlas 0.0.1 with avx2 kernels")
    with pytest.warns(RuntimeWarning, match=r"artlas 0\.0\.1 with avx2.* not to the bit"):
        books.take(other)
    unseen = ray_engine.Found(0, error=f"{entry.path}: nothing there", there=False)
    books = ray_engine._Books(Run(tmp_path / "y.npz", [entry], model, "plus"), lambda at: None)
    books.take(unseen)
    assert "storage that all machines" in books.outcome().failures["loop.csv"]


def test_a_ray_that_gives_up_or_is_not_there_is_explained(ray):
    trace = "trace\nMemoryError: 9 GB\n\nThe above exception was the direct cause of ...\nadvice"
    with (
        pytest.raises(ray_session.ClusterError, match=r"up: MemoryError: 9 GB\. What is done"),
        ray_session._explained(),
    ):
        raise ray.exceptions.RayError(trace)
    with pytest.raises(OSError, match="No space"), ray_session._explained():
        raise OSError("No space left on device")
    with pytest.raises(ConnectionRefusedError):
        ray_session._knock("127.0.0.1:1")


def test_without_ray_it_says_what_to_install(monkeypatch, tmp_path):
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


def test_import_does_not_load_ray():
    code = "import sys, artlas, artlas.cli, artlas.embedding.ray_engine; sys.exit('ray' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
