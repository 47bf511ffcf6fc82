"""Map a function over items in a thread pool: results in order, and a bounded look-ahead."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

import torch

Item = TypeVar("Item")
Result = TypeVar("Result")


def map_in_order(
    function: Callable[[Item], Result],
    items: Iterable[Item],
    pool: ThreadPoolExecutor,
    ahead: int,
    runs_alone: Callable[[Item], bool],
) -> Generator[Result, None, None]:
    """Yield ``function(item)`` for every item, in order, while the pool works on the next ones.

    At most ``ahead`` items are in the pool while a result is used. An item that ``runs_alone`` is
    processed in the calling thread, with all of PyTorch's threads, when the pool is idle and
    every earlier result has been used. An exception is raised in place of its result.

    Closing the generator shuts the pool down: waiting items are cancelled, running ones end first.
    """
    threads = torch.get_num_threads()
    pending: deque[Future[Result]] = deque()
    try:
        for item in items:
            alone = runs_alone(item)
            if not alone:
                pending.append(pool.submit(function, item))
            while len(pending) > (0 if alone else ahead):
                yield pending.popleft().result()
            if alone:
                torch.set_num_threads(threads)
                yield function(item)
        while pending:
            yield pending.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)
        # A pool's initialiser may set the number for the process, so it is restored at the end.
        torch.set_num_threads(threads)
