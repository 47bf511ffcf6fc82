"""The progress bar of training."""

from __future__ import annotations

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from artlas.training.loop import Progress


class TrainingBar(Bar):
    """A bar for a run: what it does, how fast, and the time left."""

    def __init__(self, console: Console) -> None:
        super().__init__(
            TextColumn("{task.description}"),
            BarColumn(20),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(),
            console=console,
            transient=True,
            disable=console.quiet or not console.is_terminal,
        )
        self._only = self.add_task("making ready", total=None, rate="")

    def train(self, at: Progress) -> None:
        """Move to where training is."""
        self._move(at.step, at.steps, f"epoch {at.epoch}, loss {at.loss:.4f}", "steps")

    def read(self, done: int, count: int) -> None:
        """Move to where a trained model's vectors are."""
        self._move(done, count, "vectors", "graphs")

    def _move(self, done: int, count: int, what: str, unit: str) -> None:
        task = self.tasks[self._only]
        if done < task.completed or count != task.total:  # something else has begun
            self.reset(self._only, total=count, description=what, rate="")
        speed = "-" if task.speed is None else f"{task.speed:.1f}"
        self.update(self._only, completed=done, description=what, rate=f"{speed} {unit}/s, left")
