"""artlas: a graph foundation model that anyone can run."""

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
from artlas.pretrain import PretrainConfig as PretrainConfig
from artlas.pretrain import pretrain as pretrain

__version__ = "0.1.0"
