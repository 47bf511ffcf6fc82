"""The page of results: nothing is lost, nothing is executed, nothing is fetched."""

from __future__ import annotations

import base64
import html
import json
import pathlib
import re
from html.parser import HTMLParser

import pytest
from typer.testing import CliRunner

from artlas.errors import ReadError
from artlas_paper.cli import app
from artlas_paper.report import markdown
from artlas_paper.report.page import KNOWN, report

ROOT = pathlib.Path(__file__).parents[3]
RESULTS = ROOT / "reproduction" / "results"
BENCHMARKS = ROOT / "benchmarks" / "results"
VOID = {"meta", "img", "br"}


class Reader(HTMLParser):
    """Text, tags, cells of table rows, links; every tag that is opened must be closed."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.text, self.rows, self.links, self.ids, self.open = [], [], [], [], [], []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        named = dict(attrs)
        self.links += [named[name] for name in ("src", "href") if name in named]
        self.ids += [named["id"]] if "id" in named else []
        if tag not in VOID:
            self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        assert tag in self.open, tag
        while self.open.pop() != tag:
            pass

    def handle_data(self, data):
        self.text.append(data)
        if {"td", "th"} & set(self.open):
            self.rows[-1][-1] += data


def table_rows(text):
    lines = [line for line in text.splitlines() if line.startswith("|")]
    rows = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in lines]
    plain = [[cell.replace("**", "").replace("`", "") for cell in row] for row in rows]
    return [row for row in plain if set("".join(row)) - set("-")]


def test_every_row_of_the_real_results_is_on_the_page():
    page = report(RESULTS, BENCHMARKS)
    read = Reader(page)
    on_page = {tuple(row) for row in read.rows}
    count = 0
    for path in RESULTS.glob("*.md"):
        for row in table_rows(path.read_text()):
            # an empty head of the first column is cut from the line by the test, not the page
            assert tuple(row) in on_page or ("", *row) in on_page, (path.name, row)
            count += 1
    assert count > 100
    text = " ".join(read.text)
    for figure in json.loads((BENCHMARKS / "bench.json").read_text())["figures"]:
        assert figure["name"] in text
    for path in RESULTS.glob("transfer-*.json"):
        for commit in {record["commit"] for record in json.loads(path.read_text())}:
            assert f"<code>{commit}</code>" in page
    assert text.count("Made by") == page.count("<section") - page.count("id=not-run-yet")
    assert "artlas-paper transfer node --root ROOT --targets" in text
    assert page.count("<tr class=paper>") >= 2


@pytest.mark.slow
def test_the_page_stands_alone_and_links_only_within():
    page = report(RESULTS, BENCHMARKS)
    read = Reader(page)
    assert "script" not in read.tags
    assert "link" not in read.tags
    assert not re.search(r"https?://|@import|url\(", page[: page.index("</style>")])
    inside = [link for link in read.links if not link.startswith("data:")]
    assert inside
    assert {link.removeprefix("#") for link in inside} <= set(read.ids)
    assert all(link.startswith("#") for link in inside)
    assert len(read.ids) == len(set(read.ids))
    pictures = [link for link in read.links if link.startswith("data:")]
    files = [*RESULTS.glob("*.png"), *RESULTS.glob("*.svg"), *BENCHMARKS.glob("*.png")]
    assert len(pictures) == len({path.stem for path in files})
    kept = {path.read_bytes() for path in files}
    assert all(base64.b64decode(link.partition("base64,")[2]) in kept for link in pictures)


STUDY = """# The <i>atlas</i> & co

Protocol of
two lines, `a < b`, **bold**.

    artlas-paper study atlas --root ROOT --seeds 42

Commits abc.

| target | <script>alert(1)</script> | note |
|---|---|---|
| BZR | 1.0 | <img src=http://evil/x.png onerror=alert(2)> |
| BZR | paper, largest | a \\| b |

![what's "in" it](atlas.png)
![gone](../../secret.png)

## Discussion

- one
  more
- **two**

1. first
2. second
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "atlas.md").write_text(STUDY)
    (tmp_path / "atlas.json").write_text('[{"commit": "<b>c1"}, {"commit": "c2"}]')
    (tmp_path / "atlas.png").write_bytes(b"\x89PNG")
    (tmp_path / "atlas.svg").write_text("<svg onload='alert(3)'/>")
    (tmp_path / "atlas-more.png").write_bytes(b"\x89PNG more")
    (tmp_path / "mine.md").write_text("Text alone.\n")
    return tmp_path


