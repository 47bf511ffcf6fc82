"""The framework of studies: records are kept, resumed and remeasured; pages keep discussions."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest
import typer

from artlas_paper import figures
from artlas_paper.cli import study as cli
from artlas_paper.studies import study as framework
from artlas_paper.studies.sampling import stratified
from artlas_paper.studies.study import Job, Setting, Study
from artlas_paper.studies.study_page import write_report
from artlas_paper.studies.tables import markdown_table

CALLS = []


def measure(target, seed, report):
    report(1, 2)
    CALLS.append((target, seed))
    return {"value": seed / 2}


def figure(records):
    made = figures.blank(2, 2)
    made.subplots().plot([r["value"] for r in records])
    return made


def study(version=1):
    return Study(
        name="toy",
        title="A toy",
        protocol="Seeds are halved.",
        keys=("target", "seed"),
        targets=("BZR", "Cora"),
        seeds=(1, 2),
        version=version,
        jobs=lambda setting: [
            Job({"target": t, "seed": s}, lambda report, t=t, s=s: measure(t, s, report))
            for t in setting.targets
            for s in setting.seeds
        ],
        table=lambda records: markdown_table(
            ["seed", "value"], [(r["seed"], r["value"]) for r in records]
        ),
        figure=figure,
    )


@pytest.fixture
def run(tmp_path):
    def call(made, seeds=(1, 2), quick=False, most=99, again=False):
        setting = Setting(None, tmp_path / "runs", ("BZR",), seeds, quick)
        path, steps = framework.records_path(made, setting, tmp_path), []
        del CALLS[:]
        for job in framework.pending_jobs(made, setting, path, again)[0][:most]:
            framework.run_job(made, job, path, lambda done, total: steps.append((done, total)))
        assert steps == [(1, 2)] * len(CALLS)
        write_report(made, path)
        return list(CALLS), path

    return call


def test_finished_jobs_are_not_measured_again(run):
    assert run(study(), most=1)[0] == [("BZR", 1)]
    calls, path = run(study())
    assert calls == [("BZR", 2)]
    assert run(study())[0] == []
    assert run(study(), seeds=(2, 3))[0] == [("BZR", 3)]
    records = json.loads(path.read_text())
    assert [r["seed"] for r in records] == [1, 2, 3]
    assert all(r["version"] == 1 and r["commit"] and r["seconds"] >= 0 for r in records)


def test_what_other_commits_measured_is_measured_anew_when_asked_for(run, monkeypatch):
    run(study())
    monkeypatch.setattr(framework, "commit", lambda: "another")
    assert run(study())[0] == []
    assert run(study(), again=True, most=1)[0] == [("BZR", 1)]
    assert run(study(), again=True)[0] == [("BZR", 2)]
    calls, path = run(study(), again=True)
    assert calls == []
    assert {r["commit"] for r in json.loads(path.read_text())} == {"another"}


def test_a_run_says_what_it_keeps_and_how_to_measure_it_anew(run, monkeypatch, tmp_path, capsys):
    setting = Setting(None, tmp_path / "runs", ("BZR",), (1, 2, 3))
    monkeypatch.setattr(framework, "commit", lambda: "older")
    cli.run(study(), setting, tmp_path)
    assert "kept" not in capsys.readouterr().out
    monkeypatch.setattr(framework, "commit", lambda: "newer")
    cli.run(study(), setting, tmp_path)
    assert "3 of 3 records are kept, of commit older. --again" in capsys.readouterr().out
    cli.run(study(), setting, tmp_path, again=True)
    assert "kept" not in capsys.readouterr().out
    assert {r["commit"] for r in json.loads((tmp_path / "toy.json").read_text())} == {"newer"}


def test_a_new_version_makes_them_anew_and_shows_no_older_ones(run):
    run(study(), seeds=(1, 2))
    calls, path = run(study(version=2), seeds=(1,))
    assert calls == [("BZR", 1)]
    page = path.with_suffix(".md").read_text()
    assert "| 1 | 0.5 |" in page
    assert "| 2 | 1.0 |" not in page


def test_records_of_other_keys_are_older_ones(run):
    _, path = run(study(), seeds=(1,))
    older = dataclasses.replace(study(version=2), keys=("target", "seed", "ratio"))
    assert run(older, seeds=(1,))[0] == [("BZR", 1)]
    assert len(json.loads(path.read_text())) == 1


def test_the_page_names_protocol_command_and_seeds(run, tmp_path):
    _, path = run(study())
    page = path.with_suffix(".md").read_text()
    for text in (
        "# A toy",
        "Seeds are halved.",
        "| 2 | 1.0 |",
        "![A toy](toy.png)",
        "    artlas-paper study toy --root ROOT --out DIR --targets BZR --seeds 1,2\n",
        "Seeds 1, 2; commits ",
    ):
        assert text in page
    names = {p.name for p in tmp_path.iterdir()}
    assert names == {"toy.json", "toy.md", "toy.png", "toy.svg"}
    first = (tmp_path / "toy.svg").read_bytes()
    run(study())
    assert (tmp_path / "toy.svg").read_bytes() == first


def test_quick_runs_keep_to_themselves(run, tmp_path):
    _, path = run(study(), quick=True)
    assert path.name == "toy-quick.json"
    page = path.with_suffix(".md").read_text()
    assert "--quick\n" in page
    assert "quick run, of 16 objects" in page
    assert run(study())[0] == [("BZR", 1), ("BZR", 2)]


def test_a_discussion_is_kept_and_an_outdated_one_says_so(run):
    _, path = run(study(), seeds=(1,))
    page = path.with_suffix(".md")
    page.write_text(page.read_text() + "\n## Discussion\n\nHalf of one.\n")
    run(study(), seeds=(1,))
    assert page.read_text().endswith("(toy.png)\n\n## Discussion\n\nHalf of one.\n")
    for _ in range(2):
        run(study(), seeds=(1, 2))
        text = page.read_text()
        assert text.count("which have changed since.)") == 1
        assert text.endswith("\n\nHalf of one.\n")


@pytest.mark.parametrize("count", [3, 10, 128, 900])
def test_strata_have_the_shares_of_their_classes(count):
    labels = np.repeat([0, 1, 5], [700, 199, 1])
    np.random.default_rng(0).shuffle(labels)
    members = stratified(labels, count, seed=42)
    assert len(members) == len(set(members.tolist())) == count
    assert (np.diff(members) > 0).all()
    assert np.array_equal(members, stratified(labels, count, seed=42))
    found = [(labels[members] == label).sum() for label in (0, 1, 5)]
    assert found == {3: [1, 1, 1], 10: [7, 2, 1], 128: [99, 28, 1], 900: [700, 199, 1]}[count]
    if 3 < count < 900:
        assert not np.array_equal(members, stratified(labels, count, seed=1))


def test_strata_that_cannot_be():
    with pytest.raises(ValueError, match="at least 3"):
        stratified([0, 1, 2], 2, seed=42)
    assert stratified([0, 1, 1], 50, seed=42).tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("error", "code", "kept"), [(KeyboardInterrupt, 130, 1), (ValueError, 1, 2)]
)
def test_what_is_finished_is_kept_when_a_job_is_stopped_or_fails(
    error, code, kept, monkeypatch, tmp_path, capsys
):
    def broken(target, seed, report):
        if seed == 2:
            raise error("no")
        return {"value": seed / 2}

    monkeypatch.setitem(globals(), "measure", broken)
    setting = Setting(None, tmp_path / "runs", ("BZR",), (1, 2, 3))
    with pytest.raises(typer.Exit) as stopped:
        cli.run(study(), setting, tmp_path)
    assert stopped.value.exit_code == code
    assert len(json.loads((tmp_path / "toy.json").read_text())) == kept
    said = capsys.readouterr().out
    assert ("BZR 2 failed: no" in said) == (error is ValueError)
    assert (tmp_path / "toy.md").exists() == (error is ValueError)
