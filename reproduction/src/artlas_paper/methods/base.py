"""The interface of all baselines: configuration, pretraining and frozen embeddings."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, get_args

import torch
from torch import Tensor, nn

from artlas import checks
from artlas.errors import raise_graph_error
from artlas.graphs.collection import Graphs
from artlas.io.reading import as_graphs
from artlas.method import checkpoint
from artlas.nodes.ego import EgoGraphs
from artlas.training import distributed
from artlas.training.config import PretrainConfig
from artlas.training.loop import Objective, Progress, train
from artlas.training.sources import Member, source_hashes
from artlas_paper.methods.batch import Batch
from artlas_paper.methods.domains import (
    BatchBuilder,
    Domains,
    count_classes,
    feature_width,
    features_hash,
)
from artlas_paper.protocol import BASELINE_LAYERS, PADDED_WIDTH, SEED

ReadOut = Literal["pool", "centre"]
EMBEDDED_NODES = 25_600  # nodes that are embedded at a time


@dataclass(frozen=True)
class BaselineConfig:
    """Settings that every baseline has.

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
        checks.integer(self, "features", "hidden", "layers")
        object.__setattr__(self, "domains", tuple(self.domains))
        if not self.domains or any(not isinstance(n, int) or n < 0 for n in self.domains):
            raise ValueError(
                f"{type(self).__name__}.domains must be the numbers of classes of at least one "
                f"domain, got {self.domains!r}."
            )

    @classmethod
    def for_domains(cls, domains: Domains, **options: Any) -> Any:
        """Return settings that fit the features and labels of these domains."""
        widths = {feature_width(graphs) for graphs in domains.values()}
        if len(widths) != 1:
            raise ValueError(
                f"The domains have features of widths {sorted(widths)}: bring them to one width."
            )
        classes = tuple(count_classes(graphs) for graphs in domains.values())
        return cls(features=widths.pop(), domains=classes, **options)


