"""Open files from unknown sources: sizes are limited, nothing is executed, errors are clear.

Archives are checked by their table of contents before anything is unpacked, compressed streams
while they are unpacked, and arrays by their header before memory is allocated.
"""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import lzma
import math
import zipfile
import zlib
from collections.abc import Callable, Collection
from pathlib import Path, PurePosixPath
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from artlas.errors import quoted, raise_read_error
from artlas.files.atomic import atomic

RATIO = 200  # unpacked bytes per packed byte beyond which a file is refused
SLACK = 1 << 20  # unpacked bytes that are always allowed
MOST_BYTES = 64 << 30  # unpacked bytes that are never allowed
MOST_MEMBERS = 10_000
BLOCK = 1 << 20

_OPENERS: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open}
_STREAM_ERRORS = (OSError, EOFError, zlib.error, lzma.LZMAError)
_ARCHIVE_ERRORS = (*_STREAM_ERRORS, zipfile.BadZipFile, NotImplementedError)
_BY_HAND, _NEVER = "unpack it by hand if you trust it", "do not use it"
_NPY_HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


def check_file(path: Path) -> int:
    """Return the size of a file; raise an error if the path is not a file."""
    if path.is_file():
        return path.stat().st_size
    got = "a folder" if path.is_dir() else "nothing there"
    raise_read_error(path, "this is not a file", got, "check the path")


def suffix(path: Path) -> str:
    """Return the lower-case ending of the format: ``.csv`` for ``a.csv`` and ``a.csv.gz``."""
    name = path.with_suffix("") if path.suffix.lower() in _OPENERS else path
    return name.suffix.lower()


def read_bytes(path: Path) -> bytes:
    """Read a file, and decompress it if its name ends in .gz, .xz or .bz2."""
    packed, opener = check_file(path), _OPENERS.get(path.suffix.lower())
    if opener is None:
        return path.read_bytes()
    allowed, out = min(packed * RATIO + SLACK, MOST_BYTES), io.BytesIO()
    try:
        with opener(path) as stream:
            while block := stream.read(BLOCK):
                out.write(block)
                if out.tell() > allowed:
                    got = f"more than {allowed:,} bytes from {packed:,}"
                    raise_read_error(path, "this unpacks to far too much", got, _BY_HAND)
    except _STREAM_ERRORS as error:
        raise_read_error(path, "this cannot be unpacked", str(error), "download it again")
    return out.getvalue()


def mapped(path: Path) -> NDArray[np.uint8]:
    """Return the bytes of a file, [size], memory-mapped unless it is compressed or empty."""
    if path.suffix.lower() in _OPENERS or check_file(path) == 0:
        return np.frombuffer(read_bytes(path), dtype=np.uint8)
    return np.memmap(path, dtype=np.uint8, mode="r")


def read_text(path: Path) -> str:
    """Read a UTF-8 text, with or without a byte-order mark."""
    data = read_bytes(path).removeprefix(codecs.BOM_UTF8)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        got = f"byte 0x{data[error.start]:02x}"
        raise_read_error(path, "this is not UTF-8 text", got, "save it as UTF-8", line)


def open_archive(path: Path) -> zipfile.ZipFile:
    """Open a zip archive after checking the names, kinds and sizes of its members."""
    check_file(path)
    try:
        archive = zipfile.ZipFile(path)
    except (*_ARCHIVE_ERRORS, ValueError) as error:
        raise_read_error(path, "this is not a zip archive", str(error), "download it again")
    try:
        _check_members(path, archive)
    except BaseException:
        archive.close()
        raise
    return archive


def _check_members(path: Path, archive: zipfile.ZipFile) -> None:
    members = archive.infolist()
    if len(members) > MOST_MEMBERS:
        raise_read_error(path, "the archive has too many members", f"{len(members):,}", _BY_HAND)
    for member in members:
        name, got = PurePosixPath(member.filename.replace("\\", "/")), quoted(member.filename)
        drive = len(name.parts) > 0 and name.parts[0].endswith(":")
        if name.is_absolute() or ".." in name.parts or drive or "\0" in member.filename:
            raise_read_error(path, "the archive would write outside its folder", got, _NEVER)
        if (member.external_attr >> 16) & 0o170000 == 0o120000:
            raise_read_error(path, "the archive holds a link", got, _NEVER)
        if member.flag_bits & 1:
            raise_read_error(path, "the archive is encrypted", got, _BY_HAND)
    # Only the total is limited: a single array of equal numbers may shrink a thousandfold.
    total, packed = sum(member.file_size for member in members), path.stat().st_size
    if total > min(packed * RATIO + SLACK, MOST_BYTES):
        got = f"{total:,} bytes from {packed:,}"
        raise_read_error(path, "the archive unpacks to far too much", got, _BY_HAND)


