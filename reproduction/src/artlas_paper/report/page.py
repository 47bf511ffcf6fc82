"""Put all results on one HTML page, with the command and the commits under each table and figure.

The page is a single file that opens without a network and runs no script. It is made from the files
that the commands write to a folder: NAME.md, its records NAME.json, and its figures NAME*.svg or
NAME*.png.
"""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from artlas.errors import raise_read_error
from artlas.explain import html_page
from artlas.files.untrusted import read_bytes, read_text
from artlas_paper.report import markdown

Record = dict[str, Any]
BENCH = "bench"
# In the order of the page: the name of the files, the title, and the command that makes them.
KNOWN = {
    "transfer-graph": ("Few-shot transfer to unseen graphs", "artlas-paper transfer graph"),
    "transfer-node": (
        "Few-shot transfer to nodes of unseen networks",
        "artlas-paper transfer node",
    ),
    "components": (
        "Parts of the representation and kinds of atlas",
        "artlas-paper study components",
    ),
    "capacity": ("Size of the atlas", "artlas-paper study capacity"),
    "alignment": ("Amortised against iterative alignment", "artlas-paper study alignment"),
    "efficiency": ("End-to-end efficiency and scalability", "artlas-paper study efficiency"),
    "atlas": ("How the atlas is used", "artlas-paper study atlas"),
    "perturbation": ("What rewiring changes", "artlas-paper study perturbation"),
    "sanity": ("Every method against its untrained self", "artlas-paper study sanity"),
    "forms": ("Other forms of the atlas", "artlas-paper study forms"),
    BENCH: ("Speed and memory", "make bench"),
}
TYPES = {".svg": "image/svg+xml", ".png": "image/png"}
STYLE = """
:root{color-scheme:light dark;--ink:#1f2430;--muted:#5b6270;--line:#d9dce2;--page:#fff;
--soft:#f4f5f7;--mark:#fdf3dc;--link:#0b63a5}
@media(prefers-color-scheme:dark){:root{--ink:#e6e8ec;--muted:#a3a9b5;--line:#3a404c;
--page:#15181e;--soft:#20242c;--mark:#3a3220;--link:#7cc0f5}}
body{background:var(--page);color:var(--ink);max-width:76rem}
p,li{color:var(--muted);max-width:52rem}.lead{color:var(--ink)}a{color:var(--link)}
p b,li b{color:var(--ink)}h2{font-size:1.4rem;margin:0 0 .4rem}
h3{font-size:1.1rem;margin:1.6rem 0 0}h4{font-size:1rem;margin:1.4rem 0 0}
section{border-top:1px solid var(--line);margin-top:2.5rem;padding-top:1.5rem}
nav ul{padding-left:1.2rem;margin:.2rem 0}nav li{margin:.1rem 0}
.scroll{overflow-x:auto;max-width:100%;margin:.6rem 0 1rem;border:1px solid var(--line);
border-radius:6px}
table{min-width:100%;font-size:.85rem}
td,th{padding:.25rem .75rem;white-space:nowrap;color:var(--ink);border:0}
th{background:var(--soft);border-bottom:1px solid var(--line)}
td.t,th.t{text-align:left}td.long{white-space:normal;min-width:17rem}
tbody tr:nth-child(even) td{background:color-mix(in srgb,var(--soft) 55%,var(--page))}
td,td:first-child{background:var(--page)}
th:first-child,td:first-child{text-align:left}th:first-child{white-space:normal}
@media(min-width:40rem){th:first-child,td:first-child{position:sticky;left:0}}
tr.paper td,tbody tr.paper:nth-child(even) td{background:var(--mark)}
code,pre{font:.85em/1.5 ui-monospace,monospace;background:var(--soft);border-radius:4px}
code{padding:.1em .3em}pre{padding:.5rem .75rem;overflow-x:auto;white-space:pre-wrap;margin:.4rem 0}
figure{margin:1rem 0;background:#fff;border:1px solid var(--line);border-radius:6px;padding:.5rem}
figure img{max-width:100%;height:auto;display:block;margin:auto}
figcaption{color:#5b6270;padding:.3rem}
.made{font-size:.9rem;border-left:3px solid var(--line);padding:.1rem 0 .1rem .9rem;
margin-top:1.2rem}
.made p{margin:.2rem 0;overflow-wrap:anywhere}
"""


