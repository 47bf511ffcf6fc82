"""Weights and training states on disk: safetensors and JSON, whole or not at all."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as serialise
from torch import Tensor, nn

from artlas.config import ArtConfig
from artlas.formats.files import atomic, refuse, shown
from artlas.model import ART

MODEL, CONFIG = "model.safetensors", "config.json"
STATE, STATE_JSON = "state.safetensors", "state.json"
KEPT = 2
SHIPPED = Path(__file__).parent / "weights"


def save(model: nn.Module, folder: Any, card: dict[str, Any] | None = None) -> None:
    """Write a model's weights and settings, and what else a reader should know, into a folder."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    write_tensors(folder / MODEL, {k: v.detach() for k, v in model.state_dict().items()})
    settings: Any = model.config
    write_json(folder / CONFIG, {"model": dataclasses.asdict(settings), **(card or {})})


def load(which: Any) -> ART:
    """A trained model: the shipped ``graph`` or ``node``, or a folder that :func:`save` wrote."""
    folder = folder_of(which)
    if not (folder / MODEL).is_file():
        fix = f"pass a folder with {MODEL} and {CONFIG}, or one of {', '.join(names()) or 'none'}"
        refuse(folder, "there is no model here", shown(str(which)), fix)
    settings = read_json(folder / CONFIG)
    known = {field.name for field in dataclasses.fields(ArtConfig)}
    given = settings.get("model")
    if not isinstance(given, dict) or not set(given) <= known:
        fix = "use the artlas that wrote it, or a newer one"
        refuse(folder / CONFIG, "this is not a model's settings", shown(given), fix)
    model = ART(ArtConfig(**given))
    tensors = read_tensors(folder / MODEL)
    wanted = {name: value.shape for name, value in model.state_dict().items()}
    if {name: value.shape for name, value in tensors.items()} != wanted:
        refuse(folder / MODEL, "the weights do not fit the settings", shown(sorted(tensors)),
               f"use the {CONFIG} that was written with them")  # fmt: skip
    for name, value in tensors.items():
        if not value.isfinite().all():
            refuse(folder / MODEL, "a weight is not finite", name, "train it anew")
    model.load_state_dict(tensors)
    return model.eval()


def folder_of(which: Any) -> Path:
    """Where a model lies: a shipped one by its name, any other by its folder."""
    return SHIPPED / str(which) if str(which) in names() else Path(which)


def card(which: Any) -> dict[str, Any] | None:
    """What should be known of a shipped model: data, settings, loss, limits; None for others."""
    path = SHIPPED / f"{which}.json"
    return read_json(path) if str(which) in names() and path.is_file() else None


def weights_hash(model: nn.Module) -> str:
    """A hash of all weights, by name."""
    found = hashlib.sha256()
    for name, value in sorted(model.state_dict().items()):
        found.update(name.encode())
        found.update(value.detach().cpu().contiguous().numpy().tobytes())
    return found.hexdigest()


def names() -> list[str]:
    """The shipped models."""
    return sorted(path.parent.name for path in SHIPPED.glob(f"*/{MODEL}"))


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


def write_tensors(path: Path, tensors: dict[str, Tensor]) -> None:
    with atomic(path) as out:
        out.write(serialise({name: value.contiguous() for name, value in tensors.items()}))


def read_tensors(path: Path) -> dict[str, Tensor]:
    try:
        with safe_open(path, framework="pt") as stored:
            return {name: stored.get_tensor(name) for name in stored.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, ValueError) as error:
        refuse(path, "this is not a whole safetensors file", shown(str(error)), "write it anew")


def write_json(path: Path, content: Any, durable: bool = True) -> None:
    with atomic(path, durable=durable) as out:
        out.write((json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode())


def read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        refuse(path, "this is not a JSON file", shown(str(error)), "write it anew")
    if not isinstance(content, dict):
        refuse(path, "this is not a JSON object", shown(content), "write it anew")
    return content


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
