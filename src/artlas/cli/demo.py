"""``artlas demo``: train a small atlas on built-in graphs, test it, and draw it."""

from __future__ import annotations

import json
import platform
import time
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import typer
from numpy.typing import NDArray
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

import artlas
from artlas import ART, ArtConfig, Graphs, PretrainConfig, evaluation, figures, kernels
from artlas.datasets import (
    Dataset,
    digits_as_graphs,
    real_networks,
    relative_degree,
    synthetic_families,
)
from artlas.evaluation.controls import CONTROLS
from artlas.training import loop
from artlas.training.coverage import CoverageObjective
from artlas.training.sources import structure_only

BATCH, RATE, CLIP = 64, 1e-3, 5.0
TRAINED, UNTRAINED = "ART z, trained", "ART z, untrained"
SHIPPED = "ART z, shipped weights"
NEIGHBOURS = 5
Vectors = dict[str, NDArray[np.float32]]


def demo(
    steps: Annotated[int | None, typer.Option(min=0, help="Training steps (300).")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the data, the weights and training.")] = 42,
    quick: Annotated[bool, typer.Option("--quick", help="Less data, 20 steps.")] = False,
    out: Annotated[Path, typer.Option(help="Folder for what it writes.")] = Path("artlas-demo"),
) -> None:
    """Train a small atlas on built-in graphs, test it on unseen ones, and draw it."""
    began, console, folder = time.perf_counter(), Console(highlight=False), _folder(out)
    kind = "compiled kernels" if kernels.available() else "PyTorch twin, without compiled kernels"
    if steps is None:  # a step of the twin takes several times as long
        steps = 20 if quick else 300 if kernels.available() else 60
    torch.set_num_threads(1)  # repeatable, and no stalls where others use the cores
    console.print(f"[bold]artlas {artlas.__version__}[/]: {kind}, one thread\n")

    digits, families, networks = _data(console, 24 if quick else 120, seed)
    halves = {data.name: data.halves(seed) for data in (digits, families)}
    tested = {name: test for name, (_, test) in halves.items()}

    config = ArtConfig(seed=seed)
    untrained, model, shipped = ART(config), ART(config), artlas.load("graph")
    domains = {name: half.graphs for name, (half, _) in halves.items()}
    losses = train(console, model, domains, steps, seed)

    shown = tested | {"networks": networks}
    aligned = {
        name: {"before": _fit(untrained, data.graphs), "after": _fit(model, data.graphs)}
        for name, data in shown.items()
    }
    _print_alignment(console, aligned)

    episodes = {name: evaluation.draw_episodes(data.labels) for name, data in tested.items()}
    accuracy = {
        name: _accuracies(model, untrained, shipped, data, episodes[name])
        for name, data in tested.items()
    }
    _print_accuracy(console, tested, accuracy)

    structure = {name: _structure(model, data.graphs) for name, data in shown.items()}
    portraits = _portraits(model, networks, tested["families"], structure)
    _print_portraits(console, portraits)
    written = _draw(console, model, tested["families"], networks, structure, folder)

    report = {
        "settings": {
            "steps": steps,
            "seed": seed,
            "quick": quick,
            "optimiser": "Adam",
            "rate": RATE,
            "batch": BATCH,
            "clip": CLIP,
            "model": asdict(config),
        },
        "versions": _versions() | {"kernels": kind, "threads": 1},
        "training": {"steps": len(losses), "interrupted": len(losses) < steps, "losses": losses},
        "data": {
            name: {"train": len(half.graphs), "test": len(test.graphs), "classes": test.names}
            for name, (half, test) in halves.items()
        },
        "alignment": aligned,
        "episodes": {
            name: {
                "count": len(drawn),
                "seeds": [42 + r for r in range(len(drawn))],
                "shots": 5,
                "queries": 50,
                "sha256": evaluation.hash_episodes(drawn),
            }
            for name, drawn in episodes.items()
        },
        "accuracy": {
            name: {row: found.summary() for row, found in rows.items()}
            for name, rows in accuracy.items()
        },
        "networks": portraits,
    }
    written.append(_write_json(report, folder / "results.json"))
    console.print(f"Wrote {', '.join(path.name for path in written)} into")
    console.print(f"  {folder.resolve()}", markup=False, soft_wrap=True)
    console.print(f"[dim]{time.perf_counter() - began:.0f} s in all.[/]")


def train(
    console: Console, model: ART, domains: dict[str, Graphs], steps: int, seed: int
) -> list[float]:
    """Pretrain the model for so many steps, or until Ctrl-C; return the loss of every step."""
    console.print(
        f"Training {steps} steps on structure alone, without features or labels.\n"
        "Ctrl-C ends it early and keeps what was learnt."
    )
    structures = {name: structure_only(graphs) for name, graphs in domains.items()}
    training = PretrainConfig(batch=BATCH, rate=RATE, clip=CLIP, seed=seed)
    losses: list[float] = []
    began = time.perf_counter()
    bar = Progress(
        TextColumn("coverage {task.fields[loss]}"),
        BarColumn(30),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]} steps/s, left"),
        TimeRemainingColumn(),
        console=console,
    )
    with bar:
        task = bar.add_task("train", total=steps, loss="  -  ", rate="-")

        def show(at: loop.Progress) -> None:
            losses.append(at.loss)
            rate = len(losses) / (time.perf_counter() - began)
            bar.update(task, advance=1, loss=f"{at.loss:.3f}", rate=f"{rate:.1f}")

        try:
            objective = CoverageObjective(model, structures)
            loop.train(objective, structures, training, report=show, steps=steps)
        except KeyboardInterrupt:
            bar.stop()
            done = f"Stopped by Ctrl-C after {len(losses)} of {steps} steps: kept, and tested now."
            console.print(done, style="yellow")
    console.print()
    return losses


