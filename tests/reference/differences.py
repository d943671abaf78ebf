"""Where our engine differs from the reference on purpose: why, and what it gives instead.

Each entry is checked: a difference that has gone must be struck from the list.
"""

from dataclasses import dataclass, field
from typing import Any

from . import corpus

NOTHING = object()


@dataclass(frozen=True)
class Meant:
    """A difference that is meant. Ours gives `value`, or raises `error` with `says` in its text."""

    why: str
    value: Any = field(default=NOTHING)
    error: str = ""
    says: str = ""
    output: str | None = None


DIFFERENCES: dict[str, Meant] = {}


def fulfils(meant: Meant, got: dict) -> str | None:
    """What is wrong with what ours gives, where it should differ."""
    if "died" in got:
        return "the process died"
    if meant.error:
        if "error" not in got:
            return f"no {meant.error}: {corpus.brief(got)}"
        if meant.error not in got["error"]["classes"] or meant.says not in got["error"]["text"]:
            return f"no {meant.error} that says {meant.says!r}: {corpus.brief(got)}"
        return None
    if "error" in got:
        return f"raises {corpus.brief(got)}"
    if meant.value is not NOTHING and not corpus.same(corpus.plain(meant.value), got["value"]):
        return f"value {meant.value!r} != {got['value']!r}"
    if meant.output is not None and meant.output != got["output"]:
        return f"output {meant.output!r} != {got['output']!r}"
    return None
