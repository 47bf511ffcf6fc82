"""artlas fit: where labels come from, what is said about the fit, and what is refused."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest
from typer.testing import CliRunner

import artlas
from artlas.cli import app

RUNNER = CliRunner()
CLASSES = ["ring", "path"] * 8


def run(*words, **more):
    return RUNNER.invoke(app, [str(word) for word in words], **more)


def graph(n, closed):
    links = [{"source": i, "target": i + 1} for i in range(n - 1)]
    links += [{"source": n - 1, "target": 0}] * closed
    return {"nodes": [{"id": i} for i in range(n)], "links": links}


@pytest.fixture
def graphs(tmp_path):
    """Sixteen rings and paths in turn, of 4 to 11 nodes."""
    made = [graph(4 + i // 2, name == "ring") for i, name in enumerate(CLASSES)]
    (tmp_path / "graphs.json").write_text(json.dumps(made))
    return tmp_path / "graphs.json"


@pytest.fixture
def tu(tmp_path):
    """The same as a folder in TU layout, with labels -1 and 1."""
    folder, edges, owner, first = tmp_path / "T", [], [], 1
    for i, name in enumerate(CLASSES):
        n = 4 + i // 2
        pairs = [(j, j + 1) for j in range(n - 1)] + [(n - 1, 0)] * (name == "ring")
        edges += [f"{first + u}, {first + v}\n{first + v}, {first + u}\n" for u, v in pairs]
        owner += [f"{i + 1}\n"] * n
        first += n
    folder.mkdir()
    (folder / "T_A.txt").write_text("".join(edges))
    (folder / "T_graph_indicator.txt").write_text("".join(owner))
    (folder / "T_graph_labels.txt").write_text("1\n-1\n" * 8)
    return folder


def fit(tmp_path, *words):
    """Fit without the check; return the estimator's classes and what was printed."""
    done = run("fit", *words, "--out", tmp_path / "model", "--no-check")
    assert done.exit_code == 0, done.output
    return artlas.GraphClassifier.load(tmp_path / "model"), done.output


def test_labels_of_a_tu_folder(tmp_path, tu):
    estimator, said = fit(tmp_path, tu)
    assert estimator.classes_.tolist() == [0, 1]
    assert "16 graphs; labels: those of the graphs; 2 classes: 0 (8), 1 (8)" in said
    assert "leave-one-out: accuracy" in said
    assert (estimator.predict(artlas.read(tu, verbose=False)) == [1, 0] * 8).all()


TABLES = {
    "plain.csv": "\n".join(CLASSES),
    "headed.csv": "kind\n" + "\n".join(CLASSES) + "\n",
    "from0.csv": "id,label\n" + "".join(f"{i},{CLASSES[i]}\n" for i in reversed(range(16))),
    "from1.tsv": "".join(f"{i + 1}\t{CLASSES[i]}\n" for i in reversed(range(16))),
    "wide.csv": "Graph;note;Target\n" + "".join(f"{i};x;{CLASSES[i]}\n" for i in range(16)),
}


@pytest.mark.parametrize("name", TABLES)
def test_labels_of_a_table_in_order_or_by_id(tmp_path, graphs, name):
    (tmp_path / name).write_text(TABLES[name])
    estimator, said = fit(tmp_path, graphs, "--labels", tmp_path / name)
    assert estimator.anchor_labels_.tolist() == CLASSES
    how = {"from0.csv": "by number from 0", "from1.tsv": "by number from 1"}
    assert (
        f"of {name}, {how.get(name, 'by number from 0' if name == 'wide.csv' else 'in order')}"
        in said
    )
    assert "path (8), ring (8)" in said


