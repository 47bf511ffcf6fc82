"""Collections of labelled graphs: built in, or the benchmarks of the paper by name."""

from artlas.datasets.builtin import Dataset as Dataset
from artlas.datasets.builtin import digits_as_graphs as digits_as_graphs
from artlas.datasets.builtin import real_networks as real_networks
from artlas.datasets.builtin import synthetic_families as synthetic_families
from artlas.datasets.egos import load_egos as load_egos
from artlas.datasets.prepare import Prepared as Prepared
from artlas.datasets.prepare import load as load
from artlas.datasets.prepare import prepare as prepare
from artlas.datasets.registry import REGISTRY as REGISTRY
from artlas.datasets.registry import DatasetError as DatasetError
from artlas.datasets.registry import Entry as Entry
from artlas.datasets.registry import Statistics as Statistics
