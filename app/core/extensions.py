"""Objects of other distributions, found by their entry points.

The name of an entry point is the id of its object. One that cannot be used is returned with the
reason (`Found.fault`), so that a broken distribution costs its own object only.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Collection
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from .visible import visible_line

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = ["Found", "found_in", "text_of"]

_NAME: Final = re.compile(r"[a-z][a-z0-9_-]*")


class Found(NamedTuple):
    """An entry point. who: for messages. value: what it leads to; None where there is a fault.

    name: that of the entry point, or for one that cannot have it, a name made of it.
    """

    name: str
    who: str
    value: Any = None
    fault: str = ""


def found_in(group: str, kind: str, wanted: type, taken: Collection[str]) -> list[Found]:
    """The objects of the entry points of ``group``, by name.

    kind: in words, for messages. wanted: the class of the objects, which have an ``id``. taken:
    names that they cannot have.
    """
    from importlib.metadata import entry_points

    taken = {*taken}
    out: list[Found] = []
    for entry in sorted(entry_points(group=group), key=lambda entry: entry.name):
        out.append(_loaded(entry, kind, wanted, taken))
        taken.add(entry.name)
    return out


def _loaded(entry: EntryPoint, kind: str, wanted: type, taken: Collection[str]) -> Found:
    of = f" of {entry.dist.name}" if entry.dist is not None else ""
    who = f"{kind} {entry.name!r}{of}"
    if not _NAME.fullmatch(entry.name) or entry.name in taken:
        a = "an" if kind[0] in "aeiou" else "a"
        fault = f"there is {a} {kind} of this name" if entry.name in taken else ""
        fault = fault or "use letters, digits, -"
        return Found(f"{entry.name}-{entry.value}", who, fault=f"{who}: {fault}")
    try:
        with redirect_stdout(sys.stderr):  # standard output may be a report
            value = entry.load()
    except (Exception, SystemExit) as error:  # the code of others: whatever it runs into
        return Found(entry.name, who, fault=f"{who} cannot be imported: {text_of(error)}")
    if not isinstance(value, wanted) or getattr(value, "id", "") != entry.name:
        no = f"{who}: {entry.value} is no {wanted.__name__} with this id"
        return Found(entry.name, who, fault=no)
    return Found(entry.name, who, value)


def text_of(error: BaseException) -> str:
    """An exception of other code in one line."""
    return visible_line(f"{type(error).__name__}: {error}")
