"""One page about one graph: its roles, the bases nearest to it, and how well the atlas covers it.

The page is a single file without scripts from elsewhere, and opens without a network.
"""

from __future__ import annotations

import html
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from artlas.explain.html_page import document
from artlas.explain.spring_layout import spring_layout
from artlas.figures import COLOURS, INK, MUTED, PALE
from artlas.graphs.collection import Graphs
from artlas.method.model import ART
from artlas.nodes.ego import PprConfig, ego_graphs
from artlas.training.pretraining_coverage import PretrainingCoverage

DRAWN = 400  # nodes of the largest drawing
NEAREST = 4  # bases shown
Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Explanation:
    """What the page shows of a graph.

    energies, responsibilities, gain [K]; roles [n, M] of the nodes drawn; coordinates [K]; drawn:
    the numbers of those nodes; positions [n, 2]; relations [K, M, M].
    """

    title: str
    graph: Graphs
    drawn: NDArray[np.int64]
    positions: Array
    roles: Array
    energies: Array
    responsibilities: Array
    gain: Array
    coverage: float
    residual: float
    relations: Array
    reference: PretrainingCoverage | None

    @property
    def coordinates(self) -> Array:
        """q, [K]."""
        return np.sqrt(np.maximum(self.energies, 0))


def explain(
    model: ART, graph: Graphs, title: str, reference: PretrainingCoverage | None = None
) -> Explanation:
    """Align one graph, and lay out its nodes: all, or those around the best-connected one."""
    found = model.align(graph)
    roles = found.roles(0).double().numpy()
    drawn, part = np.arange(graph.num_nodes, dtype=np.int64), graph
    if graph.num_nodes > DRAWN:
        centre = int(graph.degree.argmax())
        near = ego_graphs(graph, [centre], PprConfig(most_nodes=DRAWN))
        drawn, part = near.nodes.astype(np.int64), near[:]
    return Explanation(
        title,
        part,
        drawn,
        spring_layout(part),
        roles[drawn],
        found.energies[0].double().numpy(),
        found.responsibilities[0].double().numpy(),
        found.gain[0].double().numpy(),
        float(found.coverage[0]),
        float(found.residuals.max()),
        model.atlas.relations().detach().double().numpy(),
        reference,
    )


def page(e: Explanation, whole: Graphs) -> str:
    """The page as HTML; ``whole`` is the graph itself where only a part is drawn."""
    nearest = np.argsort(e.energies, kind="stable")[:NEAREST]
    title = html.escape(e.title)
    names = whole.ids
    size = f"{whole.num_nodes:,} nodes, {whole.num_edges:,} edges"
    part = ""
    if len(e.drawn) < whole.num_nodes:
        part = f" Drawn are the {len(e.drawn)} nodes around the best-connected one."
    sections = [
        f"<h1>{title}</h1><p class=lead>{size}. {_verdict(e)}</p>",
        f"<section><h2>Roles</h2><p>Every node is spread over {e.roles.shape[1]} roles; its colour "
        f"is the strongest, its opacity how strong. Point at a node for its share.{part}</p>"
        f"{_drawing(e, names)}</section>",
        "<section><h2>The nearest bases</h2><p>The relation of a base between its roles, strongest "
        "role first. Energy is what is left of the difference after alignment; gain is what "
        "alignment saves over no alignment at all.</p><div class=row>"
        + "".join(_base(e, int(k)) for k in nearest)
        + "</div></section>",
    ]
    if e.reference is not None:
        sections.append(
            "<section><h2>Among the graphs of pretraining</h2><p>Coordinates of graphs of every "
            "domain, in the two directions in which they differ most; the star is this graph.</p>"
            f"{_map(e, e.reference)}</section>"
        )
    sections.append(f"<section><h2>All bases</h2>{_table(e)}</section>")
    return document(e.title, "".join(sections))


def _verdict(e: Explanation) -> str:
    """Plain sentences: how well the atlas covers this graph, and what alignment gains."""
    distance = float(e.coordinates.min())
    best = int(e.energies.argmin())
    parts = []
    if e.reference is None:
        parts.append("There is no record of the pretraining graphs to compare it with.")
    elif e.reference.outside(distance):
        parts.append(
            "<strong>This graph lies outside what the model was trained on:</strong> it is farther "
            "from its nearest base than 99 % of the pretraining graphs, so take its vector with "
            "care."
        )
    else:
        share = e.reference.percentile(distance)
        parts.append(
            f"The atlas covers it: {share:.0f} % of the pretraining graphs lie nearer to their "
            "base."
        )
        if e.reference.unusual(distance):
            parts.append(
                "It is nearer than 99 % of them, which here says little: a graph that is sparser "
                "than those of pretraining is near to any sparse base, whatever its shape. Look at "
                "the gain."
            )
    parts.append(
        f"Its nearest base is number {best + 1}, at distance {distance:.3f}; alignment saves "
        f"{100 * e.gain[best]:.1f} % of the energy of the independent coupling."
    )
    return " ".join(parts)


