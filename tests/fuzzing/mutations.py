"""Seeds of every format, and mutations of their bytes; see fuzz.py."""

from __future__ import annotations

import io
import pathlib
import random
import re
import struct
import zipfile
from collections.abc import Callable
from typing import Any

DATA = pathlib.Path(__file__).parent.parent / "io" / "data"
Files = dict[str, bytes]  # path below the folder of a case -> content

MARKET = b"%%MatrixMarket matrix "
INLINE: dict[str, bytes] = {
    "quoted.csv": b'source,target,weight\n"Doe, J",ann,1\nann,"B ""q""",2.5\n',
    "wide.csv": b"id;from;to;note\n1;a;b;x\n2;b;c;y\n",
    "large.txt": b"".join(b"%d %d %d\n" % (i, i * i % 997, 1 + i % 3) for i in range(300)),
    "weighted.tsv": b"1\t2\t0.5\n2\t3\t1e-3\n7\t1\t1\n",
    "attributes.edgelist": b"# karate\n1 2 {'weight': 3}\n2 3 {}\n",
    "array.mtx": MARKET + b"array real symmetric\n% c\n3 3\n0\n1\n2\n0\n0.5\n0\n",
    "real.mtx": MARKET + b"coordinate real general\n4 4 3\n1 2 1.0\n2 3 0\n4 1 -2e3\n",
    "skew.mtx": MARKET + b"coordinate integer skew-symmetric\n3 3 2\n2 1 1\n3 1 -4\n",
    "table.csv": b"id,smiles,y\n1,CCO,0\n2,c1ccccc1,1\n",
    "chiral.smi": b"C[C@@H](C(=O)O)N alanine\n[Na+].[Cl-] salt\nC1CC1\n",
}
NUMBERS = [
    b"0",
    b"-1",
    b"1",
    b"2",
    b"-9223372036854775808",
    b"9223372036854775807",
    b"2147483648",
    b"18446744073709551616",
    b"9" * 30,
    b"9" * 5000,
    b"nan",
    b"inf",
    b"-inf",
    b"1e308",
    b"1e999",
    b"0.5",
    b"1e-400",
    b"0x10",
    b"1_000",
    b"1000000",
    b"999999999",
    b"true",
    b"null",
    b"",
]
KEYWORDS = [
    b"graph",
    b"node",
    b"edge",
    b"id",
    b"source",
    b"target",
    b"directed",
    b"multigraph",
    b"label",
    b"nodes",
    b"links",
    b"edges",
    b"key",
    b"data",
    b"weight",
    b"symmetric",
    b"general",
    b"complex",
    b"coordinate",
    b"array",
    b"pattern",
    b"smiles",
    b"true",
    b"<!ENTITY a 'b'>",
    b"<!DOCTYPE x>",
    b"edge_index",
    b"num_nodes",
    b"adjacency",
    b"csr",
    b"coo",
    b"|O",
    b"hyperedge",
    b"port",
]
WORDS: list[tuple[str, int | float]] = [
    ("<q", 0),
    ("<q", 3),
    ("<q", -1),
    ("<q", 2**62),
    ("<q", -(2**63)),
    ("<i", 2**31 - 1),
    ("<i", 1),
    ("<i", -2),
    ("<H", 65535),
    ("<d", float("nan")),
    ("<d", 1e308),
    ("<f", float("inf")),
    ("<B", 255),
]
BRACKETS = [
    b"[",
    b"{",
    b"(",
    b"<a>",
    b'{"a":',
    b"[[",
    b"]",
    b"}",
    b"graph [ ",
    b"C(",
    b'"',
    b"<graph>",
    b"&a;",
    b"<data key='x'>",
    b"\n",
    b",",
    b"%",
    b"1 ",
    b"\t",
    b"=",
    b".",
]


