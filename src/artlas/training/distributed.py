"""Training in several processes, started by torchrun, each on its share of every batch."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch import distributed as dist


@dataclass(frozen=True)
class ProcessGroup:
    """This process, number ``rank`` of ``size``; the only one unless torchrun started it."""

    rank: int = 0
    size: int = 1
    initialised_here: bool = False

    @classmethod
    def join(cls) -> ProcessGroup:
        """Join the process group that torchrun's environment describes."""
        if int(os.environ.get("WORLD_SIZE", "1")) == 1:
            return cls()
        initialise = not dist.is_initialized()
        if initialise:
            dist.init_process_group("gloo")
        return cls(dist.get_rank(), dist.get_world_size(), initialise)

    def reduce(
        self, loss: float, counts: Tensor, maxima: slice, parameters: Iterable[Tensor]
    ) -> tuple[float, Tensor]:
        """Sum loss, counts and gradients over the processes; take the maximum of ``maxima``."""
        if self.size == 1:
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

    def leave(self) -> None:
        """Wait for the other processes, and destroy the group if it was initialised here."""
        if self.initialised_here:
            dist.barrier()
            dist.destroy_process_group()


def rank() -> int:
    """The rank that torchrun gave this process; 0 without torchrun."""
    return int(os.environ.get("RANK", "0"))
