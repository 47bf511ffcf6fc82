"""What the README says to type works as written."""

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).parent.parent


def test_the_examples_run_in_their_order(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "README.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    assert len(blocks) >= 2
    names = {}
    for block in blocks:
        exec(block, names)
    assert names["classifier"].score(names["test"].graphs, names["test"].labels) > 0.85
    assert names["z"].shape == (1, 16 + 32)
    assert names["a"].couplings(0).shape == (16, 3, 32)
    assert names["model"].atlas.logits.grad is not None
    assert names["vectors"].shape == (2, 3)
    assert [len(names[n]) for n in ("molecules", "dataset", "women")] == [2, 8, 2]
    assert names["few_shot"].predict([names["nx"].star_graph(11)]) == ["star"]
    assert sorted(names["friends"].ids) == ["ann", "bob", "cid", "dan"]


@pytest.mark.parametrize("page", ["baselines", "studies"])
def test_the_examples_of_a_page_run(page):
    text = (ROOT / "docs" / f"{page}.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    assert blocks
    for block in blocks:
        exec(block, {})


def test_every_target_named_exists():
    text, makefile = (ROOT / "README.md").read_text(), (ROOT / "Makefile").read_text()
    targets = re.findall(r"(?:^|`)make (\w+)", text, flags=re.MULTILINE)
    assert targets
    for target in targets:
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target
