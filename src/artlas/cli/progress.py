"""The progress bar of training."""

from __future__ import annotations

from rich import progress
from rich.console import Console

from artlas.training.loop import Progress


class TrainingBar(progress.Progress):
    """Show how far a run is, its speed and the time left."""

    def __init__(self, console: Console) -> None:
        super().__init__(
            progress.TextColumn("{task.description}"),
            progress.BarColumn(20),
            progress.MofNCompleteColumn(),
            progress.TextColumn("{task.fields[rate]}"),
            progress.TimeRemainingColumn(),
            console=console,
            transient=True,
            disable=console.quiet or not console.is_terminal,
        )
        self._task = self.add_task("preparing", total=None, rate="")

    def show_training(self, at: Progress) -> None:
        """Show the step, epoch and loss that training has reached."""
        self._show(at.step, at.steps, f"epoch {at.epoch}, loss {at.loss:.4f}", "steps")

    def show_embedding(self, done: int, count: int) -> None:
        """Show how many graphs the trained model has embedded."""
        self._show(done, count, "vectors", "graphs")

    def _show(self, done: int, count: int, description: str, unit: str) -> None:
        task = self.tasks[self._task]
        if done < task.completed or count != task.total:  # another phase has begun
            self.reset(self._task, total=count, description=description, rate="")
        speed = "-" if task.speed is None else f"{task.speed:.1f}"
        rate = f"{speed} {unit}/s, left"
        self.update(self._task, completed=done, description=description, rate=rate)
