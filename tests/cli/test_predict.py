"""artlas predict: the rows, resumed runs, failures, and what is said about labels."""

from __future__ import annotations

import csv
import json
import signal
import subprocess
import sys
import textwrap
import time
from functools import partial

import numpy as np
import pytest
from typer.testing import CliRunner

import artlas
from artlas.cli import app
from artlas.embedding.pieces import Input
from artlas.embedding.table_run import TableRun
from artlas.learning.prediction import Prediction

RUNNER = CliRunner()
CLASSES = ["ring", "path"] * 10


def run(*words, **more):
    return RUNNER.invoke(app, [str(word) for word in words], **more)


def graph(n, closed, **more):
    links = [{"source": i, "target": i + 1} for i in range(n - 1)]
    links += [{"source": n - 1, "target": 0}] * closed
    return {"nodes": [{"id": i} for i in range(n)], "links": links, **more}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Rings and paths in turn, a classifier by names, one by numbers, and a regressor of sizes."""
    folder = tmp_path_factory.mktemp("fitted")
    made = [graph(4 + i // 2, name == "ring", y=i % 2) for i, name in enumerate(CLASSES)]
    (folder / "graphs.json").write_text(json.dumps(made))
    sizes = [{**g, "y": len(g["nodes"]) + 0.5} for g in made]
    (folder / "sized.json").write_text(json.dumps(sizes))
    graphs = artlas.read(folder / "graphs.json", verbose=False)
    artlas.GraphClassifier().fit(graphs, CLASSES).save(folder / "names")
    artlas.GraphClassifier().fit(graphs).save(folder / "numbers")
    artlas.GraphRegressor().fit(artlas.read(folder / "sized.json", verbose=False)).save(
        folder / "sizes"
    )
    return folder


def rows_of(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def test_rows_are_the_estimators_predictions(tmp_path, folder):
    done = run("predict", folder / "names", folder / "graphs.json", "--out", tmp_path / "p.csv")
    assert done.exit_code == 0, done.output
    assert f"20 graphs in {tmp_path / 'p.csv'}" in done.output
    assert "The labels of the input are none of the estimator's classes" in done.output
    estimator = artlas.GraphClassifier.load(folder / "names")
    graphs, rows = artlas.read(folder / "graphs.json", verbose=False), rows_of(tmp_path / "p.csv")
    names = ["source", "index", "label", "prediction", "p_path", "p_ring", "novelty", "outside"]
    assert list(rows[0]) == names
    assert [row["prediction"] for row in rows] == estimator.predict(graphs).tolist()
    assert [row["label"] for row in rows] == ["0", "1"] * 10
    shares = [[float(row["p_path"]), float(row["p_ring"])] for row in rows]
    np.testing.assert_allclose(shares, estimator.predict_proba(graphs), atol=1e-6)
    novelty = [float(row["novelty"]) for row in rows]
    np.testing.assert_allclose(novelty, estimator.novelty(graphs), atol=1e-6)
    assert {row["outside"] for row in rows} == {"False"}
    assert [path.name for path in tmp_path.iterdir()] == ["p.csv"]


def test_parquet_and_npz_have_the_same_columns(tmp_path, folder):
    parquet = pytest.importorskip("pyarrow.parquet")
    for ending in ("parquet", "npz"):
        words = folder / "numbers", folder / "graphs.json", "--out", tmp_path / f"p.{ending}"
        assert "Accuracy 1.000 over 20 graphs with labels." in run("predict", *words).output
    table, arrays = parquet.read_table(tmp_path / "p.parquet"), np.load(tmp_path / "p.npz")
    assert table.column_names == [name for name in arrays.files if name != "facts"]
    for name in table.column_names:
        assert table.column(name).to_pylist() == arrays[name].tolist()
    facts = json.loads(table.schema.metadata[b"artlas"])
    assert facts["estimator"] == "GraphClassifier"
    assert table.schema.field("outside").type == "bool"
    assert arrays["prediction"].dtype == arrays["label"].dtype == np.int64


def test_numbers_are_predicted_by_a_regressor(tmp_path, folder):
    words = folder / "sizes", folder / "sized.json", folder / "graphs.json"
    done = run("predict", *words[:2], "--out", tmp_path / "p.csv")
    assert "R² 0.9" in done.output or "R² 1.0" in done.output
    assert "over 20 graphs with labels." in done.output
    rows = rows_of(tmp_path / "p.csv")
    assert list(rows[0]) == ["source", "index", "label", "prediction", "novelty", "outside"]
    assert [float(row["label"]) for row in rows] == [4.5 + i // 2 for i in range(20)]
    (tmp_path / "bare.json").write_text(json.dumps([graph(5, True)]))
    bare = run("predict", words[0], tmp_path / "bare.json", "--out", tmp_path / "q.npz")
    assert "labels" not in bare.output
    assert np.isnan(np.load(tmp_path / "q.npz")["label"]).all()


def test_labels_that_are_no_class_count_as_wrong(tmp_path, folder):
    made = [graph(6, True, y=0), graph(6, False, y=1), graph(7, True, y=7)]
    (tmp_path / "g.json").write_text(json.dumps(made))
    done = run("predict", folder / "numbers", tmp_path / "g.json", "--out", tmp_path / "p.csv")
    said = "Accuracy 0.667 over 3 graphs with labels; 1 of the labels are none of the classes"
    assert said in done.output


def test_a_graph_far_away_lies_outside(tmp_path, folder):
    clique = graph(40, False)
    clique["links"] = [{"source": i, "target": j} for i in range(40) for j in range(i)]
    (tmp_path / "g.json").write_text(json.dumps([graph(6, True), clique]))
    done = run("predict", folder / "names", tmp_path / "g.json", "--out", tmp_path / "p.csv")
    assert "1 graph lies outside what the estimator has seen." in done.output
    rows = rows_of(tmp_path / "p.csv")
    assert [row["outside"] for row in rows] == ["False", "True"]
    assert [row["label"] for row in rows] == ["", ""]


def test_files_that_cannot_be_used_are_left_out(tmp_path, folder):
    (tmp_path / "bad.json").write_text("{")
    wide = {"nodes": [{"id": 0, "mass": 1.5}], "links": []}
    (tmp_path / "wide.json").write_text(json.dumps(wide))
    files = tmp_path / "wide.json", folder / "graphs.json", tmp_path / "bad.json"
    done = run("predict", folder / "names", *files, "--out", tmp_path / "p.csv", "--quiet")
    assert done.exit_code == 1
    assert (
        "wide.json: its nodes have 1 features, those of the training graphs have 0" in done.output
    )
    assert "left out: " + str(tmp_path / "bad.json") in done.output
    assert len(rows_of(tmp_path / "p.csv")) == 20
    assert len(done.output.splitlines()) == 2


def test_standard_input(tmp_path, folder):
    text = (folder / "graphs.json").read_text()
    words = folder / "names", "-", "--format", "json", "--out", tmp_path / "p.csv", "--quiet"
    done = run("predict", *words, input=text)
    assert (done.exit_code, done.output) == (0, "")
    assert {row["source"] for row in rows_of(tmp_path / "p.csv")} == {"-"}


def damage(folder, kind):
    facts = json.loads((folder / "estimator.json").read_text())
    if kind == "no tensors":
        (folder / "estimator.safetensors").unlink()
    elif kind == "cut tensors":
        (folder / "estimator.safetensors").write_bytes(b"\x08")
    elif kind == "no json":
        (folder / "estimator.json").write_text("{")
    elif kind == "list":
        (folder / "estimator.json").write_text("[]")
    else:
        names = {"strange": ["x"], "other": "GraphEmbedder", "wrong": "GraphRegressor"}
        facts["estimator"] = names[kind]
        (folder / "estimator.json").write_text(json.dumps(facts))


@pytest.mark.parametrize(
    "kind", ["no tensors", "cut tensors", "no json", "list", "strange", "other", "wrong"]
)
def test_folders_that_hold_no_whole_estimator_are_refused(tmp_path, folder, kind):
    (tmp_path / "model").mkdir()
    for name in ("estimator.json", "estimator.safetensors"):
        (tmp_path / "model" / name).write_bytes((folder / "names" / name).read_bytes())
    damage(tmp_path / "model", kind)
    words = tmp_path / "model", folder / "graphs.json", "--out", tmp_path / "p.csv"
    done = run("predict", *words)
    assert done.exit_code == 1
    assert "To fix this, " in done.output
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_other_refusals(tmp_path, folder):
    done = run("predict", tmp_path, folder / "graphs.json", "--out", tmp_path / "p.csv")
    assert done.exit_code == 1
    assert "there is no estimator here" in done.output
    vectors = np.random.default_rng(0).normal(size=(8, 3))
    artlas.GraphClassifier().fit(vectors, [0, 1] * 4).save(tmp_path / "model")
    done = run("predict", tmp_path / "model", folder / "graphs.json", "--out", tmp_path / "p.csv")
    assert "this predicts from vectors; got files of graphs. To fix this, fit one" in done.output


def test_an_estimator_fitted_again_does_not_resume(tmp_path, folder, monkeypatch):
    def stop(*words):
        raise KeyboardInterrupt

    words = "predict", folder / "names", folder / "graphs.json", "--out", tmp_path / "p.csv"
    with monkeypatch.context() as patch:
        patch.setattr(Prediction, "rows", stop)
        done = run(*words)
    assert done.exit_code == 130
    assert done.output.startswith("Stopped by Ctrl-C. Finished work is kept;")
    other = run("predict", folder / "numbers", *words[2:])
    assert other.exit_code == 1
    assert "other inputs or settings" in other.output
    assert run(*words).exit_code == 0


@pytest.mark.parametrize("name", ["names", "sizes"])
def test_a_row_depends_on_its_graph_alone(tmp_path, folder, name):
    """Whatever else is in its batch: the bits are those of graphs predicted one by one."""
    work = Prediction.load(folder / name)
    for ending in ("csv", "npz"):
        made = []
        for budget in (1, 30_000, 1 << 25):
            out = tmp_path / f"{budget}.{ending}"
            entry = Input(folder / "graphs.json", "g")
            TableRun(out, [entry], work, budget).complete(lambda at: None)
            made.append(out.read_bytes())
        assert len(set(made)) == 1


# artlas in a process of its own; rows are saved at once, and from the fifth batch on they take long
SLOW = """
    import sys, threading, time
    from pathlib import Path
    from artlas.cli import main
    from artlas.embedding import run_state
    from artlas.learning.prediction import Prediction

    mark, real, made, lock = sys.argv.pop(1), Prediction.rows, [], threading.Lock()

    def rows(*words):
        with lock:
            made.append(1)
            late = len(made) >= 5
        if late:
            while not list(Path(mark).parent.glob(".p.*.parts/*.npz")):
                time.sleep(0.01)
            Path(mark).touch()
            time.sleep(0.5)
        return real(*words)

    if mark:
        Prediction.rows, run_state.SAVE_BYTES = rows, 1
    main()
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sent", "ending"),
    [(signal.SIGINT, "parquet"), (signal.SIGKILL, "npz"), (signal.SIGKILL, "csv")],
)
def test_a_stopped_run_resumes_to_the_same_bytes(tmp_path, folder, sent, ending):
    made = [graph(200 + i, i % 2 == 0, y=i % 2) for i in range(60)]  # one a batch
    (tmp_path / "g.json").write_text(json.dumps(made))
    whole, out, mark = tmp_path / f"w.{ending}", tmp_path / f"p.{ending}", tmp_path / "mark"

    def command(mark, out):
        script = [sys.executable, "-W", "ignore", "-c", textwrap.dedent(SLOW), str(mark)]
        words = "predict", folder / "numbers", tmp_path / "g.json", "--budget", 1, "--out", out
        return [*script, *map(str, words)]

    subprocess.run(command("", whole), check=True, timeout=100)
    broken = subprocess.Popen(
        command(mark, out),
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),  # as in a terminal
    )
    for _ in range(6000):
        if mark.exists() or broken.poll() is not None:
            break
        time.sleep(0.01)
    broken.send_signal(sent)
    _, told = broken.communicate(timeout=100)
    if sent == signal.SIGINT:
        assert broken.returncode == 130
        assert told == "Stopped by Ctrl-C. Finished work is kept; rerun the command to resume.\n"
    else:
        assert broken.returncode == -signal.SIGKILL
    assert not out.exists()
    assert 1 <= len(list((tmp_path / f".p.{ending}.parts").glob("*.npz"))) < 60
    done = subprocess.run(command("", out), check=True, timeout=100, capture_output=True, text=True)
    assert "over 60 graphs with labels" in done.stderr  # those of the first run are counted too
    assert out.read_bytes() == whole.read_bytes()


@pytest.mark.slow
def test_ray_gives_the_same_bytes(tmp_path, folder):
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'artlas[cluster]'")
    words = "predict", folder / "names", folder / "graphs.json"
    assert run(*words, "--out", tmp_path / "one.npz").exit_code == 0
    done = run(*words, "--out", tmp_path / "two.npz", "--engine", "ray", "--workers", "1")
    assert done.exit_code == 0, done.output
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "two.npz").read_bytes()