@dataclass(frozen=True)
class Section:
    """A section of the page: its files' name, its HTML and headings, and how it was made."""

    name: str
    title: str
    body: str
    headings: tuple[markdown.Heading, ...]
    commands: tuple[str, ...]
    commits: tuple[str, ...]

    def html(self) -> str:
        """Return the section, with its commands and commits below."""
        commands = "".join(f"<pre>{html.escape(command)}</pre>" for command in self.commands)
        commits = ", ".join(f"<code>{html.escape(commit)}</code>" for commit in self.commits)
        return (
            f"<section id='{html.escape(self.name)}'><h2>{html.escape(self.title)}</h2>{self.body}"
            f"<div class=made><p>Made by</p>{commands or '<p>a command that it does not name</p>'}"
            f"<p>at {'commit' if len(self.commits) == 1 else 'commits'} "
            f"{commits or 'that no record names'}.</p></div></section>"
        )


def report(*folders: Path) -> str:
    """Return the page of the results in some folders."""
    for folder in folders:
        if not folder.is_dir():
            raise_read_error(
                folder, "this is not a folder", "a file or nothing", "pass a folder of results"
            )
    files = sorted(path for folder in folders for path in folder.iterdir() if path.is_file())
    names = {path.stem for path in files if path.suffix == ".md"}
    names |= {BENCH} & {path.stem for path in files if path.suffix == ".json"}
    if not names:
        raise_read_error(
            folders[0],
            "there are no results in this folder",
            f"{len(files)} files, no .md",
            "run e.g. artlas-paper study atlas first, with --out there",
        )
    place = {path.stem: path.parent for path in files if path.suffix in (".md", ".json")}
    order = [name for name in KNOWN if name in names] + sorted(names - set(KNOWN))
    sections = [_section(place[name], name, _figures(files, name, names)) for name in order]
    missing = {name: entry for name, entry in KNOWN.items() if name not in names}
    parts = [
        "<h1>Results of artlas</h1>",
        f"<p class=lead>{len(sections)} of {len(sections) + len(missing)} parts. Rows of the "
        "paper's own values are marked; everything else was measured, by the command and at the "
        "commit under each part.</p>",
        _contents(sections, missing),
        *(section.html() for section in sections),
        _not_run(missing),
    ]
    return html_page.document("Results of artlas", "".join(parts), STYLE)


def _section(folder: Path, name: str, figures: Sequence[Path]) -> Section:
    known = KNOWN.get(name.removesuffix("-quick"), (name, ""))
    title = known[0] + (", a quick run" if name.endswith("-quick") else "")
    content = _json(folder / f"{name}.json")
    if name == BENCH:
        return _bench(folder / f"{name}.json", content)
    text = read_text(folder / f"{name}.md")
    if (own := re.match(r"\s*# (.+)\n", text)) is not None:
        title, text = markdown.plain(own[1].strip()), text[own.end() :]
    shown: list[Path] = []

    def image(words: str, file: str) -> str:
        found = [path for path in figures if path.stem == Path(file).stem and "/" not in file]
        shown.extend(found)
        return "".join(_figure(path, words) for path in found) or (
            f"<p>{html.escape(f'(There is no figure {file} in the folder.)')}</p>"
        )

    command = re.compile(r"^    (artlas-paper .+)\n", flags=re.MULTILINE)
    # commands are shown below the section instead
    body, headings = markdown.convert(command.sub("", text), image, f"{name}-", 1)
    for path in figures:
        if path not in shown:
            more = path.stem.removeprefix(name).replace("-", " ").strip()
            body += _figure(path, f"{title}: {more}" if more else title)
    records = [record for record in content or [] if isinstance(record, dict)]
    commands = command.findall(text) or _commands(known[1], records)
    commits = sorted({str(record["commit"]) for record in records if "commit" in record})
    return Section(name, title, body, tuple(headings), tuple(commands), tuple(commits))