def seeds() -> list[tuple[str, Files]]:
    """Return (what to read, files) of every seed: those of tests/io/data, and those made here."""
    found: list[tuple[str, Files]] = [(name, {name: data}) for name, data in INLINE.items()]
    for path in sorted(DATA.iterdir()) if DATA.exists() else []:
        if path.is_dir() and path.name != "__pycache__":
            parts = {f"{path.name}/{p.name}": p.read_bytes() for p in sorted(path.iterdir())}
            found.append((path.name, parts))
            members = {name.encode(): data for name, data in parts.items()}
            found.append((f"{path.name}.zip", {f"{path.name}.zip": _zip(members)}))
        elif path.is_file() and path.suffix != ".py":
            found.append((path.name, {path.name: path.read_bytes()}))
    return found + _npz_seeds()


def _npz_seeds() -> list[tuple[str, Files]]:
    import numpy as np

    ends = np.array([[0, 1, 2], [1, 2, 3]])
    kinds: dict[str, dict[str, Any]] = {
        "ends.npz": {"edge_index": ends, "num_nodes": 5, "x": np.ones((5, 2)), "y": np.arange(5)},
        "dense.npz": {"adjacency": np.eye(4)[::-1]},
        "coo.npz": {
            "format": np.array(b"coo"),
            "shape": np.array([4, 4]),
            "data": np.ones(3),
            "row": ends[0],
            "col": ends[1],
        },
    }
    made = []
    for name, arrays in kinds.items():
        out = io.BytesIO()
        np.savez(out, **arrays)
        made.append((name, {name: out.getvalue()}))
    return made


def _zip(members: dict[bytes, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(name.decode("utf-8", "replace")), data)
    return out.getvalue()


def _span(rng: random.Random, data: bytes) -> tuple[int, int]:
    start = rng.randrange(len(data) + 1)
    return start, min(len(data), start + rng.choice([1, 1, 2, 4, 8, 32, 128]))


def _flip(rng: random.Random, data: bytes) -> bytes:
    out = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 8])):
        if out:
            out[rng.randrange(len(out))] ^= 1 << rng.randrange(8)
    return bytes(out)


def _delete(rng: random.Random, data: bytes) -> bytes:
    start, stop = _span(rng, data)
    return data[:start] + data[stop:]


def _insert(rng: random.Random, data: bytes) -> bytes:
    start, _ = _span(rng, data)
    return data[:start] + rng.randbytes(rng.choice([1, 2, 8, 64])) + data[start:]


def _double(rng: random.Random, data: bytes) -> bytes:
    start, stop = _span(rng, data)
    return data[:stop] + data[start:stop] * rng.choice([1, 2, 50, 1000]) + data[stop:]


def _truncate(rng: random.Random, data: bytes) -> bytes:
    return data[: rng.randrange(len(data) + 1)]


def _replace(rng: random.Random, data: bytes, pattern: bytes, values: list[bytes]) -> bytes:
    found = list(re.finditer(pattern, data))
    if not found:
        return _insert(rng, data)
    match = rng.choice(found)
    return data[: match.start()] + rng.choice(values) + data[match.end() :]


def _number(rng: random.Random, data: bytes) -> bytes:
    return _replace(rng, data, rb"-?[0-9]+(\.[0-9]+)?", NUMBERS)


def _keyword(rng: random.Random, data: bytes) -> bytes:
    words = re.findall(rb"[A-Za-z_]+", data)
    return _replace(rng, data, rb"[A-Za-z_]+", [*words[:50], *KEYWORDS])


def _nest(rng: random.Random, data: bytes) -> bytes:
    start, _ = _span(rng, data)
    return data[:start] + rng.choice(BRACKETS) * rng.choice([2, 60, 3000, 50_000]) + data[start:]


def _header(rng: random.Random, data: bytes) -> bytes:
    """Replace a number in the first lines, where the counts are."""
    cut = [match.end() for match in re.finditer(rb"\n", data)][:4]
    cut_at = cut[-1] if cut else len(data)
    return _number(rng, data[:cut_at]) + data[cut_at:]


def _overwrite(rng: random.Random, data: bytes) -> bytes:
    """Overwrite bytes by a binary number, without moving the rest."""
    kind, value = rng.choice(WORDS)
    packed = struct.pack(kind, value)
    start = rng.randrange(max(1, len(data) - len(packed) + 1))
    start -= start % len(packed) if rng.random() < 0.7 else 0
    return data[:start] + packed + data[start + len(packed) :]


