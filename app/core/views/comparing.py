"""The list of what a kernel can be compared with, and two compiles of it side by side, as lines."""

from __future__ import annotations

from collections.abc import Sequence

from ....engine.inspect.compare import BackendComparison, KernelComparison
from ....engine.inspect.record import KernelRecord
from ..lines import Line, Span
from ..memo import by_identity
from ..saves import Save
from .compared import aligned_lines, compiles_of, kernel_lines, sides

__all__ = ["backend_pairs", "choices", "shown_backend", "versus_lines"]

Revision = tuple[str, str, str, str, bool]
"""The parts of a `revisions.Commit`."""


def backend_pairs(kernel: KernelRecord, first: str) -> list[tuple[str, str]]:
    """Pairs of the backends that have compiled a kernel; those with ``first`` come first."""
    names = [b.backend for b in kernel.backends if b.compile is not None]
    names.sort(key=lambda name: name != first)
    return [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]]


def choices(
    saves: Sequence[Save],
    marked: int,
    revisions: Sequence[Revision] | str,
    kernel: KernelRecord | None,
    backend: str,
    options: bool,
) -> list[Line]:
    """Everything that can be compared.

    marked: the number of the save that the others are compared with. revisions: of git, or why
    there are none. options: True if something can be compiled here.
    """
    out = [_head(f"Saves of this session, compared with save {marked}")]
    newest = saves[-1].number if saves else 0
    for save in reversed(saves):
        out.append(_save_line(save, marked, newest))
    out += [Line(()), _head(f"Revisions of git, compiled and compared with save {marked}")]
    if isinstance(revisions, str):
        out.append(Line(((f"    {revisions}", "dim"),)))
    else:
        for revision, short, when, subject, touched in revisions:
            spans = (
                (f"    {revision:<8} ", "accent"), (f"{short:<10} {when:<15} ", "dim"),
                ("changed  " if touched else "         ", "warn"), (subject, ""),
            )  # fmt: skip
            out.append(Line(spans, ("revision", revision)))
        out.append(Line((("    another revision ...", ""),), ("ask", "revision")))
    if kernel is not None:
        out += [Line(()), _head(f"Backends of {kernel.name}, as it is now")]
        pairs = backend_pairs(kernel, backend)
        for a, b in pairs:
            out.append(Line(((f"    {a} against {b}", ""),), ("backends", a, b)))
        if not pairs:
            text = "    It was compiled for one backend at most; B compiles for all."
            out.append(Line(((text, "dim"),)))
    if options:
        title = f"Options: save {marked} with another value of one"
        out += [Line(()), _head(title),
                Line((("    NAME=VALUE ...", ""),), ("ask", "option"))]  # fmt: skip
    return out


def _head(text: str) -> Line:
    return Line(((text, "head"),))


def _save_line(save: Save, marked: int, newest: int) -> Line:
    spans: list[Span] = [
        ("  ▶ " if save.number == marked else "    ", "warn"),
        (f"{save.name:<8} ", "accent"), (f"{save.when}  ", "dim"),
        ("now  " if save.number == newest else "", "ok"),
        ("failed  " if save.failed else "", "bad"), (save.about, ""),
    ]  # fmt: skip
    if not save.listings:
        spans.append(("  (without its IR)", "dim"))
    return Line(tuple(spans), ("save", save.number))


def shown_backend(found: KernelComparison, backend: str, step: int) -> BackendComparison | None:
    """The backend whose passes are shown: ``step`` after the one selected, or the next to it that
    was compiled on both sides."""
    known = [b for b in found.backends if b.passes] or list(found.backends)
    if not known:
        return None
    at = next((i for i, b in enumerate(known) if backend in (b.after, b.before)), 0)
    return known[(at + step) % len(known)]


@by_identity(8)
def versus_lines(
    found: KernelComparison, old: KernelRecord, new: KernelRecord, shown: BackendComparison,
    whole: bool, names: tuple[str, str],
) -> Sequence[Line]:  # fmt: skip
    """A comparison with the passes of one backend side by side. names: of both sides."""
    out = list(kernel_lines(found))
    compiles = compiles_of(shown, old, new)
    if compiles is None or not shown.passes:
        return out
    more = f", {len(found.backends)} backends" if len(found.backends) > 1 else ""
    out += [
        Line(()),
        _head(f"Passes on {sides(shown)}{more}: what each did in {names[0]} | in {names[1]}"),
    ]
    return out + aligned_lines(shown, *compiles, whole)
