"""The chart of the fair comparison: trained networks, WL and artlas, one group a dataset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.accuracy.published import PUBLISHED

BLIND = "structure-blind baseline"
# Colours of Okabe and Ito, which the colour-blind tell apart; shapes differ too.
NETWORK, GIN, WL, OURS = "#8c8c8c", "#0072B2", "#E69F00", "#D55E00"


def draw(measured: Mapping[str, Mapping[str, float]], names: Sequence[str], path: Path) -> None:
    """Draw mean accuracies, in percent, by row and dataset, into a PNG.

    Every dataset has its own scale, since the spread between methods is small beside that between
    datasets: the vertical axis is points above the mean of the published networks.
    """
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.lines import Line2D

    networks = {row: own for row, own in PUBLISHED.items() if row != BLIND}
    figure, axes = plt.subplots(1, len(names), figsize=(10, 3.6), sharey=False)
    plt.rcParams["font.size"] = 10
    for axis, name in zip(axes, names, strict=True):
        values = {row: own[name].mean for row, own in networks.items() if name in own}
        low, high = min(values.values()), max(values.values())
        axis.plot(
            [0, 0], [low, high], color=NETWORK, linewidth=7, alpha=0.35, solid_capstyle="butt"
        )
        others = [value for row, value in values.items() if row != "GIN"]
        axis.scatter([0] * len(others), others, s=22, color=NETWORK, zorder=2)
        axis.scatter([0], [values["GIN"]], s=46, color=GIN, marker="D", zorder=3)
        blind = PUBLISHED[BLIND][name].mean
        axis.scatter([0.28], [blind], s=42, color="black", marker="_", zorder=3)
        shown = [low, high, blind]
        for row, colour, marker, place, size in (
            ("WL kernel, tuned SVM", WL, "s", 0.55, 42),
            ("artlas", OURS, "*", 0.85, 170),
        ):
            value = measured.get(row, {}).get(name)
            if value is not None:
                axis.scatter([place], [value], s=size, color=colour, marker=marker, zorder=4)
                shown.append(value)
                if row == "artlas":
                    axis.annotate(
                        f"{value:.1f}",
                        (place, value),
                        xytext=(0, 9),
                        textcoords="offset points",
                        ha="center",
                        fontsize=10,
                        fontweight="bold",
                        color=OURS,
                    )
        margin = 0.12 * (max(shown) - min(shown))
        axis.set_ylim(min(shown) - margin, max(shown) + 2 * margin)
        axis.set_xlim(-0.3, 1.2)
        axis.set_xticks([])
        axis.set_title(name.replace("-BINARY", "-B").replace("-MULTI", "-M"), fontsize=10)
        axis.tick_params(axis="y", labelsize=9, length=2, pad=1)
        axis.yaxis.set_major_locator(matplotlib.ticker.MaxNLocator(5, integer=True))
        axis.grid(axis="y", color="#e0e0e0", linewidth=0.6)
        axis.set_axisbelow(True)
        for side in ("top", "right", "bottom"):
            axis.spines[side].set_visible(False)
    axes[0].set_ylabel("accuracy, % (each its own scale)")
    _legend(figure, Line2D, "artlas" in measured)
    figure.tight_layout(rect=(0, 0.09, 1, 1), w_pad=0.4)
    figure.savefig(path, dpi=160)
    plt.close(figure)


def _legend(figure: Any, line: Any, ours: bool) -> None:
    entries = [
        ("o", NETWORK, 5, "trained graph networks"),
        ("D", GIN, 6, "GIN"),
        ("_", "black", 8, "structure-blind baseline"),
        ("s", WL, 6, "WL kernel, tuned SVM"),
        *([("*", OURS, 12, "artlas, nothing tuned")] if ours else []),
    ]
    handles = [
        line([], [], linestyle="", marker=marker, color=colour, markersize=size, label=label)
        for marker, colour, size, label in entries
    ]
    figure.legend(
        handles=handles,
        loc="lower center",
        ncol=len(handles),
        frameon=False,
        fontsize=10,
        handletextpad=0.2,
        columnspacing=1.4,
    )
