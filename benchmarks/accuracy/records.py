"""What was measured of a dataset in a study: one JSON file, from which a run resumes."""

from __future__ import annotations

import fcntl
import hashlib
import json
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from benchmarks.report import ROOT

Content = dict[str, Any]
MEASURED = (
    "benchmarks/accuracy",
    *(f"src/artlas/{name}" for name in ("blocks", "graphs", "io", "kernels", "learning", "method")),
)


class Record:
    """The results of a study on one dataset, by row and setting.

    A row's results under a setting hold the accuracy of every split, the seconds they took, the
    commit and the number of threads. Results of other splits than today's are forgotten.
    """

    def __init__(self, folder: Path, study: str, dataset: str) -> None:
        self.path = folder / "accuracy" / study / f"{dataset}.json"
        self.content: Content = {"study": study, "dataset": dataset, "splits": {}, "rows": {}}
        if self.path.exists():
            self.content = json.loads(self.path.read_text())

    @property
    def dataset(self) -> str:
        """The name of the dataset."""
        return str(self.content["dataset"])

    @property
    def rows(self) -> dict[str, dict[str, Content]]:
        """The results by row and setting."""
        return self.content["rows"]

    def get(self, row: str, setting: str, splits_hash: str) -> Content | None:
        """Return a row's results under a setting, or None if they are not there."""
        if self.content["splits"].get(setting, {}).get("hash") != splits_hash:
            return None
        return self.rows.get(row, {}).get(setting)

    def put(
        self, row: str, setting: str, splits: Mapping[str, Any], results: Mapping[str, Any]
    ) -> None:
        """Store a row's results under a setting, beside what other processes stored meanwhile.

        splits: the hash of the splits, and what tells how they were made.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        name = hashlib.sha256(str(self.path.resolve()).encode()).hexdigest()[:16]
        with (Path(tempfile.gettempdir()) / f"artlas-record-{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if self.path.exists():
                self.content = json.loads(self.path.read_text())
            known = self.content["splits"].get(setting)
            if known is not None and known["hash"] != splits["hash"]:
                for results_by_setting in self.rows.values():
                    results_by_setting.pop(setting, None)
            self.content["splits"][setting] = dict(splits)
            self.rows.setdefault(row, {})[setting] = {**provenance(), **results}
            partial = self.path.with_name(f".{self.path.name}.partial")
            partial.write_text(json.dumps(self.content, indent=1) + "\n")
            partial.replace(self.path)


def load_all(folder: Path, study: str) -> list[Record]:
    """Load a study's records of all datasets, by name."""
    paths = sorted((folder / "accuracy" / study).glob("*.json"))
    return [Record(folder, study, path.stem) for path in paths]


def provenance() -> Content:
    """Return the commit, with a plus where the library differs from it, and the threads."""
    return {"commit": commit(), "threads": torch.get_num_threads()}


def commit() -> str:
    """Return the commit of the tree; a plus follows where what is measured differs from it."""

    def git(*words: str) -> str:
        done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True)
        return done.stdout.strip()

    changed = git("status", "--porcelain", "-uno", "--", *MEASURED)
    return (git("rev-parse", "--short", "HEAD") or "unknown") + ("+" if changed else "")
