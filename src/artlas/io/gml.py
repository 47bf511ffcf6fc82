"""GML (Graph Modelling Language), read token by token, without recursion."""

from __future__ import annotations

import html.entities
import re
from pathlib import Path
from typing import Any

from artlas.errors import quoted
from artlas.files.untrusted import read_text
from artlas.io.assembly import Reading
from artlas.io.graph_builder import NESTED, WEIGHTS, Builder, integer, is_number, real

# Possessive, so that no run of blanks or digits is tried twice. The last kind is what is no token.
_TOKEN = re.compile(
    r"""(?:\s++|\#[^\n]*+)*+(?:
    (?P<word>[A-Za-z_][A-Za-z0-9_.:-]*+)
    |(?P<number>[+-]?(?:\d++(?:\.\d*+)?|\.\d++)(?:[eE][+-]?\d++)?|[+-](?:INF|NAN)\b)
    |(?P<open>\[)|(?P<close>\])|"(?P<string>[^"]*+)"|(?P<end>\Z)|(?P<other>.))""",
    re.VERBOSE | re.ASCII,
)
_ENTITY = re.compile(r"&(?:#([0-9]{1,7})|#[xX]([0-9a-fA-F]{1,6})|([A-Za-z][A-Za-z0-9]*));")
_SPECIAL = {"INF": float("inf"), "NAN": float("nan")}


def _unescape(match: re.Match[str]) -> str:
    decimal, hexadecimal, name = match.groups()
    if name:
        code = html.entities.name2codepoint.get(name, -1)
    else:
        code = int(decimal) if decimal else int(hexadecimal, 16)
    known = 0 <= code < 0xD800 or 0xDFFF < code <= 0x10FFFF
    return chr(code) if known else match[0]


def _number(text: str) -> int | float | None:
    try:
        return integer(text) if text.lstrip("+-").isdigit() else real(text)
    except ValueError:
        return None


class _Frame:
    """A list that is open: ``kind`` is file, graph, node, edge or other."""

    __slots__ = ("at", "kind", "values")

    def __init__(self, kind: str, at: int) -> None:
        self.kind, self.at = kind, at
        self.values: dict[str, Any] = {}

    def set(self, key: str, value: Any) -> None:
        self.values[key] = NESTED if key in self.values else value

    def inner(self, key: str) -> str:
        if self.kind == "file" and key == "graph":
            return "graph"
        return key if self.kind == "graph" and key in ("node", "edge") else "other"


class _Reader:
    """Takes finished lists and hands nodes and edges on."""

    def __init__(self, path: Path, text: str) -> None:
        self.build = Builder(path, len(text))
        self.build.line_of = lambda at: text.count("\n", 0, at) + 1  # counted only for an error
        self.labels: list[Any] = []
        self.edges: list[_Frame] = []

    def close(self, frame: _Frame) -> None:
        if frame.kind == "node":
            key, label = self.scalar(frame, "id"), frame.values.pop("label", None)
            del frame.values["id"]
            self.labels.append(label if is_number(label) or isinstance(label, str) else None)
            self.build.node(key, frame.values, frame.at)
        elif frame.kind == "edge":
            frame.values = {
                "source": self.scalar(frame, "source"),
                "target": self.scalar(frame, "target"),
                "weight": next((frame.values[w] for w in WEIGHTS if w in frame.values), None),
            }
            self.edges.append(frame)  # whether it is directed may be said after it
        elif frame.kind == "graph":
            directed = frame.values.get("directed", 0)
            if directed not in (0, 1):
                fix = "write directed 0 or directed 1"
                self.build.raise_read_error(
                    frame.at, "directed is not 0 or 1", quoted(directed), fix
                )
            for edge in self.edges:
                source, target, weight = edge.values.values()
                self.build.edge(source, target, edge.at, directed == 1, weight)
            self.edges = []
            self.build.close(frame.at, frame.values.get("y"))

    def scalar(self, frame: _Frame, name: str) -> Any:
        value = frame.values.get(name)
        if value is None:
            got = quoted(sorted(frame.values))
            self.build.raise_read_error(
                frame.at, f"{_a(frame.kind)} has no {name}", got, f"add {name}"
            )
        if not (is_number(value) or isinstance(value, str)) or value != value:
            got, fix = f"a list, two values or NaN for {name}", "give one number or string"
            self.build.raise_read_error(
                frame.at, f"{_a(frame.kind)} has no single {name}", got, fix
            )
        return value


def _a(kind: str) -> str:
    return f"an {kind}" if kind == "edge" else f"a {kind}"


def read(path: Path) -> Reading:
    """The graphs of a GML file, one for every ``graph [ ... ]``."""
    text = read_text(path)
    reader = _Reader(path, text)
    raise_read_error, stack, key = reader.build.raise_read_error, [_Frame("file", 0)], ""
    for match in _TOKEN.finditer(text):
        kind, at = match.lastgroup or "end", match.start(match.lastgroup or 0)
        value: Any = match[kind]
        if kind == "end":
            break
        if kind == "other":
            rest = text[at : at + 40].partition("\n")[0]
            wrong = "a string does not end" if value == '"' else "this is not GML"
            raise_read_error(at, wrong, quoted(rest), "correct it or write the file anew")
        if key == "":
            if kind == "word":
                key = value
            elif kind == "close" and len(stack) > 1:
                reader.close(stack.pop())
            else:
                fix = "write a key before every value, and as many ] as ["
                raise_read_error(at, "a key is missing", quoted(value), fix)
            continue
        if kind == "open":
            stack.append(_Frame(stack[-1].inner(key), at))
            if stack[-1].kind == "other":
                stack[-2].set(key, NESTED)
        elif kind == "string":
            stack[-1].set(key, _ENTITY.sub(_unescape, value) if "&" in value else value)
        elif kind == "number" or value in _SPECIAL:
            number = _SPECIAL[value] if value in _SPECIAL else _number(value)
            if number is None:
                raise_read_error(at, "a number cannot be read", quoted(value), "shorten it")
            stack[-1].set(key, number)
        else:
            fix = "write a number, a quoted string or a list after every key"
            raise_read_error(at, f"the value of {quoted(key)} is missing", quoted(value), fix)
        key = ""
    if key or len(stack) > 1:
        line = reader.build.line_of(stack[-1].at)
        got = f"the end after {quoted(key)}" if key else f"no ] for the [ of line {line}"
        raise_read_error(len(text), "the file ends too early", got, "complete it")
    labels = reader.labels if all(label is not None for label in reader.labels) else None
    return reader.build.finish(labels)
