"""The log of a training run: one JSON line per epoch, and TensorBoard if it is installed."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from artlas.files.atomic import atomic


class TrainingLog:
    """Write records to ``folder/log.jsonl``; without a folder do nothing.

    Lines beyond ``step``, from which the run continues, are dropped.
    """

    def __init__(self, folder: Path | None, step: int) -> None:
        self._file, self._tensorboard = None, None
        if folder is None:
            return
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "log.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        with atomic(path) as out:
            out.write("".join(f"{line}\n" for line in lines if _step_of(line) <= step).encode())
        self._file = open(path, "a", encoding="utf-8")  # noqa: SIM115
        self._tensorboard = _summary_writer(folder / "tensorboard")

    def write(self, record: dict[str, Any]) -> None:
        """Append the record of an epoch."""
        if self._file is not None:
            self._file.write(json.dumps(record) + "\n")
            self._file.flush()
        if self._tensorboard is not None:
            for name, value in record.items():
                self._tensorboard.add_scalar(name, value, record["step"])

    def close(self) -> None:
        """Close the files."""
        for out in (self._file, self._tensorboard):
            if out is not None:
                out.close()


def _step_of(line: str) -> float:
    try:
        return float(json.loads(line)["step"])
    except (ValueError, KeyError, TypeError):  # a line cut short by a crash
        return math.inf


def _summary_writer(folder: Path) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        return None
    return SummaryWriter(str(folder))
