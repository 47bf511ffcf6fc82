"""Read pickles of arrays and dictionaries without running any code of theirs.

Objects of a pickle become inert records that hold their data and do nothing; only checked numbers
leave this module. Opcodes and names that arrays do not need are refused.
"""

from __future__ import annotations

import io
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from artlas.errors import ReadError, quoted, raise_read_error
from artlas.files.untrusted import read_bytes

_FIX = "fetch the original file anew"


class _Record:
    """Stand in for an object of a pickle: keep its arguments and its state."""

    __slots__ = ("args", "state")
    args: tuple[Any, ...]
    state: Any

    def __new__(cls, *args: Any) -> _Record:
        record = super().__new__(cls)
        record.args, record.state = args, None
        return record

    def __setstate__(self, state: Any) -> None:
        self.state = state


class Matrix(_Record):
    """Stand in for scipy.sparse.csr_matrix."""

    __slots__ = ()


class _Array(_Record):
    """Stand in for numpy.ndarray, and for what _reconstruct returns."""

    __slots__ = ()


class _Dtype(_Record):
    """Stand in for numpy.dtype."""

    __slots__ = ()


class _Unused(_Record):
    """Stand in for list and object, which the original files name and never call."""

    __slots__ = ()


class _Function:
    """Stand in for a function; instances have no attributes that a pickle could set."""

    __slots__ = ("_call",)

    def __init__(self, call: Callable[..., Any]) -> None:
        self._call = call

    def __call__(self, *args: Any) -> Any:
        return self._call(*args)

    def __setstate__(self, state: Any) -> None:
        raise pickle.UnpicklingError("a function is given a state")


def _encode(text: Any, encoding: Any) -> bytes:
    if not isinstance(text, str) or encoding != "latin1":
        raise pickle.UnpicklingError("text is encoded by something else than latin1")
    return text.encode("latin1")


_KNOWN: dict[tuple[str, str], Any] = {
    ("numpy", "ndarray"): _Array,
    ("numpy", "dtype"): _Dtype,
    ("numpy.core.multiarray", "_reconstruct"): _Function(lambda *args: _Array()),
    ("numpy._core.multiarray", "_reconstruct"): _Function(lambda *args: _Array()),
    ("scipy.sparse.csr", "csr_matrix"): Matrix,
    ("scipy.sparse._csr", "csr_matrix"): Matrix,
    ("collections", "defaultdict"): _Function(lambda *args: {}),
    ("__builtin__", "list"): _Unused,
    ("builtins", "list"): _Unused,
    ("__builtin__", "object"): _Unused,
    ("builtins", "object"): _Unused,
    ("copy_reg", "_reconstructor"): _Function(lambda kind, *args: _Record.__new__(kind)),
    ("copyreg", "_reconstructor"): _Function(lambda kind, *args: _Record.__new__(kind)),
    ("_codecs", "encode"): _Function(_encode),
    ("__builtin__", "bytes"): _Function(lambda: b""),  # how protocol 2 writes empty bytes
}

_OPCODES = """
    PROTO FRAME STOP MARK NONE NEWTRUE NEWFALSE BININT BININT1 BININT2 LONG1 BINFLOAT
    BINSTRING SHORT_BINSTRING BINUNICODE SHORT_BINUNICODE BINBYTES SHORT_BINBYTES BINBYTES8
    EMPTY_TUPLE TUPLE TUPLE1 TUPLE2 TUPLE3 EMPTY_LIST APPEND APPENDS EMPTY_DICT SETITEM SETITEMS
    BINPUT LONG_BINPUT BINGET LONG_BINGET MEMOIZE GLOBAL STACK_GLOBAL REDUCE NEWOBJ BUILD
"""


class _RefusalError(Exception):
    pass


def _set_item(unpickler: Any) -> None:
    value, key = unpickler.stack.pop(), unpickler.stack.pop()
    _update(unpickler.stack[-1], [key, value])


