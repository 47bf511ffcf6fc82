"""Pretraining: learning, log, plateau rule, failures, resume and several processes."""

from __future__ import annotations

import json
import math
import os
import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import small_run
import torch
from cases import random_dense
from small_run import SMALL, domains

import artlas
from artlas import PretrainConfig, pretrain
from artlas.training import states
from artlas.training.loop import TrainingError
from artlas.training.sources import fingerprint


def same(a, b):
    return all(torch.equal(x, y) for x, y in zip(a.parameters(), b.parameters(), strict=True))


def test_pretraining_lowers_the_coverage_and_logs_every_epoch(tmp_path):
    training = PretrainConfig(epochs=40, batch=16, rate=1e-2)
    model = pretrain(domains(), SMALL, training, tmp_path)
    log = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert [record["epoch"] for record in log] == list(range(1, 41))
    assert log[-1]["coverage"] < 0.8 * log[0]["coverage"]
    for record in log:
        top = record["lowest"] + SMALL.coverage_temperature * math.log(SMALL.bases)
        assert record["lowest"] - 1e-6 <= record["coverage"] <= top + 1e-6
        assert record["bound_violation"] < 1e-6
        assert record["residual"] < 1e-6
        assert 1 <= record["effective_bases"] <= SMALL.bases + 1e-9
    assert log[-1]["gain"] > log[0]["gain"]
    assert same(model, artlas.load(tmp_path))


def test_the_log_agrees_with_an_alignment(tmp_path):
    graphs = domains()["dense"]
    pretrain({"d": graphs}, SMALL, PretrainConfig(epochs=1, batch=len(graphs)), tmp_path)
    (record,) = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    before = artlas.ART(SMALL).align(graphs)  # one batch: measured before its own step
    assert record["coverage"] == pytest.approx(float(before.coverage.mean()), rel=1e-5)
    assert record["gain"] == pytest.approx(float(before.gain.mean()), abs=1e-5)
    assert record["residual"] == pytest.approx(float(before.residuals.max()), abs=1e-7)


def test_features_and_labels_do_not_matter():
    training = PretrainConfig(epochs=1, batch=16)
    plain = pretrain(domains(), SMALL, training)
    rich = {
        name: g.with_features(np.ones((g.num_nodes, 3))).with_labels(np.arange(len(g)))
        for name, g in domains().items()
    }
    assert same(plain, pretrain(rich, SMALL, training))


def test_ego_graphs_can_be_a_domain():
    rng = np.random.default_rng(1)
    network = artlas.Graphs.from_scipy([random_dense(60, 0.08, rng).astype(float)])
    egos = artlas.ego_graphs(network, range(20), artlas.PprConfig(most_nodes=15))
    training = PretrainConfig(epochs=2, batch=8)
    assert same(
        pretrain({"n": egos, **domains()}, SMALL, training),
        pretrain({"n": egos[:], **domains()}, SMALL, training),
    )


@pytest.mark.slow
@pytest.mark.parametrize("stop", [1, 5, 6, 11])
def test_an_interrupted_run_resumes_to_the_same_bits(tmp_path, stop):
    training = PretrainConfig(epochs=4, batch=16, checkpoint_every=2)
    whole = pretrain(domains(), SMALL, training, tmp_path / "whole")

    def interrupt(progress):
        if progress.step == stop:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pretrain(domains(), SMALL, training, tmp_path / "cut", report=interrupt)
    assert same(whole, pretrain(domains(), SMALL, training, tmp_path / "cut", resume=True))
    logs = [
        [
            {k: v for k, v in json.loads(line).items() if k != "seconds"}
            for line in (tmp_path / name / "log.jsonl").read_text().splitlines()
        ]
        for name in ("whole", "cut")
    ]
    assert logs[0] == logs[1]


