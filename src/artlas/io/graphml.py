"""GraphML, read as a stream by expat, which follows no entity, document type or other file."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple, NoReturn
from xml.parsers import expat

from artlas.errors import ReadError, quoted, raise_read_error
from artlas.files.untrusted import read_bytes
from artlas.io.assembly import Reading
from artlas.io.graph_builder import NESTED, WEIGHTS, GraphBuilder

_REFUSED = {
    "hyperedge": ("hyperedges are not read", "write each as edges between pairs of nodes"),
    "port": ("ports are not read", "drop the ports: edges then join the nodes themselves"),
}
_PARENTS = {
    "graphml": {""},
    "key": {"graphml"},
    "default": {"key"},
    "graph": {"graphml"},
    "node": {"graph"},
    "edge": {"graph"},
    "data": {"graph", "node", "edge"},
}
_BOOLEANS = {"true": True, "false": False, "1": True, "0": False}


def read(path: Path) -> Reading:
    """Read the graphs of a GraphML file, one for each <graph>."""
    data = read_bytes(path)
    reader = _Reader(path, len(data))
    try:
        reader.parser.Parse(data, True)
    except ReadError:
        raise
    except expat.ExpatError as error:
        got = expat.ErrorString(error.code)
        raise_read_error(path, "this is not well-formed XML", got, "write it anew", error.lineno)
    except (LookupError, ValueError) as error:
        raise_read_error(path, "the encoding is not known", str(error), "save it as UTF-8", 1)
    # Columns come in the order in which nodes use them: NetworkX declares them in reverse.
    for (target, name), default in reader.defaults.items():
        if target in ("node", "all"):
            reader.build.columns[name].default = default
    return reader.build.finish()


class _Key(NamedTuple):
    """A declared attribute: its name, the elements it is for and its type."""

    name: str
    target: str
    type: str


class _Reader:
    """The handlers that expat calls at every start and end of an element."""

    def __init__(self, path: Path, size: int) -> None:
        self.build = GraphBuilder(path, size)
        self.parser = expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self.start
        self.parser.EndElementHandler = self.end
        self.parser.CharacterDataHandler = self.characters
        self.parser.StartDoctypeDeclHandler = self.parser.EntityDeclHandler = self.doctype
        self.open: list[str] = [""]
        self.skipped = 0  # depth inside an element that is passed over
        self.keys: dict[str, _Key] = {}
        self.key: _Key | None = None  # of the <key> or <data> that is open
        self.line = 0  # of the <data> or <default> that is open
        self.text, self.structured = list[str](), False
        self.element, self.element_line = dict[str, str](), 0  # attributes of a <node> or <edge>
        self.values, self.graph_values = dict[str, Any](), dict[str, Any]()
        self.defaults: dict[tuple[str, str], Any] = {}
        self.directed = False

    def raise_read_error(self, wrong: str, got: str, fix: str, line: int = 0) -> NoReturn:
        self.build.raise_read_error(line or self.parser.CurrentLineNumber, wrong, got, fix)

    def doctype(self, *_: Any) -> None:
        wrong, got = "document types and entities are refused", "a <!DOCTYPE ...> or <!ENTITY>"
        self.raise_read_error(wrong, got, "delete the <!DOCTYPE ...> part")

    def characters(self, text: str) -> None:
        if self.skipped == 0 and self.open[-1] in ("data", "default"):
            self.text.append(text)

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        name, parent = tag.rpartition(":")[2], self.open[-1]
        if self.skipped or parent in ("data", "default"):
            self.skipped, self.structured = self.skipped + 1, True
            return
        got = f"<{name}> in <{parent}>"
        if name in _REFUSED:
            wrong, fix = _REFUSED[name]
            self.raise_read_error(wrong, got, fix)
        if name == "graph" and "graph" in self.open:
            self.raise_read_error("nested graphs are not read", got, "write them side by side")
        if parent == "" and name != "graphml":
            self.raise_read_error("this is not GraphML", quoted(name), "start with <graphml>")
        if name in _PARENTS and parent not in _PARENTS[name]:
            self.raise_read_error("an element is out of place", got, "move it")
        if parent not in _PARENTS.get(name, ()):
            self.skipped = 1
            return
        self.open.append(name)
        if name in ("data", "default"):
            self.text, self.structured, self.line = [], False, self.parser.CurrentLineNumber
        if name == "key":
            if "id" not in attributes:
                self.raise_read_error("a <key> has no id", quoted(attributes), "add id=...")
            get, name = attributes.get, attributes.get("attr.name", attributes["id"])
            self.key = _Key(name, get("for", "all"), get("attr.type", "string"))
            self.keys[attributes["id"]] = self.key
        elif name == "graph":
            self.directed = attributes.get("edgedefault", "").strip().lower() == "directed"
            self.graph_values = {}
        elif name in ("node", "edge"):
            self.element, self.values = attributes, {}
            self.element_line = self.parser.CurrentLineNumber
        elif name == "data":
            self.key = self.keys.get(attributes.get("key", ""))
            if self.key is None:
                got, fix = quoted(attributes.get("key")), "declare it by <key> before the graph"
                self.raise_read_error("a <data> names a key that is not declared", got, fix)

    def value(self, key: _Key) -> Any:
        """Return the text of the open element as the declared type; None if it is empty."""
        text = "".join(self.text).strip()
        if self.structured:
            return NESTED
        if key.type == "string" or not text:
            return text or None
        try:
            if key.type == "boolean":
                return _BOOLEANS[text.lower()]
            if not text.isascii() or "_" in text:
                raise ValueError("Python reads more as a number than XML does")
            return int(text) if key.type in ("int", "long") else float(text)
        except (KeyError, ValueError):
            got = f"{quoted(text)} for {quoted(key.name)}, declared as {quoted(key.type)}"
            self.raise_read_error("a value is not of its type", got, "correct either", self.line)

    def end(self, tag: str) -> None:
        if self.skipped:
            self.skipped -= 1
            return
        name = self.open.pop()
        if name == "default" and self.key is not None:
            self.defaults[self.key.target, self.key.name] = self.value(self.key)
        elif name == "data" and self.key is not None:
            values = self.graph_values if self.open[-1] == "graph" else self.values
            values[self.key.name] = self.value(self.key)
        elif name == "node":
            self.build.add_node(self.attribute("id"), self.values, self.element_line)
        elif name == "edge":
            source, target = self.attribute("source"), self.attribute("target")
            own = self.element.get("directed", "").strip().lower()
            directed = own in ("true", "1") if own else self.directed
            weights = {w: self.values.get(w, self.default("edge", w)) for w in WEIGHTS}
            self.build.add_edge(source, target, self.element_line, directed, weights)
        elif name == "graph":
            y = self.graph_values.get("y", self.default("graph", "y"))
            self.build.close_graph(self.parser.CurrentLineNumber, y)

    def attribute(self, name: str) -> str:
        if name not in self.element:
            got, fix = quoted(self.element), f"add {name}=..."
            self.raise_read_error(f"a node or edge has no {name}", got, fix, self.element_line)
        return self.element[name]

    def default(self, target: str, name: str) -> Any:
        return self.defaults.get((target, name), self.defaults.get(("all", name)))
