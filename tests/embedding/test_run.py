"""Tables of vectors: their content, interrupted runs, inputs that cannot be used."""

from __future__ import annotations

import csv
import errno
import os
import signal
import subprocess
import sys
import textwrap
import threading
import weakref

import numpy as np
import pytest
import torch
from cases import from_dense, random_dense

import artlas
from artlas.embedding import run as embedding_run
from artlas.embedding import table as embedding_table
from artlas.embedding import table_run
from artlas.embedding.pieces import Input
from artlas.embedding.run import Run
from artlas.errors import ReadError
from artlas.method import checkpoint

SMALL = artlas.ArtConfig(bases=3, roles=4, hidden=16)
BATCH = 20_000  # bytes: a few graphs at a time


@pytest.fixture
def model():
    return artlas.ART(SMALL).eval()


@pytest.fixture
def inputs(tmp_path):
    """Three files of one, two and one graphs."""
    (tmp_path / "a.csv").write_text("0,1\n1,2\n2,0\n2,3\n")
    (tmp_path / "b.json").write_text(
        '[{"nodes": [{"id": 0}, {"id": 1}], "links": [{"source": 0, "target": 1}]},'
        ' {"nodes": [{"id": 0}, {"id": 1}, {"id": 2}], "links": [{"source": 0, "target": 2}]}]'
    )
    (tmp_path / "c.csv").write_text("x,y\ny,z\n")
    return [Input(tmp_path / name, name) for name in ("a.csv", "b.json", "c.csv")]


