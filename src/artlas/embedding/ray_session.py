"""Start Ray or connect to it, keep it quiet, and turn its failures into one line."""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import warnings
from collections.abc import Iterator
from typing import Any


class ClusterError(RuntimeError):
    """Raised when Ray cannot be reached or gives up; says how to continue."""


def import_ray() -> Any:
    """Import Ray with Ray Data, or raise an error that says how to install it."""
    try:
        import ray
        import ray.data
    except ImportError as error:
        raise ImportError(
            "The engine for clusters is Ray, which is not installed. To fix this: "
            "pip install 'artlas[cluster]'"
        ) from error
    return ray


@contextlib.contextmanager
def connected(address: str | None, workers: int) -> Iterator[Any]:
    """Provide Ray: the caller's if it is initialised, else one that is shut down at the end."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
    ray = import_ray()
    started = not ray.is_initialized()
    if started:
        _start(ray, address or os.environ.get("RAY_ADDRESS") or "local", workers)
    # Ray Data's messages go to its log files only.
    handlers = logging.getLogger("ray.data").handlers
    levels = {h: h.level for h in handlers if isinstance(h, logging.StreamHandler)}
    for handler in levels:
        handler.setLevel(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", module=r"ray\.data\.")
            yield ray
    except Exception as error:
        if not type(error).__module__.startswith("ray."):
            raise
        again = "Finished work is saved: run the same command again to resume."
        raise ClusterError(f"Ray gave up: {_one_line(error)}. {again}") from error
    finally:
        for handler, level in levels.items():
            handler.setLevel(level)
        if started:
            ray.shutdown()


def _start(ray: Any, address: str, workers: int) -> None:
    """Start Ray on this machine, or connect to an address."""
    cpus = workers if address == "local" and workers else None
    quiet = {"include_dashboard": False, "log_to_driver": False, "logging_level": logging.ERROR}
    host, _, port = address.removeprefix("ray://").rpartition(":")
    stderr = os.dup(2)
    try:
        if host and port.isdigit():  # where nothing listens, Ray 2.60 would retry for minutes
            socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()
        with open(os.devnull, "wb") as nothing:  # Ray's core reports there that it is quiet
            os.dup2(nothing.fileno(), 2)
        ray.init(address, num_cpus=cpus, **quiet)
    except (OSError, RuntimeError, ValueError) as error:
        tried = "started here" if address == "local" else f"reached at {address!r}"
        raise ClusterError(
            f"Ray cannot be {tried}: {_one_line(error)}. To fix this, pass the address that ray "
            "start printed, or none to work on this machine alone."
        ) from error
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)


def _one_line(error: BaseException) -> str:
    """Return the cause from Ray's long text: the end of a worker's traceback, or line one."""
    text, chained, _ = str(error).partition("\n\nThe above exception was the direct cause")
    lines = [line.strip() for line in text.splitlines() if line.strip()] or [type(error).__name__]
    return lines[-1 if chained else 0].rstrip(".")