def _commands(command: str, records: Sequence[Record]) -> list[str]:
    """Return commands that make the records, one for all shots of the same targets and seeds.

    Records of "views" are of training itself, not of examples a class.
    """
    groups: dict[tuple[str, str, bool], list[str]] = {}
    for shots in sorted({str(r.get("shots")) for r in records} - {"views", "None"}, key=_by_size):
        own = [r for r in records if str(r.get("shots")) == shots]
        targets = ",".join(dict.fromkeys(str(r["target"]).removesuffix("-structural") for r in own))
        seeds = ",".join(map(str, sorted({r["seed"] for r in own if r.get("seed") is not None})))
        kernel = any(r.get("method") == "wl" for r in own)
        groups.setdefault((targets, seeds, kernel), []).append(shots)
    return [
        f"{command} --root ROOT --targets {targets} --seeds {seeds} --shots {','.join(shots)}"
        + (" --wl" if kernel else "")
        for (targets, seeds, kernel), shots in groups.items()
    ] or ([f"{command} --root ROOT"] if command else [])


def _by_size(shots: str) -> tuple[int, str]:
    return (int(shots), "") if shots.isdecimal() else (1 << 30, shots)


def _bench(path: Path, content: Any) -> Section:
    try:
        body = [
            [
                f["name"],
                f"{f['measured']:,.3g}{f['unit']}{' (noisy)' if f['noisy'] else ''}",
                f"{f['low']:,.3g} to {f['high']:,.3g}",
                ""
                if f["bar"] is None
                else f"{'at most' if f['at_most'] else 'at least'} {f['bar']:,g}{f['unit']}",
                "**MISS**" if f["verdict"] == "MISS" else f["verdict"],
                f["note"],
            ]
            for f in content["figures"]
        ]
        machine, commit = content["machine"], str(content["commit"])[:10]
        commit += ", with uncommitted changes" if content["dirty"] else ""
        words = (
            f"On {machine['cpu']}, {machine['cores']} cores, {machine['threads']} threads, "
            f"{str(content['date'])[:10]}."
        )
    except (KeyError, TypeError, ValueError) as error:
        raise_read_error(path, "this is not what make bench writes", repr(error), "make it anew")
    head = ["figure", "measured", "over rounds", "bar", "verdict", "note"]
    title, command = KNOWN[BENCH]
    content_html = f"<p>{html.escape(words)}</p>{markdown.table(head, body)}"
    return Section(BENCH, title, content_html, (), (command,), (commit,))


def _json(path: Path) -> Any:
    if not path.exists():
        return None
    try:
        return json.loads(read_text(path))
    except json.JSONDecodeError as error:
        raise_read_error(
            path, "this is not JSON", str(error), "let its command write it anew", error.lineno
        )


def _figures(files: Iterable[Path], name: str, names: Iterable[str]) -> list[Path]:
    """Return the figures NAME and NAME-more, as SVG if there is one, but no longer name's own."""
    found: dict[str, Path] = {}
    for path in files:
        claims = [n for n in names if path.stem == n or path.stem.startswith(f"{n}-")]
        own = path.suffix in TYPES and max(claims, key=len, default=None) == name
        if own and (path.stem not in found or path.suffix == ".svg"):
            found[path.stem] = path
    return [found[stem] for stem in sorted(found)]


def _figure(path: Path, words: str) -> str:
    data = base64.b64encode(read_bytes(path)).decode()
    text = html.escape(words, quote=True)
    return (
        f'<figure><img alt="{text}" src="data:{TYPES[path.suffix]};base64,{data}">'
        f"<figcaption>{text}</figcaption></figure>"
    )


def _contents(sections: Sequence[Section], missing: dict[str, tuple[str, str]]) -> str:
    def link(anchor: str, text: str) -> str:
        return f"<a href='#{html.escape(anchor)}'>{html.escape(text)}</a>"

    items = []
    for section in sections:
        inner = "".join(f"<li>{link(h.anchor, h.text)}</li>" for h in section.headings)
        items.append(
            f"<li>{link(section.name, section.title)}{f'<ul>{inner}</ul>' if inner else ''}</li>"
        )
    if missing:
        items.append(f"<li>{link('not-run-yet', 'Not run yet')}</li>")
    return f"<nav aria-label=Contents><ul>{''.join(items)}</ul></nav>"


def _not_run(missing: dict[str, tuple[str, str]]) -> str:
    if not missing:
        return ""
    items = "".join(
        f"<li>{html.escape(title)}: <code>{html.escape(command)}</code></li>"
        for title, command in missing.values()
    )
    return f"<section id=not-run-yet><h2>Not run yet</h2><ul>{items}</ul></section>"
