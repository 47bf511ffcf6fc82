"""artlas: a graph foundation model that anyone can run."""

from typing import TYPE_CHECKING, Any

from artlas import datasets as datasets
from artlas import kernels as kernels
from artlas.errors import GraphCleaningWarning as GraphCleaningWarning
from artlas.errors import GraphError as GraphError
from artlas.graphs.collection import Graphs as Graphs
from artlas.io.reading import read as read
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

if TYPE_CHECKING:
    from artlas.learning.estimators import FewShotLinear as FewShotLinear
    from artlas.learning.estimators import GraphEmbedder as GraphEmbedder
    from artlas.learning.estimators import PrototypeClassifier as PrototypeClassifier

__version__ = "0.2.0.dev0"
_ESTIMATORS = ("GraphEmbedder", "FewShotLinear", "PrototypeClassifier")


def __getattr__(name: str) -> Any:
    if name in _ESTIMATORS:  # scikit-learn takes a second to import
        from artlas.learning import estimators

        return getattr(estimators, name)
    raise AttributeError(f"module 'artlas' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_ESTIMATORS])
