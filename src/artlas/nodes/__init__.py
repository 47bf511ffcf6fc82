"""The nodes of a network: their neighbourhoods."""

from artlas.nodes.ego import EgoGraphs as EgoGraphs
from artlas.nodes.ego import PprConfig as PprConfig
from artlas.nodes.ego import ego_graphs as ego_graphs