# A process with PyTorch loaded that forks a training process for every line it reads.
FORK_SERVER = """
import os, sys
sys.path.insert(0, sys.argv[2])
import small_run
for _ in sys.stdin:
    child = os.fork()
    if child == 0:
        small_run.train_and_resume(sys.argv[1])
        os._exit(0)
    print(child, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@pytest.mark.slow
def test_a_run_killed_20_times_resumes_to_the_same_bits(tmp_path):
    whole = small_run.train_and_resume(None)
    words = [
        sys.executable,
        "-c",
        FORK_SERVER,
        str(tmp_path),
        os.path.dirname(os.path.dirname(__file__)),
    ]
    rng, code, kills = random.Random(4), None, 0
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as home:
        while code != 0:
            home.stdin.write("one\n")
            home.stdin.flush()
            child = int(home.stdout.readline())
            if kills < 20:
                began = time.monotonic()
                while not states.states(tmp_path / "states") and time.monotonic() - began < 60:
                    time.sleep(0.01)
                time.sleep(rng.random() * 0.2)
                os.kill(child, signal.SIGKILL)
            code = int(home.stdout.readline())
            kills += code == -signal.SIGKILL
            assert code in (0, -signal.SIGKILL)
            for state in states.states(tmp_path / "states"):
                states.read_state(state)  # every one of them is whole
        home.stdin.close()
    assert kills == 20
    assert same(whole, artlas.load(tmp_path))


def test_a_run_stops_on_a_plateau_and_does_not_resume(tmp_path):
    training = PretrainConfig(epochs=200, batch=16, rate=1e-7, plateau=0.01, patience=2)
    model = pretrain(domains(), SMALL, training, tmp_path)
    epochs = len((tmp_path / "log.jsonl").read_text().splitlines())
    assert epochs == 4  # two epochs no better than the two before, as soon as there are four
    assert same(model, pretrain(domains(), SMALL, training, tmp_path, resume=True))
    assert len((tmp_path / "log.jsonl").read_text().splitlines()) == epochs


def test_a_run_with_other_settings_or_graphs_is_not_resumed(tmp_path):
    training = PretrainConfig(epochs=1, batch=16)
    pretrain(domains(), SMALL, training, tmp_path)
    with pytest.raises(FileExistsError, match="--resume"):
        pretrain(domains(), SMALL, training, tmp_path)
    with pytest.raises(ValueError, match="training was"):
        pretrain(domains(), SMALL, PretrainConfig(epochs=1, batch=8), tmp_path, resume=True)
    with pytest.raises(ValueError, match="sources was"):
        pretrain(domains(1), SMALL, training, tmp_path, resume=True)


def test_a_finished_run_resumes_for_more_epochs_but_not_fewer(tmp_path):
    few, many = PretrainConfig(epochs=2, batch=16), PretrainConfig(epochs=5, batch=16)
    pretrain(domains(), SMALL, few, tmp_path)
    more = pretrain(domains(), SMALL, many, tmp_path, resume=True)
    assert same(more, pretrain(domains(), SMALL, many))
    assert same(more, artlas.load(tmp_path))
    with pytest.raises(ValueError, match="training was"):
        pretrain(domains(), SMALL, few, tmp_path, resume=True)


def test_states_of_an_older_version_are_refused(tmp_path):
    training = PretrainConfig(epochs=1, batch=16)
    pretrain(domains(), SMALL, training, tmp_path)
    place = states.states(tmp_path / "states")[-1] / states.STATE_JSON
    facts = json.loads(place.read_text())
    del facts["counts"]
    place.write_text(json.dumps(facts))
    with pytest.raises(ValueError, match="older artlas"):
        pretrain(domains(), SMALL, training, tmp_path, resume=True)


def test_optimiser_and_weight_decay_are_used():
    plain, decayed, apart = (
        pretrain(domains(), SMALL, PretrainConfig(epochs=2, batch=16, **how))
        for how in ({}, {"decay": 0.1}, {"decay": 0.1, "optimiser": "adamw"})
    )
    assert not same(plain, decayed)
    assert not same(decayed, apart)
    size = [sum(float(p.detach().square().sum()) for p in m.parameters()) for m in (plain, apart)]
    assert size[1] < size[0]
    for bad in ({"decay": -1.0}, {"optimiser": "sgd"}, {"clip": 0.0}):
        with pytest.raises(ValueError, match=rf"PretrainConfig.{next(iter(bad))}"):
            PretrainConfig(**bad)


def test_a_non_finite_loss_raises_an_error_that_names_the_batch(tmp_path):
    training = PretrainConfig(epochs=3, batch=16, checkpoint_every=1)

    def spoil(progress):
        if progress.step == 4:
            for parameter in parameters:
                parameter.data.fill_(float("nan"))

    parameters = []
    original = torch.optim.Adam.__init__

    def spy(self, params, **more):
        params = list(params)
        parameters.extend(params)
        original(self, params, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.optim.Adam, "__init__", spy)
        with pytest.raises(TrainingError, match=r"step 5 .*(sparse|dense)\[\d+\]"):
            pretrain(domains(), SMALL, training, tmp_path, report=spoil)
    failed = json.loads((tmp_path / "failed-batch.json").read_text())
    assert failed["step"] == 4
    assert len(failed["batch"]) == 16
    _, facts = states.read_state(states.states(tmp_path / "states")[-1])
    assert facts["step"] <= 4


def test_fingerprints_depend_on_structure_alone():
    a, b = domains().values()
    assert fingerprint(a) == fingerprint(a.with_labels(np.zeros(len(a), dtype=int)))
    assert fingerprint(a) != fingerprint(b)
    assert fingerprint(a) != fingerprint(a[1:])


TORCHRUN = """
import json, sys
sys.path.insert(0, sys.argv[2])
from small_run import SMALL, domains
from artlas import PretrainConfig, pretrain
losses = []
pretrain(domains(), SMALL, PretrainConfig(epochs=5, batch=16), sys.argv[1],
         report=lambda p: losses.append(p.loss))
import os
if os.environ.get("RANK", "0") == "0":
    open(sys.argv[1] + "/losses.json", "w").write(json.dumps(losses))
"""


@pytest.mark.slow
def test_two_processes_give_the_loss_curve_of_one(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(TORCHRUN)
    here = os.path.dirname(os.path.dirname(__file__))
    alone, both = tmp_path / "1", tmp_path / "2"
    alone.mkdir()
    both.mkdir()
    subprocess.run([sys.executable, script, alone, here], check=True, capture_output=True)
    words = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    done = subprocess.run([*words, script, both, here], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    curves = [json.loads((folder / "losses.json").read_text()) for folder in (alone, both)]
    np.testing.assert_allclose(curves[0], curves[1], atol=1e-5, rtol=0)
    assert (both / "model.safetensors").exists()
    records = [
        json.loads((folder / "log.jsonl").read_text().splitlines()[-1]) for folder in (alone, both)
    ]
    for key in ("coverage", "lowest", "gain", "effective_bases"):
        assert records[0][key] == pytest.approx(records[1][key], abs=1e-5)
