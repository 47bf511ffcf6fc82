"""artlas: a graph foundation model that anyone can run.

Public names are imported on first use (PEP 562): importing PyTorch or scikit-learn takes seconds,
and neither ``artlas --help`` nor one submodule needs both.
"""

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from artlas import blocks as blocks
    from artlas import datasets as datasets
    from artlas import kernels as kernels
    from artlas.errors import GraphCleaningWarning as GraphCleaningWarning
    from artlas.errors import GraphError as GraphError
    from artlas.graphs.collection import Graphs as Graphs
    from artlas.io.reading import read as read
    from artlas.learning.estimators import FewShotLinear as FewShotLinear
    from artlas.learning.estimators import GraphEmbedder as GraphEmbedder
    from artlas.learning.estimators import PrototypeClassifier as PrototypeClassifier
    from artlas.learning.graph_estimators import GraphClassifier as GraphClassifier
    from artlas.learning.graph_estimators import GraphRegressor as GraphRegressor
    from artlas.method.alignment import Alignment as Alignment
    from artlas.method.checkpoint import load as load
    from artlas.method.config import ArtConfig as ArtConfig
    from artlas.method.energy import coverage as coverage
    from artlas.method.model import ART as ART
    from artlas.nodes.ego import EgoGraphs as EgoGraphs
    from artlas.nodes.ego import PprConfig as PprConfig
    from artlas.nodes.ego import ego_graphs as ego_graphs
    from artlas.training.config import PretrainConfig as PretrainConfig
    from artlas.training.coverage import pretrain as pretrain

# By default, idle threads of OpenMP spin for milliseconds and keep the cores from others, which
# costs a factor of 5 to 30 beside two busy processes. This must be set before PyTorch loads OpenMP;
# a value of the user's own stays.
os.environ.setdefault("GOMP_SPINCOUNT", "1000")

__version__ = "0.2.0.dev0"

_NAMES_BY_MODULE = {
    "artlas.errors": ("GraphCleaningWarning", "GraphError"),
    "artlas.graphs.collection": ("Graphs",),
    "artlas.io.reading": ("read",),
    "artlas.learning.estimators": ("FewShotLinear", "GraphEmbedder", "PrototypeClassifier"),
    "artlas.learning.graph_estimators": ("GraphClassifier", "GraphRegressor"),
    "artlas.method.alignment": ("Alignment",),
    "artlas.method.checkpoint": ("load",),
    "artlas.method.config": ("ArtConfig",),
    "artlas.method.energy": ("coverage",),
    "artlas.method.model": ("ART",),
    "artlas.nodes.ego": ("EgoGraphs", "PprConfig", "ego_graphs"),
    "artlas.training.coverage": ("pretrain",),
    "artlas.training.config": ("PretrainConfig",),
}
_SUBMODULES = ("blocks", "datasets", "kernels")
_MODULE_OF = {name: module for module, names in _NAMES_BY_MODULE.items() for name in names}
__all__ = ("__version__", *_SUBMODULES, *_MODULE_OF)


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return import_module(f"artlas.{name}")
    if name in _MODULE_OF:
        value = globals()[name] = getattr(import_module(_MODULE_OF[name]), name)
        return value
    raise AttributeError(f"module 'artlas' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
