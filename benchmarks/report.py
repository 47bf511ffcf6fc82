"""Measurements, the table they are printed in, and the JSON file they are stored in."""

from __future__ import annotations

import datetime
import json
import os
import platform
import subprocess
from dataclasses import asdict, dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

from benchmarks.timing import Spread

ROOT = Path(__file__).resolve().parents[1]
BUSY = 1.0  # load average above which timings are doubtful
NOISY = 2.0  # ratio of the highest to the lowest round above which a measurement is noisy
PACKAGES = ("artlas", "torch", "numpy", "scipy", "POT")


@dataclass(frozen=True)
class Measurement:
    """One number, its spread over rounds, and the bar it must meet (None: for information)."""

    name: str
    measured: float
    low: float
    high: float
    bar: float | None = None
    at_most: bool = False
    unit: str = ""
    note: str = ""
    raw: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, name: str, spread: Spread, **rest: Any) -> Measurement:
        """Make a measurement of the median and range of repeated rounds."""
        return cls(name, spread.median, spread.low, spread.high, **rest)

    @classmethod
    def single(cls, name: str, value: float, **rest: Any) -> Measurement:
        """Make a measurement of one value without a spread."""
        return cls(name, value, value, value, **rest)

    @property
    def verdict(self) -> str:
        """Whether the bar is met: `pass`, `MISS`, or empty without a bar."""
        if self.bar is None:
            return ""
        met = self.measured <= self.bar if self.at_most else self.measured >= self.bar
        return "pass" if met else "MISS"

    @property
    def noisy(self) -> bool:
        """Whether the rounds differ too much for the number to be reliable."""
        return self.high > NOISY * self.low > 0

    @property
    def bar_text(self) -> str:
        """The bar, formatted for the table."""
        if self.bar is None:
            return ""
        return f"{'at most' if self.at_most else 'at least'} {self.bar:,g}{self.unit}"


class Report:
    """Print measurements as they arrive, save after each, and make a table at the end."""

    def __init__(self, console: Console, out: Path, settings: dict[str, Any]) -> None:
        self.console = console
        self.out = out
        self.measurements: list[Measurement] = []
        self.failures: list[str] = []
        self.header: dict[str, Any] = {"settings": settings, **provenance()}

    def warn_if_busy(self) -> None:
        """Warn if other processes keep the machine busy, because timings are unreliable then."""
        load = os.getloadavg()[0]
        if load > BUSY:
            self.console.print(f"[yellow]load is {load:.1f}: timings will be noisy[/]")

    def add(self, measurement: Measurement) -> None:
        """Add a measurement, print it, and save everything measured so far."""
        self.measurements.append(measurement)
        verdict = measurement.verdict and f"  [{_colour(measurement)}]{measurement.verdict}[/]"
        value = f"{_number(measurement.measured)}{measurement.unit}"
        self.console.print(f"  {measurement.name}: {value}{verdict}")
        self.save()

    def fail(self, group: str, reason: str) -> None:
        """Record why a group could not be measured."""
        self.failures.append(f"{group}: {reason}")
        self.console.print(f"  [red]{group} not measured:[/] {reason}", soft_wrap=True)
        self.save()

    def save(self) -> None:
        """Write the JSON atomically."""
        figures = [{**asdict(m), "verdict": m.verdict, "noisy": m.noisy} for m in self.measurements]
        self.header["machine"]["load_after"] = os.getloadavg()[0]
        content = {**self.header, "figures": figures, "failures": self.failures}
        self.out.parent.mkdir(parents=True, exist_ok=True)
        partial = self.out.with_name(self.out.name + ".partial")
        partial.write_text(json.dumps(content, indent=1) + "\n")
        partial.replace(self.out)

    def table(self) -> Table:
        """Make a table of all measurements and their bars."""
        table = Table(title="artlas benchmarks", title_justify="left")
        for heading in ("figure", "bar", "measured", "spread", ""):
            table.add_column(heading, justify="left" if heading in ("figure", "") else "right")
        for m in self.measurements:
            spread = "" if m.low == m.high else f"{_number(m.low)} - {_number(m.high)}"
            verdict = f"[{_colour(m)}]{m.verdict}[/]" + (" [yellow]noisy[/]" if m.noisy else "")
            name = f"{m.name}\n  [dim]{m.note}[/]" if m.note else m.name
            table.add_row(name, m.bar_text, _number(m.measured) + m.unit, spread, verdict)
        return table

    @property
    def missed(self) -> int:
        """The number of bars that were not met or not measured."""
        return sum(m.verdict == "MISS" for m in self.measurements) + len(self.failures)


def _colour(measurement: Measurement) -> str:
    """Choose green for a bar that is met, red for one that is missed, dim without a bar."""
    return {"pass": "green", "MISS": "bold red"}.get(measurement.verdict, "dim")


def _number(value: float) -> str:
    """Format a number with about three significant digits."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def provenance() -> dict[str, Any]:
    """Describe the commit, date, machine and versions of a run."""
    return {
        "commit": _git("rev-parse", "HEAD") or "none",
        "dirty": bool(_git("status", "--porcelain")),
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "machine": {
            "cpu": _cpu_model(),
            "cores": os.cpu_count(),
            "threads": torch.get_num_threads(),
            "load": os.getloadavg()[0],
            "system": platform.platform(),
        },
        "versions": {"python": platform.python_version(), **_versions()},
    }


def _git(*arguments: str) -> str:
    """Return the output of a git command in this repository, empty if it fails."""
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else ""


def _cpu_model() -> str:
    """Return the name of the processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def _versions() -> dict[str, str]:
    """Return the installed versions of the packages measured."""
    versions = {}
    for name in PACKAGES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            versions[name] = "not installed"
    return versions
