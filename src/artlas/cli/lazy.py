"""Command groups whose commands are imported only when they run."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

Commands = Mapping[str, tuple[str, str]]  # name: ("module:function", one-line help)


def lazy_app(name: str, help: str, commands: Commands) -> typer.Typer:
    """Make an application that imports a command's module when the command is called.

    Its own ``--help`` prints the one-line help of the table, so that it does not import PyTorch.
    """

    class LazyGroup(TyperGroup):
        def __init__(self, **options: Any) -> None:
            super().__init__(**options)
            self.commands = {
                name: TyperCommand(name, help=text) for name, (_, text) in commands.items()
            }

        def resolve_command(self, ctx: Any, args: list[str]) -> Any:
            name, command, rest = super().resolve_command(ctx, args)
            return name, load_command(name, commands[name][0]) if name else command, rest

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


def load_command(name: str, target: str) -> Any:
    """Import ``module:attribute``, a function or a Typer application, as a command."""
    module, _, attribute = target.partition(":")
    command, group = getattr(import_module(module), attribute), typer.Typer(add_completion=False)
    group.callback()(lambda: None)  # a group of one command stays a group
    if isinstance(command, typer.Typer):
        group.add_typer(command, name=name)
    else:
        group.command(name)(command)
    return typer.main.get_group(group).commands[name]
