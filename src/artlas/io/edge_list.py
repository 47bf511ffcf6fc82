"""Edge lists: two columns of node ids in text, separated by commas, semicolons, tabs or blanks."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from artlas.errors import ReadError, quoted, raise_read_error
from artlas.files.untrusted import read_bytes, read_text
from artlas.io.assembly import Reading, assemble
from artlas.io.number_tables import parse_numbers

BLANKS = " "
_DELIMITERS = {"\t": "tab", ";": "semicolon", ",": "comma", BLANKS: "blank"}
_SAMPLE_ROWS, _SAMPLE_BYTES = 64, 1 << 16
_PAIR_NAMES = (  # of the two columns, in lower case and without punctuation
    "source-target src-dst src-dest from-to u-v node1-node2 id1-id2 sourceid-targetid fromid-toid "
    "fromnode-tonode fromnodeid-tonodeid sourcenode-targetnode srcid-dstid head-tail start-end "
    "i-j a-b"
)
_PAIRS = [pair.split("-") for pair in _PAIR_NAMES.split()]
_INTEGER = re.compile(r"([+-]?[0-9]{1,19})(?:\.0*)?")  # 12.0 is what pandas makes of 12
_WORD = re.compile(r'"((?:[^"]|"")*+)"(?=\s|$)|(\S+)')
_EXACT = 2.0**53  # integers below it are exact in float64
_COMMENT = re.compile(r"\s*[#%]")


class _Layout(NamedTuple):
    """How the columns of a table are used."""

    delimiter: str
    header: bool
    width: int
    source: int
    target: int
    weight: int | None
    weight_named: bool  # by the header


def read(path: Path, delimiter: str | None = None, header: bool | None = None) -> Reading:
    """Read one undirected graph; integer ids are sorted, others keep their first appearance."""
    if delimiter is not None and delimiter not in _DELIMITERS:
        fix = "pass ',', ';', '\\t' or ' ' (any blanks), or leave delimiter out"
        raise_read_error(path, "the delimiter is unknown", quoted(delimiter), fix)
    data = read_bytes(path).removeprefix(b"\xef\xbb\xbf")
    if (nul := data.find(b"\0")) >= 0:
        line = data.count(b"\n", 0, nul) + 1
        raise_read_error(path, "this is not text", "a NUL byte", "save it as UTF-8 text", line)
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    lines, starts = _first_lines(data)
    if not lines:
        raise_read_error(path, "there are no edges", "no rows", "write two node ids in every row")
    character = delimiter or _guess_delimiter(lines)
    sample = [words for _, words in _rows("\n".join(lines), character, path, sampling=True)]
    layout = _guess_layout(sample, character, header)
    guesses = [] if delimiter else [f"{_DELIMITERS[character]}-separated"]
    if header is None and layout.header:
        guesses.append("first line is a header")
    if layout.weight is not None:
        guesses.append(f"column {layout.weight + 1} is a weight: ignored")
    used = {layout.source, layout.target, layout.weight}
    if others := [str(i + 1) for i in range(layout.width) if i not in used]:
        shown = ", ".join(others[:8] + ["..."] * (len(others) > 8))
        guesses.append(f"column{'s' * (len(others) > 1)} {shown} ignored")
    start = starts[1] if layout.header and len(starts) > 1 else starts[0]
    changes = Counter[str]()
    table = _read_numbers(data[start:], path, layout, sample[layout.header :])
    del data
    if table is not None:
        if layout.weight is not None:
            changes["weights"] += int((table[:, layout.weight] != 1).sum())
        ids, ends = _number_ids(table[:, [layout.source, layout.target]].astype(np.int64).T)
    else:
        ids, ends = _read_words(path, layout, changes)
    counted = ids.dtype != object and ids[0] == 0 and ids[-1] == len(ids) - 1
    if not counted:
        kind = "text" if ids.dtype == object else "integers"
        guesses.append(f"ids are {kind}, kept in .ids")
    n, names = len(ids), None if counted else ids
    return assemble([n], ends, undirected=True, ids=names, guesses=guesses, changes=changes)


def _first_lines(data: bytes) -> tuple[list[str], list[int]]:
    """Return the first lines that are neither blank nor a comment, and where each starts."""
    lines, starts = list[str](), list[int]()
    for match in re.finditer(rb"[^\n]+", data):
        if len(lines) == _SAMPLE_ROWS or (lines and match.start() >= _SAMPLE_BYTES):
            break
        line = match[0].decode("utf-8", "replace")
        if line.strip() and not _COMMENT.match(line):
            lines.append(line)
            starts.append(match.start())
    return lines, starts


def _guess_delimiter(lines: Sequence[str]) -> str:
    """Return one that the first line has, preferably as often as the other lines do."""
    # What NetworkX writes behind the ids, {'weight': 1, 'color': 2}, separates nothing.
    bare = [re.sub(r'"[^"]*"|\{.*', "", line) for line in lines]
    bare = [line if '"' in rest else rest for line, rest in zip(lines, bare, strict=True)]
    present = [d for d in _DELIMITERS if d in bare[0] and d != BLANKS]
    even = [d for d in present if len({line.count(d) for line in bare}) == 1]
    return (even or present or [BLANKS])[0]


def _rows(
    text: str, delimiter: str, path: Path, sampling: bool = False
) -> Iterator[tuple[int, list[str]]]:
    """Yield line number and words of every row that is neither blank nor a comment."""
    lines = text.split("\n")
    if delimiter != BLANKS and '"' in text:
        kept = ("\n" if _COMMENT.match(line) else line + "\n" for line in lines)
        rows = csv.reader(kept, delimiter=delimiter, skipinitialspace=True, strict=True)
        line = 1
        try:
            for row in rows:
                if any(words := [word.strip() for word in row]) or len(words) > 1:
                    yield line, words
                line = rows.line_num + 1
        except csv.Error as error:
            if not sampling:  # the sample may end within quotes
                fix = 'close every quote, and double the quotes within ids ("")'
                raise_read_error(path, "the quotes are broken", str(error), fix, line)
        return
    for number, line_text in enumerate(lines, start=1):
        if line_text.strip() and not _COMMENT.match(line_text):
            yield number, _split(line_text, delimiter)


def _split(line: str, delimiter: str) -> list[str]:
    if delimiter != BLANKS:
        return [word.strip() for word in line.split(delimiter)]
    if '"' in line:
        return [bare or quoted.replace('""', '"') for quoted, bare in _WORD.findall(line.strip())]
    if "{" in line:  # NetworkX writes the attributes of an edge as a dict
        words = line.split(None, 2)
        if len(words) == 3 and words[2].startswith("{"):
            return words
    return line.split()


def _is_number(word: str) -> bool:
    try:
        float(word)
        return True
    except ValueError:
        return False


def _guess_layout(sample: Sequence[list[str]], delimiter: str, header: bool | None) -> _Layout:
    first, rest = (sample[0], sample[1:]) if sample else ([], [])
    names = [re.sub(r"[^a-z0-9]", "", word.lower()) for word in first]
    pair = next((pair for pair in _PAIRS if set(pair) <= set(names)), None)
    source, target = (0, 1) if pair is None else map(names.index, pair)
    if header is None:
        header = _has_header(first, rest, (source, target), pair is not None)
    source, target = (source, target) if header else (0, 1)
    weight = next((names.index(n) for n in ("weight", "w") if header and n in names), None)
    named = weight is not None
    if weight is None and (source, target) == (0, 1) and len(first) > 2:
        third = [row[2] for row in (rest if header else sample) if len(row) > 2]
        weight = 2 if third and all(map(_is_number, third)) else None
    return _Layout(delimiter, header, len(first), source, target, weight, named)


def _has_header(
    first: list[str], rest: Sequence[list[str]], ends: tuple[int, int], known: bool
) -> bool:
    """Guess whether the first row is a header; ``known`` if it has a pair of known names."""
    if len(first) < 2:
        return False
    rows = [row for row in rest if len(row) == len(first)]
    names, ids = {first[i] for i in ends if known}, {row[i] for row in rows for i in ends}
    # u and v may as well be the ends of the first edge where other nodes are letters, too.
    letters = any(len(word) == 1 for word in names) and any(len(word) == 1 for word in ids)
    if names and not names & ids and not letters:
        return True
    if not rows:
        return False
    if all(map(_INTEGER.fullmatch, ids)) and not any(_is_number(first[i]) for i in ends):
        return True
    return len(first) > 2 and not _is_number(first[2]) and all(_is_number(row[2]) for row in rows)


def _read_numbers(
    body: bytes, path: Path, layout: _Layout, sample: Sequence[list[str]]
) -> NDArray[Any] | None:
    """Return the whole table if all of it is numbers and the ids are integers, else None."""
    ends, width, mark = [layout.source, layout.target], layout.width, layout.delimiter.encode()
    if width < 2 or not all(len(row) == width and all(map(_is_number, row)) for row in sample):
        return None
    if not all(_INTEGER.fullmatch(row[i]) for row in sample for i in ends):
        return None
    # The parser splits rows at any delimiter: only this one may be there, and as often as due.
    if layout.delimiter in ",;":
        body = body.replace(mark + b" ", mark)
    others = b",;" if layout.delimiter == BLANKS else b",; \t\f\v".replace(mark, b"")
    if any(other in body for other in others):
        return None
    for dtype in (np.int64, np.float64):
        try:
            table = parse_numbers(body, path, width, dtype)
        except ReadError:
            continue
        if len(table) == 0 or (mark != b" " and body.count(mark) != len(table) * (width - 1)):
            return None
        if dtype == np.int64:
            return table
        ids = table[:, ends]
        exact = bool((np.abs(ids) < _EXACT).all() and (ids == np.trunc(ids)).all())
        # As floats the ids 1e3 and 1000 would be one.
        return table if exact and b"e" not in body and b"E" not in body else None
    return None


def _number_ids(ends: NDArray[np.int64]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the sorted distinct ids, and the ends as positions among them."""
    low, high = int(ends.min()), int(ends.max())
    if high - low < 4 * ends.size:
        present = np.zeros(high - low + 1, dtype=bool)
        present[ends - low] = True
        position = np.cumsum(present) - 1
        return np.flatnonzero(present) + low, position[ends - low]
    ids, inverse = np.unique(ends, return_inverse=True)
    return ids, inverse.reshape(ends.shape)


