"""Many graphs in one ragged CSR."""

from artlas.graphs.collection import Graphs as Graphs
