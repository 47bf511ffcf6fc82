"""The command line of the reproduction: ``artlas-paper COMMAND``, one file per command."""

from __future__ import annotations

from artlas.cli.lazy import lazy_app

COMMANDS = {
    "report": (
        "artlas_paper.cli.report:report",
        "Write one page with every table and figure of the results.",
    ),
    "pretrain": (
        "artlas_paper.cli.pretrain:pretrain",
        "Learn an atlas from the unlabelled graphs of several datasets.",
    ),
    "transfer": ("artlas_paper.cli.transfer:app", "Evaluate few-shot transfer to unseen datasets."),
    "study": ("artlas_paper.cli.study:app", "Run the studies beyond the main tables."),
    "data": ("artlas_paper.cli.data:app", "List the datasets and prepare them."),
}

app = lazy_app("artlas-paper", "Reproduce the experiment of the SCGFM-ART paper.", COMMANDS)


def main() -> None:
    """Run the command line."""
    app()