def _read_words(
    path: Path, layout: _Layout, changes: Counter[str]
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return ids and ends row by row, which is slow and names the line of every fault."""
    text = read_text(path).replace("\r\n", "\n").replace("\r", "\n")
    number, flat, weights = dict[str, int](), list[int](), list[str]()
    fix = "write two node ids in every row"
    for row, (line, words) in enumerate(_rows(text, layout.delimiter, path)):
        if len(words) < 2:
            got, pass_fix = quoted(" ".join(words)), f"{fix}, or pass the delimiter"
            raise_read_error(path, "a row has too few columns", got, pass_fix, line)
        if len(words) != layout.width:
            got = f"{len(words)} columns after {layout.width} in the first row"
            same_fix = "write the same columns in every row, and quote ids that hold the delimiter"
            raise_read_error(path, "a row has another number of columns", got, same_fix, line)
        if row == 0 and layout.header:
            continue
        for i in (layout.source, layout.target):
            if not words[i]:
                got, fill_fix = f"nothing in column {i + 1}", "fill it in or drop the row"
                raise_read_error(path, "a node id is empty", got, fill_fix, line)
            flat.append(number.setdefault(words[i], len(number)))
        if layout.weight is not None:
            weights.append(words[layout.weight])
    if not flat:
        raise_read_error(path, "there are no edges", "a header only", fix)
    if layout.weight_named or all(map(_is_number, weights)):
        changes["weights"] += sum(not _is_number(w) or float(w) != 1 for w in weights if w)
    ends = np.array(flat, dtype=np.int64).reshape(-1, 2).T
    matches = [_INTEGER.fullmatch(word) for word in number]
    values = [int(match[1]) for match in matches if match is not None]
    if len(values) == len(number) and min(values) >= -(2**63) and max(values) < 2**63:
        return _number_ids(np.array(values, dtype=np.int64)[ends])
    texts = np.empty(len(number), dtype=object)
    texts[:] = list(number)
    return texts, ends
