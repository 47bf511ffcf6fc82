"""Node-link JSON, as NetworkX and D3 write it: nodes, and links by id or by position."""

from __future__ import annotations

import json
import math
from collections.abc import Hashable
from pathlib import Path
from typing import Any

from artlas.errors import quoted, raise_read_error
from artlas.files.untrusted import read_text, suffix
from artlas.io.assembly import Reading
from artlas.io.graph_builder import NESTED, WEIGHTS, Builder, is_number


def _whole(text: str) -> int | float:
    try:
        return int(text)
    except ValueError:
        return math.inf


def _decode(path: Path, text: str, before: int = 0) -> Any:
    """The value that JSON text stands for; ``before`` is how many lines precede it."""
    try:
        try:
            return json.loads(text)
        except json.JSONDecodeError:
            raise
        except ValueError:  # an integer of thousands of digits
            return json.loads(text, parse_int=_whole)
    except json.JSONDecodeError as error:
        got, fix = f"{error.msg} at column {error.colno}", "correct it or write the file anew"
        raise_read_error(path, "this is not JSON", got, fix, before + error.lineno)


class _Reader:
    """Takes one object after the other; ``where`` says which one errors speak of."""

    def __init__(self, path: Path, size: int) -> None:
        self.build = Builder(path, size)
        self.by_position = 0

    def graph(self, value: Any, where: str) -> None:
        fix = "write an object with the lists nodes and links, as networkx.node_link_data does"
        if not isinstance(value, dict):
            self.build.raise_read_error(where, "a graph is not an object", quoted(value), fix)
        keys = [key for key in ("links", "edges") if isinstance(value.get(key), list)]
        if not isinstance(value.get("nodes"), list) or not keys:
            got = f"the keys {quoted(sorted(value))}"
            self.build.raise_read_error(
                where, "a graph has no list of nodes or no list of links", got, fix
            )
        if len(keys) == 2:
            self.build.raise_read_error(
                where, "a graph has both links and edges", "two lists", "keep one"
            )
        directed = value.get("directed", False)
        if not isinstance(directed, (bool, int)) or directed not in (0, 1):
            got = quoted(directed)
            self.build.raise_read_error(where, "directed is not true or false", got, "correct it")
        inner = f"{where}." if where else ""
        named = self.nodes(value["nodes"], f"{inner}nodes")
        self.links(value[keys[0]], f"{inner}{keys[0]}", named, directed == 1)
        more = value.get("graph")
        y = more.get("y", value.get("y")) if isinstance(more, dict) else value.get("y")
        self.build.close(where, y)

    def nodes(self, nodes: list[Any], where: str) -> bool:
        """Add the nodes; whether they have ids."""
        named = any(isinstance(node, dict) and "id" in node for node in nodes)
        for i, node in enumerate(nodes):
            place = f"{where}[{i}]"
            if not isinstance(node, dict):
                fix = 'write every node as an object, {"id": ...}'
                self.build.raise_read_error(place, "a node is not an object", quoted(node), fix)
            if named and "id" not in node:
                fix = "give an id to every node or to none"
                self.build.raise_read_error(place, "a node has no id", quoted(node), fix)
            key = self.key(node["id"], place) if named else i
            values = {name: _scalar(node[name]) for name in node if name != "id"}
            self.build.node(key, values, place)
        self.by_position += not named
        return named

    def links(self, links: list[Any], where: str, named: bool, directed: bool) -> None:
        for i, link in enumerate(links):
            place = f"{where}[{i}]"
            if not isinstance(link, dict) or "source" not in link or "target" not in link:
                fix = 'write {"source": ..., "target": ...}'
                self.build.raise_read_error(
                    place, "a link has no source or no target", quoted(link), fix
                )
            ends = [self.key(link[name], place) for name in ("source", "target")]
            if not named and not all(type(end) is int for end in ends):
                fix = "give the nodes ids, or number them from 0 in the links"
                self.build.raise_read_error(
                    place, "nodes without ids are not named by position", quoted(link), fix
                )
            weight = next((link[name] for name in WEIGHTS if link.get(name) is not None), None)
            self.build.edge(ends[0], ends[1], place, directed, weight)

    def key(self, value: Any, where: str) -> Hashable:
        """An id: a string or a number, or a list of such, which NetworkX writes for a tuple."""
        parts = value if isinstance(value, list) else [value]
        for part in parts:
            plain = isinstance(part, str) or (is_number(part) and math.isfinite(_wide(part)))
            if not plain:
                fix = "use strings or numbers as ids"
                self.build.raise_read_error(
                    where, "an id is not a string or a number", quoted(value), fix
                )
        return tuple(value) if isinstance(value, list) else value


def _wide(value: Any) -> float:
    return 0.0 if isinstance(value, int) else float(value)


def _scalar(value: Any) -> Any:
    return NESTED if isinstance(value, (list, dict)) else value


def read(path: Path) -> Reading:
    """The graphs of a node-link file: an object, a list of them, or one on every line (.jsonl)."""
    text = read_text(path)
    reader = _Reader(path, len(text))
    try:
        _read(reader, path, text)
    except RecursionError:
        fix = "write a flat object with nodes and links"
        line = reader.build.line
        raise_read_error(path, "the JSON is nested too deeply", "thousands of levels", fix, line)
    said = ["nodes have no id: links are positions"] if reader.by_position else []
    return reader.build.finish(guesses=said)


def _read(reader: _Reader, path: Path, text: str) -> None:
    if suffix(path) in (".jsonl", ".ndjson"):
        for i, row in enumerate(text.split("\n")):
            reader.build.line = i + 1
            if row.strip():
                reader.graph(_decode(path, row, i), "")
        reader.build.line = None
        return
    value = _decode(path, text)
    if not isinstance(value, list):
        reader.graph(value, "")
        return
    for g, graph in enumerate(value):
        reader.graph(graph, f"[{g}]")
