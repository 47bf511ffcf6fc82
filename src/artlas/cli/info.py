"""``artlas info``: what a model is."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console

from artlas.cli.common import MODEL_HELP, exit_on_errors
from artlas.errors import GraphError
from artlas.files import stored
from artlas.method import checkpoint


def info(model: Annotated[str, typer.Argument(help=MODEL_HELP)]) -> None:
    """Print a model's settings, sources and model card."""
    console = Console(highlight=False, soft_wrap=True)
    with exit_on_errors(GraphError):
        loaded = checkpoint.load(model)
    settings = stored.read_json(checkpoint.folder_of(model) / checkpoint.CONFIG)
    count = sum(value.numel() for value in loaded.parameters())
    console.print(f"{count:,} weights, sha256 of their values {checkpoint.weights_hash(loaded)}")
    for title, values in settings.items():
        console.print(f"\n{title}:")
        for name, value in values.items():
            shown = f"{value['graphs']} graphs" if title == "sources" else value
            console.print(f"  {name}: {shown}")
    if (card := checkpoint.card(model)) is not None:
        console.print("\ncard:")
        for name, value in card.items():
            parts = value.items() if isinstance(value, dict) else [("", value)]
            lines = value if isinstance(value, list) else [f"{k} {v}".strip() for k, v in parts]
            console.print(f"  {name}: " + "\n    ".join(lines), markup=False)
