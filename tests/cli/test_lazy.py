"""The command tables: every command exists, and its help costs no import of PyTorch."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from artlas.cli import COMMANDS, app
from artlas.cli.lazy import lazy_app, load_command


@pytest.mark.parametrize("name", COMMANDS)
def test_one_line_help_is_the_first_line_of_the_command(name):
    assert load_command("artlas.cli", name).help.splitlines()[0] == COMMANDS[name]


def test_help_imports_neither_commands_nor_torch():
    code = (
        "import contextlib, io, json, sys\n"
        "from artlas.cli import app\n"
        "with contextlib.redirect_stdout(io.StringIO()): app(['--help'], standalone_mode=False)\n"
        "print(json.dumps(sorted(sys.modules)))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    modules = json.loads(out.stdout)
    assert "torch" not in modules
    ours = [name for name in modules if name.split(".")[0] == "artlas"]
    assert ours == ["artlas", "artlas.cli", "artlas.cli.lazy"]


def test_unknown_commands_are_usage_errors():
    done = CliRunner().invoke(app, ["embedd"])
    assert done.exit_code == 2
    assert "Did you mean 'embed'" in " ".join(done.output.replace("│", "").split())


def test_only_the_called_command_is_imported():
    broken = lazy_app("x", "X.", "artlas.cli", {"info": "I.", "no_such_module": "N."})
    assert CliRunner().invoke(broken, ["--help"]).exit_code == 0
    assert CliRunner().invoke(broken, ["info", "graph"]).exit_code == 0
    failed = CliRunner().invoke(broken, ["no_such_module"])
    assert isinstance(failed.exception, ModuleNotFoundError)
