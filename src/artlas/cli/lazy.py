"""Command groups whose commands are imported only when they run."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup


def lazy_app(name: str, help: str, package: str, commands: Mapping[str, str]) -> typer.Typer:
    """Make an application that imports a command's module when the command is called.

    commands: one line of help for each, which ``--help`` prints; a test compares it with the
    command's own help. The command stands in a module of its name in ``package``.
    """

    class LazyGroup(TyperGroup):
        def __init__(self, **options: Any) -> None:
            super().__init__(**options)
            self.commands = {name: TyperCommand(name, help=text) for name, text in commands.items()}

        def resolve_command(self, ctx: Any, args: list[str]) -> Any:
            name, command, rest = super().resolve_command(ctx, args)
            return name, load_command(package, name) if name else command, rest

    app = typer.Typer(
        name=name,
        help=help,
        cls=LazyGroup,
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_show_locals=False,
    )
    app.callback()(lambda: None)
    return app


def load_command(package: str, name: str) -> Any:
    """Import a command: the module's Typer application ``app``, or its function of this name."""
    module, group = import_module(f"{package}.{name}"), typer.Typer(add_completion=False)
    group.callback()(lambda: None)  # a group of one command stays a group
    if hasattr(module, "app"):
        group.add_typer(module.app, name=name)
    else:
        group.command(name)(getattr(module, name))
    return typer.main.get_group(group).commands[name]
