"""Models on disk: weights as safetensors, settings as JSON, written atomically."""

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
    """Write a model's weights and settings, and the entries of ``card``, into a folder."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    write_tensors(folder / MODEL, {k: v.detach() for k, v in model.state_dict().items()})
    settings: Any = model.config
    write_json(folder / CONFIG, {"model": dataclasses.asdict(settings), **(card or {})})


def load(which: Any) -> ART:
    """Load a trained model: the shipped ``graph`` or ``node``, or a folder of :func:`save`."""
    folder = folder_of(which)
    if not (folder / MODEL).is_file():
        fix = f"pass a folder with {MODEL} and {CONFIG}, or one of {', '.join(names()) or 'none'}"
        raise_read_error(folder, "there is no model here", quoted(str(which)), fix)
    settings = read_json(folder / CONFIG)
    known = {field.name for field in dataclasses.fields(ArtConfig)}
    config = settings.get("model")
    if not isinstance(config, dict) or not set(config) <= known:
        fix = "use the artlas that wrote it, or a newer one"
        raise_read_error(folder / CONFIG, "this is not a model's settings", quoted(config), fix)
    model = ART(ArtConfig(**config))
    tensors = read_tensors(folder / MODEL)
    shapes = {name: value.shape for name, value in model.state_dict().items()}
    if {name: value.shape for name, value in tensors.items()} != shapes:
        got, fix = quoted(sorted(tensors)), f"use the {CONFIG} that was written with them"
        raise_read_error(folder / MODEL, "the weights do not fit the settings", got, fix)
    if bad := [name for name, value in tensors.items() if not value.isfinite().all()]:
        raise_read_error(folder / MODEL, "a weight is not finite", bad[0], "train the model again")
    model.load_state_dict(tensors)
    return model.eval()


def folder_of(which: Any) -> Path:
    """Return the folder of a model: of a shipped one by its name, else the folder itself."""
    return SHIPPED / str(which) if str(which) in names() else Path(which)


def card(which: Any) -> dict[str, Any] | None:
    """Read the model card of a shipped model (data, settings, limits); None for other models."""
    path = SHIPPED / f"{which}.json"
    return read_json(path) if str(which) in names() and path.is_file() else None


def weights_hash(model: nn.Module) -> str:
    """Hash all weights with their names."""
    digest = hashlib.sha256()
    for name, value in sorted(model.state_dict().items()):
        digest.update(name.encode())
        digest.update(value.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()


def names() -> list[str]:
    """List the shipped models."""
    return sorted(path.parent.name for path in SHIPPED.glob(f"*/{MODEL}"))
