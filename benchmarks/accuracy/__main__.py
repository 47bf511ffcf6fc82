"""Run a study of accuracy or speed, and write its page: see `--help`."""

from __future__ import annotations

import argparse
import importlib
from pathlib import Path

from benchmarks.accuracy.rows import SHORT
from benchmarks.accuracy.study import Options
from benchmarks.report import ROOT

STUDIES = {
    "development": "all labels on the development datasets, beside WL and controls",
    "shots": "5, 20 and 50 labels a class on the same datasets",
    "blocks": "what each block of the vector is worth",
    "fair": "the ten folds of the fair comparison (ICLR 2020)",
    "gin": "train GIN on these folds, to compare time",
    "speed": "embedding, large graphs, fits",
}


def parse(words: list[str] | None = None) -> tuple[str, bool, Options]:
    """Return the study, whether only its page is to be written, and its options."""
    about = "\n".join(f"  {name:12} {what}" for name, what in STUDIES.items())
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.accuracy",
        description=f"{__doc__}\n\nstudies:\n{about}\n\nrows: {', '.join(SHORT)}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("study", choices=list(STUDIES))
    parser.add_argument("--data", type=Path, required=True, help="what the data's install laid out")
    parser.add_argument("--only", default="", help="datasets, or parts of speed, with commas")
    parser.add_argument("--rows", default="", help="rows, with commas")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results")
    parser.add_argument("--folds", type=int, default=10, help="the most folds of gin")
    parser.add_argument("--again", action="store_true", help="measure even what is there")
    parser.add_argument("--busy", action="store_true", help="speed: beside two busy processes too")
    parser.add_argument("--page", action="store_true", help="only write the page")
    given = parser.parse_args(words)
    split = {
        key: tuple(part.strip() for part in getattr(given, key).split(",") if part.strip())
        for key in ("only", "rows")
    }
    command = f"python -m benchmarks.accuracy {given.study} --data DIR"
    options = Options(
        data=given.data,
        out=given.out,
        command=command,
        folds=given.folds,
        again=given.again,
        busy=given.busy,
        **split,
    )
    return given.study, given.page, options


def main() -> None:
    """Run the study that the command line names."""
    study, page, options = parse()
    module = importlib.import_module(f"benchmarks.accuracy.{study}")
    if page:
        module.write(options)
    else:
        module.run(options)


if __name__ == "__main__":
    main()
