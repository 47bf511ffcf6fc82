"""Check settings; an error names the setting, what it must be, and what was given."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

MOST = 2**63 - 1


def integer(settings: object, *names: str, least: int = 1, most: int = MOST) -> None:
    """Require whole numbers from ``least`` to ``most``."""
    span = f"from {least}" if most == MOST else f"from {least} to {most}"
    for name in names:
        value = getattr(settings, name)
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            _refuse(settings, name, f"a whole number {span}", value)


def positive(settings: object, *names: str, least: float = 0.0) -> None:
    """Require finite numbers above 0 and from ``least``."""
    wanted = f"at least {least} and finite" if least else "positive and finite"
    _numbers(settings, names, lambda value: 0 < value < math.inf and value >= least, wanted)


def non_negative(settings: object, *names: str) -> None:
    """Require finite numbers from 0."""
    _numbers(settings, names, lambda value: 0 <= value < math.inf, "finite and not negative")


def fraction(settings: object, *names: str) -> None:
    """Require numbers from 0 to below 1."""
    _numbers(settings, names, lambda value: 0 <= value < 1, "in [0, 1)")


def one_of(settings: object, name: str, allowed: Sequence[str] | Sequence[bool]) -> None:
    """Require one of the allowed values."""
    value = getattr(settings, name)
    if type(value) is not type(allowed[0]) or value not in allowed:
        _refuse(settings, name, f"one of {', '.join(map(str, allowed))}", value)


def _numbers(
    settings: object, names: Sequence[str], valid: Callable[[float], bool], wanted: str
) -> None:
    for name in names:
        value = getattr(settings, name)
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not number or not valid(value):
            _refuse(settings, name, wanted if number else "a number", value)


def _refuse(settings: object, name: str, wanted: str, value: Any) -> NoReturn:
    raise ValueError(f"{type(settings).__name__}.{name} must be {wanted}, got {value!r}.")
