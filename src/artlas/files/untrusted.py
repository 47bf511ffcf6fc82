"""How files that somebody was given are opened: bounded, never executed, refused in plain words.

Archives are judged by their table of contents before a byte is unpacked, compressed streams while
they grow, and arrays by their header before memory is taken for them.
"""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import lzma
import zipfile
import zlib
from collections.abc import Callable, Collection
from pathlib import Path, PurePosixPath
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from artlas.errors import quoted, raise_read_error
from artlas.files.atomic import atomic

RATIO = 200  # unpacked bytes per packed byte beyond which a file is taken for a bomb
SLACK = 1 << 20  # unpacked bytes that are always allowed
MOST_BYTES = 64 << 30  # unpacked bytes that are never allowed
MOST_MEMBERS = 10_000
BLOCK = 1 << 20

_OPENERS: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open}
_BROKEN = (OSError, EOFError, zlib.error, lzma.LZMAError)


def check_file(path: Path) -> int:
    """The size of a file; an error that says what is there instead if it is not a file."""
    if path.is_file():
        return path.stat().st_size
    got = "a folder" if path.is_dir() else "nothing there"
    raise_read_error(path, "this is not a file", got, "check the path")


def suffix(path: Path) -> str:
    """The lower-case ending that tells the format: ``.csv`` for ``a.csv`` and for ``a.csv.gz``."""
    name = path.with_suffix("") if path.suffix.lower() in _OPENERS else path
    return name.suffix.lower()


def read_bytes(path: Path) -> bytes:
    """All bytes of a file, unpacked if its name ends in .gz, .xz or .bz2."""
    size, opener = check_file(path), _OPENERS.get(path.suffix.lower())
    if opener is None:
        return path.read_bytes()
    with opener(path) as stream:
        return _grow(path, stream, size)


def _grow(path: Path, stream: IO[bytes], packed: int) -> bytes:
    allowed, out = min(packed * RATIO + SLACK, MOST_BYTES), io.BytesIO()
    try:
        while block := stream.read(BLOCK):
            out.write(block)
            if out.tell() > allowed:
                got = f"more than {allowed:,} bytes from {packed:,}"
                raise_read_error(
                    path, "this unpacks to far too much", got, "unpack it by hand if you trust it"
                )
    except _BROKEN as error:
        raise_read_error(path, "this cannot be unpacked", str(error), "fetch or compress it anew")
    return out.getvalue()


def mapped(path: Path) -> NDArray[np.uint8]:
    """The bytes of a file, [size], mapped instead of read where it is not packed."""
    if path.suffix.lower() in _OPENERS or check_file(path) == 0:
        return np.frombuffer(read_bytes(path), dtype=np.uint8)
    return np.memmap(path, dtype=np.uint8, mode="r")


def read_text(path: Path) -> str:
    """The text of a file in UTF-8, with or without a byte-order mark."""
    data = read_bytes(path).removeprefix(codecs.BOM_UTF8)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        got = f"byte 0x{data[error.start]:02x}"
        raise_read_error(path, "this is not UTF-8 text", got, "save it as UTF-8", line)


def open_archive(path: Path) -> zipfile.ZipFile:
    """A zip archive whose names, sizes and ratios were found harmless."""
    check_file(path)
    try:
        archive = zipfile.ZipFile(path)
    except (*_BROKEN, zipfile.BadZipFile, ValueError, NotImplementedError) as error:
        raise_read_error(path, "this is not a zip archive", str(error), "fetch it anew")
    try:
        _check_members(path, archive)
    except BaseException:
        archive.close()
        raise
    return archive


def _check_members(path: Path, archive: zipfile.ZipFile) -> None:
    members, fix = archive.infolist(), "unpack it by hand if you trust it"
    if len(members) > MOST_MEMBERS:
        raise_read_error(path, "the archive has too many members", f"{len(members):,}", fix)
    for member in members:
        name = PurePosixPath(member.filename.replace("\\", "/"))
        drive = len(name.parts) > 0 and name.parts[0].endswith(":")
        if name.is_absolute() or ".." in name.parts or drive or "\0" in member.filename:
            got = quoted(member.filename)
            raise_read_error(
                path, "the archive would write outside its folder", got, "do not use it"
            )
        if (member.external_attr >> 16) & 0o170000 == 0o120000:
            raise_read_error(
                path, "the archive holds a link", quoted(member.filename), "do not use it"
            )
        if member.flag_bits & 1:
            raise_read_error(path, "the archive is encrypted", quoted(member.filename), fix)
    # Only the total is judged: an honest array of ones shrinks a thousandfold.
    total = sum(member.file_size for member in members)
    if total > min(path.stat().st_size * RATIO + SLACK, MOST_BYTES):
        got = f"{total:,} bytes from {path.stat().st_size:,}"
        raise_read_error(path, "the archive unpacks to far too much", got, fix)


