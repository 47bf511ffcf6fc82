"""Prepared benchmark datasets of the paper, by name."""

from artlas_paper.datasets.egos import load_egos as load_egos
from artlas_paper.datasets.egos import load_examples as load_examples
from artlas_paper.datasets.prepare import load as load
from artlas_paper.datasets.prepare import prepare as prepare
from artlas_paper.datasets.registry import REGISTRY as REGISTRY
from artlas_paper.datasets.registry import DatasetError as DatasetError
