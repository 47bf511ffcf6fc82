"""Training states on disk: weights, Adam's moments and counters, written atomically."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from artlas.files.stored import read_json, read_tensors, write_json, write_tensors

STATE, STATE_JSON = "state.safetensors", "state.json"
KEPT = 2  # number of states that stay on disk


def write_state(folder: Path, step: int, tensors: dict[str, Tensor], facts: dict[str, Any]) -> Path:
    """Write a training state as ``folder/step-N``, and delete all but the newest two."""
    place, part = folder / f"step-{step:09d}", folder / f".step-{step:09d}.part"
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    write_tensors(part / STATE, tensors)
    write_json(part / STATE_JSON, facts)
    shutil.rmtree(place, ignore_errors=True)
    os.replace(part, place)
    _sync(folder)
    for old in [*states(folder)[:-KEPT], *folder.glob(".step-*.part")]:
        shutil.rmtree(old, ignore_errors=True)
    return place


def states(folder: Path) -> list[Path]:
    """List the training states in a folder, the oldest first."""
    return sorted(path for path in folder.glob("step-*") if (path / STATE_JSON).is_file())


def read_state(place: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read the tensors and facts of a training state."""
    return read_tensors(place / STATE), read_json(place / STATE_JSON)


def optimiser_tensors(optimiser: torch.optim.Adam, named: dict[str, Tensor]) -> dict[str, Tensor]:
    """Collect Adam's moments and step counts by the names of the parameters."""
    return {
        f"adam.{key}.{name}": value
        for name, parameter in named.items()
        for key, value in optimiser.state.get(parameter, {}).items()
    }


def restore_optimiser(
    optimiser: torch.optim.Adam, named: dict[str, Tensor], tensors: dict[str, Tensor]
) -> None:
    """Restore what :func:`optimiser_tensors` collected."""
    for name, parameter in named.items():
        keys = {key: f"adam.{key}.{name}" for key in ("step", "exp_avg", "exp_avg_sq")}
        if tensors.keys() >= set(keys.values()):
            optimiser.state[parameter] = {k: tensors[full].clone() for k, full in keys.items()}


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
