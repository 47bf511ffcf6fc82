"""Vectors of named blocks that know a graph's structure: no model, no training."""

from artlas.blocks.config import VERSION as VERSION
from artlas.blocks.config import VectorConfig as VectorConfig
from artlas.blocks.layout import Layout as Layout
from artlas.blocks.vector import embed as embed
from artlas.blocks.vector import layout as layout
