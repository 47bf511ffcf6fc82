"""What a Parquet file says about itself, checked before PyArrow decodes any of it.

Read here, because a run of a billion equal values takes a few bytes, packed or not, and because
PyArrow aborts the process when it is asked for the metadata of some damaged columns.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import IO, Any

from artlas.errors import raise_read_error
from artlas.files.untrusted import RATIO, SLACK

VALUES_ALWAYS = 1 << 22  # values a column may announce whatever the size of the file
VALUES_PER_BYTE = 32
_DEEPEST = 32
_HEADER = 256  # bytes that hold most page headers
_LONGEST_HEADER = 1 << 20
_FIX = "write it anew, or in parts, if you trust it"
# Kinds of values in Thrift's compact protocol.
_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _STRUCT = 1, 2, 3, 7, 8, 9, 10, 12


class _Broken(Exception):
    """Bytes that are not Thrift."""


class _Thrift:
    """A struct in Thrift's compact protocol as a dictionary from field number to value."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def varint(self) -> int:
        number = shift = 0
        while shift < 70:
            if self.at >= len(self.data):
                raise _Broken("the end")
            byte = self.data[self.at]
            self.at += 1
            number |= (byte & 127) << shift
            if byte < 128:
                return number
            shift += 7
        raise _Broken("a number of more than 64 bits")

    def zigzag(self) -> int:
        number = self.varint()
        return (number >> 1) ^ -(number & 1)

    def skip(self, count: int) -> None:
        self.at += count
        if self.at > len(self.data):
            raise _Broken("the end")

    def value(self, kind: int, depth: int) -> Any:
        if kind in (_TRUE, _FALSE):
            return kind == _TRUE
        if kind == _BYTE:
            return self.skip(1)
        if kind < _DOUBLE:
            return self.zigzag()
        if kind == _DOUBLE:
            return self.skip(8)
        if kind == _BINARY:
            length = self.varint()
            self.skip(length)
            return self.data[self.at - length : self.at]
        if kind in (_LIST, _SET):
            return self.list(depth)
        if kind == _STRUCT:
            return self.struct(depth + 1)
        raise _Broken(f"a value of kind {kind}")

    def list(self, depth: int) -> list[Any]:
        self.skip(1)
        head = self.data[self.at - 1]
        count, kind = head >> 4, head & 15
        count = self.varint() if count == 15 else count
        if count > len(self.data) - self.at or depth > _DEEPEST:
            raise _Broken("a list that is longer than the file, or too deep")
        if kind in (_TRUE, _FALSE):  # one byte each, in a list
            self.skip(count)
            return []
        return [self.value(kind, depth + 1) for _ in range(count)]

    def struct(self, depth: int = 0) -> dict[int, Any]:
        if depth > _DEEPEST:
            raise _Broken("structs that are nested too deeply")
        fields: dict[int, Any] = {}
        number = 0
        while True:
            self.skip(1)
            head = self.data[self.at - 1]
            if head == 0:
                return fields
            number = number + (head >> 4) if head >> 4 else self.zigzag()
            fields[number] = self.value(head & 15, depth)


def _whole(fields: Any, number: int, default: int | None = None) -> int:
    """Field ``number`` of a struct, which must be an integer from 0 on."""
    value = fields.get(number, default) if isinstance(fields, dict) else None
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise _Broken(f"no number in field {number}")
    return value


def _structs(fields: Any, number: int) -> list[Any]:
    value = fields.get(number) if isinstance(fields, dict) else None
    if not isinstance(value, list):
        raise _Broken(f"no list in field {number}")
    return value


def check(path: Path, file: IO[bytes], size: int) -> None:
    """Refuse a file without rows, and one that would unpack to far more than it can hold."""
    try:
        _check(path, file, size)
    except _Broken as error:
        raise_read_error(
            path, "this is not a Parquet file that can be read", str(error), "write it anew"
        )


def _check(path: Path, file: IO[bytes], size: int) -> None:
    file.seek(max(0, size - 8))
    tail = file.read(8)
    if len(tail) < 8 or tail[4:] != b"PAR1":
        raise _Broken(f"the end {tail[-4:]!r} instead of b'PAR1'")
    (length,) = struct.unpack("<I", tail[:4])
    if length > size - 12:
        raise _Broken(f"a footer of {length:,} bytes in a file of {size:,}")
    file.seek(size - 8 - length)
    footer = _Thrift(file.read(length)).struct()
    if (rows := _whole(footer, 3)) < 1:
        raise_read_error(path, "there are no rows", f"{rows}", "store one graph in each row")
    _check_count(path, rows, size)
    values: dict[bytes, int] = {}
    unpacked = 0
    for group in _structs(footer, 4):
        for chunk in _structs(group, 1):
            meta = chunk.get(3) if isinstance(chunk, dict) else None
            name = b".".join(part for part in _structs(meta, 3) if isinstance(part, bytes))
            values[name] = values.get(name, 0) + _whole(meta, 5)
            _check_count(path, values[name], size)
            unpacked += _check_pages(file, meta, size)
            if unpacked > size * RATIO + SLACK:
                got = f"{unpacked:,} bytes or more from {size:,}"
                raise_read_error(path, "this unpacks to far too much", got, _FIX)


def _check_count(path: Path, count: int, size: int) -> None:
    if count > size * VALUES_PER_BYTE + VALUES_ALWAYS:
        got = f"{count:,} rows or values of a column, from {size:,} bytes"
        raise_read_error(path, "the file announces more values than it can hold", got, _FIX)


def _check_pages(file: IO[bytes], meta: Any, size: int) -> int:
    """Unpacked bytes of a column chunk, whose pages must hold what the footer says."""
    first = _whole(meta, 9)
    at = min(first, _whole(meta, 11, first) or first)
    end, left, unpacked = at + _whole(meta, 7), _whole(meta, 5), 0
    if end > size:
        raise _Broken("a column that ends after the file")
    while at < end:
        header, length = _page(file, at, end)
        data = header.get(5, header.get(8))
        if data is not None:
            left -= _whole(data, 1)
        elif 7 in header and _whole(header[7], 1) > _whole(header, 2):
            raise _Broken("a dictionary with more values than bytes")
        if left < 0:
            raise _Broken("pages with more values than the footer says")
        unpacked += _whole(header, 2)
        at += length + _whole(header, 3)
    if at > end:
        raise _Broken("a page that ends after its column")
    return max(unpacked, _whole(meta, 6))


def _page(file: IO[bytes], at: int, end: int) -> tuple[dict[int, Any], int]:
    """The header of a page and its length; few are long, so little is read at first."""
    file.seek(at)
    reader = _Thrift(file.read(min(_HEADER, end - at)))
    try:
        return reader.struct(), reader.at
    except _Broken:
        file.seek(at)
        reader = _Thrift(file.read(min(_LONGEST_HEADER, end - at)))
        return reader.struct(), reader.at
