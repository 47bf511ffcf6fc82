"""The chart of the fair comparison: trained networks, WL and artlas, one panel a dataset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.accuracy.published import PUBLISHED, Published

BLIND, REFERENCE = "structure-blind baseline", "GIN"
WL, OURS = "WL kernel, tuned SVM", "artlas"
# Colours of Okabe and Ito, which the colour-blind tell apart; shapes and places differ too.
GREY, BLUE, ORANGE, RED = "#8c8c8c", "#0072B2", "#E69F00", "#D55E00"
MEASURED = {WL: (0.55, "s", ORANGE, 42), OURS: (0.85, "*", RED, 170)}  # place, marker, colour, size


def draw(measured: Mapping[str, Mapping[str, float]], names: Sequence[str], path: Path) -> None:
    """Draw mean accuracies, in percent, by row and dataset, into a PNG.

    Every dataset has its own scale, since the spread between methods is small beside that between
    datasets. Published figures that are not confirmed are hollow.
    """
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(names), figsize=(10, 3.6))
    for axis, name in zip(axes, names, strict=True):
        published = {row: own[name] for row, own in PUBLISHED.items() if name in own}
        ours = {row: measured[row][name] for row in MEASURED if name in measured.get(row, {})}
        _panel(axis, published, ours)
        doubtful = any(value.doubtful for value in published.values())
        short = name.replace("-BINARY", "-B").replace("-MULTI", "-M")
        axis.set_title(f"{short} ?" if doubtful else short, fontsize=10)
        axis.yaxis.set_major_locator(matplotlib.ticker.MaxNLocator(5, integer=True))
    axes[0].set_ylabel("accuracy, % (each its own scale)")
    _legend(figure, OURS in measured)
    figure.tight_layout(rect=(0, 0.09, 1, 1), w_pad=0.4)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=160)
    plt.close(figure)


def _panel(axis: Any, published: Mapping[str, Published], ours: Mapping[str, float]) -> None:
    networks = {row: value for row, value in published.items() if row != BLIND}
    means = [value.mean for value in networks.values()]
    bar: dict[str, Any] = {"linewidth": 7, "alpha": 0.35, "solid_capstyle": "butt"}
    axis.plot([0, 0], [min(means), max(means)], color=GREY, **bar)
    for row, value in networks.items():
        marker, colour, size = ("D", BLUE, 46) if row == REFERENCE else ("o", GREY, 22)
        face = "white" if value.doubtful else colour
        front = 3 if row == REFERENCE else 2
        axis.scatter(
            [0], [value.mean], s=size, marker=marker, facecolor=face, edgecolor=colour, zorder=front
        )
    axis.scatter([0.28], [published[BLIND].mean], s=42, color="black", marker="_", zorder=3)
    for row, mean in ours.items():
        place, marker, colour, size = MEASURED[row]
        axis.scatter([place], [mean], s=size, color=colour, marker=marker, zorder=4)
    if OURS in ours:
        style: dict[str, Any] = {"fontsize": 10, "fontweight": "bold", "color": RED, "ha": "center"}
        at = MEASURED[OURS][0], ours[OURS]
        axis.annotate(f"{at[1]:.1f}", at, xytext=(0, 9), textcoords="offset points", **style)
    shown = [*means, published[BLIND].mean, *ours.values()]
    margin = 0.12 * (max(shown) - min(shown))
    axis.set_ylim(min(shown) - margin, max(shown) + 2 * margin)
    axis.set_xlim(-0.3, 1.2)
    axis.set_xticks([])
    axis.tick_params(axis="y", labelsize=9, length=2, pad=1)
    axis.grid(axis="y", color="#e0e0e0", linewidth=0.6)
    axis.set_axisbelow(True)
    for side in ("top", "right", "bottom"):
        axis.spines[side].set_visible(False)


def _legend(figure: Any, ours: bool) -> None:
    from matplotlib.lines import Line2D

    entries = [
        ("o", GREY, 5, "trained graph networks"),
        ("D", BLUE, 6, REFERENCE),
        ("_", "black", 8, BLIND),
        ("s", ORANGE, 6, WL),
        *([("*", RED, 12, "artlas, nothing tuned")] if ours else []),
    ]
    handles = [
        Line2D([], [], linestyle="", marker=marker, color=colour, markersize=size, label=label)
        for marker, colour, size, label in entries
    ]
    place: dict[str, Any] = {"loc": "lower center", "ncol": len(handles), "frameon": False}
    figure.legend(handles=handles, fontsize=10, handletextpad=0.2, columnspacing=1.4, **place)
