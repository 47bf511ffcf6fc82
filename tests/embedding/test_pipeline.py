"""Work by threads: order, failures, and nothing left running."""

from __future__ import annotations

import threading

import pytest
import torch

from artlas.embedding.pipeline import Abandoned, Task, ahead, behind, in_parallel

NAMES = ("artlas-ahead", "artlas-behind", "artlas_")


def running():
    return [t.name for t in threading.enumerate() if t.name.startswith(NAMES)]


def count(log, stop=None, size=10):
    """Numbers, and in the log what was made and that it was closed."""
    try:
        for i in range(size):
            if i == stop:
                raise OSError("broken")
            log.append(i)
            yield i
    finally:
        log.append("closed")


def test_items_come_ahead_in_order():
    log = []
    assert list(ahead(count(log), 2)) == list(range(10))
    assert log[-1] == "closed"
    assert not running()


def test_a_failure_comes_where_its_item_would_have_come():
    log, got = [], []
    with pytest.raises(OSError, match="broken"):
        got.extend(ahead(count(log, stop=4), 1))
    assert got == [0, 1, 2, 3]
    assert log[-1] == "closed"
    assert not running()


def test_who_stops_early_stops_the_thread():
    log = []
    items = ahead(count(log, size=1000), 2)
    assert [next(items), next(items)] == [0, 1]
    items.close()
    assert log[-1] == "closed"
    assert len(log) < 8  # two taken, two waiting, one in hand
    assert not running()


def hand_over(items, work, depth):
    with behind(work, depth) as put:
        for item in items:
            put(item)


def test_items_go_behind_in_order():
    got = []
    hand_over(range(20), got.extend, 1)
    assert got == list(range(20))
    assert not running()


def test_a_failure_behind_is_raised_in_front():
    def work(items):
        for item in items:
            if item == 3:
                raise OSError("full")

    with pytest.raises(OSError, match="full"):
        hand_over(range(100), work, 1)
    with pytest.raises(OSError, match="full"):  # all of them fit: it is only seen in the end
        hand_over(range(4), work, 8)
    assert not running()


def test_work_that_nobody_needs_is_abandoned():
    seen = []

    def work(items):
        try:
            seen.extend(items)
        except Abandoned:
            seen.append("abandoned")
            raise

    def items():
        yield 1
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        hand_over(items(), work, 1)
    assert seen[-1] == "abandoned"
    assert not running()


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_tasks_give_in_their_order(threads):
    before, gate = torch.get_num_threads(), threading.Barrier(threads)
    seen = []

    def task(i):
        if i < threads:
            gate.wait(timeout=30)  # so many run at once, or this fails
        seen.append(torch.get_num_threads())
        return i

    def tasks():
        for i in range(12):
            yield Task(lambda i=i: task(i), alone=i == 7)

    assert list(in_parallel(tasks(), threads)) == list(range(12))
    if threads > 1:
        assert sorted(seen)[:11] == [1] * 11  # PyTorch stays out of all but the one alone
    assert torch.get_num_threads() == before
    assert not running()


def test_a_task_that_fails_ends_the_others():
    before, closed = torch.get_num_threads(), []

    def fail():
        raise OSError("broken")

    def tasks():
        try:
            for i in range(1000):
                yield Task(fail if i == 3 else lambda i=i: i)
        finally:
            closed.append(i)

    got = []
    with pytest.raises(OSError, match="broken"):
        got.extend(in_parallel(tasks(), 2))
    assert got == [0, 1, 2]
    assert closed[0] < 10
    assert torch.get_num_threads() == before
    assert not running()
