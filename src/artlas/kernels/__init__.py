"""Couplings, energies and input parsing: compiled for the CPU, with a PyTorch twin for any device.

Callers use the functions here and never learn which of the two ran.
"""

from artlas.kernels import native as native
from artlas.kernels import torch_twin as torch_twin
from artlas.kernels.dispatch import available as available
from artlas.kernels.dispatch import blocks as blocks
from artlas.kernels.dispatch import couplings as couplings
from artlas.kernels.dispatch import done as done
from artlas.kernels.dispatch import energies as energies
from artlas.kernels.dispatch import mixtures as mixtures
from artlas.kernels.dispatch import native_data as native_data
from artlas.kernels.dispatch import native_for as native_for
from artlas.kernels.dispatch import native_gw as native_gw
from artlas.kernels.dispatch import neighbour_sum as neighbour_sum
from artlas.kernels.dispatch import state_of as state_of
from artlas.kernels.dispatch import transport_features as transport_features
from artlas.kernels.dispatch import use as use