def test_labels_by_the_names_of_files(tmp_path):
    folder = tmp_path / "many"
    folder.mkdir()
    for i, name in enumerate(CLASSES):
        (folder / f"g{i}.json").write_text(json.dumps(graph(4 + i // 2, name == "ring")))
    rows = "".join(f"g{i},{name}\n" for i, name in enumerate(CLASSES))
    (tmp_path / "y.csv").write_text("name,label\n" + rows)
    estimator, said = fit(tmp_path, folder, "--labels", tmp_path / "y.csv")
    order = sorted(range(16), key=lambda i: f"g{i}.json")
    assert estimator.anchor_labels_.tolist() == [CLASSES[i] for i in order]
    assert "by name of the file" in said


@pytest.mark.slow
def test_labels_of_parquet(tmp_path, graphs):
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    kept = artlas.read(graphs, verbose=False)
    ends = [np.argwhere(kept.to_scipy(g).toarray()).T for g in range(16)]
    columns = {"source": [e[0] for e in ends], "target": [e[1] for e in ends], "kind": CLASSES}
    parquet.write_table(arrow.table(columns), tmp_path / "graphs.parquet")
    words = tmp_path / "graphs.parquet", "--label-column", "kind"
    assert fit(tmp_path, *words)[0].anchor_labels_.tolist() == CLASSES
    parquet.write_table(arrow.table({"label": CLASSES}), tmp_path / "y.parquet")
    words = graphs, "--labels", tmp_path / "y.parquet"
    assert fit(tmp_path, *words)[0].anchor_labels_.tolist() == CLASSES
    parquet.write_table(arrow.table({"label": [None, *CLASSES[1:]]}), tmp_path / "y.parquet")
    done = run("fit", *words, "--out", tmp_path / "model")
    assert done.exit_code == 1
    assert "a label is missing; got nothing" in done.output


@pytest.mark.slow
def test_labels_of_the_graphs_own_table(tmp_path):
    pytest.importorskip("rdkit")
    with open(tmp_path / "m.csv", "w", newline="") as file:
        rows = [["C" * n + end, kind] for n in range(2, 9) for end, kind in ("OA", "NB")]
        csv.writer(file).writerows([["smiles", "kind"], *rows])
    words = tmp_path / "m.csv", "--label-column", "kind"
    assert fit(tmp_path, *words)[1].startswith("14 graphs; labels: column kind of the graphs' t")
    words = tmp_path / "m.csv", "--labels", tmp_path / "m.csv", "--label-column", "kind"
    assert fit(tmp_path, *words)[0].anchor_labels_.tolist() == list("AB" * 7)


WRONG = {
    "one class": ("a\n" * 16, "there is only one class"),
    "missing": ("a\nb\n\n" + "a\n" * 13, "y.csv, line 3: a label is missing; got nothing"),
    "nan": ("a\nb\nNaN\n" + "a\n" * 13, "y.csv, line 3: a label is missing; got 'NaN'"),
    "few": ("a\nb\n" * 7, "14 rows for 16 graphs"),
    "many": ("a\nb\n" * 9, "18 rows for 16 graphs"),
    "twice": ("id,label\n" + "3,a\n" * 16, "line 3: an id appears twice; got '3'"),
    "unknown": ("id,label\n3,a\n17,a\n", "line 3: an id is that of no graph; got '17'"),
    "without": ("id,label\n0,a\n", "15 of 16 graphs without one, the first is graph 1"),
    "ragged": ("id,label\n0,a,b\n", "line 2: a row has another number of cells; got 3 cells"),
    "empty": ("\n\n", "the table is empty"),
    "no column": ("u,v,w\n" + "a,b,c\n" * 16, "got the columns u, v, w. To fix this, name the one"),
    "no names": ("1,2,3\n" * 16, "3 columns without names"),
    "not finite": ("1\ninf\n" * 8, "a label is not finite; got inf of graph 1"),
    "odd line": ("a\u2028b\n" * 15, "15 rows for 16 graphs"),
    "not text": (b"\xff\xfe\n", "not UTF-8"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_labels_that_cannot_be_right_are_refused(tmp_path, graphs, name):
    content, told = WRONG[name]
    content = content if isinstance(content, bytes) else content.encode()
    (tmp_path / "y.csv").write_bytes(content)
    done = run("fit", graphs, "--labels", tmp_path / "y.csv", "--out", tmp_path / "model")
    assert done.exit_code == 1
    assert told in done.output
    assert "To fix this, " in done.output
    assert not (tmp_path / "model").exists()


def test_graphs_without_labels_are_refused(tmp_path, graphs):
    done = run("fit", graphs, "--out", tmp_path / "model")
    assert done.exit_code == 1
    assert "no labels in the file; got 16 graphs without labels. To fix this, pass" in done.output
    done = run("fit", graphs, "--label-column", "kind", "--out", tmp_path / "model")
    assert "only a table of graphs has columns" in done.output
    (tmp_path / "y.csv").write_text("a\nb\n" * 8)
    words = "--labels", tmp_path / "y.csv", "--label-column", "kind", "--out", tmp_path / "model"
    done = run("fit", graphs, *words)
    assert "there is no such column; got 'kind' among no names" in done.output


def test_inputs_must_have_the_same_features_and_be_readable(tmp_path, graphs):
    wide = {"nodes": [{"id": 0, "mass": 1.5}], "links": []}
    (tmp_path / "wide.json").write_text(json.dumps([wide] * 2))
    done = run("fit", graphs, tmp_path / "wide.json", "--out", tmp_path / "model")
    assert done.exit_code == 1
    assert "wide.json: its nodes have 1 features, those of" in done.output
    done = run("fit", graphs, tmp_path / "gone.json", "--out", tmp_path / "model")
    assert done.exit_code == 1
    assert "gone.json" in done.output
    done = run("fit", graphs, "--out", graphs)
    assert done.exit_code == 1
    assert "this is no folder; got a file" in done.output
    done = run("fit", graphs, "--out", "/proc/model")
    assert "nothing can be written there" in done.output


@pytest.mark.slow
def test_numbers_that_hardly_repeat_are_predicted_as_numbers(tmp_path, graphs):
    values = [f"{4 + i // 2 + 0.25 * (i % 2)}" for i in range(16)]
    (tmp_path / "y.csv").write_text("\n".join(values))
    words = "fit", graphs, "--labels", tmp_path / "y.csv", "--out", tmp_path / "model"
    done = run(*words)
    assert done.exit_code == 0, done.output
    assert "4 to 11.25, so this is regression (--classify takes them as classes)" in done.output
    assert "control: mean of labels" in done.output
    assert "R²" in done.output
    artlas.GraphRegressor.load(tmp_path / "model")
    assert "Unknown label type: continuous" in run(*words, "--classify").output
    assert "only classes can be balanced" in run(*words, "--balanced").output
    (tmp_path / "y.csv").write_text("1\n2\n" * 8)
    assert "2 classes" in run(*words, "--no-check").output
    said = run(*words, "--regress").output
    assert "1 to 2\n" in said
    (tmp_path / "y.csv").write_text("2\n" * 16)
    assert "nothing to predict; got 2 for every graph" in run(*words, "--regress").output


@pytest.mark.slow
def test_a_control_that_is_as_good_is_said_plainly(tmp_path):
    """Labels that depend on the size alone."""
    rng = np.random.default_rng(0)
    sizes = rng.integers(4, 30, 60)
    made = [graph(n, rng.random() < 0.5) for n in sizes.tolist()]
    (tmp_path / "g.json").write_text(json.dumps(made))
    (tmp_path / "y.csv").write_text("\n".join("large" if n > 14 else "small" for n in sizes))
    done = run("fit", tmp_path / "g.json", "--labels", tmp_path / "y.csv", "--out", tmp_path / "m")
    assert done.exit_code == 0, done.output
    assert "A control is " in done.output
    assert "sizes" in done.output
    assert "On 60 graphs: 5 stratified folds, drawn 3 times." in done.output
    table = done.output.split("against the estimator")[1]
    assert [line.split(" ± ")[0].split()[-1] for line in table.splitlines() if "majority" in line]
    again = run("fit", tmp_path / "g.json", "--labels", tmp_path / "y.csv", "--out", tmp_path / "m")
    assert again.output.split("against")[1] == done.output.split("against")[1]  # the same folds


def test_ctrl_c_says_what_is_there(tmp_path, graphs, monkeypatch):
    def stop(*words):
        raise KeyboardInterrupt

    (tmp_path / "y.csv").write_text("\n".join(CLASSES))
    words = "fit", graphs, "--labels", tmp_path / "y.csv", "--out", tmp_path / "model"
    with monkeypatch.context() as patch:
        patch.setattr("artlas.cli.fit.find_labels", stop)
        done = run(*words)
    assert (done.exit_code, done.output) == (130, "Stopped by Ctrl-C; nothing was written.\n")
    monkeypatch.setattr("artlas.cli.fit_check.check", stop)
    done = run(*words)
    assert done.exit_code == 130
    assert "was not compared with controls" in done.output
    artlas.GraphClassifier.load(tmp_path / "model")


def test_standard_input_and_quiet(tmp_path, graphs):
    (tmp_path / "y.csv").write_text("\n".join(CLASSES))
    words = "fit", "-", "--format", "json", "--labels", tmp_path / "y.csv", "--quiet"
    done = run(*words, "--out", tmp_path / "model", input=graphs.read_text())
    assert (done.exit_code, done.output) == (0, "")
    assert artlas.GraphClassifier.load(tmp_path / "model").anchor_labels_.tolist() == CLASSES
