"""artlas: a graph foundation model that anyone can run."""

from artlas import kernels as kernels
from artlas.config import ArtConfig as ArtConfig
from artlas.energy import coverage as coverage
from artlas.graphs import GraphCleaningWarning as GraphCleaningWarning
from artlas.graphs import GraphError as GraphError
from artlas.graphs import Graphs as Graphs
from artlas.model import ART as ART
from artlas.model import Alignment as Alignment

__version__ = "0.1.0"
