"""Solve, bound and compare relational Gromov-Wasserstein problems."""

from artlas.gw.solver import Solution as Solution
from artlas.gw.solver import SolverConfig as SolverConfig
from artlas.gw.solver import discrepancies as discrepancies
from artlas.gw.solver import solve as solve
