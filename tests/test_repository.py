"""The repository keeps its own rules: no import cycle, and no documented path that is not there."""

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).parent.parent
DOCUMENTS = [
    "README.md",
    "CONTRIBUTING.md",
    *sorted(f"docs/{p.name}" for p in (ROOT / "docs").glob("*.md")),
]
FOLDERS = ("src", "reproduction", "tests", "benchmarks", "docs")
PATH = re.compile(rf"`((?:{'|'.join(FOLDERS)})/[\w./-]*)`")


@pytest.mark.parametrize("document", DOCUMENTS)
def test_documented_paths_exist(document):
    paths = PATH.findall((ROOT / document).read_text())
    paths = [path for path in paths if "NAME" not in path]  # stands for a file yet to be written
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_the_contributing_guide_answers_its_questions():
    answers = re.findall(
        r"^\| .+\? \| (.+) \|$", (ROOT / "CONTRIBUTING.md").read_text(), re.MULTILINE
    )
    assert len(answers) == 10
    assert all(PATH.search(answer) for answer in answers)


def test_no_module_imports_itself_by_a_detour():
    grimp = pytest.importorskip("grimp", reason="grimp reads the imports")
    networkx = pytest.importorskip("networkx")
    graph = grimp.build_graph("artlas", "artlas_paper", cache_dir=None)
    imports = networkx.DiGraph(
        (module, imported)
        for module in graph.modules
        for imported in graph.find_modules_directly_imported_by(module)
    )
    cycles = [sorted(c) for c in networkx.strongly_connected_components(imports) if len(c) > 1]
    assert cycles == []
