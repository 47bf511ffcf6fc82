"""artlas embed and artlas info."""

from __future__ import annotations

import resource
import signal
import subprocess
import sys
import textwrap
import time
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from typer.testing import CliRunner

import artlas
from artlas.cli import app
from artlas.embedding import table

RUNNER = CliRunner()


def run(*words, **more):
    return RUNNER.invoke(app, [str(word) for word in words], **more)


@pytest.fixture
def triangle(tmp_path):
    (tmp_path / "t.csv").write_text("0,1\n1,2\n2,0\n")
    return tmp_path / "t.csv"


def test_a_file_and_standard_input_give_the_same(tmp_path, triangle):
    one, two = tmp_path / "one.parquet", tmp_path / "two.parquet"
    done = run("embed", triangle, "--out", one)
    assert done.exit_code == 0
    assert f"1 graphs in {one}" in done.output
    done = run("embed", "-", "--out", two, "--quiet", input=triangle.read_text())
    assert (done.exit_code, done.output) == (0, "")
    a, b = table.read(one), table.read(two)
    assert (a.z == b.z).all()
    assert b.source.tolist() == ["-"]
    assert a.z.shape == (1, 3912)


def test_a_folder_is_all_its_files(tmp_path, triangle):
    folder = tmp_path / "many"
    folder.mkdir()
    for name in ("b.csv", "a.csv"):
        (folder / name).write_bytes(triangle.read_bytes())
    (folder / "broken.graphml").write_text("<graphml")
    out = tmp_path / "z.npz"
    done = run("embed", folder, "--out", out, "--representation", "coordinates")
    assert done.exit_code == 1
    assert "left out" in done.output
    assert "broken.graphml" in done.output
    assert table.read(out).source.tolist() == ["many/a.csv", "many/b.csv"]


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("bad.csv", b"0,1\n1,2\n2\n", "line 3"),
        ("bad.csv", b"0,1\n\xff\xfe,2\n", "UTF-8"),
        ("bad.json", b'{"nodes": [{"id": 0}], "links": [{"source": 0}]}', "bad.json"),
        ("bad.mtx", b"%%MatrixMarket matrix coordinate real general\n2 2 1\n1 9 1\n", "line 3"),
        ("bad.csv.gz", b"\x1f\x8b\x08\x00cut off", "cannot be unpacked"),
        ("bad.xyz", b"whatever", "tells no format"),
        ("gone.csv", None, "not a file"),
    ],
)
def test_an_input_that_cannot_be_read_is_left_out(tmp_path, triangle, name, content, told):
    """The others are embedded, and the command exits with 1."""
    bad, other, out = tmp_path / name, tmp_path / "other.csv", tmp_path / "z.parquet"
    other.write_text("a,b\nb,c\n")
    if content is not None:
        bad.write_bytes(content)
    done = run("embed", triangle, bad, other, "--out", out, "--quiet")
    assert done.exit_code == 1
    assert f"left out: {bad}" in done.output
    assert told in done.output
    assert table.read(out).source.tolist() == [str(triangle), str(other)]
    assert [path for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_no_table_without_a_readable_input(tmp_path):
    (tmp_path / "bad.csv").write_text("0\n")
    done = run("embed", tmp_path / "bad.csv", "--out", tmp_path / "z.parquet")
    assert done.exit_code == 1
    assert [path.name for path in tmp_path.iterdir()] == ["bad.csv"]


@pytest.fixture
def forty(tmp_path):
    """Forty graphs of three hundred nodes, of which two fit into a megabyte."""
    rng, folder = np.random.default_rng(0), tmp_path / "T"
    folder.mkdir()
    edges = [300 * g + 1 + rng.permuted(np.arange(300))[:2] for g in range(40) for _ in range(400)]
    (folder / "T_A.txt").write_text("".join(f"{u}, {v}\n{v}, {u}\n" for u, v in edges))
    (folder / "T_graph_indicator.txt").write_text(
        "".join(f"{i // 300 + 1}\n" for i in range(12000))
    )
    return folder


# artlas in a process of its own; from the eighth batch on they take long, and say so by a file
SLOW = """
    import sys, threading, time
    from pathlib import Path
    from artlas.embedding import run
    from artlas.cli import main

    mark, real, made, lock = sys.argv.pop(1), run.embed_piece, [], threading.Lock()

    def embed_piece(*words):
        with lock:
            made.append(1)
            late = len(made) >= 8
        if late:
            Path(mark).touch()
            time.sleep(0.5)
        return real(*words)

    if mark:
        run.embed_piece = embed_piece
    main()
"""


def command(script, *words):
    return [sys.executable, "-W", "ignore", "-c", textwrap.dedent(script), *map(str, words)]


@pytest.mark.slow
def test_ctrl_c_saves_finished_rows(tmp_path, forty):
    whole, out, mark = tmp_path / "whole.parquet", tmp_path / "z.parquet", tmp_path / "mark"
    words = ["embed", forty, "--budget", "1", "--out"]
    subprocess.run(command(SLOW, "", *words, whole), check=True, timeout=100)
    broken = subprocess.Popen(
        command(SLOW, mark, *words, out),
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),  # as in a terminal
    )
    for _ in range(6000):
        if mark.exists() or broken.poll() is not None:
            break
        time.sleep(0.01)
    broken.send_signal(signal.SIGINT)
    _, told = broken.communicate(timeout=100)
    assert broken.returncode == 130
    assert told == "Stopped by Ctrl-C. Finished work is kept; rerun the command to resume.\n"
    assert not out.exists()
    parts = sorted((tmp_path / ".z.parquet.parts").glob("*.npz"))
    assert 1 <= len(parts) < 20
    mark.unlink()
    subprocess.run(command(SLOW, "", *words, out), check=True, timeout=100)
    assert out.read_bytes() == whole.read_bytes()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["T", "whole.parquet", "z.parquet"]


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["parquet", "npz", "csv"])
def test_a_full_disk_is_reported_and_the_run_resumes(tmp_path, forty, ending):
    """Files are limited to 4 KB: the table does not fit, and no part of it appears."""
    whole, out = tmp_path / f"whole.{ending}", tmp_path / f"z.{ending}"
    words = ["embed", forty, "--representation", "coordinates", "--out"]
    subprocess.run(command(SLOW, "", *words, whole), check=True, timeout=100)
    limit = partial(resource.setrlimit, resource.RLIMIT_FSIZE, (4 << 10, 4 << 10))
    full = subprocess.run(
        command(SLOW, "", *words, out),
        preexec_fn=limit,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert full.returncode == 1
    assert full.stderr.startswith("Writing failed: [Errno 27]")
    assert "rerun the command to resume." in full.stderr.replace("\n", " ")
    assert full.stderr.count("\n") == 1
    assert not out.exists()
    subprocess.run(command(SLOW, "", *words, out), check=True, timeout=100)
    assert out.read_bytes() == whole.read_bytes()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["T", whole.name, out.name]


def test_an_interrupted_run_on_standard_input_resumes(tmp_path, monkeypatch):
    """The temporary copy has another name and date each time; its bytes identify it."""
    text, out = "0,1\n1,2\n2,0\n", tmp_path / "z.npz"

    def stop(*words):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("artlas.embedding.run.embed_piece", stop)
        assert run("embed", "-", "--out", out, input=text).exit_code == 130
    assert run("embed", "-", "--out", out, input=text + "3,4\n").exit_code == 1  # another input
    assert not out.exists()
    assert run("embed", "-", "--out", out, input=text).exit_code == 0
    assert len(table.read(out)) == 1


def test_time_left_is_shown(tmp_path, triangle, monkeypatch):
    told = []

    class Bar:
        """Stands in for rich's Progress."""

        def __init__(self, *columns, **options):
            self.tasks = [SimpleNamespace(elapsed=8.0)]

        def __enter__(self):
            return self

        def __exit__(self, *words):
            pass

        def add_task(self, *words, **fields):
            return 0

        def update(self, task, **fields):
            graphs = int(fields["speed"].split()[0])
            told.append((round(fields["completed"], 2), fields["left"], graphs))

    monkeypatch.setattr("artlas.cli.table_runs.Progress", Bar)
    for name in "abc":
        (tmp_path / f"{name}.csv").write_bytes(triangle.read_bytes())
    files = [tmp_path / f"{name}.csv" for name in "abc"]
    assert run("embed", triangle, *files, "--out", tmp_path / "z.npz").exit_code == 0
    assert told == [
        (0.25, "0:00:24 left", 1),
        (0.5, "0:00:08 left", 2),
        (0.75, "0:00:03 left", 3),
        (1.0, "0:00:00 left", 4),
    ]


def test_errors_say_what_to_do(tmp_path, triangle):
    done = run("embed", triangle, "--out", tmp_path / "z.xls")
    assert done.exit_code == 1
    assert ".parquet, .npz, .csv" in done.output
    done = run("embed", triangle, "--out", tmp_path / "z.npz", "--model", "none")
    assert done.exit_code == 1
    assert "graph, graph-few-roles, node" in done.output


def test_info(tmp_path):
    done = run("info", "node")
    assert done.exit_code == 0
    assert "52,034 weights" in done.output
    assert "Cora: 1895 graphs" in done.output
    assert "limits: " in done.output
    artlas.method.checkpoint.save(artlas.ART(artlas.ArtConfig(bases=2)), tmp_path / "own")
    assert "bases: 2" in run("info", tmp_path / "own").output
    assert run("info", tmp_path).exit_code == 1
