"""Draw an atlas and embedded graphs; Matplotlib is imported when a figure is drawn."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from artlas.errors import import_extra

INK, MUTED, PALE = "#1f2430", "#6b7280", "#c9cdd4"
# Okabe and Ito's palette, safe for colour-blind readers, with violet in place of yellow.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#7B3FA0", "#000000")
MARKERS = "osD^vP<X"
VectorsByName = Mapping[str, NDArray[Any]]


def draw_atlas(relations: NDArray[Any], path: Path) -> None:
    """Draw every base B_k of relations [K, M, M] as a heat map, on one scale from 0 to 1.

    The order of roles has no meaning, so they are sorted by the sum of their row.
    """
    figure = blank(9.0, 9.9)
    bases, roles, _ = relations.shape
    across = math.ceil(math.sqrt(bases))
    panels = figure.subplots(math.ceil(bases / across), across, squeeze=False)
    for panel in panels.flat:
        panel.set_axis_off()
    for k, (relation, panel) in enumerate(zip(relations, panels.flat, strict=False)):
        order = np.argsort(-relation.sum(1), kind="stable")
        image = panel.imshow(relation[np.ix_(order, order)], vmin=0, vmax=1, cmap="magma")
        panel.set_title(f"$B_{{{k + 1}}}$, mean {relation.mean():.2f}", fontsize=9, color=INK)
    title = f"The atlas: {bases} bases of {roles} roles, strongest role first"
    figure.suptitle(title, fontsize=13, color=INK)
    below = {"orientation": "horizontal", "shrink": 0.5, "aspect": 45, "pad": 0.02}
    bar = figure.colorbar(image, ax=panels, **below)
    bar.set_label("relation between two roles", fontsize=9, color=MUTED)
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=8, colors=MUTED)
    figure.savefig(path)


def _principal_plane(known: Any, stars: Any) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Project rows [n, d] and stars [m, d] onto the two principal components of the rows.

    Both are standardised by the rows, without their constant columns. Returns the points [n, 2]
    and [m, 2], and each component's share of the variance, [2].
    """
    rows = np.asarray(known, dtype=np.float64)
    mean, spread = rows.mean(0), rows.std(0)
    spread[rows.max(0) == rows.min(0)] = np.inf
    rows, stars = (rows - mean) / spread, (stars - mean) / spread
    _, strength, axes = np.linalg.svd(rows, full_matrices=False)
    axes = axes[:2] * np.sign(axes[:2].sum(1, keepdims=True))  # fixes the sign
    return rows @ axes.T, stars @ axes.T, strength[:2] ** 2 / (strength**2).sum()


def draw_embedding(
    groups: VectorsByName, named: VectorsByName, backdrop: tuple[str, NDArray[Any]], path: Path
) -> None:
    """Draw groups of representations [n, d] in colour, and named ones [d] as labelled stars.

    The backdrop, a name and representations [n, d], is drawn in grey behind them.
    """
    known = [*groups.values(), backdrop[1]]
    rows, stars, shares = _principal_plane(np.concatenate(known), np.stack(list(named.values())))
    *clusters, behind = np.split(rows, np.cumsum([len(part) for part in known[:-1]]))
    figure = blank(11.0, 7.6)
    axes = figure.subplots()
    axes.scatter(*behind.T, s=9, zorder=1, color=PALE, lw=0, label=backdrop[0])
    looks = zip(itertools.cycle(COLOURS), itertools.cycle(MARKERS), strict=False)
    for name, points, (colour, marker) in zip(groups, clusters, looks, strict=False):
        axes.scatter(*points.T, s=28, c=colour, marker=marker, alpha=0.75, lw=0, label=name)
    look = {"c": "white", "marker": "*", "edgecolors": INK, "lw": 1.3, "label": "real networks"}
    axes.scatter(*stars.T, s=190, zorder=4, **look)
    title = "Embedded graphs: z from structure alone"
    axes.set_title(title, fontsize=13, color=INK, loc="left", pad=12)
    axes.margins(0.08)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["bottom", "left"]].set_color(PALE)
    axes.tick_params(labelsize=8, colors=MUTED, length=0)
    first, second = (f"principal component, {share:.0%} of variance" for share in shares)
    axes.set_xlabel(f"first {first}", fontsize=9, color=MUTED)
    axes.set_ylabel(f"second {second}", fontsize=9, color=MUTED)
    beside = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0), "borderaxespad": 0.0}
    axes.legend(frameon=False, fontsize=9, labelcolor=INK, handletextpad=0.4, **beside)
    figure.canvas.draw()  # fixes the layout, so that labels can be measured
    figure.set_layout_engine("none")
    _label(figure, axes, list(named), stars)
    figure.savefig(path)


def _label(figure: Any, axes: Any, names: Sequence[str], points: NDArray[Any]) -> None:
    """Write each name at the nearest place that overlaps no star and no earlier name."""
    from matplotlib.patheffects import withStroke
    from matplotlib.text import Text
    from matplotlib.transforms import Bbox

    renderer = figure.canvas.get_renderer()
    pixels = axes.transData.transform(points)
    taken = [Bbox.from_extents(x - 14, y - 14, x + 14, y + 14) for x, y in pixels]
    frame = axes.get_window_extent()
    radii, angles = (16, 30, 46, 64, 84, 106), (0, 180, 40, 140, -40, -140, 90, -90)
    look = {
        "fontsize": 9,
        "color": INK,
        "path_effects": [withStroke(linewidth=3, foreground="white")],
        "arrowprops": {"arrowstyle": "-", "color": INK, "lw": 0.7, "shrinkA": 0, "shrinkB": 6},
    }
    for name, point in zip(names, points, strict=True):
        place = {"textcoords": "offset points", "va": "center", "zorder": 6}
        label = axes.annotate(name, point, (0, 0), **place, **look)
        for radius, angle in itertools.product(radii, angles):
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
    """Make an empty figure; width and height in inches."""
    agg = import_extra("matplotlib.backends.backend_agg", "Figures need Matplotlib", "demo")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), dpi=130, layout="constrained", facecolor="white")
    agg.FigureCanvasAgg(figure)
    return figure
