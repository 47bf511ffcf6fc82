"""artlas: a graph foundation model that anyone can run.

Public names are imported on first use (PEP 562), because PyTorch and scikit-learn take seconds to
import and ``artlas --help`` or ``artlas.__version__`` need neither.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from artlas import datasets, kernels
    from artlas.errors import GraphCleaningWarning, GraphError
    from artlas.graphs.collection import Graphs
    from artlas.io.reading import read
    from artlas.learning.estimators import FewShotLinear, GraphEmbedder, PrototypeClassifier
    from artlas.method.checkpoint import load
    from artlas.method.config import ArtConfig
    from artlas.method.energy import coverage
    from artlas.method.model import ART, Alignment
    from artlas.nodes.ego import EgoGraphs, PprConfig, ego_graphs
    from artlas.training.coverage import pretrain
    from artlas.training.loop import PretrainConfig

__version__ = "0.1.0"

__all__ = [
    "ART",
    "Alignment",
    "ArtConfig",
    "EgoGraphs",
    "FewShotLinear",
    "GraphCleaningWarning",
    "GraphEmbedder",
    "GraphError",
    "Graphs",
    "PprConfig",
    "PretrainConfig",
    "PrototypeClassifier",
    "__version__",
    "coverage",
    "datasets",
    "ego_graphs",
    "kernels",
    "load",
    "pretrain",
    "read",
]

_SUBMODULES = ("datasets", "kernels")
_NAMES_BY_MODULE = {
    "artlas.errors": ("GraphCleaningWarning", "GraphError"),
    "artlas.graphs.collection": ("Graphs",),
    "artlas.io.reading": ("read",),
    "artlas.learning.estimators": ("FewShotLinear", "GraphEmbedder", "PrototypeClassifier"),
    "artlas.method.checkpoint": ("load",),
    "artlas.method.config": ("ArtConfig",),
    "artlas.method.energy": ("coverage",),
    "artlas.method.model": ("ART", "Alignment"),
    "artlas.nodes.ego": ("EgoGraphs", "PprConfig", "ego_graphs"),
    "artlas.training.coverage": ("pretrain",),
    "artlas.training.loop": ("PretrainConfig",),
}
_MODULE_OF = {name: module for module, names in _NAMES_BY_MODULE.items() for name in names}


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return import_module(f"artlas.{name}")
    if name in _MODULE_OF:
        value = globals()[name] = getattr(import_module(_MODULE_OF[name]), name)
        return value
    raise AttributeError(f"module 'artlas' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
