"""Two compiles of a kernel, aligned pass by pass: where they part, and what differs.

    found = compare_kernels(before, after)
    found.state                        # same, differs, unknown
    found.backends[0].parting          # the first pass after which the IR is another one
    found.backends[0].figures          # statements, loads, code bytes ... that differ

Two listings are the same if they are equal once ops are numbered in order of appearance: numbers
outside of texts in quotes. Runs of passes are aligned by stage, round, task and pass. A pass that
ran in one compile alone is a difference only if it changed the IR. Compiles may meet again: the
IR after the last pass, and the code, say whether an edit had any effect.

A kernel is ``same`` only if the IR after every pass, the generated texts, the options and the
parameters were there on both sides and are the same. What was not compared makes it ``unknown``,
unless something else differs.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from difflib import SequenceMatcher
from functools import cache
from typing import Final

import msgspec
from msgspec.structs import replace

from .compare_figures import (
    CodeState,
    Figure,
    Timing,
    code_of,
    figures_of,
    other_machine,
    timings_in_turns,
    timings_of,
)
from .record import (
    BackendRecord,
    CompileRecord,
    ConfigEntry,
    KernelRecord,
    Record,
    RunName,
    RunNames,
    Snapshot,
    ToolInfo,
)

__all__ = [
    "AlignedPass", "BackendComparison", "Comparison", "KernelComparison", "OptionChange",
    "canonical_text", "compare_backends", "compare_compiles", "compare_kernels", "compare_records",
    "same_ir",
]  # fmt: skip

_NUMBER: Final = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|\$\d+""")
_NAME: Final = re.compile(r"^(kernel|func) [^\s(]+")
FRONT_END: Final = "front end"


class OptionChange(msgspec.Struct, frozen=True):
    """A compile option with another value. before, after: None if that side does not have it."""

    name: str
    before: str | int | float | bool | None
    after: str | int | float | bool | None


class AlignedPass(msgspec.Struct, frozen=True):
    """A run of a pass in one or both compiles.

    before, after: its index among the runs, -1 if that compile has no such run. same: the IR after
    it is the same in both.
    """

    stage: str
    round: int
    task: int | None
    name: str
    before: int
    after: int
    same: bool

    def title(self) -> str:
        """``licm (simplify_I, round 2, task 0)``."""
        parts = [self.stage] if self.stage else []
        parts += [f"round {self.round}"] if self.round > 1 else []
        parts += [f"task {self.task}"] if self.task is not None else []
        return f"{self.name} ({', '.join(parts)})" if parts else self.name


class BackendComparison(msgspec.Struct, frozen=True):
    """A kernel on one backend.

    before, after: the backends. passes: aligned; the first is the front end. parting: the
    index of the first that leaves different IR; -1 for none. meeting: the index of the pass from
    which on the IR is the same again; -1 if it is not. figures: those that differ or are known on
    one side alone. agreement: verdicts before and after.
    """

    before: str
    after: str
    state: str
    reason: str = ""
    passes: tuple[AlignedPass, ...] = ()
    parting: int = -1
    meeting: int = -1
    code: CodeState = CodeState("unknown")
    figures: tuple[Figure, ...] = ()
    timings: tuple[Timing, ...] = ()
    agreement: tuple[str, str] = ("", "")


class KernelComparison(msgspec.Struct, frozen=True):
    """A kernel. before, after: its ids; empty where it is not. change: ``kept``, ``renamed``,
    ``added`` or ``removed``."""

    name: str
    before: str
    after: str
    change: str
    state: str
    reason: str = ""
    signature: bool = False
    options: tuple[OptionChange, ...] = ()
    backends: tuple[BackendComparison, ...] = ()


class Comparison(msgspec.Struct, frozen=True):
    """Two records. notes: what else differs, such as the machine."""

    state: str
    kernels: tuple[KernelComparison, ...]
    notes: tuple[str, ...] = ()


# ---- IR


def canonical_text(lines: Iterable[str]) -> str:
    """A listing with its ops numbered in order of appearance; texts in quotes are left alone."""
    numbers: dict[str, str] = {}

    def number(match: re.Match[str]) -> str:
        text = match[0]
        return text if text[0] != "$" else numbers.setdefault(text, f"${len(numbers)}")

    return _NUMBER.sub(number, "\n".join(lines))