class Baseline(nn.Module):
    """A method that is pretrained on graphs of several domains and then embeds graphs, frozen.

    A method defines ``build``, ``loss`` and ``states``, and may override ``prepare``,
    ``after_step``, ``pool`` and ``read_centre``. Initial weights depend on ``config.seed`` alone.
    The random numbers of a step are PyTorch's, which the trainer seeds by step.
    """

    name: ClassVar[str]
    pooling: ClassVar[Literal["mean", "sum"]] = "mean"
    Config: ClassVar[type[BaselineConfig]] = BaselineConfig

    def __init__(self, config: Any = None) -> None:
        super().__init__()
        self.config = self.Config() if config is None else config
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.config.seed)
            self.build()

    def build(self) -> None:
        """Create the modules, parameters and buffers."""
        raise NotImplementedError

    def prepare(self, domains: Domains) -> None:
        """Compute what depends on the domains alone, once before training."""

    def loss(self, batch: Batch) -> Tensor:
        """Compute the loss of a batch, a scalar."""
        raise NotImplementedError

    def zero_loss(self) -> Tensor:
        """Return a loss of 0 whose gradients are 0: for batches that nothing can be learnt from."""
        return sum((0 * p.sum() for p in self.parameters()), torch.zeros(()))

    def after_step(self) -> None:
        """Update what is not trained by gradients, after every optimiser step."""

    def states(self, batch: Batch) -> Tensor:
        """Compute the frozen vectors of nodes, [N, c]."""
        raise NotImplementedError

    def pool(self, batch: Batch, states: Tensor) -> Tensor:
        """Pool the frozen vectors of nodes to those of graphs, [G, c]."""
        return batch.sum_pool(states) if self.pooling == "sum" else batch.mean_pool(states)

    def read_centre(self, batch: Batch, states: Tensor) -> Tensor:
        """Read the frozen vectors of ego-graphs from those of their centres, [G, c]."""
        return states[batch.node_ptr[:-1]]

    def embed(self, graphs: Any, read_out: ReadOut = "pool") -> Tensor:
        """Embed graphs by pooling, or ego-graphs by their centres: one vector per graph, [G, c].

        A graph's vector does not depend on the other graphs.
        """
        return self.embed_read_outs(graphs, (read_out,))[read_out]

    @torch.no_grad()
    def embed_read_outs(
        self,
        graphs: Any,
        read_outs: Sequence[ReadOut],
        report: Callable[[int, int], None] | None = None,
    ) -> dict[ReadOut, Tensor]:
        """Embed graphs by several read-outs in one pass over the nodes.

        ``report`` is called with the number of graphs done and the number of all graphs.
        """
        if not set(read_outs) <= set(get_args(ReadOut)):
            raise ValueError(f"read_out is pool or centre, got {', '.join(read_outs)}.")
        data = graphs if isinstance(graphs, EgoGraphs) else as_graphs(graphs)
        width = feature_width(data)
        if width != self.config.features:
            got = f"{width:,} where {self.config.features:,} were learnt from"
            raise_graph_error("features have another width", got, "prepare them as in pretraining")
        readers = {"pool": self.pool, "centre": self.read_centre}
        vectors: dict[ReadOut, list[Tensor]] = {read_out: [] for read_out in read_outs}
        before = self.training
        self.eval()
        try:
            done = 0
            for part in data.batches(EMBEDDED_NODES):
                batch = Batch.of(part)
                states = self.states(batch)
                for read_out in read_outs:
                    vectors[read_out].append(readers[read_out](batch, states))
                done += batch.num_graphs
                if report is not None:
                    report(done, len(data))
        finally:
            self.train(before)
        return {read_out: torch.cat(parts) for read_out, parts in vectors.items()}

    def pretrain(
        self,
        domains: Domains,
        training: PretrainConfig | None = None,
        out: Any = None,
        resume: bool = False,
        report: Callable[[Progress], None] | None = None,
    ) -> list[float]:
        """Train on the graphs of all domains, and return the mean loss of every epoch.

        ``out`` and ``resume`` are as in :func:`artlas.pretrain`. Under torchrun, a loss that
        contrasts the graphs of a batch contrasts those of one process's share.
        """
        training = PretrainConfig() if training is None else training
        out = None if out is None else Path(out)
        self._check(domains)
        self.prepare(domains)
        self.train()
        losses = train(BaselineObjective(self, domains), domains, training, out, resume, report)
        self.eval()
        if out is not None and distributed.rank() == 0:
            facts = {"training": dataclasses.asdict(training), "sources": source_hashes(domains)}
            checkpoint.save(self, out, {"method": self.name, **facts})
        return losses

    def stepper(self, graphs: Graphs | Domains, training: PretrainConfig) -> Callable[[], float]:
        """Return a function that takes one training step on all these graphs and returns its loss.

        It is for measurements of time and memory.
        """
        domains: Domains = {"graphs": graphs} if isinstance(graphs, Graphs) else graphs
        self._check(domains)
        self.prepare(domains)
        self.train()
        optimiser = training.make_optimiser([p for p in self.parameters() if p.requires_grad])
        members = [(name, i) for name, own in domains.items() for i in range(len(own))]
        objective = BaselineObjective(self, domains)

        def step() -> float:
            optimiser.zero_grad()
            loss, _ = objective.loss(members, len(members))
            assert loss is not None
            loss.backward()
            if training.clip is not None:
                nn.utils.clip_grad_norm_(self.parameters(), training.clip)
            optimiser.step()
            self.after_step()
            return float(loss.detach())

        return step

    def _check(self, domains: Domains) -> None:
        """Refuse domains that the settings do not fit."""
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


class BaselineObjective(Objective):
    """The loss of a baseline in the form that :func:`artlas.training.loop.train` asks for.

    Its counts are the number of graphs and the sum of their losses.
    """

    module: Baseline
    watched, maxima = "loss", slice(0, 0)

    def __init__(self, method: Baseline, domains: Domains) -> None:
        self.module, self.domains = method, domains
        self.batches = BatchBuilder(domains)

    def settings(self) -> Mapping[str, Any]:
        return {
            "method": self.module.name,
            "model": dataclasses.asdict(self.module.config),
            "features": {name: features_hash(graphs) for name, graphs in self.domains.items()},
        }

    def loss(self, members: list[Member], whole: int) -> tuple[Tensor | None, Tensor]:
        if not members:
            return None, torch.zeros(2, dtype=torch.float64)
        loss = self.module.loss(self.batches.build(members))
        counts = [float(len(members)), float(loss.detach()) * len(members)]
        return loss * (len(members) / whole), torch.tensor(counts, dtype=torch.float64)

    def after_step(self) -> None:
        self.module.after_step()

    def record(self, counts: list[float]) -> dict[str, float]:
        graphs, loss = counts
        return {"loss": loss / graphs}
