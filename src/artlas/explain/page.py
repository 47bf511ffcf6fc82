"""Render an explanation as one HTML file that needs no script and no network."""

from __future__ import annotations

import html

import numpy as np

from artlas.explain.explanation import Explanation
from artlas.explain.html_page import document
from artlas.figures import COLOURS, INK, MUTED, PALE
from artlas.training.pretraining_coverage import PretrainingCoverage

NEAREST = 4  # bases shown


def render(e: Explanation) -> str:
    """Render the page as HTML."""
    nodes, edges, part = e.graph.num_nodes, e.graph.num_edges, ""
    nearest = np.argsort(e.energies, kind="stable")[:NEAREST]
    if len(e.drawn) < nodes:
        part = f" Only the {len(e.drawn)} nodes around the node of largest degree are drawn."
    sections = [
        f"<h1>{html.escape(e.title)}</h1><p class=lead>{nodes:,} nodes, {edges:,} edges. "
        f"{_summary(e)}</p>",
        "<section><h2>Roles</h2><p>The model assigns every node a distribution over "
        f"{e.roles.shape[1]} roles. A node's colour shows its strongest role, and its opacity how "
        f"strong that role is. Hover over a node for the numbers.{part}</p>{_drawing(e)}</section>",
        "<section><h2>The nearest bases</h2><p>Each square shows a base's relation between its "
        "roles, strongest role first. The energy is the difference that remains after alignment; "
        "the gain is the share of the energy that alignment saves.</p><div class=row>"
        + "".join(_base(e, int(k)) for k in nearest)
        + "</div></section>",
    ]
    if e.reference is not None:
        sections.append(
            "<section><h2>Among the pretraining graphs</h2><p>Coordinates of pretraining graphs "
            "from every domain, along their two principal components; the star is this graph.</p>"
            f"{_map(e, e.reference)}</section>"
        )
    sections.append(f"<section><h2>All bases</h2>{_table(e)}</section>")
    return document(e.title, "".join(sections))


def _summary(e: Explanation) -> str:
    """Say in plain sentences how well the atlas covers this graph, and what alignment gains."""
    distance, best = float(e.coordinates.min()), int(e.energies.argmin())
    if e.reference is None:
        text = "There is no record of the pretraining graphs to compare it with."
    elif e.reference.outside(distance):
        text = (
            "<strong>This graph lies outside what the model was trained on:</strong> it is farther "
            "from its nearest base than 99 % of the pretraining graphs, so use its vector with "
            "care."
        )
    else:
        text = (
            f"The atlas covers it: {e.reference.percentile(distance):.0f} % of the pretraining "
            "graphs are nearer to their nearest base."
        )
        if e.reference.unusual(distance):
            text += (
                " It is nearer than 99 % of them, but this says little here: a graph sparser than "
                "those of pretraining is near to any sparse base, whatever its shape. Look at the "
                "gain."
            )
    return (
        f"{text} Its nearest base is number {best + 1}, at distance {distance:.3f}; alignment "
        f"saves {100 * e.gain[best]:.1f} % of the energy of the independent coupling."
    )


def _drawing(e: Explanation, side: int = 620) -> str:
    """Draw the graph, its nodes coloured by their strongest role."""
    at = 12 + (side - 24) * e.positions
    row = np.repeat(np.arange(len(at)), e.drawing.row_ptr.diff().numpy())
    lines = "".join(
        f"M{at[i, 0]:.1f} {at[i, 1]:.1f}L{at[j, 0]:.1f} {at[j, 1]:.1f}"
        for i, j in zip(row, e.drawing.col.numpy(), strict=True)
        if i < j
    )
    radius = float(np.clip(70 / np.sqrt(len(at)), 3, 9))
    strongest = e.roles.argmax(1)
    counts = np.bincount(strongest)
    by_frequency = [int(r) for r in np.argsort(-counts, kind="stable") if counts[r]]
    colour = {role: _colour(rank) for rank, role in enumerate(by_frequency)}
    names, circles = e.graph.ids, []
    for i, (number, role) in enumerate(zip(e.drawn, strongest, strict=True)):
        share = e.roles[i]
        top = ", ".join(f"role {a + 1}: {100 * share[a]:.0f} %" for a in np.argsort(-share)[:3])
        name = html.escape(f"node {number}" if names is None else str(names[number]))
        circles.append(
            f"<circle cx={at[i, 0]:.1f} cy={at[i, 1]:.1f} r={radius:.1f} "
            f"fill='{colour[int(role)]}' fill-opacity={0.35 + 0.65 * share[role]:.2f} "
            f"stroke=white><title>{name}: {top}</title></circle>"
        )
    legend = ""
    for rank, role in enumerate(by_frequency[:12]):
        nodes = "1 node" if counts[role] == 1 else f"{counts[role]} nodes"
        legend += _legend(rank, side + 20, f"role {role + 1}: {nodes}")
    return (
        f"<svg id=graph viewBox='0 0 {side + 170} {side}' width={side + 170} role=img "
        f"aria-label='the graph, coloured by role'><path d='{lines}' stroke='{PALE}' fill=none />"
        f"{''.join(circles)}{legend}</svg>"
    )


