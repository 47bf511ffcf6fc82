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
from artlas.io.graph_builder import GraphBuilder, as_float, is_number, scalar


def read(path: Path) -> Reading:
    """Read the graphs of an object, of a list of objects, or of one object a line (.jsonl)."""
    text = read_text(path)
    build = GraphBuilder(path, len(text))
    try:
        if suffix(path) in (".jsonl", ".ndjson"):
            for i, row in enumerate(text.split("\n")):
                build.line = i + 1
                if row.strip():
                    _add_graph(build, _decode(path, row, i), "")
            build.line = None
        else:
            value = _decode(path, text)
            for g, graph in enumerate(value if isinstance(value, list) else [value]):
                _add_graph(build, graph, f"[{g}]" if isinstance(value, list) else "")
    except RecursionError:
        got, fix = "thousands of levels", "write a flat object with nodes and links"
        raise_read_error(path, "the JSON is nested too deeply", got, fix, build.line)
    return build.finish()


def _decode(path: Path, text: str, lines_before: int = 0, parse_int: Any = None) -> Any:
    try:
        return json.loads(text, parse_int=parse_int)
    except json.JSONDecodeError as error:
        got, fix = f"{error.msg} at column {error.colno}", "correct it or write the file anew"
        raise_read_error(path, "this is not JSON", got, fix, lines_before + error.lineno)
    except ValueError:  # an integer of thousands of digits
        return _decode(path, text, lines_before, lambda n: int(n) if len(n) < 640 else math.inf)


def _add_graph(build: GraphBuilder, value: Any, where: str) -> None:
    """Add a decoded graph; ``where`` it is in the file is for errors."""
    fix = "write an object with the lists nodes and links, as networkx.node_link_data does"
    if not isinstance(value, dict):
        build.raise_read_error(where, "a graph is not an object", quoted(value), fix)
    keys = [key for key in ("links", "edges") if isinstance(value.get(key), list)]
    if not isinstance(value.get("nodes"), list) or not keys:
        wrong = "a graph has no list of nodes or no list of links"
        build.raise_read_error(where, wrong, f"the keys {quoted(sorted(value))}", fix)
    if len(keys) == 2:
        build.raise_read_error(where, "a graph has both links and edges", "two lists", "keep one")
    directed = value.get("directed", False)
    if not isinstance(directed, (bool, int)) or directed not in (0, 1):
        wrong, fix = "directed is not true or false", "correct it"
        build.raise_read_error(where, wrong, quoted(directed), fix)
    prefix = f"{where}." if where else ""
    named = _add_nodes(build, value["nodes"], f"{prefix}nodes")
    _add_links(build, value[keys[0]], f"{prefix}{keys[0]}", named, directed == 1)
    more = value.get("graph")
    own = more if isinstance(more, dict) else {}
    build.close_graph(where, own.get("y", value.get("y")))


def _add_nodes(build: GraphBuilder, nodes: list[Any], where: str) -> bool:
    """Add the nodes and return whether they have ids; if not, links give their positions."""
    named = any(isinstance(node, dict) and "id" in node for node in nodes)
    for i, node in enumerate(nodes):
        place = f"{where}[{i}]"
        if not isinstance(node, dict):
            fix = 'write every node as an object, {"id": ...}'
            build.raise_read_error(place, "a node is not an object", quoted(node), fix)
        if named and "id" not in node:
            build.raise_read_error(place, "a node has no id", quoted(node), "give all nodes an id")
        key = _node_key(build, node["id"], place) if named else i
        build.add_node(key, {n: scalar(value) for n, value in node.items() if n != "id"}, place)
    guess = "nodes have no id: links are positions"
    if not named and guess not in build.guesses:
        build.guesses.append(guess)
    return named


def _add_links(
    build: GraphBuilder, links: list[Any], where: str, named: bool, directed: bool
) -> None:
    for i, link in enumerate(links):
        place = f"{where}[{i}]"
        if not isinstance(link, dict) or "source" not in link or "target" not in link:
            fix = 'write {"source": ..., "target": ...}'
            build.raise_read_error(place, "a link has no source or no target", quoted(link), fix)
        source, target = (_node_key(build, link[name], place) for name in ("source", "target"))
        if not named and not type(source) is type(target) is int:
            wrong = "nodes without ids are not named by position"
            fix = "give the nodes ids, or number them from 0 in the links"
            build.raise_read_error(place, wrong, quoted(link), fix)
        build.add_edge(source, target, place, directed, link)


def _node_key(build: GraphBuilder, value: Any, where: str) -> Hashable:
    """Return an id: a string, a number, or a tuple of such, which JSON stores as a list."""
    for part in value if isinstance(value, list) else [value]:
        if not isinstance(part, str) and not (is_number(part) and abs(as_float(part)) < math.inf):
            wrong, fix = "an id is not a string or a number", "use strings or numbers as ids"
            build.raise_read_error(where, wrong, quoted(value), fix)
    return tuple(value) if isinstance(value, list) else value
