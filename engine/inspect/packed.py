"""The form in which a record is saved: what many compiles have in common is kept once.

The backends of a kernel mostly run the same passes over the same IR, a pass mostly leaves most
lines as they were, and generated code repeats itself. `pack` moves the big parts of every compile
(runs, snapshots, locations, control-flow graphs, artefacts) into the tables of `Shared`, each
distinct one once, and notes in a `SavedCompile` which numbers of the tables a compile had.
`unpack` puts them back: the record is equal to the one that was packed.

::

    compiles[n] ── runs ──────► shared.runs           times are the compile's own
                ── snapshots ─► shared.snapshots ── shared.rows ── shared.texts
                ── locs ──────► shared.locs
                ── cfgs ──────► shared.cfgs
                ── artefacts ── lines ──────────────────────────► shared.texts
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Annotated, Any, Final, Generic, TypeVar

import msgspec

from .record import (
    VERSION,
    Artefact,
    BackendRecord,
    CfgRecord,
    CompileRecord,
    LocRecord,
    PassRun,
    Record,
    Remark,
    Rewrite,
    Snapshot,
)

__all__ = ["Kept", "SavedRecord", "pack", "unpack"]

Number = Annotated[int, msgspec.Meta(ge=0)]
Numbers = tuple[Number, ...]
T = TypeVar("T", bound=Hashable)


class _Base(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Settings shared by all parts; what has its default is not written."""


class SavedRun(_Base, frozen=True, kw_only=True):
    """A `PassRun` without its time."""

    index: int
    stage: str
    name: str
    round: int = 0
    task: int | None = None
    state: str = "noop"
    before: int = 0
    after: int = 0
    added: int = 0
    removed: int = 0
    rewritten: int = 0
    moved: int = 0
    remarks: tuple[Remark, ...] = ()
    rewrites: tuple[Rewrite, ...] = ()


class SavedSnapshot(_Base, frozen=True, kw_only=True, array_like=True):
    """A `Snapshot`. rows: for each line its number in `Shared.rows`."""

    ops: int
    rows: Numbers


class SavedArtefact(_Base, frozen=True, kw_only=True):
    """An `Artefact`. text: for each line, split at newlines, its number in `Shared.texts`."""

    name: str
    language: str
    text: Numbers
    lines: tuple[int, ...] = ()
    ops: tuple[int, ...] = ()
    remarks: tuple[Remark, ...] = ()


class SavedCompile(_Base, frozen=True, kw_only=True):
    """The parts moved out of the compile of one backend of one kernel, both by number.

    runs, snapshots, locs, cfgs: numbers in the tables of `Shared`. us: the time of each run.
    """

    kernel: Number
    backend: Number
    runs: Numbers = ()
    us: tuple[float, ...] = ()
    snapshots: Numbers = ()
    locs: Number = 0
    cfgs: Numbers = ()
    artefacts: tuple[SavedArtefact, ...] = ()


class Shared(_Base, frozen=True, kw_only=True):
    """The tables. texts: lines. rows: number of a line in texts, op id, number of its place.

    The places of a row, of an op in a graph, and the snapshots of a run are numbers within the
    compile that they belong to, as in `CompileRecord`.
    """

    texts: tuple[str, ...] = ()
    rows: tuple[tuple[Number, int, int], ...] = ()
    snapshots: tuple[SavedSnapshot, ...] = ()
    runs: tuple[SavedRun, ...] = ()
    locs: tuple[tuple[LocRecord, ...], ...] = ()
    cfgs: tuple[CfgRecord, ...] = ()


class SavedRecord(Record, frozen=True, kw_only=True):
    """A `Record` as it is written.

    compiles: what belongs into the empty ``runs``, ``snapshots``, ``locs``, ``cfgs`` and
    ``artefacts`` of the compiles in ``kernels``. shared: where that is.
    """

    shared: Shared = Shared()
    compiles: tuple[SavedCompile, ...] = ()


class Kept:
    """The fields of a part of a record that its saved form has as they are.

    changed: the fields of ``whole`` that ``saved`` has in another form. Raises TypeError if
    ``saved`` lacks any other: it would be lost.
    """

    def __init__(
        self, whole: type[msgspec.Struct], saved: type[msgspec.Struct], changed: Iterable[str]
    ) -> None:
        names = [x for x in whole.__struct_fields__ if x not in changed]
        lost = [x for x in names if x not in saved.__struct_fields__]
        if lost:
            raise TypeError(f"{saved.__name__} would lose of {whole.__name__}: {', '.join(lost)}")
        self._names: Final = names

    def of(self, thing: msgspec.Struct) -> dict[str, Any]:
        """Return their values in either form."""
        return {name: getattr(thing, name) for name in self._names}


_RUN: Final = Kept(PassRun, SavedRun, ("us",))
_SNAPSHOT: Final = Kept(Snapshot, SavedSnapshot, ("lines", "ids", "locs"))
_ARTEFACT: Final = Kept(Artefact, SavedArtefact, ("text",))
_RECORD: Final = Kept(Record, SavedRecord, ("version", "kernels"))
_PARTS: Final = ("runs", "snapshots", "locs", "cfgs", "artefacts")
"""The parts that are moved out of a `CompileRecord`."""


class _Table(Generic[T]):
    """Distinct things by number, in the order in which they came."""

    def __init__(self) -> None:
        self._numbers: dict[T, int] = {}

    def number(self, thing: T) -> int:
        return self._numbers.setdefault(thing, len(self._numbers))

    def numbers(self, things: Iterable[T]) -> tuple[int, ...]:
        known = self._numbers
        return tuple([known.setdefault(thing, len(known)) for thing in things])

    def all(self) -> tuple[T, ...]:
        return tuple(self._numbers)


