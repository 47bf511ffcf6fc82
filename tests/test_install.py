"""What an install contains, with and without a compiler."""

import os
import pathlib
import shutil
import subprocess
import sys
import zipfile

import pytest

from artlas import kernels

ROOT = pathlib.Path(__file__).parent.parent


def wheel(tmp_path, path):
    """Names in the wheel that pip builds with the given PATH."""
    environment = {**os.environ, "PATH": path}
    for name in ("CC", "CXX", "CFLAGS", "CXXFLAGS"):
        environment.pop(name, None)
    command = [sys.executable, "-m", "pip", "wheel", str(ROOT), "--no-deps", "--no-build-isolation"]
    command += ["-q", "-w", str(tmp_path), "--config-settings", f"build-dir={tmp_path / 'build'}"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    (found,) = tmp_path.glob("*.whl")
    return zipfile.ZipFile(found).namelist()


@pytest.mark.skipif(not shutil.which("g++"), reason="no compiler on this machine")
def test_a_machine_with_a_compiler_has_the_kernels():
    """Else every test of them would be skipped, and nobody would notice."""
    assert kernels.available()


def test_a_machine_without_a_compiler_gets_the_twin(tmp_path):
    pytest.importorskip("scikit_build_core", reason="the build backend is not installed")
    names = wheel(tmp_path, str(pathlib.Path(sys.executable).parent))
    assert "artlas/kernels/torch_twin.py" in names
    assert "artlas/weights/graph/model.safetensors" in names
    assert not [
        name
        for name in names
        if ("kernels/_" in name and "__init__" not in name) or name.endswith((".cpp", ".hpp"))
    ]
