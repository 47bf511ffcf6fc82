"""Training in several processes, started by torchrun, each on its share of every batch."""

from __future__ import annotations

import os
from collections.abc import Iterable

import torch
from torch import Tensor
from torch import distributed as dist


def rank() -> int:
    """The rank that torchrun gave this process; 0 without torchrun."""
    return int(os.environ.get("RANK", "0"))


def size() -> int:
    """The number of processes that torchrun started; 1 without torchrun."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def join() -> bool:
    """Join the other processes; return whether there are any that were not joined already."""
    if size() == 1 or dist.is_initialized():
        return False
    dist.init_process_group("gloo")
    return True


def leave() -> None:
    """Wait for the other processes, and leave them."""
    dist.barrier()
    dist.destroy_process_group()


def reduce(
    loss: float, counts: Tensor, maxima: slice, parameters: Iterable[Tensor]
) -> tuple[float, Tensor]:
    """Sum loss, counts and gradients over the processes; take the maximum of ``maxima``."""
    if size() == 1:
        return loss, counts
    grads = [p.grad for p in parameters if p.grad is not None]
    flat = torch.cat([g.flatten().double().cpu() for g in grads])
    sums = torch.cat([torch.tensor([loss], dtype=torch.float64), counts, flat])
    largest = counts[maxima].clone()
    dist.all_reduce(sums)
    dist.all_reduce(largest, dist.ReduceOp.MAX)
    total, counts, *parts = sums.split([1, len(counts), *(grad.numel() for grad in grads)])
    counts[maxima] = largest
    for grad, part in zip(grads, parts, strict=True):
        grad.copy_(part.view_as(grad))
    return float(total), counts
