"""``artlas demo``: train a small atlas on built-in graphs, test it and draw it."""

from __future__ import annotations

import platform
import tempfile
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
from rich.table import Table

import artlas
from artlas import ART, ArtConfig, Graphs, PretrainConfig, datasets, evaluation, figures, kernels
from artlas.cli.common import exit_on_errors
from artlas.cli.progress import TrainingBar
from artlas.datasets import Dataset
from artlas.evaluation.controls import CONTROLS
from artlas.files import stored
from artlas.training import loop
from artlas.training.coverage import CoverageObjective
from artlas.training.sources import Sources, structure_only

BATCH, RATE, CLIP = 64, 1e-3, 5.0
NEIGHBOURS = 5
TRAINED, UNTRAINED = "ART z, trained", "ART z, untrained"
PACKAGES = ("torch", "numpy", "scipy", "scikit-learn", "networkx")
Vectors = NDArray[np.float32]


def demo(
    steps: Annotated[int | None, typer.Option(min=0, help="Training steps; default: 300.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of data, weights and training.")] = 42,
    quick: Annotated[bool, typer.Option("--quick", help="Less data and 20 steps.")] = False,
    out: Annotated[Path, typer.Option(help="Folder for the results.")] = Path("artlas-demo"),
) -> None:
    """Train a small atlas on built-in graphs, test it and draw it."""
    start, console = time.perf_counter(), Console(highlight=False)
    try:  # before anything is computed
        out.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=out).close()
    except OSError as error:
        wrong = f"{out} cannot be used as a folder ({error.strerror})."
        fix = "Pass --out with a folder that you may write to."
        raise typer.BadParameter(f"{wrong} {fix}") from error
    backend = "compiled kernels" if kernels.available() else "PyTorch twin, no compiled kernels"
    if steps is None:  # a step of the twin takes several times as long
        steps = 20 if quick else 300 if kernels.available() else 60
    torch.set_num_threads(1)  # repeatable, and not slowed down by other processes
    console.print(f"[bold]artlas {artlas.__version__}[/]: {backend}, one thread\n")

    digits, families, networks = _data(console, 24 if quick else 120, seed)
    halves = {data.name: data.halves(seed) for data in (digits, families)}
    tests = {name: test for name, (_, test) in halves.items()}

    config = ArtConfig(seed=seed)
    untrained, model, shipped = ART(config), ART(config), artlas.load("graph")
    domains = {name: structure_only(half.graphs) for name, (half, _) in halves.items()}
    losses = _train(console, model, domains, steps, seed)

    unseen = tests | {"networks": networks}
    alignment = {
        name: {"before": _fit(untrained, data.graphs), "after": _fit(model, data.graphs)}
        for name, data in unseen.items()
    }
    _print_alignment(console, alignment)

    episodes = {name: evaluation.draw_episodes(data.labels) for name, data in tests.items()}
    accuracy = {
        name: _accuracies(model, untrained, shipped, data, episodes[name])
        for name, data in tests.items()
    }
    _print_accuracy(console, tests, accuracy)

    structure = {}  # vectors with degree / maximum degree as the only feature, [G, K + M]
    for name, data in unseen.items():
        graphs = data.graphs.with_features(datasets.relative_degree(data.graphs))
        structure[name] = np.asarray(model.embed(graphs, "paper"))
    described = _describe_networks(model, networks, tests["families"], structure)
    _print_networks(console, described)
    files = _draw(console, model, tests["families"], networks, structure, out)

    settings = {"steps": steps, "seed": seed, "quick": quick, "optimiser": "Adam", "rate": RATE}
    versions = {"artlas": artlas.__version__, "python": platform.python_version()}
    versions |= {name: version(name) for name in PACKAGES}
    report = {
        "settings": settings | {"batch": BATCH, "clip": CLIP, "model": asdict(config)},
        "versions": versions | {"kernels": backend, "threads": 1},
        "training": {"steps": len(losses), "interrupted": len(losses) < steps, "losses": losses},
        "data": {
            name: {"train": len(half.graphs), "test": len(test.graphs), "classes": test.names}
            for name, (half, test) in halves.items()
        },
        "alignment": alignment,
        "episodes": {
            name: {"count": len(drawn), "seeds": list(range(42, 42 + len(drawn)))}
            | {"shots": 5, "queries": 50, "sha256": evaluation.hash_episodes(drawn)}
            for name, drawn in episodes.items()
        },
        "accuracy": {
            name: {row: accuracy.summary() for row, accuracy in rows.items()}
            for name, rows in accuracy.items()
        },
        "networks": described,
    }
    files.append(out / "results.json")
    stored.write_json(files[-1], report)
    console.print(f"Wrote {', '.join(path.name for path in files)} into")
    console.print(f"  {out.resolve()}", markup=False, soft_wrap=True)
    console.print(f"[dim]{time.perf_counter() - start:.0f} s in total.[/]")