def same_ir(old: Snapshot, new: Snapshot) -> bool:
    """True if two listings differ in the numbers of ops at most."""
    if old.lines == new.lines:
        return True
    if len(old.lines) != len(new.lines):
        return False
    # As equal canonical texts, but over at the first line that differs.
    there: dict[str, str] = {}
    back: dict[str, str] = {}
    for a, b in zip(old.lines, new.lines, strict=True):
        ours = _NUMBER.findall(a)
        theirs = ours if a == b else _NUMBER.findall(b)
        if a != b and (len(ours) != len(theirs) or _NUMBER.split(a) != _NUMBER.split(b)):
            return False
        for x, y in zip(ours, theirs, strict=True):
            if x[0] != "$" or y[0] != "$":
                if x != y:
                    return False
            elif there.setdefault(x, y) != y or back.setdefault(y, x) != x:
                return False
    return True


def compare_compiles(old: CompileRecord, new: CompileRecord) -> tuple[AlignedPass, ...]:
    """The passes of both compiles, aligned; the first entry is the IR before any pass.

    A compile without listings has none.
    """
    if not old.snapshots or not new.snapshots:
        return ()

    @cache
    def same(a: int, b: int) -> bool:
        return same_ir(old.snapshots[a], new.snapshots[b])

    at = old.runs[0].before if old.runs else 0
    to = new.runs[0].before if new.runs else 0
    out = [AlignedPass("", 0, None, FRONT_END, -1, -1, same(at, to))]
    keys = RunNames.of(old.runs), RunNames.of(new.runs)
    for i, j in _pairs(*keys):
        stage, round_, task, name, _ = keys[0][i] if i >= 0 else keys[1][j]
        at = old.runs[i].after if i >= 0 else at
        to = new.runs[j].after if j >= 0 else to
        out.append(AlignedPass(stage, round_, task, name, i, j, same(at, to)))
    return tuple(out)


def _pairs(old: Sequence[RunName], new: Sequence[RunName]) -> list[tuple[int, int]]:
    """(index in old, index in new) in order; -1 where one of them has no such run."""
    out: list[tuple[int, int]] = []
    for _, i1, i2, j1, j2 in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if i2 - i1 == j2 - j1 and old[i1:i2] == new[j1:j2]:
            out += zip(range(i1, i2), range(j1, j2), strict=True)
        else:
            out += [(i, -1) for i in range(i1, i2)]
            out += [(-1, j) for j in range(j1, j2)]
    return out


def _parting(passes: Sequence[AlignedPass]) -> tuple[int, int]:
    """(the first pass that leaves different IR, the one from which on it is the same again)."""
    differing = [i for i, each in enumerate(passes) if not each.same]
    if not differing:
        return -1, -1
    last = differing[-1]
    return differing[0], last + 1 if last + 1 < len(passes) else -1


# ---- kernels


def _compare_backends(
    old: BackendRecord, new: BackendRecord, kernels: tuple[KernelRecord, KernelRecord], apart: str
) -> BackendComparison:
    """One backend. apart: why times of the two records cannot be compared."""
    a, b = old.compile, new.compile
    names = old.backend, new.backend
    if a is None or b is None:
        sides = [(side, which) for side, which in ((old, "before"), (new, "after"))
                 if side.compile is None]  # fmt: skip
        why = "; ".join(
            f"{which}: {side.backend} {side.reason or side.status}" for side, which in sides
        )
        both = len(sides) == 2 and old.status == new.status
        return BackendComparison(*names, "unknown" if both else "differs", why)
    for side, which in ((old, "before"), (new, "after")):
        if "passes" in side.earlier or "code" in side.earlier:
            return BackendComparison(*names, "unknown", f"{which}: not from a finished compile")
    passes = compare_compiles(a, b)
    parting, meeting = _parting(passes)
    code = code_of(a, b)
    agreement = tuple(
        side.agreement.verdict if side.agreement is not None and side.backend != "interp" else ""
        for side in (old, new)
    )
    figures = figures_of(old, new, code.state)
    changed = (
        parting >= 0 or code.state == "differs" or old.status != new.status
        or agreement[0] != agreement[1] or names[0] != names[1] or bool(figures)
    )  # fmt: skip
    reason = "" if passes else "there is no IR to compare"
    reason = reason or (code.reason if code.state == "unknown" else "")
    state = "differs" if changed else "unknown" if reason else "same"
    alike = code.state == "same" and names[0] == names[1]
    return BackendComparison(
        *names, state, reason, passes, parting, meeting, code, figures,
        timings_of(kernels, (old, new), apart, alike), (agreement[0], agreement[1]),
    )  # fmt: skip


