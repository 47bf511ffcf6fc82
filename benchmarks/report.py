"""What was measured: figures, the table they are printed in, and the JSON they are kept in."""

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
BUSY = 1.0  # load average from which timings are doubtful
NOISY = 2.0  # highest over lowest round from which a figure is
PACKAGES = ("artlas", "torch", "numpy", "scipy", "POT")


@dataclass(frozen=True)
class Figure:
    """One measured number, its spread, and the bar it is held to (None: for information)."""

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
    def of(cls, name: str, spread: Spread, **rest: Any) -> Figure:
        """A figure whose number and range come from repeated rounds."""
        return cls(name, spread.median, spread.low, spread.high, **rest)

    @property
    def verdict(self) -> str:
        """`pass`, `MISS`, or nothing where no bar applies."""
        if self.bar is None:
            return ""
        met = self.measured <= self.bar if self.at_most else self.measured >= self.bar
        return "pass" if met else "MISS"

    @property
    def noisy(self) -> bool:
        """Whether the rounds differ so much that the number should not be relied on."""
        return self.high > NOISY * self.low > 0

    @property
    def bar_text(self) -> str:
        """The bar as the table shows it."""
        if self.bar is None:
            return ""
        return f"{'at most' if self.at_most else 'at least'} {self.bar:,g}{self.unit}"


class Report:
    """Figures as they arrive: printed one by one, saved after each, a table at the end."""

    def __init__(self, console: Console, out: Path, settings: dict[str, Any]) -> None:
        self.console = console
        self.out = out
        self.figures: list[Figure] = []
        self.failures: list[str] = []
        self.header: dict[str, Any] = {"settings": settings, **provenance()}

    def warn_if_busy(self) -> None:
        """Say so if other processes keep the machine busy: timings mean little then."""
        load = os.getloadavg()[0]
        if load > BUSY:
            self.console.print(f"[yellow]load is {load:.1f}: timings will be noisy[/]")

    def add(self, figure: Figure) -> None:
        """Keep a figure, show it, and save everything measured so far."""
        self.figures.append(figure)
        verdict = f"  [{_colour(figure)}]{figure.verdict}[/]" if figure.verdict else ""
        self.console.print(f"  {figure.name}: {_number(figure.measured)}{figure.unit}{verdict}")
        self.save()

    def fail(self, group: str, reason: str) -> None:
        """Keep the reason why a group of figures could not be measured."""
        self.failures.append(f"{group}: {reason}")
        self.console.print(f"  [red]{group} not measured:[/] {reason}", soft_wrap=True)
        self.save()

    def save(self) -> None:
        """Write the JSON, whole or not at all."""
        figures = [{**asdict(f), "verdict": f.verdict, "noisy": f.noisy} for f in self.figures]
        self.header["machine"]["load_after"] = os.getloadavg()[0]
        content = {**self.header, "figures": figures, "failures": self.failures}
        self.out.parent.mkdir(parents=True, exist_ok=True)
        partial = self.out.with_name(self.out.name + ".partial")
        partial.write_text(json.dumps(content, indent=1) + "\n")
        partial.replace(self.out)

    def table(self) -> Table:
        """All figures beside their bars."""
        table = Table(title="artlas benchmarks", title_justify="left")
        for heading in ("figure", "bar", "measured", "spread", ""):
            table.add_column(heading, justify="left" if heading in ("figure", "") else "right")
        for f in self.figures:
            spread = "" if f.low == f.high else f"{_number(f.low)} - {_number(f.high)}"
            verdict = f"[{_colour(f)}]{f.verdict}[/]" + (" [yellow]noisy[/]" if f.noisy else "")
            name = f"{f.name}\n  [dim]{f.note}[/]" if f.note else f.name
            table.add_row(name, f.bar_text, _number(f.measured) + f.unit, spread, verdict)
        return table

    @property
    def missed(self) -> int:
        """How many bars were not met, or not measured."""
        return sum(f.verdict == "MISS" for f in self.figures) + len(self.failures)


def _colour(figure: Figure) -> str:
    """Green for a bar that is met, red for one that is not, dim for information."""
    return {"pass": "green", "MISS": "bold red"}.get(figure.verdict, "dim")


def _number(value: float) -> str:
    """A number with about three significant digits."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def provenance() -> dict[str, Any]:
    """The commit, date, machine and versions a result belongs to."""
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
    """The output of a git command in this repository, empty if there is none."""
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else ""


def _cpu_model() -> str:
    """The processor's name."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def _versions() -> dict[str, str]:
    """Installed versions of the packages that matter."""
    found = {}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found
