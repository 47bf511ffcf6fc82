"""What an install contains, with and without a compiler."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile

import pytest

from artlas import kernels

ROOT = pathlib.Path(__file__).parent.parent


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel that pip builds on a machine without a compiler."""
    pytest.importorskip("scikit_build_core", reason="the build backend is not installed")
    tmp_path, path = tmp_path_factory.mktemp("wheel"), str(pathlib.Path(sys.executable).parent)
    environment = {**os.environ, "PATH": path}
    for name in ("CC", "CXX", "CFLAGS", "CXXFLAGS"):
        environment.pop(name, None)
    command = [sys.executable, "-m", "pip", "wheel", str(ROOT), "--no-deps", "--no-build-isolation"]
    command += ["-q", "-w", str(tmp_path), "--config-settings", f"build-dir={tmp_path / 'build'}"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    (found,) = tmp_path.glob("*.whl")
    return found


@pytest.mark.skipif(not shutil.which("g++"), reason="no compiler on this machine")
def test_a_machine_with_a_compiler_has_the_kernels():
    """Else every test of them would be skipped, and nobody would notice."""
    assert kernels.available()


@pytest.mark.slow
def test_a_machine_without_a_compiler_gets_the_twin(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert "artlas/kernels/torch_twin.py" in names
    assert "artlas/weights/graph/model.safetensors" in names
    assert not [
        name
        for name in names
        if ("kernels/_" in name and "__init__" not in name) or name.endswith((".cpp", ".hpp"))
    ]


@pytest.mark.slow
def test_the_wheel_holds_the_library_alone(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert "artlas/py.typed" in names
    assert {name.split("/")[0].split("-")[0] for name in names} == {"artlas"}


@pytest.mark.slow
def test_the_wheel_works_without_the_repository(wheel, tmp_path):
    """The README's snippets and commands, with nothing of the repository on the path."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "installed")
    for name, module in list(sys.modules.items()):  # the solver has no twin
        if name.startswith("artlas.kernels._"):
            shutil.copy(str(module.__file__), tmp_path / "installed" / "artlas" / "kernels")
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.DOTALL)
    (tmp_path / "snippets.py").write_text("\n".join(blocks))
    (tmp_path / "where.py").write_text("import artlas; print(artlas.__file__)")
    (tmp_path / "artlas_command.py").write_text("from artlas.cli import main; main()")
    # -S: no .pth file leads back to the checkout
    paths = [tmp_path / "installed", sysconfig.get_path("platlib"), sysconfig.get_path("purelib")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))}

    def run(*words):
        command = [sys.executable, "-S", *words]
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
        return done.stdout

    assert run("where.py").startswith(str(tmp_path / "installed"))
    run("snippets.py")
    run("artlas_command.py", "embed", "friends.csv", "--out", "z.npz")
    run("artlas_command.py", "search", "build", "z.npz")
    assert "friends.csv" in run("artlas_command.py", "search", "query", "friends.csv")
