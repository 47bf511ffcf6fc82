"""The ordered map over a thread pool: order, look-ahead, failures, and no thread left running."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from artlas.embedding.pipeline import map_in_order


def running():
    return [t.name for t in threading.enumerate() if t.name.startswith("artlas")]


def pool(threads):
    return ThreadPoolExecutor(threads, "artlas-test", torch.set_num_threads, (1,))


def never(item):
    return False


def test_results_come_in_order_while_the_next_ones_are_made():
    started = []

    def work(i):
        started.append(i)
        return i

    results = map_in_order(work, range(100), pool(1), 2, never)
    assert next(results) == 0
    for _ in range(1000):
        if len(started) == 3:
            break
        time.sleep(0.01)
    time.sleep(0.05)
    assert started == [0, 1, 2]  # one used, two ahead
    assert list(results) == list(range(1, 100))
    assert not running()


def test_a_failure_comes_in_place_of_its_result():
    def work(i):
        if i == 4:
            raise OSError("broken")
        return i

    got = []
    with pytest.raises(OSError, match="broken"):
        got.extend(map_in_order(work, range(10), pool(1), 1, never))
    assert got == [0, 1, 2, 3]
    assert not running()


def test_a_failure_among_the_items_comes_after_the_results_in_use():
    def items():
        yield from range(4)
        raise OSError("broken")

    got = []
    with pytest.raises(OSError, match="broken"):
        got.extend(map_in_order(lambda i: i, items(), pool(2), 1, never))
    assert got == [0, 1, 2]
    assert not running()


def test_closing_cancels_what_has_not_started():
    started = []

    def work(i):
        started.append(i)
        time.sleep(0.05)
        return i

    results = map_in_order(work, range(1000), pool(1), 50, never)
    assert next(results) == 0
    results.close()
    assert len(started) < 5
    assert not running()


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_items_run_at_once_or_alone(threads):
    before, gate = torch.get_num_threads(), threading.Barrier(threads)
    used, seen, alone = [], [], []

    def work(i):
        if i < threads:
            gate.wait(timeout=30)  # so many run at once, or this fails
        if i == 7:
            alone.append((threading.current_thread(), torch.get_num_threads(), list(used)))
        else:
            seen.append(torch.get_num_threads())
        return i

    for result in map_in_order(work, range(12), pool(threads), threads, lambda i: i == 7):
        used.append(result)
    assert used == list(range(12))
    assert seen == [1] * 11  # PyTorch has one thread in each of the pool's
    assert alone == [(threading.current_thread(), before, list(range(7)))]
    assert torch.get_num_threads() == before
    assert not running()


def test_a_failure_ends_the_others():
    before, taken, got = torch.get_num_threads(), [], []

    def items():
        for i in range(1000):
            taken.append(i)
            yield i

    def work(i):
        if i == 3:
            raise OSError("broken")
        return i

    with pytest.raises(OSError, match="broken"):
        got.extend(map_in_order(work, items(), pool(2), 2, never))
    assert got == [0, 1, 2]
    assert len(taken) < 10
    assert torch.get_num_threads() == before
    assert not running()
