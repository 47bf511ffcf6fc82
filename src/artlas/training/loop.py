"""Training of any module on unlabelled graphs of several domains: batches, states, log, resume.

Domain-balanced batches; Adam or AdamW. The order of the graphs and all randomness of a step are
functions of the seed and the step, so that a state is weights, Adam's moments, the step and the
sums of the epoch: a run that is continued ends with the same bits as one that was never broken off.
"""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import json
import math
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

import torch
from torch import Tensor, nn

from artlas import checks
from artlas.files import stored
from artlas.files.atomic import atomic
from artlas.graphs.collection import Graphs
from artlas.nodes.ego import EgoGraphs
from artlas.training import distributed, glibc_malloc, states
from artlas.training.sampler import BalancedSampler, Member

Sources = Mapping[str, Graphs | EgoGraphs]
Optimiser = Literal["adam", "adamw"]
OPTIMISERS = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}


class TrainingError(RuntimeError):
    """Training that cannot go on, why, and what was kept."""


@dataclass(frozen=True)
class PretrainConfig:
    """How to train; the defaults are those of the authors' published runs.

    clip: the largest norm of a gradient, None for any; checkpoint_every: steps between two states that are
    kept on disk; seed: of the order of the graphs, while that of the initial weights is the
    model's own. plateau: end before ``epochs`` when the mean loss of the last ``patience`` epochs
    is less than this share below that of the ones before. decay: of the weights, added to the
    gradient by ``adam`` and apart from it by ``adamw``.
    """

    epochs: int = 60
    batch: int = 64
    rate: float = 1e-3
    clip: float | None = 5.0
    seed: int = 42
    checkpoint_every: int = 500
    plateau: float | None = None
    patience: int = 5
    decay: float = 0.0
    optimiser: Optimiser = "adam"

    def __post_init__(self) -> None:
        checks.integer(self, "epochs", "batch", "checkpoint_every", "patience")
        checks.positive(self, "rate")
        checks.positive(self, *(n for n in ("clip", "plateau") if getattr(self, n) is not None))
        checks.non_negative(self, "decay")
        checks.one_of(self, "optimiser", tuple(OPTIMISERS))

    def make(self, parameters: Iterable[Tensor]) -> torch.optim.Adam:
        """The optimiser of these parameters."""
        return OPTIMISERS[self.optimiser](parameters, lr=self.rate, weight_decay=self.decay)


@dataclass(frozen=True)
class Progress:
    """Where a run is: handed to ``report`` after every step."""

    step: int
    steps: int
    epoch: int
    loss: float


class Objective(Protocol):
    """What is trained, and how its loss is made of the graphs of a batch."""

    watched: str  # the name in an epoch's record that a plateau is of
    maxima: slice  # which of the counts are largest values; the others are sums

    @property
    def module(self) -> nn.Module:
        """What is trained."""
        ...

    def settings(self) -> Mapping[str, Any]:
        """What a continued run must have in common with the one before, for JSON."""
        ...

    def loss(self, members: list[Member], whole: int) -> tuple[Tensor | None, Tensor]:
        """The share of these graphs in the loss of a batch of so many, and counts [c] of them."""
        ...

    def after_step(self) -> None:
        """What follows a step, if anything."""
        ...

    def record(self, counts: list[float]) -> dict[str, float]:
        """What the log says of an epoch."""
        ...


def train(
    objective: Objective,
    sources: Sources,
    training: PretrainConfig,
    out: Path | None,
    resume: bool,
    report: Callable[[Progress], None] | None,
) -> list[float]:
    """Train to the end, and give the watched value of every epoch.

    With ``out``, a folder, the log and the states are written there; ``resume`` continues from the
    newest state, which must have been made with the same settings and graphs, and may have been
    meant for fewer epochs. Under torchrun, every process trains on its share of each batch.
    """
    run = _Run(objective, sources, training, out, resume)
    try:
        with glibc_malloc.kept():
            run.train(report or (lambda progress: None))
    except KeyboardInterrupt:
        run.keep()
        raise
    finally:
        run.log.close()
    run.team.leave()
    return run.history


def fingerprint(graphs: Graphs | EgoGraphs) -> str:
    """A hash of the structure: equal for equal graphs, whatever their features and labels."""
    found = hashlib.sha256()
    if isinstance(graphs, EgoGraphs):
        found.update(graphs.node_ptr.tobytes() + graphs.nodes.tobytes())
        graphs = graphs.graph
    for part in (graphs.node_ptr, graphs.row_ptr, graphs.col):
        found.update(part.numpy().tobytes())
    return found.hexdigest()


