"""Write graphs to a Parquet file that ``artlas.read`` gives back, for benchmarks and tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
from pyarrow import parquet

from artlas.graphs.collection import Graphs
from artlas.graphs.ragged import pointer


def write(graphs: Graphs, path: Path | str) -> None:
    """Store graphs, one a row, with all their edges in both directions, for artlas.read."""
    node_ptr, row_ptr = graphs.node_ptr.numpy(), graphs.row_ptr.numpy()
    sizes, first = np.diff(node_ptr), row_ptr[node_ptr]
    counts = np.diff(first)
    ends = np.empty(2 * len(graphs.col), dtype=np.int32)
    # Graph g holds entries first[g] ... and is preceded by two numbers for each earlier entry.
    place = np.arange(len(graphs.col)) + np.repeat(first[:-1], counts)
    base = np.repeat(node_ptr[:-1], counts)
    ends[place] = np.repeat(np.arange(graphs.num_nodes), np.diff(row_ptr)) - base
    ends[place + np.repeat(counts, counts)] = graphs.col.numpy() - base

    def lists(lengths: Any, values: Any) -> Any:
        return pyarrow.LargeListArray.from_arrays(pointer(lengths), values)

    rows = lists(np.repeat(counts, 2), pyarrow.array(ends))
    columns = {"num_nodes": sizes, "edge_index": lists(np.full(len(sizes), 2), rows)}
    if graphs.x is not None:
        width = np.full(graphs.num_nodes, graphs.num_features)
        flat = pyarrow.array(graphs.x.contiguous().numpy().reshape(-1))
        columns["x"] = lists(sizes, lists(width, flat))
    if graphs.y is not None:
        y = pyarrow.array(graphs.y.contiguous().numpy())
        columns["y"] = y if len(graphs.y) == len(graphs) else lists(sizes, y)
    if graphs.ids is not None:
        columns["ids"] = lists(sizes, pyarrow.array(graphs.ids))
    parquet.write_table(pyarrow.table(columns), path)