def _train(console: Console, model: ART, domains: Sources, steps: int, seed: int) -> list[float]:
    """Pretrain the model for so many steps, or until Ctrl-C; return the loss of every step."""
    console.print(
        f"Training {steps} steps on structure alone, without features or labels.\n"
        "Ctrl-C ends it early and keeps what was learnt."
    )
    training = PretrainConfig(batch=BATCH, rate=RATE, clip=CLIP, seed=seed)
    losses: list[float] = []
    try:
        with TrainingBar(console) as bar:

            def show(at: loop.Progress) -> None:
                losses.append(at.loss)
                bar.show_training(at)

            objective = CoverageObjective(model, domains)
            loop.train(objective, domains, training, report=show, steps=steps)
    except KeyboardInterrupt:
        done = f"Stopped by Ctrl-C after {len(losses)} of {steps} steps: kept, and tested now."
        console.print(done, style="yellow")
    console.print()
    return losses


def _data(console: Console, per_class: int, seed: int) -> tuple[Dataset, Dataset, Dataset]:
    with exit_on_errors(ImportError), console.status("Making graphs"):
        digits = datasets.digits_as_graphs(per_class, seed=seed)
        families = datasets.synthetic_families(per_class, seed=seed)
        networks = datasets.real_networks()
    console.print(
        f"[bold]digits[/]    {len(digits.graphs):,} handwritten digits: one node per inked pixel, "
        "edges to its\n          eight neighbours; X = intensity, row, column\n"
        f"[bold]families[/]  {len(families.graphs):,} random graphs from {len(families.names)} "
        "families, similar in size and mostly\n          in density; X = degree / maximum degree\n"
        f"[bold]networks[/]  {len(networks.graphs)} real networks, not used in training\n"
        "The atlas is trained on one half of each class and tested on the other.\n"
    )
    return digits, families, networks


def _fit(model: ART, graphs: Graphs) -> dict[str, float]:
    """Measure mean coverage, and mean gain over the independent coupling."""
    alignment = model.align(graphs)
    return {"coverage": float(alignment.coverage.mean()), "gain": float(alignment.gain.mean())}


def _accuracies(
    model: ART, untrained: ART, shipped: ART, data: Dataset, episodes: list[evaluation.Episode]
) -> dict[str, evaluation.Accuracy]:
    """Evaluate the models' representations and the controls on the same episodes."""
    graphs = data.graphs
    vectors: dict[str, Any] = {
        TRAINED: model.embed(graphs, "paper"),
        UNTRAINED: untrained.embed(graphs, "paper"),
        "ART q alone, trained": model.embed(graphs, "coordinates"),
        "ART H alone, trained": model.embed(graphs, "features"),
        "ART z, shipped weights": shipped.embed(graphs, "paper"),
        "ART z+, shipped weights": shipped.embed(graphs, "plus"),
    }
    vectors |= {name: control(graphs) for name, control in CONTROLS.items()}
    return {
        name: evaluation.evaluate(rows, data.labels, episodes) for name, rows in vectors.items()
    }


def _describe_networks(
    model: ART, networks: Dataset, families: Dataset, structure: dict[str, Vectors]
) -> dict[str, dict[str, Any]]:
    """Give each network's size, coverage, gain, and the families of its nearest family graphs."""
    neighbours = evaluation.nearest_rows(structure["networks"], structure["families"], NEIGHBOURS)
    described = {}
    for name, graph, ids in zip(networks.names, networks.graphs, neighbours, strict=True):
        kinds, counts = np.unique(families.labels[ids], return_counts=True)
        votes = {families.names[c]: int(n) for c, n in zip(kinds, counts, strict=True)}
        sizes = {"nodes": graph.num_nodes, "edges": graph.num_edges}
        described[name] = sizes | _fit(model, graph) | {"neighbours": votes}
    return described


