"""Several processes that train on shares of the same batch, started by torchrun."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch import distributed as dist


@dataclass(frozen=True)
class Team:
    """This process among ``size``; alone unless torchrun started it."""

    rank: int = 0
    size: int = 1
    started: bool = False

    def add_up(
        self, loss: float, counts: Tensor, maxima: slice, parameters: Iterable[Tensor]
    ) -> tuple[float, Tensor]:
        """Sum loss, counts and gradients over the processes; of the maxima take the largest."""
        if self.size == 1:
            return loss, counts
        grads = [p.grad for p in parameters if p.grad is not None]
        flat = torch.cat([g.flatten().double().cpu() for g in grads])
        together = torch.cat([torch.tensor([loss], dtype=torch.float64), counts, flat])
        most = counts[maxima].clone()
        dist.all_reduce(together)
        dist.all_reduce(most, dist.ReduceOp.MAX)
        counts = together[1 : 1 + len(counts)].clone()
        counts[maxima] = most
        start = 1 + len(counts)
        for grad in grads:
            grad.copy_(together[start : start + grad.numel()].view_as(grad))
            start += grad.numel()
        return float(together[0]), counts

    def leave(self) -> None:
        """Wait for the others, and end what was begun here."""
        if self.started:
            dist.barrier()
            dist.destroy_process_group()


def rank() -> int:
    """The number of this process as torchrun gave it; 0 if alone."""
    return int(os.environ.get("RANK", "0"))


def join() -> Team:
    """The team that torchrun's environment describes."""
    size = int(os.environ.get("WORLD_SIZE", "1"))
    if size == 1:
        return Team()
    started = not dist.is_initialized()
    if started:
        dist.init_process_group("gloo")
    return Team(dist.get_rank(), size, started)