def source_hashes(sources: Sources) -> dict[str, dict[str, Any]]:
    """What is kept of the graphs that a model was trained on."""
    return {
        name: {"graphs": len(graphs), "sha256": fingerprint(graphs)}
        for name, graphs in sources.items()
    }


def gather(sources: Sources, members: list[Member]) -> Graphs:
    """The graphs of a batch, source by source."""
    chosen: dict[str, list[int]] = {}
    for name, number in members:
        chosen.setdefault(name, []).append(number)
    return Graphs.concat([sources[name][chosen[name]] for name in sources if name in chosen])


def structure_only(graphs: Graphs | EgoGraphs) -> Graphs | EgoGraphs:
    """The same without features, labels and names: structure is all that training sees."""
    if isinstance(graphs, EgoGraphs):
        return dataclasses.replace(graphs, graph=_without_features(graphs.graph))
    return _without_features(graphs)


def _without_features(graphs: Graphs) -> Graphs:
    return Graphs(graphs.node_ptr, graphs.row_ptr, graphs.col)


class _Run:
    def __init__(
        self,
        objective: Objective,
        sources: Sources,
        training: PretrainConfig,
        out: Path | None,
        resume: bool,
    ) -> None:
        if not sources:
            raise ValueError("Pretraining needs at least one source, got none.")
        self.team = distributed.join()
        self.objective, self.training, self.out = objective, training, out
        sizes = {name: len(graphs) for name, graphs in sources.items()}
        self.sampler = BalancedSampler(sizes, training.batch, training.seed)
        self.module = objective.module
        self.named = {n: p for n, p in self.module.named_parameters() if p.requires_grad}
        self.optimiser = training.make(list(self.named.values()))
        self.step, self.counts, self.seconds, self.kept = 0, list[float](), 0.0, -1
        self.history: list[float] = []  # the watched value of every epoch
        self.settings = {
            **objective.settings(),
            "training": dataclasses.asdict(training),
            "sources": source_hashes(sources),
        }
        if resume:
            self._resume()
        elif out is not None and states.states(out / "states"):
            raise FileExistsError(
                f"{out} holds a run already. Continue it with resume=True (--resume), or pass "
                "another folder."
            )
        self.log = _Log(out if self.team.rank == 0 else None, self.step)

    @property
    def steps(self) -> int:
        return self.training.epochs * self.sampler.batches

    def train(self, report: Callable[[Progress], None]) -> None:
        """Take every step that is left."""
        per_epoch = self.sampler.batches
        while True:
            epoch, done = divmod(self.step, per_epoch)
            if done == 0 and self.counts:
                self._close_epoch(epoch)
            if self.step >= self.steps or self._flat():
                break
            for members in itertools.islice(self.sampler.epoch(epoch + 1), done, None):
                loss = self._take_step(members)
                self.step += 1
                report(Progress(self.step, self.steps, epoch + 1, loss))
                if self.step % self.training.checkpoint_every == 0 and self.step % per_epoch:
                    self.keep()

    def _close_epoch(self, epoch: int) -> None:
        record = self.objective.record(self.counts)
        self.log.write({"step": self.step, "epoch": epoch, **record, "seconds": self.seconds})
        self.history.append(record[self.objective.watched])
        self.counts, self.seconds = [], 0.0
        self.kept = -1  # what may be kept of this step lacks the record
        self.keep()

    def _flat(self) -> bool:
        """Whether the rule of the plateau says that it is enough."""
        rule, last = self.training.plateau, self.training.patience
        if rule is None or self.step % self.sampler.batches or len(self.history) < 2 * last:
            return False
        recent, before = sum(self.history[-last:]), sum(self.history[-2 * last : -last])
        return before - recent < rule * abs(before)

    def _take_step(self, members: list[Member]) -> float:
        began = time.perf_counter()
        self.optimiser.zero_grad(set_to_none=False)
        own = members[self.team.rank :: self.team.size]
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(_mixed(self.training.seed, self.step, self.team.rank))
            loss, counts = self.objective.loss(own, len(members))
        if loss is not None:
            loss.backward()
        value = 0.0 if loss is None else float(loss.detach())
        value, counts = self.team.add_up(value, counts, self.objective.maxima, self.named.values())
        if not math.isfinite(value):
            self._give_up(members, value)
        limit = math.inf if self.training.clip is None else self.training.clip
        norm = torch.nn.utils.clip_grad_norm_(self.named.values(), limit)
        if not torch.isfinite(norm):
            self._give_up(members, float(norm))
        self.optimiser.step()
        self.objective.after_step()
        self._count(counts)
        self.seconds += time.perf_counter() - began
        return value

    def _count(self, counts: Tensor) -> None:
        most = range(len(counts))[self.objective.maxima]
        old = self.counts or [0.0] * len(counts)
        self.counts = [
            max(a, b) if i in most else a + b
            for i, (a, b) in enumerate(zip(old, counts.tolist(), strict=True))
        ]

    def _give_up(self, members: list[Member], value: float) -> None:
        kept = "nothing was kept: pass out="
        if self.out is not None:
            if self.team.rank == 0:
                batch = {"step": self.step, "value": str(value), "batch": members}
                stored.write_json(self.out / "failed-batch.json", batch)
            found = states.states(self.out / "states")
            where = f"{found[-1]}" if found else "none yet"
            kept = f"the batch is in {self.out / 'failed-batch.json'}, the last good state: {where}"
        first = ", ".join(f"{name}[{number}]" for name, number in members[:3])
        raise TrainingError(
            f"The loss or its gradient is not finite at step {self.step + 1} ({value}), in the "
            f"batch of {first}, ... ({len(members)} graphs); {kept}. Lower the rate, or look at "
            "these graphs."
        )

    def keep(self) -> None:
        """Write the state of now, if there is a folder and it is not there already."""
        if self.out is None or self.team.rank or self.kept == self.step:
            return
        tensors = {f"model.{n}": v.detach() for n, v in self.module.state_dict().items()}
        tensors |= states.optimiser_tensors(self.optimiser, dict(self.named))
        facts = {"step": self.step, "counts": self.counts, "seconds": self.seconds}
        facts |= {"history": self.history, **self.settings}
        states.write_state(self.out / "states", self.step, tensors, facts)
        self.kept = self.step

    def _resume(self) -> None:
        if self.out is None:
            raise ValueError("A run is continued from its folder: pass out= with resume=True.")
        found = states.states(self.out / "states")
        if not found:
            return
        tensors, facts = states.read_state(found[-1])
        if "counts" not in facts:
            raise ValueError(
                f"{found[-1]} was written by an older artlas, which kept other sums. Finish it "
                "with that one, or pass another folder."
            )
        for key, wanted in self.settings.items():
            if not same_settings(key, facts.get(key), json.loads(json.dumps(wanted))):
                raise ValueError(
                    f"{found[-1]} was made with other settings: {key} was {facts.get(key)}, now "
                    f"{wanted}. Continue with the same ones, or pass another folder."
                )
        weights = {n.removeprefix("model."): v for n, v in tensors.items() if n[:6] == "model."}
        self.module.load_state_dict(weights)
        states.restore_optimiser(self.optimiser, dict(self.named), tensors)
        self.step, self.counts, self.seconds = facts["step"], facts["counts"], facts["seconds"]
        self.history = facts["history"]
        self.kept = self.step


