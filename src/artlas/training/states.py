"""The state and the log of a training run on disk, written so that a crash leaves them whole."""

from __future__ import annotations

import json
import math
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TextIO

from torch import Tensor
from torch.optim import Adam

from artlas.files.atomic import atomic
from artlas.files.stored import read_json, read_tensors, write_json, write_tensors

STATE, STATE_JSON = "state.safetensors", "state.json"
KEPT = 2  # number of states that stay on disk


def write_state(folder: Path, step: int, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
    """Write a training state as ``folder/step-N``, and delete all but the newest two."""
    place, part = folder / f"step-{step:09d}", folder / f".step-{step:09d}.part"
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    write_tensors(part / STATE, tensors)
    write_json(part / STATE_JSON, facts)
    shutil.rmtree(place, ignore_errors=True)
    os.replace(part, place)
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
    for old in [*states(folder)[:-KEPT], *folder.glob(".step-*.part")]:
        shutil.rmtree(old, ignore_errors=True)


def states(folder: Path) -> list[Path]:
    """List the training states in a folder, the oldest first."""
    return sorted(path for path in folder.glob("step-*") if (path / STATE_JSON).is_file())


def read_state(place: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read the tensors and facts of a training state."""
    return read_tensors(place / STATE), read_json(place / STATE_JSON)


def optimiser_tensors(optimiser: Adam, named: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Collect Adam's moments and step counts by the names of the parameters."""
    return {
        f"adam.{key}.{name}": value
        for name, parameter in named.items()
        for key, value in optimiser.state.get(parameter, {}).items()
    }


def restore_optimiser(
    optimiser: Adam, named: Mapping[str, Tensor], tensors: Mapping[str, Tensor]
) -> None:
    """Restore what :func:`optimiser_tensors` collected."""
    for name, parameter in named.items():
        keys = {key: f"adam.{key}.{name}" for key in ("step", "exp_avg", "exp_avg_sq")}
        if tensors.keys() >= set(keys.values()):
            optimiser.state[parameter] = {k: tensors[full].clone() for k, full in keys.items()}


def open_log(path: Path, step: int) -> TextIO:
    """Open a log of JSON lines for appending, without its lines beyond ``step``."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = path.read_text().splitlines() if path.exists() else []
    with atomic(path) as out:
        out.write("".join(f"{line}\n" for line in lines if _step_of(line) <= step).encode())
    return open(path, "a", buffering=1, encoding="utf-8")


def _step_of(line: str) -> float:
    try:
        return float(json.loads(line)["step"])
    except (ValueError, KeyError, TypeError):  # a line cut short by a crash
        return math.inf
