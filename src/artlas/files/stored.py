"""Read and write the JSON and safetensors files that artlas keeps."""

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
    with atomic(path) as out:
        out.write(serialise({name: value.contiguous() for name, value in tensors.items()}))


def read_tensors(path: Path) -> dict[str, Tensor]:
    try:
        with safe_open(path, framework="pt") as stored:
            return {name: stored.get_tensor(name) for name in stored.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, ValueError) as error:
        raise_read_error(
            path, "this is not a whole safetensors file", quoted(str(error)), "write it anew"
        )


def write_json(path: Path, content: Any, durable: bool = True) -> None:
    with atomic(path, durable=durable) as out:
        out.write((json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode())


def read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise_read_error(path, "this is not a JSON file", quoted(str(error)), "write it anew")
    if not isinstance(content, dict):
        raise_read_error(path, "this is not a JSON object", quoted(content), "write it anew")
    return content
