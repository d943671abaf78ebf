"""Compile options as forms: what a value may be, the next one, and the values of a sweep. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ...engine.inspect.settings import OptionInfo

__all__ = ["accepts", "is_toggled", "stepped", "sweep_values"]

Value = str | int | float | bool
_MOST: Final = 12
"""Values of a sweep that a range is cut down to."""


def accepts(info: OptionInfo) -> str:
    """The values of an option in words: ``on or off``, ``one of f32, f64``, ``integer from 1``."""
    if not info.works:
        return "has no effect here"
    if info.type == "bool":
        return "on or off"
    if info.choices:
        return f"one of {', '.join(map(str, info.choices))}"
    if info.type == "str":
        return "text"
    text = {"int": "integer", "float": "number"}[info.type]
    if info.minimum is not None:
        text += f" from {info.minimum:g}"
    if info.maximum is not None:
        text += f" to {info.maximum:g}"
    return text


def is_toggled(info: OptionInfo) -> bool:
    """True if there are so few values that the next one is better than a prompt."""
    return info.type == "bool" or bool(info.choices)


def stepped(info: OptionInfo, value: Value | None, step: int) -> Value:
    """The next value (or for ``step`` -1, the one before): the other state of a switch, the next
    choice, twice or half of a number, within its range. ValueError for text."""
    now = info.default if value is None else value
    if info.type == "bool":
        return not now
    if info.choices:
        at = info.choices.index(now) if now in info.choices else -1
        return info.choices[(at + step) % len(info.choices)]
    if isinstance(now, str):
        raise ValueError(f"{info.name} is text: type a value")
    new = now * 2 if step > 0 else now / 2
    if info.type == "int":
        new = max(now + 1, now * 2) if step > 0 else int(now) // 2
    elif not now:
        new = float(step > 0)
    low, high = info.minimum, info.maximum
    if low is not None and new < low:
        new = low
    if high is not None and new > high:
        new = high
    return int(new) if info.type == "int" else float(new)


def sweep_values(info: OptionInfo, value: Value | None) -> list[Value]:
    """The values to try where a person names none: all choices; numbers by powers of two around
    the present one. The present one is first. ValueError for text."""
    now = info.default if value is None else value
    if info.type == "bool":
        return [now, not now]
    if info.choices:
        return [now, *(x for x in info.choices if x != now)]
    out: list[Value] = [now]
    below = above = now
    for _ in range(4):
        below, above = stepped(info, below, -1), stepped(info, above, 1)
        out += [x for x in (below, above) if x not in out and (x or not info.minimum)]
    return out[:_MOST]
