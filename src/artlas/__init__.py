"""artlas: a graph foundation model that anyone can run."""

from typing import TYPE_CHECKING, Any

from artlas import datasets as datasets
from artlas import kernels as kernels
from artlas.checkpoint import load as load
from artlas.config import ArtConfig as ArtConfig
from artlas.energy import coverage as coverage
from artlas.formats.api import read as read
from artlas.graphs import GraphCleaningWarning as GraphCleaningWarning
from artlas.graphs import GraphError as GraphError
from artlas.graphs import Graphs as Graphs
from artlas.model import ART as ART
from artlas.model import Alignment as Alignment
from artlas.ppr import EgoGraphs as EgoGraphs
from artlas.ppr import PprConfig as PprConfig
from artlas.ppr import ego_graphs as ego_graphs
from artlas.pretrain import pretrain as pretrain
from artlas.trainer import PretrainConfig as PretrainConfig

if TYPE_CHECKING:
    from artlas.estimators import ArtEmbedder as ArtEmbedder
    from artlas.estimators import FewShotLinear as FewShotLinear
    from artlas.estimators import PrototypeClassifier as PrototypeClassifier

__version__ = "0.1.0"
_ESTIMATORS = ("ArtEmbedder", "FewShotLinear", "PrototypeClassifier")


def __getattr__(name: str) -> Any:
    if name in _ESTIMATORS:  # scikit-learn takes a second to import
        from artlas import estimators

        return getattr(estimators, name)
    raise AttributeError(f"module 'artlas' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_ESTIMATORS])
