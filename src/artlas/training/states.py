"""Keep the states of a training run on disk: weights, Adam's moments and counters."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from artlas.files.stored import read_json, read_tensors, write_json, write_tensors

STATE, STATE_JSON = "state.safetensors", "state.json"


KEPT = 2


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
    for old in states(folder)[:-KEPT]:
        shutil.rmtree(old, ignore_errors=True)
    for left in folder.glob(".step-*.part"):
        shutil.rmtree(left, ignore_errors=True)
    return place


def states(folder: Path) -> list[Path]:
    """Training states in a folder, the oldest first."""
    return sorted(path for path in folder.glob("step-*") if (path / STATE_JSON).is_file())


def read_state(place: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors and facts of a training state."""
    return read_tensors(place / STATE), read_json(place / STATE_JSON)


def optimiser_tensors(optimiser: torch.optim.Adam, named: dict[str, Tensor]) -> dict[str, Tensor]:
    """Adam's moments and step counts by the names of the parameters."""
    out = {}
    for name, parameter in named.items():
        for key, value in optimiser.state.get(parameter, {}).items():
            out[f"adam.{key}.{name}"] = value
    return out


def restore_optimiser(
    optimiser: torch.optim.Adam, named: dict[str, Tensor], tensors: dict[str, Tensor]
) -> None:
    """Put back what :func:`optimiser_tensors` took."""
    for name, parameter in named.items():
        keys = ("step", "exp_avg", "exp_avg_sq")
        found = {key: tensors.get(f"adam.{key}.{name}") for key in keys}
        if all(value is not None for value in found.values()):
            optimiser.state[parameter] = {k: v.clone() for k, v in found.items() if v is not None}


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
