"""Preparing that is killed at any moment, or done by several processes at once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap

import pytest
from tiny_datasets import visible_parts

import artlas
import artlas_paper
from artlas_paper.datasets import packed

# A child is killed by itself at its k-th opening, renaming or removing of a file below the root.
KILLED = """
    import json, os, signal, sys
    from pathlib import Path
    from tiny_datasets import TINY, visible_parts, write_zip
    from artlas_paper.datasets import REGISTRY, load, packed, prepare

    REGISTRY["TINY"] = TINY

    def child(root, moment):
        seen = 0
        def hook(event, args):
            nonlocal seen
            if event in ("open", "os.rename", "os.remove") and str(root) in str(args[0]):
                seen += 1
                if seen == moment:
                    os.kill(os.getpid(), signal.SIGKILL)
        sys.addaudithook(hook)
        prepare("TINY", root, download=False)
        os._exit(0)

    def run(root, moment):
        pid = os.fork()
        if pid == 0:
            try:
                child(root, moment)
            finally:
                os._exit(1)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

    report, top = [], Path(sys.argv[1])
    for moment in range(1, 1000, int(sys.argv[3])):
        root = top / str(moment)
        write_zip(root / "TUDataset" / "TINY.zip")
        if sys.argv[2] == "again":  # other labels, of the same length
            prepare("TINY", root, download=False)
            (root / TINY.folder / "TINY_graph_labels.txt").write_text("2\\n1\\n2\\n")
        code = run(root, moment)
        left = visible_parts(root)
        found = packed.find(root, "TINY", verify=True)
        whole = found is None or len(packed.read(root, "TINY")) == 3
        whole = whole and (packed.find(root, "TINY") is None) == (found is None)
        done = prepare("TINY", root, download=False).done
        after = visible_parts(root), load("TINY", root).y.tolist()
        report.append([code, len(left), found is not None, whole, done, *after])
        if code == 0:
            break
    print(json.dumps(report))
"""

# Children that prepare the same dataset at once.
TOGETHER = """
    import os, sys, traceback
    from pathlib import Path
    from tiny_datasets import TINY, write_raw
    from artlas_paper.datasets import REGISTRY, load, prepare

    assert not {"torch_geometric", "networkx"} & set(sys.modules), "imported before it is needed"
    REGISTRY["TINY"] = TINY
    root, children = Path(sys.argv[1]), []
    write_raw(root)
    for _ in range(4):
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                for _ in range(3):
                    (root / TINY.folder / "TINY_A.txt").touch()
                    prepare("TINY", root, download=False)
                    load("TINY", root)
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(code)
        children.append(pid)
    sys.exit(max(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children))
"""


def run_script(text, root, *more):
    tests = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    paths = [tests, *(os.path.dirname(os.path.dirname(p.__file__)) for p in (artlas, artlas_paper))]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(paths)}
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(text), str(root), *more],
        env=environment,
        capture_output=True,
        text=True,
        timeout=100,
    )


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize(
    ("case", "step", "least", "labels"),
    [("fresh", "2", 12, [0, 1, 0]), ("again", "1", 8, [1, 0, 1])],
)
def test_killed_at_any_moment_it_leaves_all_or_nothing(tmp_path, case, step, least, labels):
    result = run_script(KILLED, tmp_path, case, step)
    assert result.returncode == 0, result.stderr
    *killed, last = json.loads(result.stdout)
    assert len(killed) >= least
    assert all(row[0] == -9 for row in killed)
    assert all(row[3] for row in killed)
    assert all(row[5:] == [[], labels] for row in [*killed, last])
    # Some of them fell in the midst of writing.
    assert any(row[1] for row in killed)
    assert any(not row[2] for row in killed)
    assert last[:3] == [0, 0, True]
    assert last[4] == "packed already"


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_several_processes_at_once_do_no_harm(tmp_path):
    """The script also sees to it that importing artlas imports nothing heavy."""
    result = run_script(TOGETHER, tmp_path)
    assert result.returncode == 0, result.stderr
    assert packed.find(tmp_path, "TINY", verify=True) is not None
    assert visible_parts(tmp_path) == []
