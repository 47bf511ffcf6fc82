"""Collections of labelled graphs."""

from artlas.datasets.builtin import Dataset as Dataset
from artlas.datasets.builtin import digits_as_graphs as digits_as_graphs
from artlas.datasets.builtin import real_networks as real_networks
from artlas.datasets.builtin import synthetic_families as synthetic_families