class _Packer:
    """The tables while they grow."""

    def __init__(self) -> None:
        self.texts: _Table[str] = _Table()
        self.rows: _Table[tuple[int, int, int]] = _Table()
        self.snapshots: _Table[SavedSnapshot] = _Table()
        self.runs: _Table[SavedRun] = _Table()
        self.locs: _Table[tuple[LocRecord, ...]] = _Table()
        self.cfgs: _Table[CfgRecord] = _Table()

    def compile(self, kernel: int, backend: int, compiled: CompileRecord) -> SavedCompile:
        return SavedCompile(
            kernel=kernel,
            backend=backend,
            runs=self.runs.numbers([SavedRun(**_RUN.of(run)) for run in compiled.runs]),
            us=tuple([run.us for run in compiled.runs]),
            snapshots=self.snapshots.numbers(map(self._snapshot, compiled.snapshots)),
            locs=self.locs.number(compiled.locs),
            cfgs=self.cfgs.numbers(compiled.cfgs),
            artefacts=tuple(map(self._artefact, compiled.artefacts)),
        )

    def _snapshot(self, shot: Snapshot) -> SavedSnapshot:
        texts = self.texts.numbers(shot.lines)
        rows = self.rows.numbers(zip(texts, shot.ids, shot.locs, strict=True))
        return SavedSnapshot(rows=rows, **_SNAPSHOT.of(shot))

    def _artefact(self, x: Artefact) -> SavedArtefact:
        text = self.texts.numbers(x.text.split("\n"))
        return SavedArtefact(text=text, **_ARTEFACT.of(x))

    def shared(self) -> Shared:
        return Shared(
            texts=self.texts.all(),
            rows=self.rows.all(),
            snapshots=self.snapshots.all(),
            runs=self.runs.all(),
            locs=self.locs.all(),
            cfgs=self.cfgs.all(),
        )


def pack(record: Record) -> SavedRecord:
    """``record`` in the form that is written, as of this version."""
    packer = _Packer()
    compiles: list[SavedCompile] = []
    kernels = list(record.kernels)
    for k, kernel in enumerate(kernels):
        backends = list(kernel.backends)
        for b, backend in enumerate(backends):
            if backend.compile is not None:
                compiles.append(packer.compile(k, b, backend.compile))
                rest = msgspec.structs.replace(backend.compile, **dict.fromkeys(_PARTS, ()))
                backends[b] = msgspec.structs.replace(backend, compile=rest)
        kernels[k] = msgspec.structs.replace(kernel, backends=tuple(backends))
    return SavedRecord(
        version=VERSION,
        kernels=tuple(kernels),
        shared=packer.shared(),
        compiles=tuple(compiles),
        **_RECORD.of(record),
    )


# Characters of generated code: a table lets a small file name a long line very often.
_LONGEST_CODE: Final = 256 << 20


def unpack(saved: SavedRecord) -> Record:
    """The record that was packed. Raises ValueError for a number that no table has."""
    shared = saved.shared
    try:
        _check_lengths(saved)
        snapshots = [_snapshot(shared, shot) for shot in shared.snapshots]
        backends: dict[int, list[BackendRecord]] = {}
        for one in saved.compiles:
            several = backends.setdefault(one.kernel, list(saved.kernels[one.kernel].backends))
            backend = several[one.backend]
            if backend.compile is None:
                raise ValueError(f"backend {one.backend} of kernel {one.kernel} has no compile")
            whole = msgspec.structs.replace(backend.compile, **_parts(shared, one, snapshots))
            several[one.backend] = msgspec.structs.replace(backend, compile=whole)
    except IndexError:
        raise ValueError("a number leads out of its table") from None
    kernels = [
        msgspec.structs.replace(x, backends=tuple(backends[k])) if k in backends else x
        for k, x in enumerate(saved.kernels)
    ]
    return Record(version=saved.version, kernels=tuple(kernels), **_RECORD.of(saved))


def _snapshot(shared: Shared, shot: SavedSnapshot) -> Snapshot:
    rows = [shared.rows[n] for n in shot.rows]
    return Snapshot(
        lines=tuple([shared.texts[text] for text, _, _ in rows]),
        ids=tuple([id for _, id, _ in rows]),
        locs=tuple([loc for _, _, loc in rows]),
        **_SNAPSHOT.of(shot),
    )


def _parts(shared: Shared, one: SavedCompile, snapshots: list[Snapshot]) -> dict[str, Any]:
    """Return the parts of a compile, by the names of the fields."""
    return {
        "runs": tuple([_run(shared.runs[n], us) for n, us in zip(one.runs, one.us, strict=True)]),
        "snapshots": tuple([snapshots[n] for n in one.snapshots]),
        "locs": shared.locs[one.locs],
        "cfgs": tuple([shared.cfgs[n] for n in one.cfgs]),
        "artefacts": tuple([_artefact(shared, x) for x in one.artefacts]),
    }


def _run(run: SavedRun, us: float) -> PassRun:
    return PassRun(us=us, **_RUN.of(run))


def _artefact(shared: Shared, x: SavedArtefact) -> Artefact:
    return Artefact(text="\n".join([shared.texts[n] for n in x.text]), **_ARTEFACT.of(x))


def _check_lengths(saved: SavedRecord) -> None:
    lengths = [len(text) + 1 for text in saved.shared.texts]
    code = [x for one in saved.compiles for x in one.artefacts]
    if sum(lengths[n] for x in code for n in x.text) > _LONGEST_CODE:
        raise ValueError("its code is too long")
