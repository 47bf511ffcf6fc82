"""Fitted estimators on disk: tensors as safetensors, the rest as JSON, written atomically."""

from __future__ import annotations

import dataclasses
import hashlib
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import torch
from torch import Tensor

from artlas import blocks
from artlas.blocks.config import VectorConfig, as_config, as_preset
from artlas.blocks.layout import Block, Layout
from artlas.errors import quoted, raise_graph_error, raise_read_error
from artlas.files.stored import read_json, read_tensors, write_json, write_tensors
from artlas.learning.block_kernel import BlockKernel
from artlas.learning.fit_report import FitReport
from artlas.learning.kernel_machine import KernelMachine

TENSORS, FACTS = "estimator.safetensors", "estimator.json"
FORMAT = 1
_AGAIN = "save the estimator again with this version of artlas"
_KINDS = {"bool": "b", "int": "iu", "float": "f", "str": "UO"}  # of classes, as NumPy's kinds


def save(estimator: Any, folder: Any) -> None:
    """Write a fitted estimator into a folder."""
    folder, machine = Path(folder), estimator.machine_
    kernel, labels = machine.kernel, estimator.anchor_labels_
    classes = None
    if hasattr(estimator, "classes_"):
        classes = _classes_to_json(estimator.classes_)
        labels = np.searchsorted(estimator.classes_, labels)
    tensors = {
        "columns": kernel.columns,
        "mean": kernel.mean,
        "scale": kernel.scale,
        "anchors": kernel.anchors,
        "coefficients": machine.coefficients,
        "intercept": machine.intercept,
        "numbers": machine.anchors,
        "familiar": machine.familiar,
        "labels": torch.from_numpy(labels),
    }
    facts = {
        "format": FORMAT,
        "estimator": type(estimator).__name__,
        "settings": estimator.get_params()
        | {"blocks": estimator.blocks is not None, "preset": None},
        "vector": dataclasses.asdict(as_config(estimator.preset)) | {"version": blocks.VERSION},
        "classes": classes,
        "sharpness": getattr(estimator, "sharpness_", None),
        "ridge": machine.ridge,
        "num_features": estimator.n_node_features_in_,
        "layout": estimator.layout_.blocks,
        "kernel": {"names": kernel.names, "widths": kernel.widths, "weights": kernel.weights},
        "report": dataclasses.asdict(estimator.report_),
        "sha256": _hash(tensors),
    }
    folder.mkdir(parents=True, exist_ok=True)
    write_tensors(folder / TENSORS, tensors)
    write_json(folder / FACTS, facts)


def load(kind: Any, folder: Any) -> Any:
    """Load an estimator of a class from a folder, checking all that is read."""
    path = Path(folder) / FACTS
    if not path.is_file():
        fix = f"pass a folder with {FACTS} and {TENSORS}"
        raise_read_error(folder, "there is no estimator here", quoted(str(folder)), fix)
    facts = read_json(path)
    if facts.get("estimator") != kind.__name__ or facts.get("format") != FORMAT:
        wrong = f"this is not a {kind.__name__} that this version of artlas can read"
        got = f"{quoted(facts.get('estimator'))} in format {quoted(facts.get('format'))}"
        raise_read_error(path, wrong, got, "load it by its own class, and a newer artlas")
    # Copies, whose memory is aligned as that of the tensors saved: products have the same bits.
    tensors = {k: v.clone() for k, v in read_tensors(path.with_name(TENSORS)).items()}
    try:
        return _assemble(kind, facts, tensors)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        what = f"{type(error).__name__}: {error}"
        raise_read_error(path, "this is not a whole estimator", quoted(what, 200), _AGAIN)


