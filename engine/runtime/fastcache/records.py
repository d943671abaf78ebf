"""Texts of the declarations of dataclasses, kept for the process.

The kernels of a program reach hundreds of functions whose parameters are dataclasses with hundreds
of members in all, and each look-up compares the declarations of all of them. A class declares its
members once (`members_of`), so a text for them stays right while the classes keep their names. The
exception are struct types: their methods may be replaced, and they are numbered for each kernel.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final
from weakref import WeakKeyDictionary

from ...frontend.declared import members_of
from ...named_tuple import NamedTuple
from ...types import BufferViewHandle, StructType

__all__ = ["has_structs", "keep_text", "kept_text"]


class _Known(NamedTuple):
    """inner: the dataclasses that members are annotated with, recursively; structs: see
    `has_structs`."""

    inner: tuple[type, ...]
    structs: bool


class _Kept(NamedTuple):
    """names: of the class and of its inner ones, when the text was made."""

    names: list[tuple[str, str]]
    text: str


# The values do not refer to their key: a class cannot have a member of its own class's type.
_known: Final[WeakKeyDictionary[type, _Known]] = WeakKeyDictionary()
_texts: Final[WeakKeyDictionary[type, _Kept]] = WeakKeyDictionary()


def _about(cls: type) -> _Known:
    found = _known.get(cls)
    if found is None:
        found = _known[cls] = _read(cls)
    return found


def _read(cls: type) -> _Known:
    inner: dict[type, None] = {}
    structs = False
    for param in members_of(cls).values():
        kind: Any = param.type
        structs |= isinstance(kind, StructType) or isinstance(param.number, StructType)
        if param.kind == "record":
            record: type = param.type
            within = _about(record)
            inner.update(dict.fromkeys((record, *within.inner)))
            structs |= within.structs
    return _Known(tuple(inner), structs)


def _names(cls: type) -> Iterator[tuple[str, str]]:
    for one in (cls, *_about(cls).inner):
        yield one.__module__, one.__qualname__


def has_structs(cls: type) -> bool:
    """True if a member of the dataclass, or of one that it contains, is annotated with a struct."""
    return _about(cls).structs


def kept_text(cls: type) -> str | None:
    """The text kept for the declaration of a dataclass; None if there is none that is right."""
    kept = _texts.get(cls)
    return kept.text if kept is not None and kept.names == [*_names(cls)] else None


def keep_text(cls: type, text: str) -> None:
    """Keep the text of the declaration of a dataclass, unless it has structs.

    Nor is that of a view kept: its member depends on the parameter.
    """
    if not has_structs(cls) and BufferViewHandle not in cls.__mro__:
        _texts[cls] = _Kept([*_names(cls)], text)
