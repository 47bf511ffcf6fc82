"""The errors that artlas raises: what is wrong, what came, how to fix it."""

from __future__ import annotations

from typing import Any, NoReturn


class GraphError(ValueError):
    """Input that is not a collection of graphs: what is wrong, what came, how to fix it."""


class GraphCleaningWarning(UserWarning):
    """Input that had to be changed to become undirected, loop-free, coalesced and binary."""


def fail(wrong: str, got: str, fix: str) -> NoReturn:
    raise GraphError(f"{wrong}; got {got}. To fix this, {fix}.")


class ReadError(GraphError):
    """A file that is not what it should be: where, what is wrong, what came, how to fix it."""


def refuse(path: Any, wrong: str, got: str, fix: str, line: int | None = None) -> NoReturn:
    """Raise a :class:`ReadError` that names the file, and the line (counted from 1) if known."""
    where = f"{path}, line {line}" if line is not None else f"{path}"
    raise ReadError(f"{where}: {wrong}; got {got}. To fix this, {fix}.")


def shown(value: Any, most: int = 60) -> str:
    """repr(value), cut to be readable in one line of an error."""
    text = repr(value)
    return text if len(text) <= most else f"{text[: most - 3]}..."