@pytest.fixture
def one_thread():
    """Embed pieces one after the other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def embed(out, inputs, model, representation="plus", budget=BATCH):
    return Run(out, inputs, model, representation, budget).embed(lambda at: None)


def write_tu(folder, sizes, labels, seed=0):
    """Write a folder in TU layout: random graphs of the given sizes, with labels."""
    rng = np.random.default_rng(seed)
    folder.mkdir()
    graphs = from_dense([random_dense(n, 0.3, rng) for n in sizes])
    source = np.repeat(np.arange(graphs.num_nodes), graphs.row_ptr.diff())
    edges = zip(source.tolist(), graphs.col.tolist(), strict=True)
    owner = np.repeat(np.arange(len(sizes)), sizes)
    for kind, lines in {
        "A": [f"{u + 1}, {v + 1}" for u, v in edges],
        "graph_indicator": (owner + 1).tolist(),
        "graph_labels": labels,
    }.items():
        text = "".join(f"{line}\n" for line in lines)
        (folder / f"{folder.name}_{kind}.txt").write_text(text)
    return Input(folder, folder.name)


@pytest.mark.parametrize("representation", ["plus", "paper", "coordinates", "plus-no-roles"])
@pytest.mark.parametrize("ending", ["parquet", "npz"])
def test_rows_equal_the_models_vectors(tmp_path, model, inputs, representation, ending):
    out = tmp_path / "out" / f"z.{ending}"
    outcome = embed(out, inputs, model, representation)
    assert outcome.graphs == 4
    assert not outcome.failures
    table = embedding_table.read(out)
    assert table.source.tolist() == ["a.csv", "b.json", "b.json", "c.csv"]
    assert table.index.tolist() == [0, 0, 1, 0]
    assert (table.label == embedding_table.UNLABELLED).all()
    at = 0
    for entry in inputs:
        graphs = artlas.read(entry.path, verbose=False)
        rows = slice(at, at + len(graphs))
        np.testing.assert_array_equal(table.z[rows], model.embed(graphs, representation))
        found = model.align(graphs)
        np.testing.assert_array_equal(table.energies[rows], found.energies)
        np.testing.assert_array_equal(table.coverage[rows], found.coverage)
        np.testing.assert_array_equal(table.residual[rows], found.residuals.amax(1))
        at += len(graphs)
    assert len(table.facts["names"]) == table.z.shape[1]
    assert table.facts["weights"] == checkpoint.weights_hash(model)
    assert [path.name for path in out.parent.iterdir()] == [out.name]


def test_labels_are_kept_and_missing_ones_are_empty(tmp_path, model):
    rng = np.random.default_rng(0)
    graphs = from_dense([random_dense(6, 0.4, rng) for _ in range(3)])
    labelled = embedding_run.embed_piece(model, graphs.with_labels([7, 0, 2]), "coordinates", "one")
    bare = embedding_run.embed_piece(model, graphs, "coordinates", "two", first=5)
    for ending in ("parquet", "npz"):
        embedding_table.write(tmp_path / f"z.{ending}", [labelled, bare])
        table = embedding_table.read(tmp_path / f"z.{ending}")
        assert table.label.tolist() == [7, 0, 2] + 3 * [embedding_table.UNLABELLED]
        assert table.index.tolist() == [0, 1, 2, 5, 6, 7]
    embedding_table.write(tmp_path / "z.csv", [labelled, bare])
    with open(tmp_path / "z.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["label"] for row in rows] == ["7", "0", "2", "", "", ""]
    assert [np.float32(row["q_1"]) for row in rows] == [*labelled.z[:, 1], *bare.z[:, 1]]
    assert [np.float32(row["e_2"]) for row in rows] == [*labelled.energies[:, 2]] * 2


@pytest.mark.parametrize("ending", ["parquet", "npz", "csv"])
@pytest.mark.usefixtures("one_thread")
def test_an_interrupted_run_resumes_to_the_same_file(tmp_path, model, inputs, monkeypatch, ending):
    whole = tmp_path / f"whole.{ending}"
    embed(whole, inputs, model, "plus", 1)
    out, real, made = tmp_path / f"z.{ending}", embedding_run.embed_piece, []

    def interrupting(*words):
        if len(made) == 2:
            raise KeyboardInterrupt
        made.append(words)
        return real(*words)

    monkeypatch.setattr(embedding_run, "embed_piece", interrupting)
    with pytest.raises(KeyboardInterrupt):
        embed(out, inputs, model, "plus", 1)
    assert not out.exists()
    made.clear()
    made.append(None)  # one more piece is embedded before the next interruption
    with pytest.raises(KeyboardInterrupt):
        embed(out, inputs, model, "plus", 1)
    monkeypatch.setattr(
        embedding_run, "embed_piece", lambda *words: made.append(words) or real(*words)
    )
    made.clear()
    assert embed(out, inputs, model, "plus", 1).graphs == 4
    assert len(made) == 1  # the other three were saved
    assert out.read_bytes() == whole.read_bytes()
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


@pytest.mark.slow
def test_a_killed_run_keeps_its_saved_parts(tmp_path, inputs):
    """SIGKILL at the fourth piece: the three before it are on disk."""
    script = """
        import os, signal, sys, time
        from pathlib import Path
        import torch, artlas
        from artlas.embedding import run, run_state
        from artlas.embedding.pieces import Input
        from artlas.embedding.run import Run

        folder, killed = Path(sys.argv[1]), sys.argv[2] == "killed"
        torch.set_num_threads(1)
        run_state.SAVE_BYTES, real, made = 1, run.embed_piece, []

        def embed_piece(*words):
            if killed and len(made) == 3:
                while len(list(folder.glob(".z.npz.parts/*.npz"))) < 3:
                    time.sleep(0.01)
                os.kill(os.getpid(), signal.SIGKILL)
            made.append(words)
            return real(*words)

        run.embed_piece = embed_piece
        model = artlas.ART(artlas.ArtConfig(bases=3, roles=4, hidden=16)).eval()
        inputs = [Input(folder / name, name) for name in ("a.csv", "b.json", "c.csv")]
        Run(folder / "z.npz", inputs, model, "plus", 1).embed(lambda at: None)
        print(len(made))
    """
    words = [sys.executable, "-c", textwrap.dedent(script), str(tmp_path)]
    assert subprocess.run([*words, "killed"], timeout=100).returncode == -signal.SIGKILL
    assert not (tmp_path / "z.npz").exists()
    done = subprocess.run([*words, "again"], capture_output=True, text=True, check=True)
    assert int(done.stdout) == 1
    assert embedding_table.read(tmp_path / "z.npz").source.tolist() == [
        "a.csv",
        "b.json",
        "b.json",
        "c.csv",
    ]
    assert not (tmp_path / ".z.npz.parts").exists()


def interrupt(out, inputs, model, pieces, monkeypatch):
    """Interrupt a run after so many pieces of one graph each."""
    real, made = embedding_run.embed_piece, []

    def embed_piece(*words):
        if len(made) == pieces:
            raise KeyboardInterrupt
        made.append(words)
        return real(*words)

    with monkeypatch.context() as patch:
        patch.setattr(embedding_run, "embed_piece", embed_piece)
        with pytest.raises(KeyboardInterrupt):
            embed(out, inputs, model, "plus", 1)


@pytest.mark.usefixtures("one_thread")
def test_a_run_resumes_with_another_budget(tmp_path, model, monkeypatch):
    inputs = [write_tu(tmp_path / "T", [6] * 8, range(8))]
    whole, out = tmp_path / "whole.npz", tmp_path / "z.npz"
    embed(whole, inputs, model, "plus")
    interrupt(out, inputs, model, 2, monkeypatch)
    assert embed(out, inputs, model, "plus", 3 * 6 * 4 * (6 * 16 + 12)).graphs == 8
    assert out.read_bytes() == whole.read_bytes()


@pytest.mark.parametrize("damage", ["cut", "empty", "lost", "empty note", "empty budget"])
@pytest.mark.usefixtures("one_thread")
def test_files_damaged_by_a_crash_are_made_again(tmp_path, model, inputs, monkeypatch, damage):
    whole, out = tmp_path / "whole.npz", tmp_path / "z.npz"
    embed(whole, inputs, model, "plus")
    interrupt(out, inputs, model, 3, monkeypatch)
    folder = tmp_path / ".z.npz.parts"
    assert sorted(path.name for path in folder.iterdir()) == [
        "000000-000000000000.npz",
        "000000.json",
        "000001-000000000000.npz",
        "000001-000000000001.npz",
        "000001.json",
        "budget.json",
        "manifest.json",
    ]
    part = folder / "000001-000000000000.npz"
    if damage == "cut":
        part.write_bytes(part.read_bytes()[:-40])
    elif damage == "empty":
        part.write_bytes(b"")
    elif damage == "lost":
        part.unlink()
    else:
        (folder / ("000001.json" if damage == "empty note" else "budget.json")).write_bytes(b"")
    assert embed(out, inputs, model, "plus", 1).graphs == 4
    assert out.read_bytes() == whole.read_bytes()


def test_an_empty_manifest_starts_a_new_run(tmp_path, model, inputs):
    folder = tmp_path / ".z.npz.parts"
    folder.mkdir()
    (folder / "manifest.json").write_bytes(b"")
    (folder / "000000-000000000000.npz").write_bytes(b"of nobody")
    assert embed(tmp_path / "z.npz", inputs, model, "plus").graphs == 4


@pytest.mark.parametrize("threads", [1, 3])
def test_small_inputs_are_embedded_together(tmp_path, model, monkeypatch, threads):
    """With the same rows, labels of their own, and as many calls as batches."""
    inputs = [
        write_tu(tmp_path / "a", [5, 9], [1, 0], seed=0),
        write_tu(tmp_path / "b", [70], [0], seed=1),
        write_tu(tmp_path / "c", [4, 2, 4], [2, 0, 1], seed=2),
    ]
    calls, real, before = [], embedding_run.embed_piece, torch.get_num_threads()

    def embed_piece(*words):
        calls.append(len(words[1]))
        return real(*words)

    monkeypatch.setattr(embedding_run, "embed_piece", embed_piece)
    torch.set_num_threads(threads)
    try:
        embed(tmp_path / "z.npz", inputs, model, "plus", 80 * 4 * (6 * 16 + 12))
        embed(tmp_path / "one.npz", inputs, model, "plus", 1)
        assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)
    assert sorted(calls) == [1] * 6 + [2, 4]  # a alone, for b would be too much; then b and c
    table = embedding_table.read(tmp_path / "z.npz")
    assert table.source.tolist() == ["a", "a", "b", "c", "c", "c"]
    assert table.index.tolist() == [0, 1, 0, 0, 1, 2]
    assert table.label.tolist() == [1, 0, 0, 2, 0, 1]
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "z.npz").read_bytes()


def test_progress_is_the_share_of_the_bytes(tmp_path, model, monkeypatch):
    inputs = [
        write_tu(tmp_path / "a", [6] * 4, range(4)),
        write_tu(tmp_path / "b", [6] * 4, range(4)),
    ]
    seen = []
    Run(tmp_path / "z.npz", inputs, model, "plus", 1).embed(seen.append)
    assert [at.graphs for at in seen] == list(range(1, 9))
    np.testing.assert_allclose([at.share for at in seen], np.arange(1, 9) / 8, rtol=0.05)
    assert seen[-1].share == 1
    assert {at.resumed for at in seen} == {0}
    assert seen[1].seconds_left(10.0) == pytest.approx(30.0, rel=0.1)
    assert seen[-1].seconds_left(10.0) == 0
    interrupt(tmp_path / "z.npz", inputs, model, 2, monkeypatch)
    seen.clear()
    Run(tmp_path / "z.npz", inputs, model, "plus", 1).embed(seen.append)
    assert seen[0].seconds_left(10.0) is None  # saved by the run before: no new row yet
    there = sum(at.resumed == at.share for at in seen)
    assert there >= 1
    at = seen[there]  # the first new row
    assert at.seconds_left(1.0) == pytest.approx(8 - there - 1, rel=0.1)


def test_rounding_errors_are_no_progress():
    """Else a resumed run would have ages left, more than a date can say."""
    at = table_run.Progress(1, "a", 0, 2, share=0.1 + 0.2, resumed=0.3)
    assert at.share > at.resumed
    assert at.seconds_left(1.0) is None


def test_a_table_is_written_while_rows_come(tmp_path, model, monkeypatch):
    """No more than a row group and a few pieces are in memory."""
    graphs = from_dense([random_dense(6, 0.4, np.random.default_rng(g)) for g in range(64)])
    whole = embedding_run.embed_piece(model, graphs, "plus", "all")
    monkeypatch.setattr(embedding_table, "ROW_GROUP_BYTES", 4 * whole.nbytes // len(whole))
    alive, most = weakref.WeakSet(), 0

    def rows():
        nonlocal most
        for g in range(64):
            made = whole.slice(g, g + 1).replace(z=whole.z[g : g + 1].copy())
            alive.add(made)
            most = max(most, len(alive))
            yield made
            del made

    assert embedding_table.write(tmp_path / "z.parquet", rows()) == 64
    assert most <= 3
    table = embedding_table.read(tmp_path / "z.parquet")
    for name, values in whole.columns.items():
        np.testing.assert_array_equal(table.columns[name], values)
    embedding_table.write(tmp_path / "one.parquet", [whole])
    assert (tmp_path / "one.parquet").read_bytes() == (tmp_path / "z.parquet").read_bytes()


def test_a_copied_input_is_identified_by_its_bytes(tmp_path):
    (tmp_path / "a").write_text("0,1\n")
    one, two = (Input(tmp_path / "a", "-", None, digest) for digest in ("abc", "def"))
    before = one.fingerprint()
    os.utime(tmp_path / "a", ns=(1, 1))
    assert one.fingerprint() == before != two.fingerprint()


def test_parts_of_another_run_are_not_mixed_in(tmp_path, model, inputs, monkeypatch):
    def stop(*words):
        raise KeyboardInterrupt

    out, real = tmp_path / "z.npz", embedding_run.embed_piece
    monkeypatch.setattr(embedding_run, "embed_piece", stop)
    with pytest.raises(KeyboardInterrupt):
        embed(out, inputs, model, "plus")
    monkeypatch.setattr(embedding_run, "embed_piece", real)
    with pytest.raises(ReadError, match=r"other inputs or settings.* delete .*z\.npz\.parts"):
        Run(out, inputs, model, "paper")
    inputs[0].path.write_text("0,1\n")
    with pytest.raises(ReadError, match="other inputs or settings"):
        Run(out, inputs, model, "plus")


def test_bad_inputs_are_named_and_the_rest_is_embedded(tmp_path, model, inputs):
    (tmp_path / "bad.json").write_text("{")
    (tmp_path / "wide.json").write_text(
        '{"nodes": [{"id": 0, "mass": 1.5, "size": 2.5}, {"id": 1, "mass": 0.5, "size": 1}], '
        '"links": [{"source": 0, "target": 1}]}'
    )
    names = ["bad.json", "wide.json", "missing.csv"]
    more = [*inputs, *(Input(tmp_path / name, name) for name in names)]
    outcome = embed(tmp_path / "z.npz", more, model, "plus")
    assert list(outcome.failures) == names
    assert "line 1" in outcome.failures["bad.json"]
    assert "2 features, those of a.csv have 0" in outcome.failures["wide.json"]
    assert len(embedding_table.read(tmp_path / "z.npz")) == outcome.graphs == 4


def test_a_full_disk_loses_nothing(tmp_path, model, inputs, monkeypatch):
    real = embedding_table.write

    def full(path, parts, **more):
        if path.name == "z.npz":
            assert sum(map(len, parts)) == 4
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(path, parts, **more)

    monkeypatch.setattr(embedding_table, "write", full)
    with pytest.raises(OSError, match="No space left"):
        embed(tmp_path / "z.npz", inputs, model, "plus")
    assert not (tmp_path / "z.npz").exists()
    assert not [t.name for t in threading.enumerate() if t.name.startswith("artlas")]
    monkeypatch.setattr(embedding_table, "write", real)
    monkeypatch.setattr(embedding_run, "embed_piece", None)  # nothing is left to embed
    assert embed(tmp_path / "z.npz", inputs, model, "plus").graphs == 4


def test_files_that_are_no_tables_are_refused(tmp_path, model, inputs):
    with pytest.raises(ReadError, match=r"no format.*'\.txt'.*\.parquet"):
        Run(tmp_path / "z.txt", inputs, model, "plus")
    with pytest.raises(ValueError, match="Unknown representation"):
        Run(tmp_path / "z.npz", inputs, model, "best")
    with pytest.raises(ReadError, match="no such file"):
        embedding_table.read(tmp_path / "z.npz")
    np.savez(tmp_path / "other.npz", a=np.ones(3))
    with pytest.raises(ReadError, match="not a table of vectors"):
        embedding_table.read(tmp_path / "other.npz")
    (tmp_path / "junk.parquet").write_bytes(b"PAR1junk")
    with pytest.raises(ReadError, match="not a table of vectors"):
        embedding_table.read(tmp_path / "junk.parquet")
