"""Reports without a screen: measure, and say what failed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final, cast

from ..engine.inspect.record import BackendRecord, KernelRecord, Record
from .core.format import backend_reason
from .worker.events import Event, Failed, KernelUpdated
from .worker.once import collect

if TYPE_CHECKING:
    from .worker.turns import Look

__all__ = ["PyprojectError", "measured", "measured_in_turns", "outcome", "rules_for"]

_TABLE: Final = ("fail-on", "require")


class PyprojectError(ValueError):
    """A ``[tool.qd-studio]`` table that cannot be used."""


def measured(
    files: Iterable[str],
    command: tuple[str, ...],
    talk: Callable[[str], object],
    heard: Callable[[Event], object] = lambda event: None,
    **settings: Any,
) -> Record:
    """Return a complete record of ``files``; ``talk`` receives a line for each thing that happens
    meanwhile, ``heard`` every event."""
    return collect(files, on_event=_listener(talk, heard), command=command, **settings)


def measured_in_turns(
    looks: Iterable[Look],
    command: tuple[str, ...],
    talk: Callable[[str], object],
    began: Callable[[int], object],
    heard: Callable[[Event], object] = lambda event: None,
    **settings: Any,
) -> list[Record]:
    """As `measured`, of several looks whose launches are timed in turns; see `worker.turns`."""
    from .worker.turns import collect_in_turns

    return collect_in_turns(looks, _listener(talk, heard), began=began, command=command, **settings)


def _listener(
    talk: Callable[[str], object], heard: Callable[[Event], object]
) -> Callable[[Event], object]:
    said: set[str] = set()

    def listen(event: Event) -> None:
        heard(event)
        if isinstance(event, KernelUpdated) and event.final:
            talk(f"{event.kernel.id}: {outcome(event.kernel)}")
        elif isinstance(event, Failed):
            # A worker that takes over from one that crashed reports the crash again.
            text = event.error.rendered or event.error.message
            if text not in said:
                said.add(text)
                talk(text)

    return listen


def outcome(kernel: KernelRecord) -> str:
    """Return the result of a kernel, in a line."""
    parts = [f"{b.backend} {_word(b)}" for b in kernel.backends if b.status in ("ok", "error")]
    reasons = (backend_reason(kernel, b) for b in kernel.backends)
    return ", ".join(parts) or "; ".join(dict.fromkeys(reasons)) or "no backend was asked for"


def _word(backend: BackendRecord) -> str:
    """The outcome of a kernel on a backend: ``ok`` only if its results were shown to be right."""
    found = backend.agreement
    if backend.status == "error":
        return "error"
    if backend.unlaunched or found is None:
        return "compiled"
    if backend.backend == "interp":
        return "ran" if backend.launches else "unknown"
    return found.verdict


def rules_for(files: Iterable[str]) -> list[str]:
    """The rules of ``[tool.qd-studio]`` (``fail-on``, and ``require``, with that word before them)
    in the pyproject.toml next above the first file.

    PyprojectError for a file or table that cannot be read.
    """
    import tomllib

    folder = os.path.dirname(os.path.abspath(next(iter(files))))
    while not os.path.isfile(path := os.path.join(folder, "pyproject.toml")):
        above = os.path.dirname(folder)
        if above == folder:
            return []
        folder = above
    try:
        with open(path, "rb") as file:
            tool = tomllib.load(file).get("tool", {})
    except RecursionError:
        raise PyprojectError(f"cannot read {path}: it is nested too deeply") from None
    except (OSError, ValueError) as error:
        raise PyprojectError(f"cannot read {path}: {error}") from None
    found: object = tool
    if isinstance(tool, dict):
        found = cast("dict[str, Any]", tool).get("qd-studio", {})
    if not isinstance(found, dict):
        raise PyprojectError(f"{path}: [tool.qd-studio] must be a table")
    table = cast("dict[str, Any]", found)
    unknown = sorted(set(table) - set(_TABLE))
    if unknown:
        known = " and ".join(_TABLE)
        raise PyprojectError(f"{path}: [tool.qd-studio] has no {unknown[0]!r}, only {known}")
    return [
        *_texts(table, "fail-on", path),
        *(f"require {rule}" for rule in _texts(table, "require", path)),
    ]


def _texts(table: dict[str, Any], name: str, path: str) -> list[str]:
    found = table.get(name, [])
    if not isinstance(found, list) or not all(isinstance(r, str) for r in cast("list[Any]", found)):
        raise PyprojectError(f"{path}: {name} must be a list of texts")
    return cast("list[str]", found)