def unpack(path: Path, folder: Path, wanted: Callable[[str], bool]) -> list[Path]:
    """Write the members whose base name is ``wanted`` into a folder, each atomically."""
    written = []
    folder.mkdir(parents=True, exist_ok=True)
    with open_archive(path) as archive:
        for member in archive.infolist():
            name = PurePosixPath(member.filename.replace("\\", "/")).name
            if name and not member.is_dir() and wanted(name):
                with atomic(folder / name) as out:
                    _copy_member(path, archive, member, out)
                written.append(folder / name)
    return written


def _copy_member(
    path: Path, archive: zipfile.ZipFile, member: zipfile.ZipInfo, out: IO[bytes]
) -> None:
    """Unpack one member, which must not be longer than the table of contents says."""
    left, name = member.file_size, quoted(member.filename)
    try:
        with archive.open(member) as stream:
            while block := stream.read(BLOCK):
                left -= len(block)
                if left < 0:
                    got = f"more than {member.file_size:,} bytes in {name}"
                    raise_read_error(path, "a member is longer than the archive says", got, _NEVER)
                out.write(block)
    except (*_ARCHIVE_ERRORS, RuntimeError) as error:
        raise_read_error(path, "a member cannot be unpacked", f"{name}: {error}", "download again")


def read_npz(path: Path, only: Collection[str] | None = None) -> dict[str, NDArray[Any]]:
    """Read the arrays of an .npz file, or only those named; arrays of Python objects fail."""
    arrays = {}
    with open_archive(path) as archive:
        for member in archive.infolist():
            name = member.filename.removesuffix(".npy")
            if member.filename.endswith(".npy") and (only is None or name in only):
                arrays[name] = _read_npy(path, archive, member)
    if not arrays:
        raise_read_error(path, "the archive holds no arrays", "no .npy member", "use numpy.savez")
    return arrays


def _read_npy(path: Path, archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> NDArray[Any]:
    where, fix = f"array {quoted(member.filename)}", "write it again by numpy.savez"
    try:
        with archive.open(member) as stream:
            shape, fortran, dtype = _npy_header(stream)
            if dtype.hasobject:
                got, safe = f"{where}, which could run code", "store plain arrays instead"
                raise_read_error(path, "the file holds pickled objects", got, safe)
            if dtype.kind not in "biufcSU" or dtype.itemsize == 0 or dtype.subdtype is not None:
                got = f"{where} of {quoted(str(dtype))}"
                raise_read_error(path, "an array holds neither numbers nor text", got, fix)
            size, count = member.file_size - stream.tell(), math.prod(shape)
            if count * dtype.itemsize != size:
                got = f"{where}: shape {list(shape)} of {dtype} in {size:,} bytes"
                raise_read_error(path, "an array is not as long as its header says", got, fix)
            array: NDArray[Any] = np.empty(count, dtype=dtype)
            view, filled = array.view(np.uint8).reshape(-1), 0
            while block := stream.read(min(BLOCK, size - filled)):
                view[filled : filled + len(block)] = np.frombuffer(block, dtype=np.uint8)
                filled += len(block)
            if filled < size:
                raise_read_error(path, "an array ends too early", where, fix)
            stream.read(1)  # zipfile compares the checksum when it reaches the end
    except (*_ARCHIVE_ERRORS, RuntimeError) as error:
        raise_read_error(path, "an array cannot be unpacked", f"{where}: {error}", fix)
    return array.reshape(shape, order="F" if fortran else "C")


def _npy_header(stream: Any) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Read the header of an .npy file; raise OSError if it is none."""
    try:
        version = np.lib.format.read_magic(stream)
        if version not in _NPY_HEADERS:
            raise ValueError(f"version {version} of the format")
        shape, fortran, dtype = _NPY_HEADERS[version](stream)
        if len(shape) > 32 or not all(type(n) is int and 0 <= n < 2**48 for n in shape):
            raise ValueError(f"shape {list(shape)}")
    except Exception as error:  # the header is a Python literal: its parser raises many kinds
        raise OSError(f"not a NumPy header ({quoted(str(error))})") from error
    return shape, fortran, dtype
