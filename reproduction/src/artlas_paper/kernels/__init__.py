"""Operations of the baselines' layers, in PyTorch: on any device and with any dtype."""

from artlas_paper.kernels.hyperbolic import manifold_map as manifold_map
from artlas_paper.kernels.neighbours import additive_attention as additive_attention
from artlas_paper.kernels.neighbours import normalised_sums as normalised_sums
from artlas_paper.kernels.neighbours import product_attention as product_attention
from artlas_paper.kernels.neighbours import self_sums as self_sums
from artlas_paper.kernels.rows import batch_norm as batch_norm
from artlas_paper.kernels.rows import dropout as dropout
from artlas_paper.kernels.rows import linear as linear
from artlas_paper.kernels.rows import unit as unit
