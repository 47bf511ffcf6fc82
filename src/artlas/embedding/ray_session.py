"""A quiet Ray: joined or started, explained when it gives up, and left as it was found."""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import warnings
from collections.abc import Iterator
from typing import Any


class ClusterError(RuntimeError):
    """Ray cannot be reached, or gave up: what happened, and how to go on."""


def load() -> Any:
    """Ray with its datasets, or an error that says how to get it."""
    try:
        import ray
        import ray.data
    except ImportError as error:
        raise ImportError(
            "Work on a cluster is spread by Ray, which is not installed. To fix this: "
            "pip install 'artlas[cluster]'"
        ) from error
    return ray


@contextlib.contextmanager
def connected(address: str | None, workers: int) -> Iterator[Any]:
    """Ray, started or joined unless the caller has done so, and left as it was found."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
    ray = load()
    ours = not ray.is_initialized()
    if ours:
        address = address or os.environ.get("RAY_ADDRESS") or "local"
        cpus = workers if address == "local" and workers else None
        try:
            _knock(address)
            with _hushed():
                ray.init(
                    address,
                    num_cpus=cpus,
                    include_dashboard=False,
                    log_to_driver=False,
                    logging_level=logging.ERROR,
                )
        except (OSError, RuntimeError, ValueError) as error:
            tried = "started here" if address == "local" else f"reached at {address!r}"
            raise ClusterError(
                f"Ray cannot be {tried}: {_line(error)}. To fix this, pass the address that ray "
                "start printed, or none to work on this machine alone."
            ) from error
    try:
        with _quiet(), _explained():
            yield ray
    finally:
        if ours:
            ray.shutdown()


def _knock(address: str) -> None:
    """Fail at once where nobody listens: Ray itself would try for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdigit():
        socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()


def _line(error: BaseException) -> str:
    """What is wrong, from Ray's many lines: the end of a worker's traceback, or the first line."""
    told, chained, _ = str(error).partition("\n\nThe above exception was the direct cause")
    lines = [line.strip() for line in told.splitlines() if line.strip()] or [type(error).__name__]
    return lines[-1 if chained else 0].rstrip(".")


@contextlib.contextmanager
def _hushed() -> Iterator[None]:
    """Drop what is written to stderr: there Ray's core says that it was told to be quiet."""
    shown, nothing = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 2)
    try:
        yield
    finally:
        os.dup2(shown, 2)
        os.close(shown)
        os.close(nothing)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep Ray Data's messages in its log files, and its advice on settings to itself."""
    handlers = logging.getLogger("ray.data").handlers
    shown = [handler for handler in handlers if isinstance(handler, logging.StreamHandler)]
    levels = [handler.level for handler in shown]
    for handler in shown:
        handler.setLevel(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", module=r"ray\.data\.")
            yield
    finally:
        for handler, level in zip(shown, levels, strict=True):
            handler.setLevel(level)


@contextlib.contextmanager
def _explained() -> Iterator[None]:
    """Turn what Ray raises when it gives up into one line."""
    try:
        yield
    except Exception as error:
        if not type(error).__module__.startswith("ray."):
            raise
        raise ClusterError(
            f"Ray gave up: {_line(error)}. What is done is kept: the same command goes on."
        ) from error
