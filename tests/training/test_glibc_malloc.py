"""Large blocks are reused during training and returned to the system afterwards."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys

import pytest

from artlas.training import glibc_malloc

# In a process of its own, whose heap has nothing free yet: fresh pages of a block of 256 MiB after
# some of its size were freed, without and within; resident memory within and after; and what stays
# resident of a larger block that is freed afterwards. Some: an aligned block asks for a little more
# than it takes, so that the hole of the first one is too small for the second where anything lies
# right behind it.
PROGRAM = """
import json, resource, torch
from artlas.training import glibc_malloc

def status(field):
    text = open("/proc/self/status").read()
    return int(text.partition(field + ":")[2].split()[0]) * 1024

def faults():
    for _ in range(4):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        torch.zeros(2**26).add_(1)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

usual, resting = faults(), status("VmRSS")
with glibc_malloc.reuse_large_blocks():
    within, held = faults(), status("VmRSS") - resting
left = status("VmRSS") - resting
torch.zeros(2**28).add_(1)
print(json.dumps([usual, within, held, left, status("VmRSS") - resting]))
"""


@pytest.fixture
def plain(monkeypatch):
    for name in [name for name in os.environ if name.startswith("MALLOC_")]:
        monkeypatch.delenv(name)


@pytest.mark.slow
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc has these switches")
def test_freed_blocks_are_reused_and_returned_at_the_end(plain):
    for _ in range(5):  # where the system places blocks is random, and a hole can be too small
        done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        usual, within, held, left, after = json.loads(done.stdout)
        if within < usual / 10:
            break
    assert usual > 100  # or there is nothing to gain, and the module should go
    assert within < usual / 10
    assert held > 2**27
    assert left < 2**27
    assert after < 2**27


def test_an_error_restores_the_defaults(plain, monkeypatch):
    calls = []
    monkeypatch.setattr(glibc_malloc, "_call", lambda name, *values: calls.append((name, *values)))
    with pytest.raises(KeyError), glibc_malloc.reuse_large_blocks():
        raise KeyError
    assert calls[-1] == ("malloc_trim", 0)
    assert [call[2] for call in calls[:-1] if call[1] == glibc_malloc._MMAP_MAX] == [0, 65_536]


def test_settings_in_the_environment_take_precedence(monkeypatch):
    monkeypatch.setenv("MALLOC_TRIM_THRESHOLD_", str(2**34))
    monkeypatch.setattr(glibc_malloc, "_call", lambda name, *values: pytest.fail(name))
    with glibc_malloc.reuse_large_blocks():
        pass


def test_other_allocators_are_left_alone(plain, monkeypatch):
    class Without:
        def __getattr__(self, name):
            raise AttributeError(name)

    monkeypatch.setattr(glibc_malloc.ctypes, "CDLL", lambda name: Without())
    with glibc_malloc.reuse_large_blocks():
        pass
