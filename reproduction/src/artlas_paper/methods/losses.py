"""Contrastive losses that several baselines share."""

from __future__ import annotations

import torch
from torch import Tensor

from artlas_paper.kernels import unit


def cosine_matrix(a: Tensor, b: Tensor) -> Tensor:
    """Compute the cosines of all rows of a [n, c] with all of b [m, c]; zero rows have cosine 0."""
    return unit(a) @ unit(b).T


def contrast_views(first: Tensor, second: Tensor, temperature: float) -> Tensor:
    r"""Compute GraphCL's loss of two views of G graphs, z and z' [G, c]; 0 if G = 1.

    .. math:: -\frac1G \sum_i \log \frac{\exp(\cos(z_i, z'_i) / T)}
        {\sum_{j \ne i} \exp(\cos(z_i, z'_j) / T)}
    """
    similarity = cosine_matrix(first, second) / temperature
    if len(similarity) == 1:
        return similarity.sum() * 0
    same = torch.eye(len(similarity), dtype=torch.bool)
    negatives = similarity.masked_fill(same, -torch.inf)
    return (negatives.logsumexp(1) - similarity.diagonal()).mean()


def symmetric_infonce(first: Tensor, second: Tensor, temperature: float) -> Tensor:
    """Compute InfoNCE of paired rows [n, c], averaged over both directions."""
    similarity = (cosine_matrix(first, second) - 1) / temperature  # at most 0: exp cannot overflow
    positives, weights = similarity.diagonal().mean(), similarity.exp()
    return (weights.sum(0).log() + weights.sum(1).log()).mean() / 2 - positives
