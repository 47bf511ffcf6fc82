"""Solve, bound and compare relational Gromov-Wasserstein problems."""

from artlas.gw.solver import EXACT as EXACT
from artlas.gw.solver import FROM_AFAR as FROM_AFAR
from artlas.gw.solver import Solution as Solution
from artlas.gw.solver import SolverConfig as SolverConfig
from artlas.gw.solver import by_degree as by_degree
from artlas.gw.solver import discrepancies as discrepancies
from artlas.gw.solver import independent as independent
from artlas.gw.solver import solve as solve
