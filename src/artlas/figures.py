"""Pictures of an atlas and of embedded graphs; Matplotlib is imported when one is drawn."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

INK, MUTED, PALE = "#1f2430", "#6b7280", "#c9cdd4"
# Okabe and Ito's colours, which colour-blind readers can tell apart, with violet for yellow.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#7B3FA0", "#000000")
MARKERS = "osD^vP<X"


def draw_atlas(relations: NDArray[Any], path: Path) -> None:
    """Draw every base B_k of relations [K, M, M] as a heat map, on one scale from 0 to 1.

    The order of roles carries no meaning, so they are sorted by the strength of their row.
    """
    figure = blank(9.0, 9.9)
    across = math.ceil(math.sqrt(len(relations)))
    down = math.ceil(len(relations) / across)
    panels = figure.subplots(down, across, squeeze=False)
    image = None
    for k, panel in enumerate(panels.flat):
        if k >= len(relations):
            panel.set_visible(False)
            continue
        order = np.argsort(-relations[k].sum(1), kind="stable")
        image = panel.imshow(relations[k][np.ix_(order, order)], vmin=0, vmax=1, cmap="magma")
        panel.set_title(f"$B_{{{k + 1}}}$, mean {relations[k].mean():.2f}", fontsize=9, color=INK)
        panel.set_xticks([])
        panel.set_yticks([])
        for spine in panel.spines.values():
            spine.set_visible(False)
    roles = relations.shape[1]
    figure.suptitle(
        f"The atlas: {len(relations)} bases of {roles} roles, strongest role first",
        fontsize=13,
        color=INK,
    )
    bar = figure.colorbar(
        image, ax=panels, orientation="horizontal", shrink=0.5, aspect=45, pad=0.02
    )
    bar.set_label("relation between two roles", fontsize=9, color=MUTED)
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=8, colors=MUTED)
    figure.savefig(path)


@dataclass(frozen=True, eq=False)
class Plane:
    """The two principal components of standardised representations, to look at others through.

    mean, spread: [d]; axes: [2, d]; share: [2], of the variance.
    """

    mean: NDArray[np.float64]
    spread: NDArray[np.float64]
    axes: NDArray[np.float64]
    share: NDArray[np.float64]

    @classmethod
    def fit(cls, values: ArrayLike) -> Plane:
        """Find the plane of values [n, d], n and d at least 2; constant columns do not count."""
        rows = np.asarray(values, dtype=np.float64)
        mean, spread = rows.mean(0), rows.std(0)
        spread[rows.max(0) == rows.min(0)] = np.inf
        _, strength, axes = np.linalg.svd((rows - mean) / spread, full_matrices=False)
        axes = axes[:2] * np.sign(axes[:2].sum(1, keepdims=True))  # a sign that does not flip
        return cls(mean, spread, axes, strength[:2] ** 2 / (strength**2).sum())

    def project(self, values: ArrayLike) -> NDArray[np.float64]:
        """Place values [n, d] in the plane, [n, 2]."""
        return (np.asarray(values, dtype=np.float64) - self.mean) / self.spread @ self.axes.T


def draw_embedding(
    plane: Plane,
    groups: Mapping[str, ArrayLike],
    named: Mapping[str, ArrayLike],
    backdrop: tuple[str, ArrayLike],
    path: Path,
) -> None:
    """Draw groups of representations [n, d] in colour and named ones [d] as stars.

    The backdrop, a name and representations [n, d], is pale and lies under them.
    """
    figure = blank(11.0, 7.6)
    axes = figure.subplots()
    axes.scatter(
        *plane.project(backdrop[1]).T, s=9, color=PALE, linewidths=0, label=backdrop[0], zorder=1
    )
    looks = zip(itertools.cycle(COLOURS), itertools.cycle(MARKERS), strict=False)
    for (name, points), (colour, marker) in zip(groups.items(), looks, strict=False):
        axes.scatter(
            *plane.project(points).T,
            s=28,
            c=colour,
            marker=marker,
            alpha=0.75,
            linewidths=0,
            label=name,
            zorder=2,
        )
    stars = plane.project(np.array(list(named.values())))
    axes.scatter(
        *stars.T,
        s=190,
        c="white",
        marker="*",
        edgecolors=INK,
        linewidths=1.3,
        zorder=4,
        label="real networks",
    )
    title = "Embedded graphs: z from structure alone"
    axes.set_title(title, fontsize=13, color=INK, loc="left", pad=12)
    axes.margins(0.08)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("bottom", "left"):
        axes.spines[side].set_color(PALE)
    axes.tick_params(labelsize=8, colors=MUTED, length=0)
    for name, label, share in zip(
        ("first", "second"), (axes.set_xlabel, axes.set_ylabel), plane.share, strict=True
    ):
        label(f"{name} principal component, {share:.0%} of variance", fontsize=9, color=MUTED)
    axes.legend(
        loc="upper left",
        bbox_to_anchor=(1.01, 1.0),
        frameon=False,
        fontsize=9,
        labelcolor=INK,
        borderaxespad=0.0,
        handletextpad=0.4,
    )
    figure.canvas.draw()  # the layout is final from here on, and labels can be measured
    figure.set_layout_engine("none")
    _label(figure, axes, list(named), stars)
    figure.savefig(path)


def _label(figure: Any, axes: Any, names: Sequence[str], points: NDArray[Any]) -> None:
    """Write each name near its point, at the first place that covers no other name or star."""
    from matplotlib.patheffects import withStroke
    from matplotlib.text import Text
    from matplotlib.transforms import Bbox

    renderer = figure.canvas.get_renderer()
    pixels = axes.transData.transform(points)
    taken = [Bbox.from_extents(x - 14, y - 14, x + 14, y + 14) for x, y in pixels]
    frame = axes.get_window_extent()
    ring = [
        (r, a) for r in (16, 30, 46, 64, 84, 106) for a in (0, 180, 40, 140, -40, -140, 90, -90)
    ]
    for name, point in zip(names, points, strict=True):
        label = axes.annotate(
            name,
            point,
            (0, 0),
            textcoords="offset points",
            fontsize=9,
            color=INK,
            va="center",
            zorder=6,
            path_effects=[withStroke(linewidth=3, foreground="white")],
            arrowprops={"arrowstyle": "-", "color": INK, "lw": 0.7, "shrinkA": 0, "shrinkB": 6},
        )
        for radius, angle in ring:
            turn = math.radians(angle)
            label.set_position((radius * math.cos(turn), radius * math.sin(turn)))
            label.set_ha(("right", "center", "left")[1 + round(math.cos(turn))])
            label.update_positions(renderer)
            extent = Text.get_window_extent(label, renderer).padded(4)
            inside = frame.x0 <= extent.x0 and extent.x1 <= frame.x1 + 40
            inside = inside and frame.y0 <= extent.y0 and extent.y1 <= frame.y1
            if inside and not any(extent.overlaps(other) for other in taken):
                break
        taken.append(extent)


def blank(width: float, height: float) -> Any:
    """An empty figure of so many inches."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(
            "Pictures are drawn by Matplotlib, which is not installed. "
            "To get them: pip install 'artlas[demo]'"
        ) from error
    figure = Figure(figsize=(width, height), dpi=130, layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    return figure


def draw_transfer(
    targets: Sequence[str], rows: Mapping[str, Sequence[tuple[float, float] | None]], path: Path
) -> None:
    """Draw the accuracy of every row on every target; None where there is nothing.

    A value is (percent, standard error). The row ``paper`` is drawn as a line across the others.
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
    """Draw accuracy against the number of examples a class: a panel a dataset, a line a row.

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
    """Pale lines across, no frame above and on the right."""
    axes.grid(axis="y", color=PALE, lw=0.6)
    axes.tick_params(labelsize=8, colors=MUTED)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def save(figure: Any, stem: Path) -> list[Path]:
    """Write a figure as stem.png and stem.svg, with the same bytes for the same figure."""
    from matplotlib import rc_context

    paths = [stem.with_name(f"{stem.name}.{kind}") for kind in ("png", "svg")]
    figure.savefig(paths[0])
    with rc_context({"svg.hashsalt": "artlas"}):
        figure.savefig(paths[1], metadata={"Date": None})
    return paths
