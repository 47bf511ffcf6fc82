"""Render the Markdown of result files as HTML, by markdown-it: no raw HTML, and no links."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from urllib.parse import unquote

from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode

Image = Callable[[str, str], str]  # alternative text and file name of an image, to HTML
LONG_CELL = 40  # characters from which the cells of a text column are broken into lines
_NUMBER = re.compile(r"[-+<±~(]?\s*[\d.]|-?$|inf|nan")
# Only what result files need: without the rules for links and HTML, both stay text.
_RULES = "backticks balance_pairs code emphasis escape fence fragments_join heading image list"
_PARSER = MarkdownIt("zero").enable([*_RULES.split(), "newline", "table"])


@dataclass(frozen=True)
class Heading:
    """A heading: its level from 1 for the highest, its plain text, and its anchor."""

    level: int
    text: str
    anchor: str


def convert(text: str, image: Image, prefix: str = "", shift: int = 0) -> tuple[str, list[Heading]]:
    """Return the HTML and the headings of a text.

    image: makes the HTML of an image that stands in a paragraph without text; prefix: of the
    anchors; shift: added to the levels of headings.
    """
    parts: list[str] = []
    headings: list[Heading] = []
    for node in SyntaxTreeNode(_PARSER.parse(text)).children:
        if node.type == "heading":
            level = min(int(node.tag[1]) + shift, 6)
            words = node.children[0].content
            heading = Heading(level, plain(words), f"{prefix}{len(headings) + 1}")
            headings.append(heading)
            anchor = html.escape(heading.anchor)
            parts.append(f"<h{level} id='{anchor}'>{inline(words)}</h{level}>")
        else:
            parts.append(_block(node, image))
    return "".join(parts), headings


def inline(text: str) -> str:
    """Return the HTML of a line of text."""
    return "".join(map(_inline, _inline_nodes(text)))


def plain(text: str) -> str:
    """Return a line of text without its marks."""
    return "".join(_plain(node) for node in _inline_nodes(text))


def _inline_nodes(text: str) -> list[SyntaxTreeNode]:
    return SyntaxTreeNode(_PARSER.parseInline(text)).children[0].children


def table(head: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    """Return a table in a box that scrolls by itself; rows of the paper's values are marked.

    Columns of numbers are right-aligned, others left-aligned, and long text may be broken.
    """
    width = max([len(head), *map(len, body)])
    number = [
        all(_NUMBER.match(row[c].replace("*", "").strip()) for row in body if c < len(row))
        for c in range(width)
    ]
    kinds = [
        "" if number[c] else " class=t" if _longest(body, c) < LONG_CELL else " class='t long'"
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
    return max((len(row[column]) for row in body if column < len(row)), default=0)


def _of_paper(row: Sequence[str]) -> bool:
    return any(re.match(r"(the )?paper\b(?!-)", cell) is not None for cell in row[:2])


def _block(node: SyntaxTreeNode, image: Image) -> str:
    if node.type in ("fence", "code_block"):
        return f"<pre>{html.escape(node.content.removesuffix(chr(10)))}</pre>"
    if node.type == "table":
        rows = [
            [cell.children[0].content for cell in row.children]
            for section in node.children
            for row in section.children
        ]
        return table(rows[0], rows[1:])
    if node.type in ("bullet_list", "ordered_list", "list_item"):
        inner = "".join(_block(child, image) for child in node.children)
        return f"<{node.tag}>{inner}</{node.tag}>"
    if node.type == "paragraph":
        content = node.children[0].children
        if all(child.type in ("image", "softbreak") for child in content):
            images = [child for child in content if child.type == "image"]
            return "".join(image(im.content, unquote(str(im.attrs["src"]))) for im in images)
        text = "".join(map(_inline, content))
        return text if node.hidden else f"<p>{text}</p>"  # hidden in a list without blank lines
    return f"<p>{html.escape(node.content)}</p>"


def _inline(node: SyntaxTreeNode) -> str:
    if node.type in ("strong", "em"):
        tag = "b" if node.type == "strong" else "i"
        return f"<{tag}>{''.join(map(_inline, node.children))}</{tag}>"
    text = html.escape(_plain(node))
    return f"<code>{text}</code>" if node.type == "code_inline" else text


def _plain(node: SyntaxTreeNode) -> str:
    if node.type in ("softbreak", "hardbreak"):
        return " "
    return "".join(map(_plain, node.children)) if node.type in ("strong", "em") else node.content
