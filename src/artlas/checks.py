"""Checks of settings: an error names the setting, what it must be, and what came."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

MOST = 2**63 - 1


def whole(settings: object, *names: str, least: int = 1, most: int = MOST) -> None:
    """Whole numbers from ``least`` to ``most``."""
    span = f"from {least}" if most == MOST else f"from {least} to {most}"
    for name in names:
        value = getattr(settings, name)
        right = isinstance(value, int) and not isinstance(value, bool)
        if not right or not least <= value <= most:
            _refuse(settings, name, f"a whole number {span}", value)


def positive(settings: object, *names: str, least: float = 0.0) -> None:
    """Finite numbers above 0 and from ``least``."""
    wanted = f"at least {least} and finite" if least else "positive and finite"
    for name in names:
        value = _number(settings, name)
        if not (0 < value < math.inf and value >= least):
            _refuse(settings, name, wanted, value)


def not_negative(settings: object, *names: str) -> None:
    """Finite numbers from 0."""
    for name in names:
        value = _number(settings, name)
        if not 0 <= value < math.inf:
            _refuse(settings, name, "finite and not negative", value)


def share(settings: object, *names: str) -> None:
    """Numbers from 0 to below 1."""
    for name in names:
        value = _number(settings, name)
        if not 0 <= value < 1:
            _refuse(settings, name, "in [0, 1)", value)


def one_of(settings: object, name: str, allowed: Sequence[str] | Sequence[bool]) -> None:
    """One of the values that there are."""
    value = getattr(settings, name)
    if type(value) is not type(allowed[0]) or value not in allowed:
        _refuse(settings, name, f"one of {', '.join(map(str, allowed))}", value)


def _number(settings: object, name: str) -> float:
    value = getattr(settings, name)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        _refuse(settings, name, "a number", value)
    return value


def _refuse(settings: object, name: str, wanted: str, value: Any) -> None:
    raise ValueError(f"{type(settings).__name__}.{name} must be {wanted}, got {value!r}.")
