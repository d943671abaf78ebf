"""Swizzles: ``v.x``, ``v.zyx``, ``v.rg``, the names that elements of a vector have.

The letters are those of shading languages: ``xyzw``, ``rgba`` or ``stpq``, one group at a time, for
the first four elements.
"""

from __future__ import annotations

from typing import Final

__all__ = ["positions"]

_GROUPS: Final = ("xyzw", "rgba", "stpq")
_LETTERS: Final = {letter: (group, k) for group in _GROUPS for k, letter in enumerate(group)}


def positions(name: str, size: int) -> list[int] | None:
    """The indices of the elements that ``name`` means; None if it is no swizzle at all.

    AttributeError if it is one, and a vector of ``size`` elements lacks some of them.
    """
    if len(name) > 4:
        return None
    found = [_LETTERS.get(letter) for letter in name]
    if None in found or len({entry[0] for entry in found if entry is not None}) != 1:
        return None
    places = [entry[1] for entry in found if entry is not None]
    if max(places) >= size:
        group = found[0][0] if found[0] is not None else ""
        have = tuple(group[:size])
        missing = tuple(letter for letter in name if letter not in have)
        raise AttributeError(f"vec{size} only has attributes={have}, got={missing}")
    return places