def compare_kernels(
    old: KernelRecord,
    new: KernelRecord,
    options: tuple[OptionChange, ...] = (),
    apart: str = "",
) -> KernelComparison:
    """Compare two records of a kernel, by backend.

    If each has a single backend with code, and these are two, they are compared with each other.
    options: those that differ. apart: why times of the two cannot be compared; empty if they can.
    """
    backends = [
        _compare_backends(a, b, (old, new), apart) for a, b in _paired(old.backends, new.backends)
    ]
    crossed = any(b.before != b.after for b in backends)
    lone = [] if crossed else _unpaired(old.backends, new.backends)
    signature = (old.params, old.returns) != (new.params, new.returns)
    errors = [[e.message for e in k.errors] for k in (old, new)]
    stale = next((w for k, w in ((old, "before"), (new, "after")) if k.stale), "")
    reasons = [f"the result {stale} is of an earlier save"] if stale else []
    reasons += lone
    states = {each.state for each in backends}
    if signature or options or "differs" in states or errors[0] != errors[1]:
        state = "differs"
    elif reasons or "unknown" in states or not backends:
        state = "unknown"
        reasons = reasons or [x.reason for x in backends if x.reason][:1]
        reasons = reasons or ["nothing was compiled for a backend on both sides"]
    else:
        state = "same"
    change = "kept" if old.name == new.name else "renamed"
    if change == "renamed":
        state = "differs"
    return KernelComparison(
        new.name, old.id, new.id, change, state, "; ".join(reasons), signature, options,
        tuple(backends),
    )  # fmt: skip


def compare_backends(kernel: KernelRecord, before: str, after: str) -> KernelComparison:
    """Compare two backends of one record of a kernel, whose launches were made in turns.

    KeyError if it has no such backend.
    """
    sides = {b.backend: b for b in kernel.backends}
    old, new = sides[before], sides[after]
    found = _compare_backends(old, new, (kernel, kernel), "")
    found = replace(found, timings=timings_in_turns(old, new))
    return KernelComparison(
        kernel.name, kernel.id, kernel.id, "kept", found.state, backends=(found,)
    )  # fmt: skip


def _there(backends: Iterable[BackendRecord]) -> list[BackendRecord]:
    """Those that something was made for; a backend that is not here is none."""
    return [b for b in backends if b.status != "absent"]


def _paired(
    old: Sequence[BackendRecord], new: Sequence[BackendRecord]
) -> list[tuple[BackendRecord, BackendRecord]]:
    a, b = _there(old), _there(new)
    if len(a) == len(b) == 1:
        return [(a[0], b[0])]
    by_name = {each.backend: each for each in b}
    return [(each, by_name[each.backend]) for each in a if each.backend in by_name]


def _unpaired(old: Sequence[BackendRecord], new: Sequence[BackendRecord]) -> list[str]:
    names = [{b.backend for b in _there(side)} for side in (old, new)]
    out = [f"{name} was not compiled after" for name in sorted(names[0] - names[1])]
    return out + [f"{name} was not compiled before" for name in sorted(names[1] - names[0])]


# ---- records


