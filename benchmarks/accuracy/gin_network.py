"""GIN for one dataset: layers, a read-out of every layer, a linear classifier; and its training.

Xu et al., "How Powerful are Graph Neural Networks?", ICLR 2019, on the layers of the reproduction
(PyTorch Geometric's GINConv with faster kernels, equal results).
"""

from __future__ import annotations

import copy
import time
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from artlas import Graphs
from artlas_paper.methods.batch import Batch
from artlas_paper.methods.layers import BatchNorm, GINLayer, Linear

Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class Training:
    """One configuration; the rate is halved every ``halving`` epochs.

    Training stops ``patience`` epochs after the highest validation accuracy (of equal ones, that of
    the lowest loss), at ``epochs`` at the latest, and the weights of that epoch are kept.
    """

    hidden: int = 32
    layers: int = 5
    rate: float = 0.01
    batch: int = 128
    halving: int = 50
    epochs: int = 500
    patience: int = 100
    dropout: float = 0.5
    read_out: str = "sum"
    seed: int = 0


class GIN(nn.Module):
    """GIN layers whose read-outs, all joined, a linear map classifies."""

    def __init__(self, features: int, classes: int, settings: Training) -> None:
        super().__init__()
        hidden = settings.hidden
        widths = [features] + [hidden] * (settings.layers - 1)
        self.convolutions = nn.ModuleList(
            GINLayer(
                nn.Sequential(
                    Linear(width, hidden),
                    BatchNorm(hidden, nn.ReLU),
                    Linear(hidden, hidden),
                    BatchNorm(hidden, nn.ReLU),
                ),
                train_eps=True,
            )
            for width in widths
        )
        self.head = nn.Linear(features + hidden * settings.layers, classes)
        self.dropout, self.read_out = nn.Dropout(settings.dropout), settings.read_out

    def forward(self, batch: Batch) -> Tensor:
        """Compute the logits of a batch, [G, C]."""
        x = batch.x
        states = [x]
        for layer in self.convolutions:
            x = layer(x, batch)
            states.append(x)
        pool = batch.sum_pool if self.read_out == "sum" else batch.mean_pool
        return self.head(self.dropout(torch.cat([pool(state) for state in states], 1)))


@dataclass(frozen=True, eq=False)
class Outcome:
    """Classes predicted for the test graphs, epochs of training, and seconds of all.

    CPU seconds are those of all threads together.
    """

    classes: Numbers
    epochs: int
    seconds: float
    cpu_seconds: float


def fit_and_predict(
    graphs: Graphs, labels: Numbers, parts: tuple[Numbers, Numbers, Numbers], settings: Training
) -> Outcome:
    """Train on the first part, stop by the second, predict the third; labels [G] of the dataset.

    Graphs without features get the degree, as in the fair comparison.
    """
    start, cpu = time.perf_counter(), time.process_time()
    train, validation, test = parts
    classes = int(labels.max()) + 1
    torch.manual_seed(settings.seed)
    rng = np.random.default_rng(settings.seed)
    net = GIN(max(1, graphs.num_features), classes, settings)
    optimiser = torch.optim.Adam(net.parameters(), lr=settings.rate)
    schedule = torch.optim.lr_scheduler.StepLR(optimiser, settings.halving, 0.5)
    targets = torch.from_numpy(labels)
    held = _batches(graphs, validation, settings.batch)
    best, kept, since, epoch = (-1.0, 0.0), copy.deepcopy(net.state_dict()), 0, 0
    while epoch < settings.epochs and since < settings.patience:
        epoch, since = epoch + 1, since + 1
        net.train()
        order = rng.permutation(train)
        for begin in range(0, len(order), settings.batch):
            chosen = order[begin : begin + settings.batch]
            logits = net(_batch(graphs, chosen))
            loss = nn.functional.cross_entropy(logits, targets[torch.from_numpy(chosen)])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        schedule.step()
        quality = _quality(net, held, targets[torch.from_numpy(validation)])
        if quality > best:
            best, since, kept = quality, 0, copy.deepcopy(net.state_dict())
    net.load_state_dict(kept)
    predicted = _logits(net, _batches(graphs, test, settings.batch)).argmax(1).numpy()
    seconds = time.perf_counter() - start
    return Outcome(predicted, epoch, seconds, time.process_time() - cpu)


def _batch(graphs: Graphs, chosen: Numbers) -> Batch:
    part = graphs[chosen]
    batch = Batch.of(part)
    return batch if part.x is not None else batch.with_features(part.degree[:, None])


def _batches(graphs: Graphs, chosen: Numbers, size: int) -> list[Batch]:
    return [_batch(graphs, chosen[i : i + size]) for i in range(0, len(chosen), size)]


@torch.no_grad()
def _logits(net: GIN, batches: list[Batch]) -> Tensor:
    net.eval()
    return torch.cat([net(batch) for batch in batches])


def _quality(net: GIN, batches: list[Batch], targets: Tensor) -> tuple[float, float]:
    """Compute the accuracy, and the negative loss."""
    logits = _logits(net, batches)
    right = float((logits.argmax(1) == targets).double().mean())
    return right, -float(nn.functional.cross_entropy(logits, targets))
