"""Pretraining: lower the mean relational coverage of unlabelled graphs of several domains.

Structure only; domain-balanced batches; Adam with clipped gradients. The order of the graphs is a
function of the seed, so that a state is weights, Adam's moments, the step and the sums of the
epoch: a run that is continued ends with the same bits as one that was never broken off.
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
from typing import Any

import torch
from torch import Tensor

from artlas import checkpoint, distributed, reference
from artlas.config import ArtConfig
from artlas.energy import coverage, independent_energy
from artlas.formats.files import atomic
from artlas.graphs import Graphs
from artlas.model import ART
from artlas.ppr import EgoGraphs
from artlas.represent import responsibilities
from artlas.sampling import BalancedSampler, Member

Sources = Mapping[str, Graphs | EgoGraphs]


class TrainingError(RuntimeError):
    """Training that cannot go on, why, and what was kept."""


@dataclass(frozen=True)
class PretrainConfig:
    """How to train; the defaults are those of the authors' published runs.

    every: steps between two states that are kept on disk; seed: of the order of the graphs, while
    ``ArtConfig.seed`` is that of the initial weights. plateau: end before ``epochs`` when the mean
    coverage of the last ``patience`` epochs is less than this share below that of the ones before.
    """

    epochs: int = 60
    batch: int = 64
    rate: float = 1e-3
    clip: float = 5.0
    seed: int = 42
    every: int = 500
    plateau: float | None = None
    patience: int = 5

    def __post_init__(self) -> None:
        for name in ("epochs", "batch", "every", "patience"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ValueError(
                    f"PretrainConfig.{name} must be a positive integer, got {value!r}."
                )
        for name in ("rate", "clip", "plateau"):
            value = getattr(self, name)
            if name == "plateau" and value is None:
                continue
            if not isinstance(value, (int, float)) or not 0 < value < math.inf:
                raise ValueError(f"PretrainConfig.{name} must be positive, got {value!r}.")


@dataclass(frozen=True)
class Progress:
    """Where a run is: handed to ``report`` after every step."""

    step: int
    steps: int
    epoch: int
    loss: float


@dataclass
class EpochSums:
    """What is gathered over an epoch, as plain numbers that JSON keeps exactly."""

    graphs: float = 0.0
    coverage: float = 0.0
    lowest: float = 0.0
    gain: float = 0.0
    effective: float = 0.0
    residual: float = 0.0
    violation: float = 0.0
    seconds: float = 0.0
    shares: list[float] = dataclasses.field(default_factory=list)

    def record(self) -> dict[str, float]:
        """Means over the epoch, and the largest residual and violation of the bounds."""
        shares = torch.tensor(self.shares, dtype=torch.float64) / self.graphs
        used = torch.exp(-(shares * shares.clamp_min(1e-300).log()).sum())
        mean = {name: getattr(self, name) / self.graphs for name in _MEANS}
        return {
            **mean,
            "effective_bases": float(used),
            "residual": self.residual,
            "bound_violation": self.violation,
            "seconds": self.seconds,
        }


_MEANS = ("coverage", "lowest", "gain", "effective")


def pretrain(
    sources: Sources,
    config: ArtConfig | None = None,
    training: PretrainConfig | None = None,
    out: Any = None,
    resume: bool = False,
    report: Callable[[Progress], None] | None = None,
) -> ART:
    """Train a model on the structure of the sources, and return it.

    With ``out``, a folder, the log, the states and the model are written there; ``resume``
    continues from the newest state, which must have been made with the same settings and graphs.
    Under torchrun, every process trains on its share of each batch.
    """
    run = _Run(
        dict(sources),
        ArtConfig() if config is None else config,
        PretrainConfig() if training is None else training,
        None if out is None else Path(out),
        resume,
    )
    try:
        run.train(report or (lambda progress: None))
    except KeyboardInterrupt:
        run.keep()
        raise
    finally:
        run.log.close()
    return run.finish()


def fingerprint(graphs: Graphs | EgoGraphs) -> str:
    """A hash of the structure: equal for equal graphs, whatever their features and labels."""
    found = hashlib.sha256()
    if isinstance(graphs, EgoGraphs):
        found.update(graphs.node_ptr.tobytes() + graphs.nodes.tobytes())
        graphs = graphs.graph
    for part in (graphs.node_ptr, graphs.row_ptr, graphs.col):
        found.update(part.numpy().tobytes())
    return found.hexdigest()


def gather(sources: Sources, members: list[Member]) -> Graphs:
    """The graphs of a batch, source by source."""
    chosen: dict[str, list[int]] = {}
    for name, number in members:
        chosen.setdefault(name, []).append(number)
    return Graphs.concat([sources[name][chosen[name]] for name in sources if name in chosen])


class _Run:
    def __init__(
        self, sources: dict[str, Graphs | EgoGraphs], config: ArtConfig, training: PretrainConfig,
        out: Path | None, resume: bool,
    ) -> None:  # fmt: skip
        if not sources:
            raise ValueError("Pretraining needs at least one source, got none.")
        self.team = distributed.join()
        self.config, self.training, self.out = config, training, out
        self.sources = {name: bare(graphs) for name, graphs in sources.items()}
        sizes = {name: len(graphs) for name, graphs in sources.items()}
        self.sampler = BalancedSampler(sizes, training.batch, training.seed)
        self.model = ART(config)
        self.named = dict(self.model.named_parameters())
        trained = [p for p in self.named.values() if p.requires_grad]
        self.optimiser = torch.optim.Adam(trained, lr=training.rate)
        self.step, self.sums, self.kept = 0, EpochSums(), -1
        self.history: list[float] = []  # the coverage of every epoch
        self.settings = {
            "model": dataclasses.asdict(config),
            "training": dataclasses.asdict(training),
            "sources": {
                name: {"graphs": len(graphs), "sha256": fingerprint(graphs)}
                for name, graphs in sources.items()
            },
        }
        if resume:
            self._resume()
        elif out is not None and checkpoint.states(out / "states"):
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
            if done == 0 and self.sums.graphs:
                self._close_epoch(epoch)
            if self.step >= self.steps or self._flat():
                break
            for members in itertools.islice(self.sampler.epoch(epoch + 1), done, None):
                loss = self._take_step(members)
                self.step += 1
                report(Progress(self.step, self.steps, epoch + 1, loss))
                if self.step % self.training.every == 0 and self.step % per_epoch:
                    self.keep()

    def _close_epoch(self, epoch: int) -> None:
        record = {"step": self.step, "epoch": epoch, **self.sums.record()}
        self.log.write(record)
        self.history.append(record["coverage"])
        self.sums = EpochSums()
        self.kept = -1  # what may be kept of this step lacks the record
        self.keep()

    def _flat(self) -> bool:
        """Whether the rule of the plateau says that it is enough."""
        rule, last = self.training.plateau, self.training.patience
        if rule is None or self.step % self.sampler.batches or len(self.history) < 2 * last:
            return False
        recent, before = sum(self.history[-last:]), sum(self.history[-2 * last : -last])
        return recent > (1 - rule) * before

    def _take_step(self, members: list[Member]) -> float:
        began = time.perf_counter()
        self.optimiser.zero_grad(set_to_none=False)
        own = members[self.team.rank :: self.team.size]
        loss, seen = self._loss(own, len(members))
        if loss is not None:
            loss.backward()
        value = 0.0 if loss is None else float(loss.detach())
        value, seen = self.team.add_up(value, seen, self.named.values())
        if not math.isfinite(value):
            self._give_up(members, value)
        norm = torch.nn.utils.clip_grad_norm_(self.named.values(), self.training.clip)
        if not torch.isfinite(norm):
            self._give_up(members, float(norm))
        self.optimiser.step()
        self._count(seen, time.perf_counter() - began)
        return value

    def _loss(self, members: list[Member], whole: int) -> tuple[Tensor | None, Tensor]:
        """The share of these graphs in the mean coverage, and what is counted of them."""
        bases, tau = self.config.bases, self.config.coverage_temperature
        if not members:
            return None, torch.zeros(bases + 7, dtype=torch.float64)
        structure = self.model.structure(gather(self.sources, members))
        energies, residuals = self.model.pairs(structure)
        loss = coverage(energies, tau)
        with torch.no_grad():
            e, covered = energies.double(), loss.double()
            lowest = e.min(1).values
            product = independent_energy(structure, self.model.atlas.relations()).double()
            shares = responsibilities(e, self.config.responsibility_temperature)
            effective = torch.exp(-(shares * shares.clamp_min(1e-300).log()).sum(1))
            violation = torch.maximum(
                lowest - covered, covered - lowest - tau * math.log(bases)
            ).max()
            sums = [covered.sum(), lowest.sum(), ((product - e) / product).mean(1).sum()]
            sums += [effective.sum(), residuals.max().double(), violation.clamp_min(0)]
            count = torch.tensor(float(len(e)), dtype=torch.float64)
            seen = torch.cat([torch.stack([count, *sums]), shares.sum(0)])
        return loss.sum() / whole, seen

    def _count(self, seen: Tensor, seconds: float) -> None:
        graphs, covered, lowest, gain, effective, residual, violation, *shares = seen.tolist()
        s = self.sums
        s.graphs += graphs
        s.coverage += covered
        s.lowest += lowest
        s.gain += gain
        s.effective += effective
        s.residual, s.violation = max(s.residual, residual), max(s.violation, violation)
        s.seconds += seconds
        s.shares = [a + b for a, b in zip(s.shares or [0.0] * len(shares), shares, strict=True)]

    def _give_up(self, members: list[Member], value: float) -> None:
        kept = "nothing was kept: pass out="
        if self.out is not None:
            if self.team.rank == 0:
                batch = {"step": self.step, "value": str(value), "batch": members}
                checkpoint.write_json(self.out / "failed-batch.json", batch)
            found = checkpoint.states(self.out / "states")
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
        tensors = {f"model.{n}": v.detach() for n, v in self.model.state_dict().items()}
        tensors |= checkpoint.optimiser_tensors(self.optimiser, dict(self.named))
        facts = {"step": self.step, "sums": dataclasses.asdict(self.sums)}
        facts |= {"history": self.history, **self.settings}
        checkpoint.write_state(self.out / "states", self.step, tensors, facts)
        self.kept = self.step

    def _resume(self) -> None:
        if self.out is None:
            raise ValueError("A run is continued from its folder: pass out= with resume=True.")
        found = checkpoint.states(self.out / "states")
        if not found:
            return
        tensors, facts = checkpoint.read_state(found[-1])
        for key, wanted in self.settings.items():
            if facts.get(key) != json.loads(json.dumps(wanted)):
                raise ValueError(
                    f"{found[-1]} was made with other settings: {key} was {facts.get(key)}, now "
                    f"{wanted}. Continue with the same ones, or pass another folder."
                )
        weights = {n.removeprefix("model."): v for n, v in tensors.items() if n[:6] == "model."}
        self.model.load_state_dict(weights)
        checkpoint.restore_optimiser(self.optimiser, dict(self.named), tensors)
        self.step, self.sums = facts["step"], EpochSums(**facts["sums"])
        self.history = facts["history"]
        self.kept = self.step

    def finish(self) -> ART:
        """Write the model, and where its graphs lie, beside its log, and return it."""
        model = self.model.eval()
        if self.out is not None and self.team.rank == 0:
            reference.save(reference.make(model, self.sources), self.out)
            checkpoint.save(model, self.out, {k: self.settings[k] for k in ("training", "sources")})
        self.team.leave()
        return model


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


def bare(graphs: Graphs | EgoGraphs) -> Graphs | EgoGraphs:
    """The same without features, labels and names: structure is all that training sees."""
    if isinstance(graphs, EgoGraphs):
        return dataclasses.replace(graphs, graph=_only_structure(graphs.graph))
    return _only_structure(graphs)


def _only_structure(graphs: Graphs) -> Graphs:
    return Graphs(graphs.node_ptr, graphs.row_ptr, graphs.col)