def compare_records(old: Record, new: Record, only: str = "", only_new: str = "") -> Comparison:
    """Compare all kernels of two records, or ``only`` the one of this name or id.

    only_new: the name of its partner in ``new``, if that is another one. Kernels are matched by id,
    then by name where that is unambiguous, then by their IR before any pass: one that is the same
    but for its name was renamed.
    """
    apart, notes = _apart(old.tool, new.tool)
    sides = _chosen(old, only), _chosen(new, only_new or only)
    if only_new and len(sides[0]) == len(sides[1]) == 1:
        pairs, removed, added = [(sides[0][0], sides[1][0])], [], []
    else:
        pairs, removed, added = _matched(*sides)
    kernels: dict[str, KernelComparison] = {}
    for a, b in pairs:
        kernels[b.id] = compare_kernels(
            a, b, _options(_config(old, a), _config(new, b)), apart
        )  # fmt: skip
    for kernel in added:
        kernels[kernel.id] = KernelComparison(kernel.name, "", kernel.id, "added", "differs")
    ordered = [kernels[k.id] for k in new.kernels if k.id in kernels]
    ordered += [KernelComparison(k.name, k.id, "", "removed", "differs") for k in removed]
    failed = [[(e.kind, e.message) for e in side.errors] for side in (old, new)]
    if failed[0] != failed[1]:
        notes = (*notes, *(f"before: {m.splitlines()[0]}" for _, m in failed[0] if m),
                 *(f"after: {m.splitlines()[0]}" for _, m in failed[1] if m))  # fmt: skip
    states = {each.state for each in ordered}
    state = "differs" if "differs" in states or failed[0] != failed[1] else "same"
    if state == "same" and ("unknown" in states or not ordered):
        state = "unknown"
    return Comparison(state, tuple(ordered), notes)


def _chosen(record: Record, only: str) -> list[KernelRecord]:
    return [k for k in record.kernels if only in ("", k.id, k.name)]


def _matched(
    old: Sequence[KernelRecord], new: Sequence[KernelRecord]
) -> tuple[list[tuple[KernelRecord, KernelRecord]], list[KernelRecord], list[KernelRecord]]:
    """(pairs, those without a partner before, those without one after)."""
    pairs: list[tuple[KernelRecord, KernelRecord]] = []
    left, right = list(old), list(new)

    def match(key: Mapping[str, str]) -> None:
        counts = [Counter(key[k.id] for k in side if key.get(k.id)) for side in (left, right)]
        for b in list(right):
            name = key.get(b.id, "")
            if name and counts[0][name] == counts[1][name] == 1:
                a = next(k for k in left if key.get(k.id) == name)
                pairs.append((a, b))
                left.remove(a)
                right.remove(b)

    match({k.id: f"{k.file}\0{k.id}" for k in (*old, *new)})
    match({k.id: k.id for k in (*left, *right)})
    match({k.id: k.name for k in (*left, *right)})
    match({k.id: _nameless(k) for k in (*left, *right)})
    return pairs, left, right


def _nameless(kernel: KernelRecord) -> str:
    """The IR of a kernel before any pass, without its name; empty if there is none."""
    for backend in kernel.backends:
        compiled = backend.compile
        if compiled is not None and compiled.snapshots:
            at = compiled.runs[0].before if compiled.runs else 0
            first, *lines = compiled.snapshots[at].lines
            return canonical_text([_NAME.sub(r"\1", first), *lines])
    return ""


def _config(record: Record, kernel: KernelRecord) -> tuple[ConfigEntry, ...]:
    own = next((f.config for f in record.files if f.path == kernel.file and f.config), ())
    return own or record.config


def _options(
    old: tuple[ConfigEntry, ...], new: tuple[ConfigEntry, ...]
) -> tuple[OptionChange, ...]:
    if not old or not new:
        return ()
    before, after = ({e.name: e.value for e in side} for side in (old, new))
    return tuple(
        OptionChange(name, before.get(name), after.get(name))
        for name in dict.fromkeys([*before, *after])
        if (name in before, before.get(name)) != (name in after, after.get(name))
    )


def _apart(old: ToolInfo, new: ToolInfo) -> tuple[str, tuple[str, ...]]:
    """(why times cannot be compared, notes)."""
    notes = tuple(
        f"{what}: {getattr(old, name) or 'unknown'} -> {getattr(new, name) or 'unknown'}"
        for name, what in (
            ("cpu", "CPU"), ("threads", "threads"), ("platform", "platform"),
            ("version", "version of qd-studio"), ("python", "Python"), ("llvm", "LLVM"),
        )
        if getattr(old, name) != getattr(new, name)
    )  # fmt: skip
    return other_machine(old, new), notes
