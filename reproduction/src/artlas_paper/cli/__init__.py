"""The command line of the reproduction: ``artlas-paper COMMAND``, one file per command."""

from __future__ import annotations

from artlas.cli.lazy import lazy_app

COMMANDS = {
    "report": "Write one page with every table and figure of the results.",
    "pretrain": "Learn an atlas from the unlabelled graphs of several datasets.",
    "transfer": "Evaluate few-shot transfer to unseen datasets.",
    "study": "Run the studies beyond the main tables.",
    "data": "List the datasets and prepare them.",
}

app = lazy_app(
    "artlas-paper", "Reproduce the experiment of the SCGFM-ART paper.", "artlas_paper.cli", COMMANDS
)


def main() -> None:
    """Run the command line."""
    app()