def _drawing(e: Explanation, names: NDArray[Any] | None, side: int = 620) -> str:
    at = 12 + (side - 24) * e.positions
    row = np.repeat(np.arange(len(at)), e.graph.row_ptr.diff().numpy())
    col = e.graph.col.numpy()
    lines = "".join(
        f"M{at[i, 0]:.1f} {at[i, 1]:.1f}L{at[j, 0]:.1f} {at[j, 1]:.1f}"
        for i, j in zip(row, col, strict=True)
        if i < j
    )
    radius = float(np.clip(70 / np.sqrt(len(at)), 3, 9))
    strongest = e.roles.argmax(1)
    ranks = {int(role): i for i, role in enumerate(_by_use(e.roles))}
    dots = []
    for i, role in enumerate(strongest):
        share = e.roles[i]
        top = ", ".join(f"role {a + 1}: {100 * share[a]:.0f} %" for a in np.argsort(-share)[:3])
        number = int(e.drawn[i])
        name = html.escape(f"node {number}" if names is None else str(names[number]))
        dots.append(
            f"<circle cx={at[i, 0]:.1f} cy={at[i, 1]:.1f} r={radius:.1f} "
            f"fill='{_colour(ranks[int(role)])}' fill-opacity={0.35 + 0.65 * share[role]:.2f} "
            f"stroke=white><title>{name}: {top}</title></circle>"
        )
    legend = "".join(
        f"<text x={side + 20} y={24 + 20 * i} font-size=13 fill='{MUTED}'>"
        f"<tspan fill='{_colour(i)}'>●</tspan> role {role + 1}: {_nodes(strongest == role)}</text>"
        for i, role in enumerate(_by_use(e.roles)[:12])
    )
    return (
        f"<svg id=graph viewBox='0 0 {side + 170} {side}' width={side + 170} role=img "
        f"aria-label='the graph, coloured by role'><path d='{lines}' stroke='{PALE}' fill=none />"
        f"{''.join(dots)}{legend}</svg>"
    )


def _nodes(chosen: NDArray[np.bool_]) -> str:
    return "1 node" if chosen.sum() == 1 else f"{chosen.sum()} nodes"


def _by_use(roles: Array) -> list[int]:
    """Roles that are some node's strongest, the most frequent first."""
    counts = np.bincount(roles.argmax(1), minlength=roles.shape[1])
    return [int(role) for role in np.argsort(-counts, kind="stable") if counts[role]]


def _colour(rank: int) -> str:
    return COLOURS[rank] if rank < len(COLOURS) - 1 else MUTED


def _base(e: Explanation, k: int, side: int = 210) -> str:
    relation = e.relations[k]
    order = np.argsort(-relation.sum(1), kind="stable")
    cell = side / len(relation)
    rects = "".join(
        f"<rect x={b * cell:.2f} y={a * cell:.2f} width={cell + 0.2:.2f} height={cell + 0.2:.2f} "
        f"fill='{_heat(relation[i, j])}'/>"
        for a, i in enumerate(order)
        for b, j in enumerate(order)
    )
    return (
        f"<figure><svg viewBox='0 0 {side} {side}' width={side} role=img "
        f"aria-label='base {k + 1}'>{rects}</svg><figcaption>base {k + 1}: energy "
        f"{e.energies[k]:.4f}<br>responsibility {100 * e.responsibilities[k]:.1f} %, gain "
        f"{100 * e.gain[k]:.1f} %</figcaption></figure>"
    )


def _heat(value: float) -> str:
    """White for 0 to dark blue for 1."""
    low, high = np.array([255, 255, 255]), np.array([8, 48, 107])
    return "#" + "".join(f"{round(c):02x}" for c in low + value * (high - low))


def _map(
    e: Explanation, reference: PretrainingCoverage, width: int = 620, height: int = 380
) -> str:
    known = np.concatenate(list(reference.domains.values()))
    mean, spread = known.mean(0), np.maximum(known.std(0), 1e-9)
    _, _, axes = np.linalg.svd((known - mean) / spread, full_matrices=False)

    def project(q: Array) -> Array:
        return ((q - mean) / spread) @ axes[:2].T

    every = np.concatenate([project(known), project(e.coordinates[None])])
    low, high = every.min(0), every.max(0)
    box = np.array([width - 24, height - 24])

    def place(q: Array) -> Array:
        found: Array = 12 + box * (project(q) - low) / np.maximum(high - low, 1e-9)
        return found

    dots = []
    for i, (name, q) in enumerate(reference.domains.items()):
        marks = "".join(f"<circle cx={x:.1f} cy={y:.1f} r=3 />" for x, y in place(q))
        dots.append(f"<g fill='{_colour(i)}' fill-opacity=.55>{marks}</g>")
        dots.append(
            f"<text x={width + 16} y={24 + 20 * i} font-size=13 fill='{MUTED}'>"
            f"<tspan fill='{_colour(i)}'>●</tspan> {html.escape(name)}</text>"
        )
    x, y = place(e.coordinates[None])[0]
    star = f"<text x={x:.1f} y={y + 8:.1f} font-size=26 text-anchor=middle fill='{INK}'>★</text>"
    return (
        f"<svg id=map viewBox='0 0 {width + 150} {height}' width={width + 150} role=img "
        f"aria-label='coordinates among the pretraining graphs'>{''.join(dots)}{star}</svg>"
    )


def _table(e: Explanation) -> str:
    rows = "".join(
        f"<tr><td>{k + 1}<td>{e.energies[k]:.5f}<td>{e.coordinates[k]:.4f}"
        f"<td>{100 * e.responsibilities[k]:.1f} %<td>{100 * e.gain[k]:.1f} %"
        for k in np.argsort(e.energies, kind="stable")
    )
    return (
        "<table><tr><th>base<th>energy<th>coordinate<th>responsibility<th>gain"
        f"{rows}</table><p>Coverage (soft minimum of the energies) {e.coverage:.5f}; largest error "
        f"of a coupling's marginals {e.residual:.1e}.</p>"
    )