def _set_items(unpickler: Any) -> None:
    items = unpickler.pop_mark()
    _update(unpickler.stack[-1], items)


def _update(target: Any, items: list[Any]) -> None:
    keys = items[::2]
    # Numbers and text only: hashing a deeply nested tuple would overflow the stack.
    if type(target) is not dict or not all(type(key) in (int, str) for key in keys):
        raise pickle.UnpicklingError("a dictionary has other keys than numbers and text")
    target.update(zip(keys, items[1::2], strict=True))


class _Unpickler(pickle._Unpickler):
    # The one in Python, because the one in C allocates whatever length a file announces.
    dispatch = {  # noqa: RUF012 - as in the base class
        code: pickle._Unpickler.dispatch[code]
        for code in (getattr(pickle, name)[0] for name in _OPCODES.split())
    }
    dispatch |= {pickle.SETITEM[0]: _set_item, pickle.SETITEMS[0]: _set_items}

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _KNOWN:
            got = quoted(f"{module}.{name}")
            raise _RefusalError(f"the pickle asks for something that could run code; got {got}")
        return _KNOWN[module, name]


def unpickle(path: Path) -> Any:
    """Return the content of a file: dictionaries, lists, numbers, text and inert records."""
    stream = io.BytesIO(read_bytes(path))
    try:
        return _Unpickler(stream, encoding="latin1").load()
    except _RefusalError as error:
        raise ReadError(f"{path}: {error}. To fix this, {_FIX}, and do not trust this.") from None
    except KeyError as error:
        raise_read_error(
            path, "the pickle has an instruction of no use here", f"opcode {error}", _FIX
        )
    except Exception as error:  # a broken pickle may raise anything
        raise_read_error(path, "this is not a pickle of arrays", type(error).__name__, _FIX)


def array(path: Path, value: Any) -> NDArray[Any]:
    """Return the numbers of a pickled ndarray."""
    state = value.state if isinstance(value, _Array) else None
    if not isinstance(state, tuple) or len(state) != 5:
        raise_read_error(path, "an array is missing", type(value).__name__.strip("_").lower(), _FIX)
    _, shape, dtype, fortran, data = state
    code = dtype.args[0] if isinstance(dtype, _Dtype) and dtype.args else None
    order = dtype.state[1] if isinstance(dtype, _Dtype) and _is_dtype(dtype.state) else None
    if not isinstance(code, str) or not re.fullmatch("[biuf][1248]", code):
        raise_read_error(path, "an array does not hold plain numbers", _shown(code), _FIX)
    if order not in ("<", ">", "|", "=") or (order == "=" and code[1] != "1"):
        raise_read_error(path, "an array has no known byte order", _shown(order), _FIX)
    if not isinstance(shape, tuple) or not all(type(n) is int and n >= 0 for n in shape):
        raise_read_error(path, "an array has no shape", type(shape).__name__, _FIX)
    if isinstance(data, str):  # bytes of Python 2, decoded as latin1
        try:
            data = data.encode("latin1")
        except UnicodeEncodeError:
            data = None
    try:
        element = np.dtype(order.replace("=", "|") + code)
    except TypeError:
        raise_read_error(path, "an array does not hold plain numbers", _shown(code), _FIX)
    count = 1
    for n in shape:
        count *= n
    if not isinstance(data, bytes) or count * element.itemsize != len(data):
        got = f"shape {quoted(list(shape))} of {element}"
        raise_read_error(path, "an array is not as long as its shape says", got, _FIX)
    flat = np.frombuffer(data, dtype=element)
    return flat.reshape(shape, order="F" if fortran else "C").astype(element.newbyteorder("="))


def _is_dtype(state: Any) -> bool:
    return isinstance(state, tuple) and len(state) >= 5 and state[2:5] == (None, None, None)


def _shown(value: Any) -> str:
    """Return text, quoted, or the name of another type: a value may nest too deep to print."""
    return quoted(value) if isinstance(value, str) else type(value).__name__