def _data(console: Console, per_class: int, seed: int) -> tuple[Dataset, Dataset, Dataset]:
    try:
        with console.status("Making graphs"):
            digits = digits_as_graphs(per_class, seed=seed)
            families, networks = synthetic_families(per_class, seed=seed), real_networks()
    except ImportError as error:
        Console(stderr=True).print(str(error), style="red", markup=False, soft_wrap=True)
        raise typer.Exit(1) from error
    console.print(
        f"[bold]digits[/]    {len(digits.graphs):,} handwritten digits: a node for every inked "
        "pixel, edges to its\n          eight neighbours; X = intensity, row, column\n"
        f"[bold]families[/]  {len(families.graphs):,} random graphs of {len(families.names)} "
        "kinds, alike in size and mostly in density;\n          X = degree / maximum degree\n"
        f"[bold]networks[/]  {len(networks.graphs)} real ones, never trained on\n"
        "Half of each class trains the atlas; accuracies are taken on the other half.\n"
    )
    return digits, families, networks


def _fit(model: ART, graphs: Graphs) -> dict[str, float]:
    """Mean coverage, and mean gain over the independent coupling."""
    found = model.align(graphs)
    return {"coverage": float(found.coverage.mean()), "gain": float(found.gain.mean())}


def _structure(model: ART, graphs: Graphs) -> NDArray[np.float32]:
    """z of the graphs with degree / maximum degree as the only feature, [G, K + M]."""
    return np.asarray(model.embed(graphs.with_features(relative_degree(graphs)), "paper"))


def _accuracies(
    model: ART, untrained: ART, shipped: ART, data: Dataset, episodes: list[evaluation.Episode]
) -> dict[str, evaluation.Accuracy]:
    """Accuracy of the model's representations and of the controls, on the same episodes."""
    graphs = data.graphs
    values: dict[str, Any] = {
        TRAINED: model.embed(graphs, "paper"),
        UNTRAINED: untrained.embed(graphs, "paper"),
        "ART q alone, trained": model.embed(graphs, "coordinates"),
        "ART H alone, trained": model.embed(graphs, "features"),
        SHIPPED: shipped.embed(graphs, "paper"),
        "ART z+, shipped weights": shipped.embed(graphs, "plus"),
    }
    values |= {name: control(graphs) for name, control in CONTROLS.items()}
    return {name: evaluation.evaluate(rows, data.labels, episodes) for name, rows in values.items()}


def _portraits(
    model: ART, networks: Dataset, families: Dataset, structure: Vectors
) -> dict[str, dict[str, Any]]:
    """Size, coverage, gain and the families of the nearest family graphs, by network."""
    near = evaluation.nearest(structure["networks"], structure["families"], NEIGHBOURS)
    found = {}
    for name, graph, ids in zip(networks.names, networks.graphs, near, strict=True):
        kinds, counts = np.unique(families.labels[ids], return_counts=True)
        votes = {families.names[c]: int(n) for c, n in zip(kinds, counts, strict=True)}
        sizes = {"nodes": graph.num_nodes, "edges": graph.num_edges}
        found[name] = sizes | _fit(model, graph) | {"neighbours": votes}
    return found


