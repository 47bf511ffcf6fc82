"""Embed files of graphs into one table of vectors."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from artlas.embedding.pieces import Input, embed_piece, graph_labels
from artlas.embedding.table import Rows
from artlas.embedding.table_run import BUDGET, TableRun
from artlas.graphs.collection import Graphs
from artlas.method import checkpoint
from artlas.method.batching import nodes_within_budget
from artlas.method.model import ART
from artlas.method.representations import check_representation


@dataclass(frozen=True, eq=False)
class Embedding:
    """The work of a run that embeds graphs by a model."""

    model: ART
    representation: str
    reference = None  # the first usable input's
    remedy = "embed it into another file"

    def __post_init__(self) -> None:
        check_representation(self.representation)

    @property
    def bases(self) -> int:
        return self.model.config.bases

    def settings(self) -> dict[str, Any]:
        return {
            "representation": self.representation,
            "weights": checkpoint.weights_hash(self.model),
            "model": dataclasses.asdict(self.model.config),
        }

    def nodes_within(self, budget: int, width: int) -> int:
        return nodes_within_budget(self.model.config, width, budget)

    def rows(self, graphs: Graphs, name: str, first: int) -> Rows:
        return embed_piece(self.model, graphs, self.representation, name, first)

    def labels(self, graphs: Graphs) -> NDArray[Any]:
        return graph_labels(graphs)

    def count(self, rows: Rows) -> tuple[float, ...]:
        return ()

    def describe(self, totals: tuple[float, ...]) -> list[str]:
        return []


class Run(TableRun):
    """One table of vectors to be written, from its inputs, a model and a representation."""

    def __init__(
        self,
        out: Path,
        inputs: Sequence[Input],
        model: ART,
        representation: str,
        budget: int = BUDGET,
    ) -> None:
        super().__init__(out, inputs, Embedding(model, representation), budget)

    embed = TableRun.complete