def same_settings(key: str, before: Any, now: Any) -> bool:
    """Whether a run can be continued under settings: the same, but for more epochs."""
    if key != "training" or not isinstance(before, dict):
        return bool(before == now)
    known = dataclasses.asdict(PretrainConfig())  # settings younger than the run have defaults
    before = {**known, **before}
    if "every" in before:  # the name of checkpoint_every in the first edition
        before["checkpoint_every"] = before.pop("every")
    return before["epochs"] <= now["epochs"] and {**before, "epochs": now["epochs"]} == now


def _mixed(*numbers: int) -> int:
    """One seed of several numbers."""
    text = ",".join(str(n) for n in numbers).encode()
    return int.from_bytes(hashlib.sha256(text).digest()[:7], "big")


class _Log:
    """One JSON line an epoch; lines beyond the step that a run continues from are dropped."""

    def __init__(self, out: Path | None, step: int) -> None:
        self.file, self.board = None, None
        if out is None:
            return
        out.mkdir(parents=True, exist_ok=True)
        path = out / "log.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        kept = [line for line in lines if _step_of(line) <= step]
        with atomic(path) as whole:
            whole.write("".join(line + "\n" for line in kept).encode())
        self.file = open(path, "a", encoding="utf-8")  # noqa: SIM115
        self.board = _tensorboard(out)

    def write(self, record: dict[str, Any]) -> None:
        if self.file is not None:
            self.file.write(json.dumps(record) + "\n")
            self.file.flush()
        if self.board is not None:
            for name, value in record.items():
                self.board.add_scalar(name, value, record["step"])

    def close(self) -> None:
        if self.file is not None:
            self.file.close()
        if self.board is not None:
            self.board.close()


def _step_of(line: str) -> float:
    try:
        return float(json.loads(line)["step"])
    except (ValueError, KeyError, TypeError):  # cut off when the process was killed
        return math.inf


def _tensorboard(out: Path) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        return None
    return SummaryWriter(str(out / "tensorboard"))
