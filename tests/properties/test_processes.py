"""Forks, PyTorch's thread pool, memory, the cost of an import, and missing or broken kernels."""

import os
import subprocess
import sys
import textwrap

import pytest
import torch

from artlas import kernels


def python(code, **env):
    """Run code in a fresh interpreter; its last line of output."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=240,
        env={**os.environ, **env},
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.strip().splitlines()[-1]


needs_native = pytest.mark.skipif(not kernels.available(), reason="no compiled kernels here")

SETUP = """
import numpy as np, torch, artlas
rng = np.random.default_rng(0)
def graph(n, degree):
    pairs = rng.integers(0, n, (2, n * degree // 2))
    pairs = np.unique(np.sort(pairs[:, pairs[0] != pairs[1]], axis=0), axis=1)
    return n, np.concatenate([pairs, pairs[::-1]], axis=1)
"""


@pytest.mark.slow
@needs_native
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_computes_the_same():
    """The parent has used threads, in PyTorch and here, before it forks."""
    told = python(
        SETUP
        + """
import os, warnings
torch.set_num_threads(2)
graphs = artlas.Graphs.from_edges([graph(n, 6) for n in (5000, 40, 70, 900, 300)])
model = artlas.ART()
torch.randn(500, 500) @ torch.randn(500, 500)
before = model.embed(graphs, "paper")
read, write = os.pipe()
with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    child = os.fork()
if child == 0:
    same = torch.equal(model.embed(graphs, "paper"), before)
    os.write(write, b"same" if same else b"differs")
    os._exit(0)
os.waitpid(child, 0)
print(os.read(read, 100).decode(), torch.equal(model.embed(graphs, "paper"), before))
"""
    )
    assert told == "same True"


@pytest.mark.slow
@needs_native
def test_concurrent_calls_from_python_threads():
    """Several Python threads, each in its own call, with matrix products between."""
    told = python(
        SETUP
        + """
from concurrent.futures import ThreadPoolExecutor
graphs = artlas.Graphs.from_edges([graph(n, 6) for n in (5000, 40, 70, 900)])
model = artlas.ART()
exact = model.embed(graphs, "paper")
def work(i):
    torch.randn(300, 300) @ torch.randn(300, 300)
    return torch.equal(model.embed(graphs, "paper"), exact)
with ThreadPoolExecutor(4) as pool:
    print(all(pool.map(work, range(16))))
"""
    )
    assert told == "True"


@pytest.mark.slow
@needs_native
def test_memory_is_linear_with_a_small_constant():
    """2^17 nodes: K x N x M alone would be 2,048 bytes a node."""
    told = python(
        SETUP
        + """
import resource
graphs = artlas.Graphs.from_edges([graph(2**17, 8)], x=np.ones((2**17, 4), dtype=np.float32))
model = artlas.ART()
small = artlas.Graphs.from_edges([graph(50, 4)])
model.embed(small, "paper")
def peak():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))
try:
    with open("/proc/self/clear_refs", "w") as clear:
        clear.write("5")
except OSError:
    pass
before = peak()
model.embed(graphs, "paper")
print((peak() - before) / 2**17)
"""
    )
    assert 100 < float(told) < 1500


@pytest.mark.slow
def test_import_stays_light():
    told = python(
        """
        import sys, artlas
        artlas.ART, artlas.load, artlas.read, artlas.pretrain, artlas.ego_graphs
        heavy = "sklearn networkx matplotlib torch_geometric typer rich ot scipy pandas"
        print([name for name in heavy.split() if name in sys.modules])
        """
    )
    found = python(
        """
        import sys, torch
        heavy = "sklearn networkx matplotlib torch_geometric typer rich ot scipy pandas"
        print([name for name in heavy.split() if name in sys.modules])
        """
    )
    assert told == found


@pytest.mark.slow
def test_an_install_without_compiled_kernels_works_and_says_so():
    """The module hidden, as on a machine without a compiler: one warning, the twin's results."""
    told = python(
        """
        import sys, warnings
        sys.modules["artlas.kernels._core"] = None
        import artlas, torch
        assert not artlas.kernels.available()
        model = artlas.ART()
        pair = artlas.Graphs.from_edges([(3, [[0, 1, 1, 2], [1, 0, 2, 1]])])
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            z = model.embed(pair, "paper")
            model.embed(pair, "paper")
        said = [str(w.message) for w in seen if issubclass(w.category, RuntimeWarning)]
        assert len(said) == 1 and "without a C++ compiler" in said[0], said
        print(z.sum().item())
        """
    )
    model_sum = python(
        """
        import artlas
        pair = artlas.Graphs.from_edges([(3, [[0, 1, 1, 2], [1, 0, 2, 1]])])
        print(artlas.ART().embed(pair, "paper").sum().item())
        """
    )
    assert float(told) == pytest.approx(float(model_sum), abs=1e-5)


@pytest.mark.slow
def test_broken_kernels_are_an_error_and_no_silent_fallback(tmp_path):
    told = python(
        f"""
        import importlib.machinery, importlib.util, pathlib, sys, torch
        bad = pathlib.Path({str(tmp_path)!r}) / "_core.so"
        bad.write_bytes(b"not a library")
        class Finder:
            def find_spec(self, name, path=None, target=None):
                if name == "artlas.kernels._core":
                    loader = importlib.machinery.ExtensionFileLoader(name, str(bad))
                    return importlib.util.spec_from_loader(name, loader)
        sys.meta_path.insert(0, Finder())
        try:
            import artlas
            artlas.ART()
        except ImportError as error:
            print(error)
        """
    )
    assert "do not load" in told
    assert "Reinstall artlas" in told


@pytest.mark.slow
def test_two_threads_are_what_torch_is_set_to():
    """The kernels never use more threads than PyTorch is told to use."""
    before = torch.get_num_threads()
    told = python(
        SETUP
        + """
import threading, os, time
torch.set_num_threads(1)
graphs = artlas.Graphs.from_edges([graph(300, 20) for _ in range(48)])
model = artlas.ART()
model.align(graphs)
most = 0
done = False
def watch():
    global most
    while not done:
        most = max(most, len(os.listdir("/proc/self/task")))
        time.sleep(0.0005)
watcher = threading.Thread(target=watch)
watcher.start()
base = len(os.listdir("/proc/self/task"))
for _ in range(5):
    model.align(graphs)
done = True
watcher.join()
print(most - base)
"""
    )
    assert told == "0"
    assert torch.get_num_threads() == before


@pytest.mark.slow
@needs_native
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("shape", ["one large", "many small"])
def test_ctrl_c_ends_a_long_call_between_two_pairs(threads, shape):
    """The signal comes when some pairs were aligned; the call ends before all of them were."""
    told = python(
        SETUP
        + f"""
import os, signal, threading, time
from artlas import kernels
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored below a shell's background
torch.set_num_threads({threads})
one = graph(20_000, 6) if {shape == "one large"} else graph(500, 6)
graphs = artlas.Graphs.from_edges([one] * ({1 if shape == "one large" else 40}))
model = artlas.ART(artlas.ArtConfig(bases=2000))  # minutes, if nothing ended it
def press():
    while kernels.done() == 0:
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=press, daemon=True).start()
try:
    model.align(graphs)
    print("ran to its end")
except KeyboardInterrupt:
    print("ended early" if 0 < kernels.done() < 2000 * graphs.num_nodes else "miscounted")
"""
    )
    assert told == "ended early"
