"""GML (Graph Modelling Language): checked token by token here, and parsed by NetworkX.

NetworkX recurses into nested lists, takes one graph from a file, reads ``1e-2`` as the number 1
and refuses an edge that is listed twice. So it gets each graph by itself, as a directed multigraph,
with decimal numbers and without the contents of lists inside nodes and edges.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from artlas.errors import ReadError, import_extra, quoted
from artlas.files.untrusted import read_text
from artlas.io.assembly import Reading
from artlas.io.graph_builder import GraphBuilder, scalar

MOST_TOKENS, MOST_DIGITS = 30_000_000, 4_000
# Possessive, so that no run of blanks or digits is tried twice. The last kind is what is no token.
_TOKEN = re.compile(
    r"""(?:\s++|\#[^\n]*+)*+(?:
    (?P<word>[A-Za-z]\w*+)
    |(?P<number>[+-]?(?:\d++(?:\.\d*+)?|\.\d++)(?:[eE][+-]?\d++)?|[+-](?:INF|NAN)\b)
    |(?P<open>\[)|(?P<close>\])|"(?P<string>[^"]*+)"|\Z|(?P<other>.))""",
    re.VERBOSE | re.ASCII,
)
_POSITION = re.compile(r"(.*) at \((\d+), \d+\)", re.DOTALL)
_DIRECTED = "artlas_directed"  # the file's own value, since NetworkX is told that all are directed
_FIX = "correct it or write the file anew"


def read(path: Path) -> Reading:
    """Read the graphs of a GML file, one for each ``graph [ ... ]``."""
    networkx = import_extra("networkx", "GML needs NetworkX", "demo")
    text = read_text(path)
    build, labels = GraphBuilder(path, len(text)), list[Any]()
    build.line_of = lambda at: text.count("\n", 0, at) + 1  # counted only for an error
    tokens, depth, key = _tokens(build, text), 0, ""
    for kind, value, at in tokens:
        if kind == "open" and depth == 0 and key == "graph":
            labels += _add_graph(build, _parse(networkx, build, tokens, at), at)
        else:
            depth += (kind == "open") - (kind == "close")
        if depth < 0:
            build.raise_read_error(at, "a ] closes nothing", quoted(value), _FIX)
        key = value if kind == "word" else ""
    return build.finish(None if any(label is None for label in labels) else labels)


def _tokens(build: GraphBuilder, text: str) -> Iterator[tuple[str, str, int]]:
    """Yield the kind, the text and the position of every token."""
    for number, match in enumerate(_TOKEN.finditer(text)):
        if (kind := match.lastgroup) is None:
            return
        value, at = match[kind], match.start(kind)
        if kind == "other":
            wrong = "a string does not end" if value == '"' else "this is not GML"
            build.raise_read_error(at, wrong, quoted(text[at : at + 40].split("\n")[0]), _FIX)
        if kind == "number" and len(value) > MOST_DIGITS:
            build.raise_read_error(at, "a number cannot be read", quoted(value), "shorten it")
        if number >= MOST_TOKENS:
            got, fix = f"more than {MOST_TOKENS:,} words", "store an edge list (.csv) instead"
            build.raise_read_error(at, "this is too large for GML", got, fix)
        yield kind, value, at


def _parse(networkx: Any, build: GraphBuilder, tokens: Any, at: int) -> Any:
    """Return the NetworkX graph of the tokens up to the ``]`` that closes it."""
    places = [at]
    try:
        return networkx.parse_gml(_lines(tokens, places), label="id", destringizer=None)
    except ReadError:
        raise
    except (networkx.NetworkXException, AttributeError, TypeError, ValueError) as error:
        got = str(error)
        if match := _POSITION.fullmatch(got):
            got, at = match[1], places[min(int(match[2]), len(places)) - 1]
        build.raise_read_error(at, "NetworkX cannot read this graph", f"error: {got[:200]}", _FIX)


def _lines(tokens: Any, places: list[int]) -> Iterator[str]:
    """Yield the tokens of a graph, one a line; ``places[i]`` is where line i + 1 is in the file."""
    yield "graph [ directed 1 multigraph 1"
    depth = 1
    for kind, value, at in tokens:
        depth += (kind == "open") - (kind == "close")
        if depth > 3 or (depth == 3 and kind != "open"):
            continue  # inside a list of a node or an edge, which could not be a feature
        places.append(at)
        if kind == "string":
            value = f'"{value}"'.replace("\n", "&#10;")
        elif kind == "number" and "." not in value:
            value = "NAN" if "NAN" in value else re.sub("[eE]", ".0e", value)
        elif value == "directed" and depth == 1:
            value = _DIRECTED
        yield value
        if depth == 0:
            return


def _add_graph(build: GraphBuilder, graph: Any, at: int) -> list[Any]:
    """Add a NetworkX graph to those that are being built, and return the labels of its nodes."""
    labels = []
    for node, values in graph.nodes(data=True):
        label = values.pop("label", None)
        labels.append(label if isinstance(label, (int, float, str)) else None)
        build.add_node(node, {name: scalar(value) for name, value in values.items()}, at)
    directed = graph.graph.get(_DIRECTED, 0)
    if directed not in (0, 1):
        build.raise_read_error(at, "directed is not 0 or 1", quoted(directed), "correct it")
    for source, target, values in graph.edges(data=True):
        build.add_edge(source, target, at, directed == 1, values)
    build.close_graph(at, graph.graph.get("y"))
    return labels
