"""Figures of the tables and studies, in the style of :mod:`artlas.figures`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from artlas.figures import COLOURS as COLOURS
from artlas.figures import INK as INK
from artlas.figures import MARKERS as MARKERS
from artlas.figures import MUTED as MUTED
from artlas.figures import PALE as PALE
from artlas.figures import blank as blank


def draw_transfer(
    targets: Sequence[str], rows: Mapping[str, Sequence[tuple[float, float] | None]], path: Path
) -> None:
    """Draw the accuracy of every row on every target.

    A value is (percent, standard error), or None where it is missing. The row ``paper`` is drawn as
    a horizontal line.
    """
    figure = blank(1.5 * len(targets) + 3, 4.2)
    axes = figure.subplots()
    others = [name for name in rows if name != "paper"]
    for i, name in enumerate(others):
        known = [(j, value) for j, value in enumerate(rows[name]) if value is not None]
        shift = (i - (len(others) - 1) / 2) * 0.75 / len(others)
        axes.errorbar(
            [j + shift for j, _ in known],
            [v[0] for _, v in known],
            [v[1] for _, v in known],
            fmt=MARKERS[i % len(MARKERS)],
            ms=5,
            color=COLOURS[i % len(COLOURS)],
            label=name,
        )
    for j, value in enumerate(rows.get("paper", [])):
        if value is not None:
            label = "the paper's SCGFM-ART" if j == 0 else None
            axes.hlines(value[0], j - 0.42, j + 0.42, color=MUTED, lw=1.5, label=label)
    axes.set_xticks(range(len(targets)), targets, rotation=15, ha="right", fontsize=9)
    axes.set_ylabel("5-shot accuracy, %", color=INK)
    plain_axes(axes)
    figure.legend(ncols=5, fontsize=8, loc="outside upper center", frameon=False)
    figure.savefig(path)


def draw_shots(
    panels: Mapping[str, Mapping[str, Sequence[tuple[str, float, float]]]], path: Path
) -> None:
    """Draw accuracy against examples per class: one panel per dataset, one line per row.

    A point is (shots, percent, standard error).
    """
    figure = blank(max(3.0 * len(panels), 6.0), 3.8)
    axes = figure.subplots(1, len(panels), squeeze=False)[0]
    for panel, (target, lines) in zip(axes, panels.items(), strict=True):
        for i, (name, points) in enumerate(lines.items()):
            panel.errorbar(
                [shots for shots, _, _ in points],
                [mean for _, mean, _ in points],
                [error for _, _, error in points],
                marker=MARKERS[i % len(MARKERS)],
                ms=4,
                lw=1.2,
                color=COLOURS[i % len(COLOURS)],
                label=name if panel is axes[0] else None,
            )
        panel.set_title(target, fontsize=10, color=INK)
        panel.set_xlabel("examples a class", fontsize=9, color=MUTED)
        plain_axes(panel)
    axes[0].set_ylabel("accuracy, %", color=INK)
    columns = max(3, 2 * len(panels))
    figure.legend(ncols=columns, fontsize=8, loc="outside upper center", frameon=False)
    figure.savefig(path)


def plain_axes(axes: Any) -> None:
    """Draw pale horizontal grid lines, and no frame at the top and right."""
    axes.grid(axis="y", color=PALE, lw=0.6)
    axes.tick_params(labelsize=8, colors=MUTED)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def save(figure: Any, stem: Path) -> list[Path]:
    """Write a figure as stem.png and stem.svg, reproducible byte for byte."""
    from matplotlib import rc_context

    paths = [stem.with_name(f"{stem.name}.{kind}") for kind in ("png", "svg")]
    figure.savefig(paths[0])
    with rc_context({"svg.hashsalt": "artlas"}):
        figure.savefig(paths[1], metadata={"Date": None})
    return paths
