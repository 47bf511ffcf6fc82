"""Weights and training states on disk: safetensors and JSON, whole or not at all."""

from __future__ import annotations

import dataclasses
import hashlib
from pathlib import Path
from typing import Any

from torch import nn

from artlas.errors import quoted, raise_read_error
from artlas.files.stored import read_json, read_tensors, write_json, write_tensors
from artlas.method.config import ArtConfig
from artlas.method.model import ART

MODEL, CONFIG = "model.safetensors", "config.json"
SHIPPED = Path(__file__).parents[1] / "weights"


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
        raise_read_error(folder, "there is no model here", quoted(str(which)), fix)
    settings = read_json(folder / CONFIG)
    known = {field.name for field in dataclasses.fields(ArtConfig)}
    given = settings.get("model")
    if not isinstance(given, dict) or not set(given) <= known:
        fix = "use the artlas that wrote it, or a newer one"
        raise_read_error(folder / CONFIG, "this is not a model's settings", quoted(given), fix)
    model = ART(ArtConfig(**given))
    tensors = read_tensors(folder / MODEL)
    wanted = {name: value.shape for name, value in model.state_dict().items()}
    if {name: value.shape for name, value in tensors.items()} != wanted:
        raise_read_error(
            folder / MODEL,
            "the weights do not fit the settings",
            quoted(sorted(tensors)),
            f"use the {CONFIG} that was written with them",
        )
    for name, value in tensors.items():
        if not value.isfinite().all():
            raise_read_error(folder / MODEL, "a weight is not finite", name, "train it anew")
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