def _colour(rank: int) -> str:
    return COLOURS[rank] if rank < len(COLOURS) - 1 else MUTED


def _legend(rank: int, x: int, text: str) -> str:
    return (
        f"<text x={x} y={24 + 20 * rank} font-size=13 fill='{MUTED}'>"
        f"<tspan fill='{_colour(rank)}'>●</tspan> {text}</text>"
    )


def _base(e: Explanation, k: int, side: int = 210) -> str:
    """Draw the relation of base k as a heat map, its strongest role first."""
    relation = e.relations[k]
    order = np.argsort(-relation.sum(1), kind="stable")
    cell = side / len(relation)
    cells = "".join(
        f"<rect x={b * cell:.2f} y={a * cell:.2f} width={cell + 0.2:.2f} height={cell + 0.2:.2f} "
        f"fill='{_heat(relation[i, j])}'/>"
        for a, i in enumerate(order)
        for b, j in enumerate(order)
    )
    return (
        f"<figure><svg viewBox='0 0 {side} {side}' width={side} role=img "
        f"aria-label='base {k + 1}'>{cells}</svg><figcaption>base {k + 1}: energy "
        f"{e.energies[k]:.4f}<br>responsibility {100 * e.responsibilities[k]:.1f} %, gain "
        f"{100 * e.gain[k]:.1f} %</figcaption></figure>"
    )


def _heat(value: float) -> str:
    """Shade 0 to 1 from white to dark blue."""
    shade = 255 + value * (np.array([8, 48, 107]) - 255)
    return "#" + "".join(f"{round(c):02x}" for c in shade)


def _map(e: Explanation, reference: PretrainingCoverage) -> str:
    """Draw the coordinates of the pretraining graphs and of this graph in their principal plane."""
    width, height = 620, 380
    known = np.concatenate(list(reference.domains.values()))
    mean, spread = known.mean(0), np.maximum(known.std(0), 1e-9)
    _, _, axes = np.linalg.svd((known - mean) / spread, full_matrices=False)
    points = (np.concatenate([known, e.coordinates[None]]) - mean) / spread @ axes[:2].T
    low, high = points.min(0), points.max(0)
    points = 12 + [width - 24, height - 24] * (points - low) / np.maximum(high - low, 1e-9)
    ends = np.cumsum([len(q) for q in reference.domains.values()])
    *domains, ((x, y),) = np.split(points, ends)
    marks = []
    for i, (name, places) in enumerate(zip(reference.domains, domains, strict=True)):
        circles = "".join(f"<circle cx={x:.1f} cy={y:.1f} r=3 />" for x, y in places)
        marks.append(f"<g fill='{_colour(i)}' fill-opacity=.55>{circles}</g>")
        marks.append(_legend(i, width + 16, html.escape(name)))
    star = f"<text x={x:.1f} y={y + 8:.1f} font-size=26 text-anchor=middle fill='{INK}'>★</text>"
    return (
        f"<svg id=map viewBox='0 0 {width + 150} {height}' width={width + 150} role=img "
        f"aria-label='coordinates among the pretraining graphs'>{''.join(marks)}{star}</svg>"
    )


def _table(e: Explanation) -> str:
    rows = "".join(
        f"<tr><td>{k + 1}<td>{e.energies[k]:.5f}<td>{e.coordinates[k]:.4f}"
        f"<td>{100 * e.responsibilities[k]:.1f} %<td>{100 * e.gain[k]:.1f} %"
        for k in np.argsort(e.energies, kind="stable")
    )
    return (
        "<table><tr><th>base<th>energy<th>coordinate<th>responsibility<th>gain"
        f"{rows}</table><p>Coverage (soft minimum of the energies): {e.coverage:.5f}. Largest "
        f"marginal error of a coupling: {e.residual:.1e}.</p>"
    )