def _draw(
    console: Console,
    model: ART,
    families: Dataset,
    networks: Dataset,
    structure: dict[str, Vectors],
    folder: Path,
) -> list[Path]:
    """Draw both figures and return their files; without Matplotlib say how to get them."""
    files = [folder / "atlas.png", folder / "embedding.png"]
    known = structure["families"]
    groups = {name: known[families.labels == c] for c, name in enumerate(families.names)}
    named = dict(zip(networks.names, structure["networks"], strict=True))
    try:
        figures.draw_atlas(model.atlas.relations().detach().numpy(), files[0])
        figures.draw_embedding(groups, named, ("digits", structure["digits"]), files[1])
    except ImportError as error:
        console.print(str(error), style="yellow", markup=False, soft_wrap=True)
        return []
    return files


def _print_alignment(console: Console, alignment: dict[str, dict[str, dict[str, float]]]) -> None:
    """Print coverage and gain of the unseen graphs before and after training."""
    for name, fits in alignment.items():
        coverage = " -> ".join(f"{fit['coverage']:.4f}" for fit in fits.values())
        gain = " -> ".join(f"{fit['gain']:z.2%}" for fit in fits.values())
        console.print(f"[bold]{name}[/], unseen: coverage {coverage}, gain {gain} by training")
    console.print(
        "[dim]coverage is the loss; gain is the share of the independent coupling's energy\n"
        "that alignment saves; at 0 the couplings do not distinguish nodes.[/]\n"
    )


def _print_accuracy(
    console: Console, tests: dict[str, Dataset], accuracy: dict[str, dict[str, evaluation.Accuracy]]
) -> None:
    """Print the accuracy of every representation, and whether it beats the controls."""
    best = {name: max(rows, key=lambda row: rows[row].mean) for name, rows in accuracy.items()}
    cells = []
    for row in next(iter(accuracy.values())):
        cells.append([f"control: {row}" if row in CONTROLS else row])
        for name, rows in accuracy.items():
            text = f"{100 * rows[row].mean:.1f} ± {100 * rows[row].std:.1f}"
            cells[-1].append(f"[bold green]{text}[/]" if row == best[name] else text)
    heads = [f"{name}, {len(data.names)} classes" for name, data in tests.items()]
    title = "5-shot accuracy, %: mean ± deviation over 50 episodes, nearest class mean"
    _print_table(console, title, ["representation", *heads], cells)
    for name, rows in accuracy.items():
        change, error = rows[TRAINED].difference_from(rows[UNTRAINED])
        console.print(
            f"[bold]{name}[/]: {evaluation.compare_with_controls(rows, CONTROLS)} "
            f"Training changed z by {100 * change:+.1f} points ({100 * error:.1f})."
        )
    console.print()


def _print_networks(console: Console, networks: dict[str, dict[str, Any]]) -> None:
    """Print each real network's size, fit, and the family of most of its nearest graphs."""
    rows = []
    for name, row in networks.items():
        family, votes = max(row["neighbours"].items(), key=lambda item: item[1])
        sizes = [f"{row['nodes']}", f"{row['edges']}", f"{row['coverage']:.3f}"]
        rows.append([name, *sizes, f"{row['gain']:z.1%}", f"{family} {votes}/{NEIGHBOURS}"])
    heads = ["network", "nodes", "edges", "coverage", "gain", "nearest family"]
    title = f"Real networks, and their {NEIGHBOURS} nearest family graphs by z"
    _print_table(console, title, heads, rows)


def _print_table(console: Console, title: str, heads: list[str], rows: list[list[str]]) -> None:
    table = Table(title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD)
    for head in heads:
        table.add_column(head, justify="left" if head in (heads[0], "nearest family") else "right")
    for row in rows:
        table.add_row(*row)
    console.print(table)
