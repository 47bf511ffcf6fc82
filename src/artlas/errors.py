"""Errors that say what is wrong, what was given, and how to fix it."""

from __future__ import annotations

from importlib import import_module
from typing import Any, NoReturn


class GraphError(ValueError):
    """Raised for input that is not a valid collection of graphs."""


class GraphCleaningWarning(UserWarning):
    """Issued when input was changed to be undirected, loop-free, binary and without duplicates."""


class ReadError(GraphError):
    """Raised for a file that cannot be read as graphs, vectors or a model; names the file."""


def raise_graph_error(wrong: str, got: str, fix: str) -> NoReturn:
    """Raise a :class:`GraphError`: what is wrong, what was given, how to fix it."""
    raise GraphError(f"{wrong}; got {got}. To fix this, {fix}.")


def raise_read_error(
    path: Any, wrong: str, got: str, fix: str, line: int | None = None
) -> NoReturn:
    """Raise a :class:`ReadError` that names the file, and the line (counted from 1) if known."""
    where = f"{path}, line {line}" if line is not None else f"{path}"
    raise ReadError(f"{where}: {wrong}; got {got}. To fix this, {fix}.")


def import_extra(module: str, needed: str, extra: str) -> Any:
    """Import a module of an optional package, or say which extra of artlas installs it."""
    try:
        return import_module(module)
    except ImportError as error:
        fix = f"To fix this: pip install 'artlas[{extra}]'"
        raise ImportError(f"{needed}, which is not installed. {fix}") from error


def quoted(value: Any, longest: int = 60) -> str:
    """Return ``repr(value)``, shortened to fit into one line of an error message."""
    text = repr(value)
    return text if len(text) <= longest else f"{text[: longest - 3]}..."
