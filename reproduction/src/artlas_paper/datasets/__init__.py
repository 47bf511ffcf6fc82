"""Collections of labelled graphs: built in, or the benchmarks of the paper by name."""

from artlas.datasets import Dataset as Dataset
from artlas.datasets import digits_as_graphs as digits_as_graphs
from artlas.datasets import real_networks as real_networks
from artlas.datasets import synthetic_families as synthetic_families
from artlas_paper.datasets.egos import load_egos as load_egos
from artlas_paper.datasets.egos import load_examples as load_examples
from artlas_paper.datasets.prepare import Prepared as Prepared
from artlas_paper.datasets.prepare import load as load
from artlas_paper.datasets.prepare import prepare as prepare
from artlas_paper.datasets.registry import REGISTRY as REGISTRY
from artlas_paper.datasets.registry import DatasetError as DatasetError
from artlas_paper.datasets.registry import Entry as Entry
from artlas_paper.datasets.registry import Statistics as Statistics
