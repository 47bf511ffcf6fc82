"""What all baselines share: settings, training by :mod:`artlas.training.loop`, reading out, files."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, get_args

import numpy as np
import torch
from torch import Tensor, nn

from artlas import checks
from artlas.errors import raise_graph_error
from artlas.files import stored
from artlas.graphs.collection import Graphs
from artlas.io.reading import as_graphs
from artlas.method import checkpoint
from artlas.nodes.ego import EgoGraphs
from artlas.training import distributed
from artlas.training.loop import PretrainConfig, Progress, source_hashes, train
from artlas.training.sampler import Member
from artlas_paper.methods.batch import Batch, Shared
from artlas_paper.protocol import BASELINE_LAYERS, PADDED_WIDTH, SEED

Domains = Mapping[str, Graphs | EgoGraphs]
ReadOut = Literal["pool", "centre"]
PART = 25_600  # nodes that are embedded at a time
KEPT_NODES = 1 << 24  # of ego-graphs whose edges are kept


@dataclass(frozen=True)
class BaselineConfig:
    """What every baseline must know.

    features: width of x; hidden: width of a layer; layers: of message passing; domains: the number
    of classes of every domain in the order of pretraining, 0 where there are no labels; seed: of
    the initial weights.
    """

    features: int = PADDED_WIDTH
    hidden: int = 64
    layers: int = BASELINE_LAYERS
    domains: tuple[int, ...] = (0,)
    seed: int = SEED

    def __post_init__(self) -> None:
        checks.whole(self, "features", "hidden", "layers")
        object.__setattr__(self, "domains", tuple(self.domains))
        if not self.domains or any(not isinstance(n, int) or n < 0 for n in self.domains):
            raise ValueError(
                f"{type(self).__name__}.domains must be the numbers of classes of at least one "
                f"domain, got {self.domains!r}."
            )

    @classmethod
    def for_domains(cls, domains: Domains, **options: Any) -> Any:
        """Settings that fit these domains."""
        widths = {_whole(graphs).num_features or 1 for graphs in domains.values()}
        if len(widths) != 1:
            raise ValueError(
                f"The domains have features of widths {sorted(widths)}: bring them to one width."
            )
        classes = tuple(classes_of(graphs) for graphs in domains.values())
        return cls(features=widths.pop(), domains=classes, **options)


class Baseline(nn.Module):
    """A method that learns from graphs of several domains, and then gives one vector a graph.

    A method defines ``build``, ``loss`` and ``states``; what else it may define is below. Initial
    weights depend on ``config.seed`` alone; random numbers of a step are PyTorch's, which the
    trainer seeds by step.
    """

    name: ClassVar[str]
    Config: ClassVar[type[BaselineConfig]] = BaselineConfig

    def __init__(self, config: Any = None) -> None:
        super().__init__()
        self.config = self.Config() if config is None else config
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.config.seed)
            self.build()

    def build(self) -> None:
        """Make the modules, parameters and buffers."""
        raise NotImplementedError

    def prepare(self, domains: Domains) -> None:
        """Get ready for these domains, before any step: what can be computed once."""

    def loss(self, batch: Batch) -> Tensor:
        """The loss of a batch, a scalar."""
        raise NotImplementedError

    def after_step(self) -> None:
        """What follows a step of the optimiser."""

    def states(self, batch: Batch) -> Tensor:
        """The frozen vectors of nodes, [N, c]."""
        raise NotImplementedError

    def pool(self, batch: Batch, states: Tensor) -> Tensor:
        """The frozen vectors of graphs from those of their nodes, [G, c]."""
        return batch.mean_pool(states)

    def read_centre(self, batch: Batch, states: Tensor) -> Tensor:
        """The frozen vectors of ego-graphs from those of their centres, [G, c]."""
        return states[batch.node_ptr[:-1]]

    def embed(self, graphs: Any, read_out: ReadOut = "pool") -> Tensor:
        """One vector a graph, [G, c], the same alone as among others; of the centre if asked."""
        return self.read(graphs, (read_out,))[read_out]

    @torch.no_grad()
    def read(
        self, graphs: Any, ways: Sequence[ReadOut], report: Callable[[int, int], None] | None = None
    ) -> dict[ReadOut, Tensor]:
        """The same in several ways at once; report is told how many graphs are done, and of all."""
        if not set(ways) <= set(get_args(ReadOut)):
            raise ValueError(f"read_out is pool or centre, got {', '.join(ways)}.")
        data = graphs if isinstance(graphs, EgoGraphs) else as_graphs(graphs)
        width = _whole(data).num_features or 1
        if width != self.config.features:
            got = f"{width:,} where {self.config.features:,} were learnt from"
            raise_graph_error("features have another width", got, "prepare them as in pretraining")
        readers = {"pool": self.pool, "centre": self.read_centre}
        made: dict[ReadOut, list[Tensor]] = {way: [] for way in ways}
        before = self.training
        self.eval()
        try:
            done = 0
            for part in data.batches(PART):
                batch = Batch.of(part)
                states = self.states(batch)
                for way in ways:
                    made[way].append(readers[way](batch, states))
                done += batch.num_graphs
                if report is not None:
                    report(done, len(data))
        finally:
            self.train(before)
        return {way: torch.cat(parts) for way, parts in made.items()}

    def pretrain(
        self,
        domains: Domains,
        training: PretrainConfig | None = None,
        out: Any = None,
        resume: bool = False,
        report: Callable[[Progress], None] | None = None,
    ) -> list[float]:
        """Learn from the graphs of all domains; the mean loss of every epoch.

        ``out`` and ``resume`` are as in :func:`artlas.pretrain`. Under torchrun, what is contrasted
        within a batch is contrasted within the share of a process.
        """
        training = PretrainConfig() if training is None else training
        out = None if out is None else Path(out)
        self._check(domains)
        self.prepare(domains)
        self.train()
        losses = train(_Learning(self, domains), domains, training, out, resume, report)
        self.eval()
        if out is not None and distributed.rank() == 0:
            facts = {"training": dataclasses.asdict(training), "sources": source_hashes(domains)}
            checkpoint.save(self, out, {"method": self.name, **facts})
        return losses

    def stepper(self, graphs: Graphs | Domains, training: PretrainConfig) -> Callable[[], float]:
        """A function that takes one training step on all these graphs, and gives its loss."""
        domains: Domains = {"graphs": graphs} if isinstance(graphs, Graphs) else graphs
        self._check(domains)
        self.prepare(domains)
        self.train()
        optimiser = training.make([p for p in self.parameters() if p.requires_grad])
        members = [(name, i) for name, own in domains.items() for i in range(len(own))]
        learning = _Learning(self, domains)

        def step() -> float:
            optimiser.zero_grad()
            loss, _ = learning.loss(members, len(members))
            assert loss is not None
            loss.backward()
            if training.clip is not None:
                nn.utils.clip_grad_norm_(self.parameters(), training.clip)
            optimiser.step()
            self.after_step()
            return float(loss.detach())

        return step

    def _check(self, domains: Domains) -> None:
        if not domains:
            raise ValueError("Pretraining needs at least one domain, got none.")
        wanted = self.Config.for_domains(domains)
        if wanted.features != self.config.features:
            got = f"{wanted.features:,} where the settings say {self.config.features:,}"
            raise_graph_error(
                "features have another width", got, f"use {self.Config.__name__}.for_domains"
            )
        if len(domains) > len(self.config.domains):
            got = f"{len(domains)} domains where the settings say {len(self.config.domains)}"
            raise_graph_error(
                "there are too many domains", got, f"use {self.Config.__name__}.for_domains"
            )


class _Learning:
    """A baseline's loss as the trainer wants it. Counts: graphs, sum of losses."""

    watched, maxima = "loss", slice(0, 0)

    def __init__(self, method: Baseline, domains: Domains) -> None:
        self.module, self.domains = method, domains
        self.place = {name: i for i, name in enumerate(domains)}
        self.structures = {name: _structures(graphs) for name, graphs in domains.items()}
        self.features = {name: _features(_whole(graphs)) for name, graphs in domains.items()}
        self.labels = {name: labels_of(graphs) for name, graphs in domains.items()}

    def settings(self) -> Mapping[str, Any]:
        return {
            "method": self.module.name,
            "model": dataclasses.asdict(self.module.config),
            "features": {name: _features_hash(graphs) for name, graphs in self.domains.items()},
        }

    def loss(self, members: list[Member], whole: int) -> tuple[Tensor | None, Tensor]:
        if not members:
            return None, torch.zeros(2, dtype=torch.float64)
        batch = self.batch(members)
        loss = self.module.loss(batch)
        counts = [float(len(members)), float(loss.detach()) * len(members)]
        return loss * (len(members) / whole), torch.tensor(counts, dtype=torch.float64)

    def batch(self, members: list[Member]) -> Batch:
        """These graphs, domain by domain."""
        ordered = tuple(sorted(members, key=lambda member: self.place[member[0]]))
        parts, tables, rows, count = [], [], [], 0
        for name, group in itertools.groupby(ordered, key=lambda member: member[0]):
            part = self.structures[name][[number for _, number in group]]
            used = torch.from_numpy(part.ids)
            own = torch.arange(len(used))
            if isinstance(self.domains[name], EgoGraphs):
                used, own = used.unique(return_inverse=True)
            tables.append(self.features[name].index_select(0, used))
            rows.append(own + count)
            count += len(used)
            parts.append(dataclasses.replace(part, ids=None))
        graphs, features = Graphs.concat(parts), torch.cat(tables)
        egos = any(isinstance(self.domains[name], EgoGraphs) for name, _ in ordered)
        return Batch(
            graphs.node_ptr,
            graphs.row_ptr,
            graphs.col,
            Shared(features, torch.cat(rows)) if egos else features,
            torch.tensor([self.place[name] for name, _ in ordered]),
            torch.stack([self.labels[name][number] for name, number in ordered]),
            ordered,
        )

    def after_step(self) -> None:
        self.module.after_step()

    def record(self, counts: list[float]) -> dict[str, float]:
        graphs, loss = counts
        return {"loss": loss / graphs}


