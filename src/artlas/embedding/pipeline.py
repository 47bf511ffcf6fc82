"""Work by threads: ahead of the one who needs it, behind the one who orders it, in parallel."""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from queue import Full, Queue
from typing import Any, Generic, TypeVar

import torch

Item = TypeVar("Item")
_END = object()
_PATIENCE = 0.1  # seconds after which one who cannot go on looks whether there is still a need


class _Raised:
    """An exception on its way from one thread to the other."""

    def __init__(self, error: BaseException) -> None:
        self.error = error


class Abandoned(Exception):
    """Who ordered the work has failed: there is no more to come, and nothing to finish."""


def _put(queue: Queue[Any], item: object, needed: Callable[[], bool]) -> None:
    while needed():
        with contextlib.suppress(Full):
            queue.put(item, timeout=_PATIENCE)
            break


def _take(queue: Queue[Any]) -> Generator[Any, None, None]:
    while (item := queue.get()) is not _END:
        if isinstance(item, _Raised):
            raise item.error
        yield item


def ahead(items: Generator[Item, None, None], depth: int) -> Generator[Item, None, None]:
    """The items in order, made by a thread of their own, at most ``depth`` before they are taken.

    An exception comes where its item would have come. The thread ends, and ``items`` are closed,
    before this generator ends or is closed.
    """
    queue: Queue[Any] = Queue(depth)
    stop = threading.Event()

    def work() -> None:
        try:
            with contextlib.closing(items):
                for item in items:
                    _put(queue, item, lambda: not stop.is_set())
                    if stop.is_set():
                        return
            _put(queue, _END, lambda: not stop.is_set())
        except BaseException as error:  # it is raised where the items are taken
            _put(queue, _Raised(error), lambda: not stop.is_set())

    thread = threading.Thread(target=work, name="artlas-ahead", daemon=True)
    thread.start()
    try:
        yield from _take(queue)
    finally:
        stop.set()
        thread.join()


@dataclass(frozen=True)
class Task(Generic[Item]):
    """Something to do; ``alone`` if it uses all threads by itself."""

    run: Callable[[], Item]
    alone: bool = False


def in_parallel(
    tasks: Generator[Task[Item], None, None], threads: int
) -> Generator[Item, None, None]:
    """What the tasks give, in their order, so many of them at once, each by one thread.

    PyTorch's own threads stay out of it, and have their number back in the end: threads that wait
    for each other after every step lose more to a busy machine than threads that never do.
    """
    before = torch.get_num_threads()
    waiting: deque[Future[Item]] = deque()
    try:
        with (
            contextlib.closing(tasks),
            ThreadPoolExecutor(threads, "artlas", torch.set_num_threads, (1,)) as pool,
        ):
            try:
                for task in tasks:
                    if task.alone or threads == 1:
                        while waiting:
                            yield waiting.popleft().result()
                        torch.set_num_threads(before)
                        yield task.run()
                        continue
                    waiting.append(pool.submit(task.run))
                    if len(waiting) > threads:
                        yield waiting.popleft().result()
                while waiting:
                    yield waiting.popleft().result()
            finally:
                for future in waiting:
                    future.cancel()
    finally:  # when all threads have ended: one that begins late sets the number too
        torch.set_num_threads(before)


@contextlib.contextmanager
def behind(
    work: Callable[[Iterator[Item]], object], depth: int
) -> Generator[Callable[[Item], None], None, None]:
    """A function that hands items to ``work``, which a thread does, at most ``depth`` behind.

    What fails there is raised at the next item, or at the end, which waits for the work. Where the
    block fails, :class:`Abandoned` is raised among the items before the block is left.
    """
    queue: Queue[Any] = Queue(depth)
    failed: list[BaseException] = []

    def run() -> None:
        try:
            work(_take(queue))
        except BaseException as error:  # it is raised where the items come from
            failed.append(error)

    def put(item: object) -> None:
        _put(queue, item, lambda: not failed)
        if failed:
            raise failed[0]

    thread = threading.Thread(target=run, name="artlas-behind", daemon=True)
    thread.start()
    try:
        yield put
    except BaseException:
        _put(queue, _Raised(Abandoned()), lambda: not failed)
        thread.join()
        raise
    _put(queue, _END, lambda: not failed)
    thread.join()
    if failed:
        raise failed[0]
