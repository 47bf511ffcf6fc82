"""Train any module on unlabelled graphs of several domains, with a log, saved states and resume.

Every batch has equally many graphs of every domain. The order of the graphs and all randomness of
a step are functions of the seed and the step number. So the state of a run is the weights, Adam's
moments, the step and the counts of the epoch, and a resumed run ends with the same bits as an
uninterrupted one.
"""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import json
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, Protocol

import torch
from torch import Tensor, nn

from artlas.files import stored
from artlas.training import distributed, glibc_malloc, states
from artlas.training.config import PretrainConfig, can_resume
from artlas.training.sources import BalancedSampler, Member, Sources, source_hashes


class TrainingError(RuntimeError):
    """Training cannot continue: why, and what was saved."""


@dataclass(frozen=True)
class Progress:
    """How far a run is: passed to ``report`` after every step."""

    step: int
    steps: int
    epoch: int
    loss: float


class Objective(Protocol):
    """A module, and its loss on the graphs of a batch."""

    module: nn.Module
    watched: str  # the entry of an epoch's record that the plateau rule watches
    maxima: slice  # the counts that are maxima; all others are sums

    def settings(self) -> Mapping[str, Any]:
        """Settings, for JSON, that must be equal when a run is resumed."""

    def loss(self, members: list[Member], whole: int) -> tuple[Tensor | None, Tensor]:
        """The contribution of these graphs to the loss of a batch of ``whole``, and counts [c]."""

    def after_step(self) -> None:
        """Act after a step of the optimiser; by default do nothing."""
        return

    def record(self, counts: list[float]) -> dict[str, float]:
        """Turn the counts of an epoch into its log record."""


def train(
    objective: Objective,
    sources: Sources,
    training: PretrainConfig,
    out: Path | None = None,
    resume: bool = False,
    report: Callable[[Progress], None] | None = None,
    steps: int | None = None,
) -> list[float]:
    """Train, and return the watched value of every epoch.

    With ``out``, a folder, the log and the states are written there. ``resume`` continues from the
    newest state, which must have the same settings and graphs, but may have had fewer epochs.
    ``steps`` ends training after that many steps, whatever the number of epochs. An interrupt
    (Ctrl-C) saves the state and is raised again; the module keeps what it has learned. Under
    torchrun, every process trains on its share of each batch.
    """
    joined = distributed.join()
    run = _TrainingRun(objective, sources, training, out, resume, steps)
    try:
        with glibc_malloc.reuse_large_blocks():
            run.take_steps(report or (lambda progress: None))
    except KeyboardInterrupt:
        run.save_state()
        raise
    finally:
        if run.log is not None:
            run.log.close()
    if joined:
        distributed.leave()
    return run.history