def _array(rng: random.Random) -> bytes:
    """Return a valid array of a type and shape that do not belong there."""
    import numpy as np

    shape = rng.choice([(), (0,), (1,), (3,), (4,), (2, 3), (3, 2), (4, 4), (2, 0), (2, 2, 2)])
    values = [rng.choice([0, 1, 2, 3, 4, 5, -1, 127]) for _ in range(int(np.prod(shape)))]
    kind = rng.choice(["i8", "i4", "u8", "f8", "f4", "?", "S3", "U3", "c16", ">i8", "M8[s]", "i1"])
    array = np.array(values).astype(kind).reshape(shape)
    if array.dtype.kind == "f" and array.size and rng.random() < 0.3:
        array.flat[0] = rng.choice([float("nan"), float("inf"), 1e30])
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


def _odd_array(rng: random.Random) -> bytes:
    """Return an array whose header is a valid but unusual literal."""
    kind = rng.choice(["'<f8'", "'|V0'", "'<U0'", "'|O'", "('<f8', (2,))", "[('a', '<i4')]", "'?'"])
    shapes = [
        "()",
        "(1,)",
        "(True,)",
        "(2, 2)",
        f"(0, {2**70})",
        f"({2**70},)",
        f"({2**62}, 4)",
        "(-1,)",
        "(1.0,)",
        "[2]",
        "(" + "1," * 70 + ")",
        "('a',)",
        "None",
    ]
    order = rng.choice(["True", "False", "1", "None"])
    text = f"{{'descr': {kind}, 'fortran_order': {order}, 'shape': {rng.choice(shapes)}, }}"
    header = text.encode().ljust(246) + b"\n"
    body = bytes(rng.choice([0, 1, 8, 16, 32]))
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + body


SIMPLE: list[Callable[[random.Random, bytes], bytes]] = [
    _flip,
    _delete,
    _insert,
    _double,
    _truncate,
    _number,
    _number,
    _keyword,
    _nest,
    _header,
    _overwrite,
]


def mutate(rng: random.Random, data: bytes, other: bytes) -> bytes:
    """Change data a few times; a piece of ``other`` may be spliced in."""
    if data[:2] == b"PK" and rng.random() < 0.7:
        return _repack(rng, data)
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        if rng.random() < 0.08:
            data = data[: rng.randrange(len(data) + 1)] + other[rng.randrange(len(other) + 1) :]
        else:
            data = rng.choice(SIMPLE)(rng, data)
    return data


def _repack(rng: random.Random, data: bytes) -> bytes:
    """Change a member or its name and zip it again, so that the checksum is right."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name.encode(): archive.read(name) for name in archive.namelist()}
    name = rng.choice(list(members))
    content = members.pop(name)
    if rng.random() < 0.15:
        name = rng.choice([_keyword(rng, name), _flip(rng, name), b"../" + name, b"/" + name])
    elif content.startswith(b"\x93NUMPY") and rng.random() < 0.8:
        body = content.index(b"\n") + 1
        overwritten = content[:body] + _overwrite(rng, content[body:])
        content = rng.choice([_array(rng), _odd_array(rng), overwritten, overwritten])
    else:
        content = mutate(rng, content, data)
    return _zip({**members, name: content})


def case(seed: int, number: int, known: list[tuple[str, Files]]) -> tuple[str, Files]:
    """Return what to read, and the files, of one case."""
    rng = random.Random(f"{seed}/{number}")
    target, files = known[number % len(known)]
    _, others = rng.choice(known)
    name = rng.choice(list(files))
    files = {**files, name: mutate(rng, files[name], rng.choice(list(others.values())))}
    if len(files) > 1 and rng.random() < 0.05:
        files.pop(rng.choice(list(files)))
    if len(files) == 1 and name == target and rng.random() < 0.05:
        target = "unnamed.txt"  # the format has to be told by content
        files = {target: files[name]}
    return target, files
