"""Write the page of a study, NAME.md with its figure, from the records in NAME.json."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from artlas.files.atomic import atomic
from artlas_paper.figures import save
from artlas_paper.studies.study import FEW, Study
from artlas_paper.transfer.records import Record, read

DISCUSSION = "## Discussion"


def write_report(study: Study, path: Path) -> list[Path]:
    """Write NAME.md, NAME.png and NAME.svg beside NAME.json; write nothing without records."""
    records = [record for record in read(path) if record["version"] == study.version]
    if not records:
        return []
    page = path.with_suffix(".md")
    text = page_markdown(study, records, path.stem, page.read_text() if page.exists() else "")
    with atomic(page) as out:
        out.write(text.encode())
    return [page, *save(study.figure(records), path.with_suffix(""))]


def page_markdown(study: Study, records: Sequence[Record], stem: str, old_page: str = "") -> str:
    """Compose title, protocol, provenance, table and figure; keep the old page's discussion."""
    quick = stem.endswith("-quick")
    parts = [
        f"# {study.title}",
        study.protocol + (f" This is a quick run, of {FEW} objects a target." if quick else ""),
        f"    {command_line(study, records, quick)}",
        f"{_provenance(records)}, records `{records_digest(records)}`.",
        study.table(records),
        f"![{study.title}]({stem}.png)",
    ]
    _, heading, discussion = old_page.partition(f"\n{DISCUSSION}\n")
    if heading:
        old_digest = old_page.partition("records `")[2].partition("`")[0]
        note = f"(Written for the records `{old_digest}`, which have changed since.)"
        changed = old_digest != records_digest(records)
        if changed and "which have changed since.)" not in discussion:
            discussion = f"\n{note}\n{discussion}"
        parts.append(f"{DISCUSSION}\n\n{discussion.strip()}")
    return "\n\n".join(parts) + "\n"


def command_line(study: Study, records: Sequence[Record], quick: bool) -> str:
    """Return the command that makes these records, with their targets and seeds."""
    words = [f"artlas-paper study {study.name} --root ROOT --out DIR"]
    for key in ("target", "seed"):
        values = sorted({str(r[key]) for r in records if r.get(key) is not None})
        if values:
            words.append(f"--{key}s {','.join(values)}")
    return " ".join([*words, "--quick"] if quick else words)


def records_digest(records: Iterable[Record]) -> str:
    """Hash all values of the records but time and commit to eight hexadecimal digits."""
    values = [{k: v for k, v in r.items() if k not in ("seconds", "commit")} for r in records]
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:8]


def _provenance(records: Sequence[Record]) -> str:
    seeds = sorted({r["seed"] for r in records if r.get("seed") is not None})
    commits = ", ".join(sorted({r["commit"] for r in records}))
    seconds = sum(r["seconds"] for r in records)
    start = f"Seeds {', '.join(map(str, seeds))}; commits" if seeds else "Commits"
    return f"{start} {commits}; {seconds:,.0f} s"
