"""Read and write the JSON and safetensors files of models and runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save as serialise
from torch import Tensor

from artlas.errors import quoted, raise_read_error
from artlas.files.atomic import atomic


def write_tensors(path: Path, tensors: dict[str, Tensor]) -> None:
    """Write tensors by name as a safetensors file."""
    with atomic(path) as out:
        out.write(serialise({name: value.contiguous() for name, value in tensors.items()}))


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Read a safetensors file."""
    try:
        with safe_open(path, framework="pt") as file:
            return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, ValueError) as error:
        wrong, got = "this is not a whole safetensors file", quoted(str(error))
        raise_read_error(path, wrong, got, "write it again")


def write_json(path: Path, content: Any, durable: bool = True) -> None:
    """Write content as indented JSON; ``durable`` is as for :func:`artlas.files.atomic.atomic`."""
    with atomic(path, durable=durable) as out:
        out.write((json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode())


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise_read_error(path, "this is not a JSON file", quoted(str(error)), "write it again")
    if not isinstance(content, dict):
        raise_read_error(path, "this is not a JSON object", quoted(content), "write it again")
    return content
