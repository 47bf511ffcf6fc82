"""The Markdown that our commands write, as HTML: nothing else is understood, and all is escaped.

Headings, paragraphs, tables, lists, indented and fenced code, images on a line of their own; in
text, **bold** and `code`.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

Image = Callable[[str, str], str]  # words and file name of a picture to HTML
LONG = 40  # letters of a cell from which its column is broken into lines
_NUMBER = re.compile(r"[-+<±~(]?\s*[\d.]|-?$|inf|nan")


@dataclass(frozen=True)
class Heading:
    """A heading: 1 for the highest level, plain text, and what links to it name it by."""

    level: int
    text: str
    anchor: str


def convert(text: str, image: Image, prefix: str = "", below: int = 0) -> tuple[str, list[Heading]]:
    """HTML and headings of a text; anchors begin with ``prefix``, levels are ``below`` lower."""
    parts: list[str] = []
    headings: list[Heading] = []
    for kind, lines in _blocks(text):
        if kind == "heading":
            marks, _, words = lines[0].partition(" ")
            level = min(len(marks) + below, 6)
            found = Heading(level, plain(words.strip()), f"{prefix}{len(headings) + 1}")
            headings.append(found)
            parts.append(
                f"<h{level} id='{html.escape(found.anchor)}'>{inline(words.strip())}</h{level}>"
            )
        elif kind == "table":
            parts.append(table(_cells(lines[0]), [_cells(line) for line in lines[2:]]))
        elif kind == "code":
            parts.append(f"<pre>{html.escape(chr(10).join(lines))}</pre>")
        elif kind == "list":
            parts.append(_list(lines))
        elif (picture := re.fullmatch(r"!\[(.*)\]\((.*)\)", " ".join(lines))) is not None:
            parts.append(image(picture[1], picture[2]))
        else:
            parts.append(f"<p>{inline(' '.join(line.strip() for line in lines))}</p>")
    return "".join(parts), headings


def inline(text: str) -> str:
    """A line of text: code, bold, and the rest as it is."""
    parts = re.split(r"`([^`]+)`", text)
    for i, part in enumerate(parts):
        safe = html.escape(part)
        parts[i] = f"<code>{safe}</code>" if i % 2 else re.sub(r"\*\*(.+?)\*\*", r"<b>\1</b>", safe)
    return "".join(parts)


def plain(text: str) -> str:
    """A line of text without its marks."""
    return re.sub(r"\*\*(.+?)\*\*", r"\1", text).replace("`", "")


def table(head: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    """A table in a box that scrolls by itself; rows of the paper's values are marked.

    Columns of numbers are set right, others left, and long text may be broken.
    """
    width = max([len(head), *map(len, body)])
    number = [
        all(_NUMBER.match(row[c].replace("*", "").strip()) for row in body if c < len(row))
        for c in range(width)
    ]
    kinds = [
        "" if number[c] else " class=t" if _longest(body, c) < LONG else " class='t long'"
        for c in range(width)
    ]

    def cells(row: Sequence[str], tag: str) -> str:
        filled = [*row, *[""] * (width - len(row))]
        return "".join(
            f"<{tag}{kind}>{inline(cell)}</{tag}>" for kind, cell in zip(kinds, filled, strict=True)
        )

    rows = "".join(
        f"<tr{' class=paper' if _of_paper(row) else ''}>{cells(row, 'td')}</tr>" for row in body
    )
    return (
        f"<div class=scroll tabindex=0><table><thead><tr>{cells(head, 'th')}</tr></thead>"
        f"<tbody>{rows}</tbody></table></div>"
    )


def _longest(body: Sequence[Sequence[str]], column: int) -> int:
    return max(len(row[column]) for row in body if column < len(row))


def _of_paper(row: Sequence[str]) -> bool:
    return any(re.match(r"(the )?paper\b(?!-)", cell) is not None for cell in row[:2])


def _list(lines: Sequence[str]) -> str:
    items: list[str] = []
    for line in lines:
        mark = re.match(r"([-*]|\d+\.) +", line)
        if mark is None:
            items[-1] += f" {line.strip()}"
        else:
            items.append(line[mark.end() :].strip())
    tag = "ol" if lines[0][0].isdigit() else "ul"
    return f"<{tag}>{''.join(f'<li>{inline(item)}</li>' for item in items)}</{tag}>"


def _cells(line: str) -> list[str]:
    inner = line.strip().removeprefix("|").removesuffix("|")
    return [cell.strip().replace(r"\|", "|") for cell in re.split(r"(?<!\\)\|", inner)]


def _blocks(text: str) -> list[tuple[str, list[str]]]:
    """Runs of lines that belong together, and what they are."""
    found: list[tuple[str, list[str]]] = []
    lines, at = text.splitlines(), 0

    def run(first: int, belongs: Callable[[str], bool]) -> int:
        last = first
        while last < len(lines) and belongs(lines[last]):
            last += 1
        return last

    while at < len(lines):
        line = lines[at]
        if not line.strip():
            at += 1
        elif line.startswith("```"):
            end = run(at + 1, lambda row: not row.startswith("```"))
            found.append(("code", lines[at + 1 : end]))
            at = end + 1
        elif line.startswith("    "):
            end = run(at, lambda row: row.startswith("    "))
            found.append(("code", [row[4:] for row in lines[at:end]]))
            at = end
        elif re.match(r"#{1,6} ", line):
            found.append(("heading", [line]))
            at += 1
        elif line.startswith("|") and at + 1 < len(lines) and _is_rule(lines[at + 1]):
            end = run(at, lambda row: row.startswith("|"))
            found.append(("table", lines[at:end]))
            at = end
        else:
            kind = "list" if _starts_item(line) else "text"
            end = run(at + 1, lambda row: bool(row.strip()) and not _breaks(row, kind))  # noqa: B023
            found.append((kind, lines[at:end]))
            at = end
    return found


def _is_rule(line: str) -> bool:
    return re.fullmatch(r"\|?(\s*:?-+:?\s*\|)+\s*:?-*:?\s*", line) is not None


def _starts_item(line: str) -> bool:
    return re.match(r"([-*]|\d+\.) +\S", line) is not None


def _breaks(line: str, kind: str) -> bool:
    """Whether a line ends a text or a list without a blank line before it."""
    other = line.startswith(("|", "```", "![")) or re.match(r"#{1,6} ", line) is not None
    return other or (kind == "text" and _starts_item(line))
