"""artlas embed and artlas info."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

import artlas
from artlas import vectors
from artlas.cli import app

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
    a, b = vectors.read(one), vectors.read(two)
    assert (a.z == b.z).all()
    assert b.source.tolist() == ["-"]
    assert a.z.shape == (1, 4 * 32)


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
    assert vectors.read(out).source.tolist() == ["many/a.csv", "many/b.csv"]


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
    artlas.checkpoint.save(artlas.ART(artlas.ArtConfig(bases=2)), tmp_path / "own")
    assert "bases: 2" in run("info", tmp_path / "own").output
    assert run("info", tmp_path).exit_code == 1