def test_hostile_text_is_text(folder):
    page = report(folder)
    read = Reader(page)
    assert read.tags.count("script") == 0
    assert "i" not in read.tags
    assert read.tags.count("img") == 2
    assert "<h2>The &lt;i&gt;atlas&lt;/i&gt; &amp; co</h2>" in page
    assert ["target", "<script>alert(1)</script>", "note"] in read.rows
    assert ["BZR", "1.0", "<img src=http://evil/x.png onerror=alert(2)>"] in read.rows
    assert ["BZR", "paper, largest", "a | b"] in read.rows
    assert html.escape("<b>c1") in page
    assert not any("http" in link for link in read.links)
    assert "There is no figure ../../secret.png in the folder" in page


def test_links_and_images_of_the_text_fetch_nothing():
    text = "[a](http://evil) <http://evil> ![b](javascript:run) words ![c](http://evil/x.png)"
    made, _ = markdown.convert(text, lambda words, file: "IMAGE")
    assert made.startswith("<p>[a](http://evil) &lt;http://evil&gt; ![b](javascript:run) words ")
    assert Reader(made).tags == ["p"]
    assert markdown.convert("![a](über.png)", lambda words, file: file)[0] == "über.png"


def test_a_study_is_whole(folder):
    page = report(folder)
    assert "<p>Protocol of two lines, <code>a &lt; b</code>, <b>bold</b>.</p>" in page
    assert "<ul><li>one more</li><li><b>two</b></li></ul>" in page
    assert "<ol><li>first</li><li>second</li></ol>" in page
    assert page.count("artlas-paper study atlas --root ROOT --seeds 42") == 1
    assert "at commits <code>&lt;b&gt;c1</code>, <code>c2</code>." in page
    # the vector drawing stands for both of its files, inside an image, where it runs nothing
    drawn = base64.b64encode((folder / "atlas.svg").read_bytes()).decode()
    assert f'src="data:image/svg+xml;base64,{drawn}"' in page
    assert 'alt="what&#x27;s &quot;in&quot; it"' in page
    assert "Text alone." in page
    missing = page[page.index("<section id=not-run-yet") :]
    for name, (title, command) in KNOWN.items():
        assert (f"{title}: <code>{command}</code>" in missing) == (name != "atlas")


def test_a_quick_run_and_figures_go_to_their_own_section(tmp_path):
    for name in ("atlas", "atlas-quick"):
        (tmp_path / f"{name}.md").write_text(f"Of {name}.\n")
        (tmp_path / f"{name}.png").write_bytes(name.encode())
    page = report(tmp_path)
    parts = page.split("<section id=")
    for name, other in (("atlas", "atlas-quick"), ("atlas-quick", "atlas")):
        (own,) = [part for part in parts if part.startswith(f"'{name}'")]
        assert base64.b64encode(name.encode()).decode() + '"' in own
        assert base64.b64encode(other.encode()).decode() + '"' not in own
    assert "How the atlas is used, a quick run" in page


def test_markdown_without_ends():
    made, headings = markdown.convert("```\n<a>\n", lambda words, file: "", "x-")
    assert made == "<pre>&lt;a&gt;</pre>"
    made, headings = markdown.convert("## A `b` **c\n| a |\nno table", lambda words, file: "", "x-")
    assert made == "<h2 id='x-1'>A <code>b</code> **c</h2><p>| a | no table</p>"
    assert headings == [markdown.Heading(2, "A b **c", "x-1")]
    assert markdown.convert("", lambda words, file: "") == ("", [])
    short = markdown.table(["a", "b"], [["1"], ["2", "3", "x"]])
    assert [len(row) for row in Reader(short).rows] == [3, 3, 3]


def run(*words):
    return CliRunner().invoke(app, ["report", *map(str, words)])


def test_the_command_and_what_it_refuses(folder, tmp_path):
    out = tmp_path / "page.html"
    assert run(folder, "--out", out).exit_code == 0
    assert out.read_text() == report(folder)
    (tmp_path / "empty").mkdir()
    done = run(tmp_path / "empty", "--out", tmp_path / "none.html")
    assert done.exit_code == 1
    assert "there are no results in this folder" in done.output
    assert not (tmp_path / "none.html").exists()
    assert "this is not a folder" in run(tmp_path / "absent").output
    (folder / "atlas.json").write_text("[{]")
    with pytest.raises(ReadError, match=r"atlas.json, line 1: this is not JSON"):
        report(folder)
    (folder / "atlas.json").unlink()
    assert "that no record names" in report(folder)
    (folder / "bench.json").write_text('{"figures": [{}]}')
    with pytest.raises(ReadError, match=r"bench.json: this is not what make bench writes"):
        report(folder)


def test_a_browser_takes_it(folder, chromium):
    (folder / "page.html").write_text(report(folder))
    document = chromium(folder / "page.html")
    assert len(re.findall("<tr", document)) == 3
    assert '<section id="not-run-yet"><h2>Not run yet</h2>' in document