def unpack(path: Path, folder: Path, wanted: Callable[[str], bool]) -> list[Path]:
    """Write the members whose base name is wanted into a folder, each whole or not at all."""
    written = []
    folder.mkdir(parents=True, exist_ok=True)
    with open_archive(path) as archive:
        for member in archive.infolist():
            name = PurePosixPath(member.filename.replace("\\", "/")).name
            if name and not member.is_dir() and wanted(name):
                with atomic(folder / name) as out:
                    copy_member(path, archive, member, out)
                written.append(folder / name)
    return written


def copy_member(
    path: Path, archive: zipfile.ZipFile, member: zipfile.ZipInfo, out: IO[bytes]
) -> None:
    """Write one member, which may not be longer than its table of contents says."""
    try:
        with archive.open(member) as stream:
            left = member.file_size
            while block := stream.read(BLOCK):
                left -= len(block)
                if left < 0:
                    got = f"more than {member.file_size:,} bytes in {quoted(member.filename)}"
                    raise_read_error(
                        path, "a member is longer than the archive says", got, "do not use it"
                    )
                out.write(block)
    except (*_BROKEN, zipfile.BadZipFile, RuntimeError, NotImplementedError) as error:
        got = f"{quoted(member.filename)}: {error}"
        raise_read_error(path, "a member of the archive cannot be unpacked", got, "fetch it anew")


def read_npz(path: Path, only: Collection[str] | None = None) -> dict[str, NDArray[Any]]:
    """The arrays of an .npz file, or only those named; none of them of Python objects."""
    arrays = {}
    with open_archive(path) as archive:
        for member in archive.infolist():
            name = member.filename.removesuffix(".npy")
            if member.filename.endswith(".npy") and (only is None or name in only):
                arrays[name] = _read_npy(path, archive, member)
    if not arrays:
        raise_read_error(
            path, "the archive holds no arrays", "no .npy member", "write it by numpy.savez"
        )
    return arrays


def _read_npy(path: Path, archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> NDArray[Any]:
    where, fix = f"array {quoted(member.filename)}", "write it anew by numpy.savez"
    try:
        with archive.open(member) as stream:
            shape, fortran, dtype = _npy_header(stream)
            if dtype.hasobject:
                got = f"{where} of Python objects, which could run code"
                raise_read_error(
                    path, "the file holds pickled objects", got, "store plain arrays instead"
                )
            if dtype.kind not in "biufcSU" or dtype.itemsize == 0 or dtype.subdtype is not None:
                got = f"{where} of {quoted(str(dtype))}"
                raise_read_error(path, "an array holds neither numbers nor text", got, fix)
            size = member.file_size - stream.tell()
            count = 1
            for length in shape:
                count *= length
            if count * dtype.itemsize != size:
                got = f"{where}: shape {list(shape)} of {dtype} in {size:,} bytes"
                raise_read_error(path, "an array is not as long as its header says", got, fix)
            array: NDArray[Any] = np.empty(count, dtype=dtype)
            view, filled = array.view(np.uint8).reshape(-1), 0
            while filled < size:
                block = stream.read(min(BLOCK, size - filled))
                if not block:
                    raise_read_error(path, "an array ends too early", where, fix)
                view[filled : filled + len(block)] = np.frombuffer(block, dtype=np.uint8)
                filled += len(block)
            stream.read(1)  # reaching the end is what checks the archive's checksum
    except (*_BROKEN, zipfile.BadZipFile, RuntimeError, NotImplementedError) as error:
        raise_read_error(path, "an array cannot be unpacked", f"{where}: {error}", fix)
    return array.reshape(shape, order="F" if fortran else "C")


def _npy_header(stream: Any) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    try:
        version = np.lib.format.read_magic(stream)
        read = {
            (1, 0): np.lib.format.read_array_header_1_0,
            (2, 0): np.lib.format.read_array_header_2_0,
        }.get(version)
        if read is None:
            raise ValueError(f"version {version} of the format")
        shape, fortran, dtype = read(stream)
        if len(shape) > 32 or not all(type(n) is int and 0 <= n < 2**48 for n in shape):
            raise ValueError(f"shape {list(shape)}")
    except RuntimeError:
        raise
    except Exception as error:  # the header is a Python literal: its parser raises many kinds
        raise OSError(f"not a NumPy header ({quoted(str(error))})") from error
    return shape, fortran, dtype