def _print_alignment(console: Console, aligned: dict[str, dict[str, dict[str, float]]]) -> None:
    rows = [
        [name]
        + [f"{fit['coverage']:.4f}" for fit in fits.values()]
        + [f"{fit['gain']:z.2%}" for fit in fits.values()]
        for name, fits in aligned.items()
    ]
    heads = ["unseen graphs", "coverage, untrained", "trained", "gain, untrained", "trained"]
    _print_table(console, "Alignment", heads, rows)
    console.print(
        "[dim]coverage is the loss; gain is the share of the independent coupling's energy\n"
        "that alignment saves: at 0 the couplings do not tell nodes apart.[/]\n"
    )


def _print_accuracy(
    console: Console,
    tested: dict[str, Dataset],
    accuracy: dict[str, dict[str, evaluation.Accuracy]],
) -> None:
    best = {name: max(rows, key=lambda row: rows[row].mean) for name, rows in accuracy.items()}
    cells = []
    for row in next(iter(accuracy.values())):
        cells.append([f"control: {row}" if row in CONTROLS else row])
        for name, rows in accuracy.items():
            text = f"{100 * rows[row].mean:.1f} ± {100 * rows[row].std:.1f}"
            cells[-1].append(f"[bold green]{text}[/]" if row == best[name] else text)
    heads = [f"{name}, {len(data.names)} classes" for name, data in tested.items()]
    title = "5-shot accuracy, %: mean ± deviation over 50 episodes, nearest class mean"
    _print_table(console, title, ["representation", *heads], cells)
    for name, rows in accuracy.items():
        change, error = rows[TRAINED].over(rows[UNTRAINED])
        console.print(
            f"[bold]{name}[/]: {evaluation.verdict(rows, CONTROLS)} "
            f"Training moved z by {100 * change:+.1f} points ({100 * error:.1f})."
        )
    console.print()


def _print_portraits(console: Console, portraits: dict[str, dict[str, Any]]) -> None:
    rows = []
    for name, row in portraits.items():
        family, votes = max(row["neighbours"].items(), key=lambda item: item[1])
        shown = [f"{row['nodes']}", f"{row['edges']}", f"{row['coverage']:.3f}"]
        rows.append([name, *shown, f"{row['gain']:z.1%}", f"{family} {votes}/{NEIGHBOURS}"])
    heads = ["network", "nodes", "edges", "coverage", "gain", "nearest family"]
    _print_table(console, "Real networks, and their 5 nearest family graphs by z", heads, rows)


def _print_table(console: Console, title: str, heads: list[str], rows: list[list[str]]) -> None:
    table = Table(title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD)
    for head in heads:
        table.add_column(head, justify="left" if head in (heads[0], "nearest family") else "right")
    for row in rows:
        table.add_row(*row)
    console.print(table)


def _draw(
    console: Console,
    model: ART,
    families: Dataset,
    networks: Dataset,
    structure: Vectors,
    folder: Path,
) -> list[Path]:
    """Draw both pictures and return their files, or say how to get them."""
    files = [folder / "atlas.png", folder / "embedding.png"]
    known = structure["families"]
    plane = figures.Plane.fit(np.concatenate([known, structure["digits"]]))
    groups = {name: known[families.labels == c] for c, name in enumerate(families.names)}
    named = dict(zip(networks.names, structure["networks"], strict=True))
    try:
        figures.draw_atlas(model.atlas.relations().detach().numpy(), files[0])
        figures.draw_embedding(plane, groups, named, ("digits", structure["digits"]), files[1])
    except ImportError as error:
        console.print(str(error), style="yellow", markup=False, soft_wrap=True)
        return []
    return files


def _folder(out: Path) -> Path:
    try:
        out.mkdir(parents=True, exist_ok=True)
        (out / "results.part").touch()  # a folder that cannot be written to is refused now
    except OSError as error:
        raise typer.BadParameter(
            f"{out} cannot be used as a folder ({error.strerror}). "
            "Pass --out with a folder that you may write to."
        ) from error
    return out


def _write_json(report: dict[str, Any], path: Path) -> Path:
    part = path.with_suffix(".part")
    part.write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return part.replace(path)


def _versions() -> dict[str, Any]:
    packages = ("torch", "numpy", "scipy", "scikit-learn", "networkx")
    ours = {"artlas": artlas.__version__, "python": platform.python_version()}
    return ours | {name: version(name) for name in packages}
