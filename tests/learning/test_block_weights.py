"""Weights of blocks are powers of their alignments with the labels, chosen by leave-one-out."""

import numpy as np
import pytest
import torch

import artlas
from artlas.blocks import Layout
from artlas.learning import block_weights, kernel_ridge
from artlas.learning.block_kernel import BlockKernel

LAYOUT = Layout.of_widths({"shape": 4, "noise": 8, "hint": 2})


def problem(count=80, seed=0):
    """Return rows whose first block tells two classes apart, the last one a little."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, count)
    rows = rng.normal(size=(count, 14))
    rows[:, :4] += 1.5 * y[:, None]
    rows[:, 12:] += 0.5 * y[:, None]
    return torch.from_numpy(rows).float(), torch.eye(2).double()[torch.from_numpy(y)], y


def plain_alignments(kernel, targets):
    """Compute the alignments by the definition, with dense centring matrices."""
    count = len(targets)
    centre = np.eye(count) - 1 / count
    wanted = centre @ (targets @ targets.T).numpy() @ centre
    found = []
    for _, term in kernel.by_block(kernel.anchors):
        own = centre @ term.double().numpy() @ centre
        found.append((own * wanted).sum() / np.linalg.norm(own) / np.linalg.norm(wanted))
    return np.array(found)


def test_alignments_are_those_of_the_definition():
    rows, targets, _ = problem()
    kernel = BlockKernel.fit(rows, LAYOUT)
    found = block_weights.alignments(kernel, targets)
    assert list(found) == ["shape", "noise", "hint"]
    np.testing.assert_allclose(list(found.values()), plain_alignments(kernel, targets), rtol=1e-5)


def test_weights_are_the_power_with_the_least_leave_one_out_loss():
    rows, targets, _ = problem()
    kernel, ones = BlockKernel.fit(rows, LAYOUT), torch.ones(80).double()
    aligned = np.maximum(plain_alignments(kernel, targets), 0)
    losses = {}
    for power in block_weights.POWERS:
        weights = np.maximum(aligned / aligned.max(), 1e-3) ** power
        named = dict(zip(LAYOUT.names, weights.tolist(), strict=True))
        candidate = BlockKernel.fit(rows, LAYOUT, named)
        left_out = kernel_ridge.fit(candidate.gram(), targets, ones).left_out
        losses[power] = float(((targets - left_out) ** 2).sum()), candidate.weights
    learned = block_weights.learned(kernel, targets, ones)
    best = min(losses.values())[1]
    np.testing.assert_allclose(learned.weights, best, rtol=1e-4)
    assert learned.weights[0] > learned.weights[2] > learned.weights[1]
    assert sum(learned.weights) == pytest.approx(1)


def test_weights_that_are_given_are_not_learned():
    rows, _, y = problem()
    equal = artlas.GraphClassifier(blocks=LAYOUT, weights={}).fit(rows, y)
    assert equal.machine_.kernel.weights == pytest.approx((1 / 3, 1 / 3, 1 / 3))
    own = artlas.GraphClassifier(blocks=LAYOUT, weights={"noise": 2}).fit(rows, y)
    assert own.machine_.kernel.weights == pytest.approx((0.25, 0.5, 0.25))
    learned = artlas.GraphClassifier(blocks=LAYOUT).fit(rows, y)
    assert learned.report_.weights["shape"] > 0.5


def test_a_block_that_alone_knows_the_labels_is_found_among_many_that_do_not():
    rng = np.random.default_rng(3)
    y = np.tile([0, 1, 2], 60)
    rows = rng.normal(size=(180, 184))
    rows[:, :3] += 2.5 * np.eye(3)[y]
    layout = Layout.of_widths({"shape": 3, **{f"noise_{k}": 6 for k in range(30)}, "rest": 1})
    train, test = slice(0, 90), slice(90, 180)
    scores = {
        name: artlas.GraphClassifier(blocks=layout, weights=weights)
        .fit(rows[train], y[train])
        .score(rows[test], y[test])
        for name, weights in {"learned": None, "equal": {}}.items()
    }
    assert scores["learned"] > scores["equal"] + 0.05


def test_blocks_that_say_nothing_keep_equal_weights():
    rows = torch.from_numpy(np.random.default_rng(0).normal(size=(30, 14))).float()
    targets = torch.zeros(30, 1).double()
    kernel = BlockKernel.fit(rows, LAYOUT)
    learned = block_weights.learned(kernel, targets, torch.ones(30).double())
    assert learned.weights == pytest.approx(kernel.weights)