class _TrainingRun:
    """A run in progress: what a saved state holds, and what is needed to continue."""

    def __init__(
        self,
        objective: Objective,
        sources: Sources,
        training: PretrainConfig,
        out: Path | None,
        resume: bool,
        steps: int | None,
    ) -> None:
        if not sources:
            raise ValueError("Pretraining needs at least one source, got none.")
        self.rank = distributed.rank()
        self.objective, self.training, self.out = objective, training, out
        sizes = {name: len(graphs) for name, graphs in sources.items()}
        self.sampler = BalancedSampler(sizes, training.batch, training.seed)
        self.steps = training.epochs * self.sampler.batches if steps is None else steps
        self.module = objective.module
        self.parameters = {n: p for n, p in self.module.named_parameters() if p.requires_grad}
        self.optimiser = training.make_optimiser(list(self.parameters.values()))
        self.step, self.counts, self.seconds = 0, list[float](), 0.0
        self.history: list[float] = []  # the watched value of every epoch
        self.saved_step = -1
        self.settings = {
            **objective.settings(),
            "training": dataclasses.asdict(training),
            "sources": source_hashes(sources),
        }
        if resume:
            self._restore_state()
        elif out is not None and states.states(out / "states"):
            fix = "Continue it with resume=True (--resume), or pass another folder."
            raise FileExistsError(f"{out} holds a run already. {fix}")
        self.log = None
        if out is not None and self.rank == 0:
            self.log = states.open_log(out / "log.jsonl", self.step)

    def take_steps(self, report: Callable[[Progress], None]) -> None:
        """Take all remaining steps."""
        per_epoch = self.sampler.batches
        while True:
            epoch, done = divmod(self.step, per_epoch)
            if done == 0 and self.counts:
                self._end_epoch(epoch)
            if self.step >= self.steps or self._on_plateau():
                break
            end = min(per_epoch, self.steps - epoch * per_epoch)
            for members in itertools.islice(self.sampler.epoch(epoch + 1), done, end):
                loss = self._take_step(members)
                self.step += 1
                report(Progress(self.step, self.steps, epoch + 1, loss))
                if self.step % self.training.checkpoint_every == 0 and self.step % per_epoch:
                    self.save_state()
        self.save_state()

    def _end_epoch(self, epoch: int) -> None:
        record = self.objective.record(self.counts)
        line = {"step": self.step, "epoch": epoch, **record, "seconds": self.seconds}
        if self.log is not None:
            self.log.write(json.dumps(line) + "\n")
        self.history.append(record[self.objective.watched])
        self.counts, self.seconds = [], 0.0
        self.saved_step = -1  # a state saved at this step lacks the record
        self.save_state()

    def _on_plateau(self) -> bool:
        """Whether the plateau rule ends the run here."""
        share, last = self.training.plateau, self.training.patience
        if share is None or self.step % self.sampler.batches or len(self.history) < 2 * last:
            return False
        recent, before = sum(self.history[-last:]), sum(self.history[-2 * last : -last])
        return before - recent < share * abs(before)

    def _take_step(self, members: list[Member]) -> float:
        began = time.perf_counter()
        parameters = self.parameters.values()
        self.optimiser.zero_grad(set_to_none=False)
        own = members[self.rank :: distributed.size()]
        with torch.random.fork_rng(devices=[]):
            key = f"{self.training.seed},{self.step},{self.rank}".encode()
            torch.manual_seed(int.from_bytes(hashlib.sha256(key).digest()[:7], "big"))
            loss, counts = self.objective.loss(own, len(members))
        if loss is not None:
            loss.backward()
        value = 0.0 if loss is None else float(loss.detach())
        value, counts = distributed.reduce(value, counts, self.objective.maxima, parameters)
        limit = math.inf if self.training.clip is None else self.training.clip
        norm = float(nn.utils.clip_grad_norm_(parameters, limit))
        if not (math.isfinite(value) and math.isfinite(norm)):
            self._fail(members, norm if math.isfinite(value) else value)
        self.optimiser.step()
        self.objective.after_step()
        old = torch.tensor(self.counts or [0.0] * len(counts), dtype=torch.float64)
        total, maxima = old + counts, self.objective.maxima
        total[maxima] = torch.maximum(old, counts)[maxima]
        self.counts = total.tolist()
        self.seconds += time.perf_counter() - began
        return value

    def _fail(self, members: list[Member], value: float) -> NoReturn:
        """Raise an error that names the batch, and write the batch beside the states."""
        saved = "nothing was saved: pass out="
        if self.out is not None:
            path, kept = self.out / "failed-batch.json", states.states(self.out / "states")
            if self.rank == 0:
                stored.write_json(path, {"step": self.step, "value": str(value), "batch": members})
            last = kept[-1] if kept else "none yet"
            saved = f"the batch is in {path}, the last good state: {last}"
        first = ", ".join(f"{name}[{number}]" for name, number in members[:3])
        wrong = f"The loss or its gradient is not finite at step {self.step + 1} ({value})"
        batch = f"in the batch of {first}, ... ({len(members)} graphs)"
        raise TrainingError(f"{wrong}, {batch}; {saved}. Lower the rate, or look at these graphs.")

    def save_state(self) -> None:
        """Write the current state, unless it is saved already or there is no folder."""
        if self.out is None or self.rank or self.saved_step == self.step:
            return
        tensors = {f"model.{n}": v.detach() for n, v in self.module.state_dict().items()}
        tensors |= states.optimiser_tensors(self.optimiser, self.parameters)
        facts = {"step": self.step, "counts": self.counts, "seconds": self.seconds}
        facts |= {"history": self.history, **self.settings}
        states.write_state(self.out / "states", self.step, tensors, facts)
        self.saved_step = self.step

    def _restore_state(self) -> None:
        """Continue from the newest state, if there is one."""
        if self.out is None:
            raise ValueError("A run is continued from its folder: pass out= with resume=True.")
        saved = states.states(self.out / "states")
        if not saved:
            return
        tensors, facts = states.read_state(saved[-1])
        if "counts" not in facts:
            was = "was written by an older artlas, which kept other sums"
            raise ValueError(f"{saved[-1]} {was}. Finish it with that one, or pass another folder.")
        for key, value in self.settings.items():
            before, now = facts.get(key), json.loads(json.dumps(value))
            if not (can_resume(before, now) if key == "training" else before == now):
                was = f"was made with other settings: {key} was {before}, now {value}"
                fix = "Continue with the same ones, or pass another folder."
                raise ValueError(f"{saved[-1]} {was}. {fix}")
        weights = {n.removeprefix("model."): v for n, v in tensors.items() if n[:6] == "model."}
        self.module.load_state_dict(weights)
        states.restore_optimiser(self.optimiser, self.parameters, tensors)
        self.step, self.counts, self.seconds = facts["step"], facts["counts"], facts["seconds"]
        self.history, self.saved_step = facts["history"], facts["step"]