def _assemble(kind: Any, facts: dict[str, Any], tensors: dict[str, Tensor]) -> Any:
    layout = Layout(
        tuple(Block(_text(n), tuple(map(_text, c)), _floor(f)) for n, c, f in facts["layout"])
    )
    vector = dict(facts["vector"])
    version, config = vector.pop("version"), VectorConfig(**vector)
    settings = facts["settings"] | {"blocks": layout if facts["settings"]["blocks"] else None}
    settings["preset"] = as_preset(config)
    estimator = kind(**settings)
    parts = facts["kernel"]
    names, widths = tuple(map(_text, parts["names"])), tuple(map(_count, parts["widths"]))
    weights = tuple(map(_positive, parts["weights"]))
    classes = None if facts["classes"] is None else _classes_from_json(facts["classes"])
    if (classes is None) != (kind.__name__ == "GraphRegressor"):
        _refuse("the classes do not fit the estimator")
    if not len(names) == len(widths) == len(weights) or not set(names) <= set(layout.names):
        _refuse("the kernel's blocks do not fit the layout")
    sizes = {
        "d": sum(widths),
        "m": len(tensors["numbers"]),
        "c": 1 if classes is None else len(classes),
        "f": len(tensors["familiar"]),
    }
    _check_tensors(tensors, sizes, layout.width, classes is not None)
    if facts["sha256"] != _hash(tensors):
        _refuse(f"{TENSORS} was not written together with {FACTS}")
    kernel = BlockKernel(
        names, widths, weights, *(tensors[n] for n in ("columns", "mean", "scale", "anchors"))
    )
    estimator.machine_ = KernelMachine(
        kernel,
        tensors["coefficients"],
        tensors["intercept"],
        _positive(facts["ridge"]),
        tensors["numbers"],
        tensors["familiar"],
    )
    estimator.anchor_labels_ = tensors["labels"].numpy()
    if classes is not None:
        estimator.classes_ = classes
        estimator.anchor_labels_ = classes[estimator.anchor_labels_]
        estimator.sharpness_ = _positive(facts["sharpness"])
    features = None if facts["num_features"] is None else _count(facts["num_features"])
    if features is not None and (version, config.layout) != (blocks.VERSION, layout):
        _refuse("the blocks of graphs have changed since")
    estimator.n_node_features_in_ = features
    estimator.layout_, estimator.n_features_in_ = layout, layout.width
    estimator.report_ = FitReport(**facts["report"])
    str(estimator.report_)  # fails on an entry that is not what it should be
    estimator.check_settings()
    return estimator


# Shapes by letters: d columns, m anchors, c classes, f familiar kernels.
_TENSORS = {
    "columns": ("d", torch.int64),
    "mean": ("d", torch.float64),
    "scale": ("d", torch.float64),
    "anchors": ("md", torch.float32),
    "coefficients": ("mc", torch.float64),
    "intercept": ("c", torch.float64),
    "numbers": ("m", torch.int64),
    "familiar": ("f", torch.float32),
}


def _check_tensors(
    tensors: dict[str, Tensor], sizes: dict[str, int], width: int, classes: bool
) -> None:
    wanted = _TENSORS | {"labels": ("m", torch.int64 if classes else torch.float64)}
    for name, (letters, dtype) in wanted.items():
        value, shape = tensors[name], tuple(sizes[letter] for letter in letters)
        if tuple(value.shape) != shape or value.dtype != dtype:
            got = f"{value.dtype} of shape {list(value.shape)}"
            _refuse(f"{name} is {got}, not {dtype} of shape {list(shape)}")
        if not value.isfinite().all():
            _refuse(f"{name} is not finite")
    if set(tensors) != set(wanted) or min(sizes["m"], sizes["f"]) < 1:
        _refuse("the tensors are not those of an estimator")
    if (tensors["numbers"] < 0).any() or (tensors["familiar"].diff() < 0).any():
        _refuse("the training graphs are not numbered, or their kernels not ascending")
    columns, labels = tensors["columns"], tensors["labels"]
    if (columns.diff() <= 0).any() or (columns < 0).any() or (columns >= width).any():
        _refuse("the columns are not those of the layout")
    if classes and ((labels < 0) | (labels >= sizes["c"])).any():
        _refuse("a label is none of the classes")


def _classes_to_json(classes: Any) -> dict[str, Any]:
    values = classes.tolist()
    kind = type(values[0]).__name__
    if kind not in _KINDS or classes.dtype.kind not in _KINDS[kind]:
        fix = "use strings or integers as labels"
        raise_graph_error("classes of this kind cannot be saved", quoted(values[0]), fix)
    return {"dtype": classes.dtype.str, "values": values}


def _classes_from_json(stored: dict[str, Any]) -> Any:
    values, dtype = stored["values"], np.dtype(stored["dtype"])
    kinds = {type(value).__name__ for value in values}
    if len(kinds) != 1 or dtype.kind not in _KINDS.get(kinds.pop(), ""):
        _refuse("the classes are not of one kind")
    classes = np.array(values, dtype=dtype)
    if classes.tolist() != values or len(values) < 2 or np.unique(classes).tolist() != values:
        _refuse("the classes are not ascending")
    return classes


def _hash(tensors: dict[str, Tensor]) -> str:
    digest = hashlib.sha256()
    for name in ("coefficients", "scale", "numbers"):
        digest.update(tensors[name].contiguous().numpy().tobytes())
    return digest.hexdigest()


def _text(value: Any) -> str:
    return value if isinstance(value, str) else _refuse(f"{quoted(value)} is not a name")


def _count(value: Any) -> int:
    whole = isinstance(value, int) and not isinstance(value, bool) and value >= 0
    return value if whole else _refuse(f"{quoted(value)} is not a count")


def _floor(value: Any) -> float:
    return value if value == 0.0 and isinstance(value, float) else _positive(value)


def _positive(value: Any) -> float:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return value if number and 0 < value < np.inf else _refuse(f"{quoted(value)} is not positive")


def _refuse(wrong: str) -> NoReturn:
    raise ValueError(wrong)