def labels_of(graphs: Graphs | EgoGraphs) -> Tensor:
    """A label a graph, int64 [G]; -1 where there is none."""
    y = graphs.y
    if y is None or len(y) != len(graphs) or y.is_floating_point():
        return torch.full((len(graphs),), -1)
    return y


def classes_of(graphs: Graphs | EgoGraphs) -> int:
    """The number of classes, 0 without labels."""
    return max(int(labels_of(graphs).max()) + 1, 0)


def load(folder: Any) -> Baseline:
    """A baseline that ``pretrain`` wrote into a folder."""
    from artlas_paper.methods.registry import find

    settings = stored.read_json(Path(folder) / checkpoint.CONFIG)
    made = find(settings["method"]).method
    model = made(made.Config(**settings["model"]))
    model.load_state_dict(stored.read_tensors(Path(folder) / checkpoint.MODEL))
    return model.eval()


def _whole(graphs: Graphs | EgoGraphs) -> Graphs:
    return graphs.graph if isinstance(graphs, EgoGraphs) else graphs


def _structures(graphs: Graphs | EgoGraphs) -> Graphs | EgoGraphs:
    """Graphs without features or labels whose ``ids`` are the rows of their nodes' features.

    Ego-graphs are cut out once, unless they have too many nodes for that.
    """
    whole = _whole(graphs)
    bare = Graphs(whole.node_ptr, whole.row_ptr, whole.col, ids=np.arange(whole.num_nodes))
    if isinstance(graphs, EgoGraphs):
        egos = dataclasses.replace(graphs, graph=bare)
        return egos[:] if len(graphs.nodes) <= KEPT_NODES else egos
    return bare


def _features(graphs: Graphs) -> Tensor:
    return torch.ones(graphs.num_nodes, 1) if graphs.x is None else graphs.x


def _features_hash(graphs: Graphs | EgoGraphs) -> str:
    x = _whole(graphs).x
    return "none" if x is None else hashlib.sha256(x.contiguous().numpy().tobytes()).hexdigest()
