"""Draw the panels of a study's figure in one style; shared by all studies."""

from __future__ import annotations

from typing import Any

from artlas import figures
from artlas_paper.figures import plain_axes


def panel_row(count: int, width: float, height: float) -> tuple[Any, Any]:
    """Make a figure of ``width`` by ``height`` inches with ``count`` panels side by side."""
    figure = figures.blank(width, height)
    return figure, figure.subplots(1, count, squeeze=False)[0]


def plot_series(panel: Any, index: int, x: Any, y: Any, **style: Any) -> None:
    """Plot y over x with the marker and colour of the series numbered ``index``."""
    panel.plot(x, y, figures.MARKERS[index], color=figures.COLOURS[index], **style)


def finish_panel(panel: Any, title: str | None = None, xlabel: str | None = None) -> None:
    """Set the title and the label below a panel, and reduce its frame."""
    if title is not None:
        panel.set_title(title, fontsize=10, color=figures.INK)
    if xlabel is not None:
        panel.set_xlabel(xlabel, fontsize=9, color=figures.MUTED)
    plain_axes(panel)


def legend_above(figure: Any, columns: int) -> None:
    """Put one legend for all panels above them."""
    figure.legend(ncols=columns, fontsize=8, loc="outside upper center", frameon=False)
