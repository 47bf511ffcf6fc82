"""The table of commands agrees with the commands."""

from __future__ import annotations

import pytest

from artlas.cli.lazy import load_command
from artlas_paper.cli import COMMANDS


@pytest.mark.parametrize("name", COMMANDS)
def test_one_line_help_is_the_first_line_of_the_command(name):
    assert load_command("artlas_paper.cli", name).help.splitlines()[0] == COMMANDS[name]
