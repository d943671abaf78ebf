"""Launches of an earlier compile, made in turns with those of the compile that is timed now.

Two runs belong to no common moment, so that a difference of a few percent is lost in what the
machine did meanwhile. Here the earlier look at a kernel leaves its code (`Kept`) and what it was
launched with, if that is small; the next one loads this code once more and times both in turns, by
the rule for backends (`verdicts`). So the code of a save needs nothing of its file, of its program
or of its fields.

    look 1    compile ─ launch ─ time ─ keep
    look 2    compile ─ launch ─ time, in turns with what look 1 kept ─ keep
                                  └────▶  LaunchRecord.earlier, of look 2

Rows for which that is not enough are measured longer when the look is over (`Unclear`), and the
record is renewed. The memory of a file's program is gone by then if another file came after it:
its rows are timed on what was kept, and so is the code of both.

Both work on the same arrays, if the two have the same parameters with the same contents;
otherwise the earlier code works on its own. Each launch record that is kept has a stamp,
and `LaunchRecord.earlier` has that of the launches it was compared with.
"""

from __future__ import annotations

import itertools
import os
import time
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast

import msgspec
import numpy as np

from ..backends import base
from ..ir import Param
from ..named_tuple import NamedTuple
from .inputs import HostValues, copies_of
from .interpreting import SEED
from .machine_load import busy
from .placing import Placed, clock_of, device_of, placed
from .record_launch import EarlierRecord, LaunchRecord
from .steps import StepLimit
from .timing import Contender, decided, measure_longer
from .verdicts import Rival, middles_of, times_by, verdicts_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from ..backends.base import Artifact
    from ..runtime.compile import FullCompile
    from .capture import KernelCapture
    from .measuring import Timed
    from .record import KernelRecord
    from .steps import Steps

__all__ = ["Earlier", "Kept", "KeptLooks", "Partner", "Unclear", "partner_of", "with_earlier"]

_LARGEST: Final = 64 << 20
"""Most bytes of the arguments of a launch that is kept."""
_MOST: Final = 256 << 20
"""Most bytes of all that is kept; the oldest go first."""
_LONGEST_S: Final = 24.0
"""Of all comparisons of a look, and again after it: an option may change all code of a file."""
_LONGER_S: Final = 4.0
"""Most that one comparison goes on for after the look."""
_LONGER_BUSY_S: Final = 12.0
"""The same on a busy machine, where half of the time belongs to other programs."""
_number: Final = itertools.count(1)
Key = tuple[str, str, str, str]
"""Name of a look, id of a kernel, backend, label of a workload."""


class Kept(NamedTuple):
    """Code and arguments of a launch. values: copies, in the order of the parameters."""

    stamp: str
    artifact: Artifact
    values: tuple[Any, ...]

    @property
    def bytes(self) -> int:
        texts = sum(map(len, self.artifact.texts.values()))
        return _size(self.values) + len(self.artifact.code) + texts


class Partner(NamedTuple):
    """The earlier compile of a kernel, ready to be timed with the new one."""

    kept: Kept
    place: Placed
    contender: Contender


class Unclear(NamedTuple):
    """A comparison that more launches can decide. seconds: for which they may go on. timed:
    without its place once the program is gone. kept: of the earlier compile and of this one; None
    if the arguments were too large."""

    capture: KernelCapture
    workload: str
    backend: str
    seconds: float
    timed: Timed
    kept: tuple[Kept, Kept] | None

    def measured(self, steps: Steps, seconds: float | None = None) -> KernelRecord:
        """The kernel's record after these launches, as a step of ``steps``."""
        kernel, timed = self.capture.record, self.timed
        seconds = self.seconds if seconds is None else seconds
        text = f"timing {kernel.name} on {self.backend} for longer, at most {seconds:.0f} s"
        try:
            with steps.step("launch", text, backend=self.backend, kind="launch"), steps.silent():
                timed = timed if timed.place is not None else self._ready(seconds / 2)
                assert timed.partner is not None
                both = timed.contender, timed.partner.contender
                measure_longer(*both, seconds, partial(steps.counted, unit="launch"))
        except StepLimit as limit:
            steps.passing(str(limit))
        renew = partial(self._renewed, timed)
        backends = [
            b if b.backend != self.backend else msgspec.structs.replace(
                b, launches=tuple(map(renew, b.launches))
            )
            for b in kernel.backends
        ]  # fmt: skip
        self.capture.record = msgspec.structs.replace(kernel, backends=tuple(backends))
        return self.capture.record

    def detached(self) -> Unclear:
        """The same without the memory that ends with the program of the file."""
        started = self.timed.started._replace(compiled=cast("Any", None))
        idle = Contender(lambda: None, lambda: None, 0.0)
        return self._replace(
            timed=self.timed._replace(started=started, place=None, contender=idle, partner=None)
        )

    def _ready(self, budget_s: float) -> Timed:
        """The code and arguments that were kept, ready to be timed by the present program."""
        assert self.kept is not None
        before, now = self.kept
        executable = base.find(now.artifact.backend).load(now.artifact)
        compiled = cast("Any", SimpleNamespace(executable=executable, artifact=now.artifact))
        place = placed(compiled, HostValues(copies_of(now.values)))
        made = partner_of(before, compiled, place, budget_s)
        assert made is not None  # the same two were timed before
        partner, restore = made
        contender = Contender(
            lambda: executable.launch(place.values, SEED),
            restore or place.restorer(now.artifact.meta.written), budget_s, None, place.clock,
        )  # fmt: skip
        return self.timed._replace(place=place, contender=contender, partner=partner)

    def _renewed(self, timed: Timed, launch: LaunchRecord) -> LaunchRecord:
        if launch.workload != self.workload or launch.earlier is None:
            return launch
        over = msgspec.structs.replace(launch.earlier, more_s=0.0)
        launch = msgspec.structs.replace(launch, earlier=over)
        # Those that began again may not have come as far.
        return launch if timed.contender.n < over.n else with_earlier(launch, timed)


class KeptLooks:
    """All that is kept in a process."""

    def __init__(self) -> None:
        self._kept: dict[Key, Kept] = {}

    def put(self, key: Key, kept: Kept) -> None:
        """Keep, and let the oldest go if it gets too much."""
        self._kept.pop(key, None)
        self._kept[key] = kept
        total = sum(one.bytes for one in self._kept.values())
        for old in list(self._kept):
            if total <= _MOST or old == key:
                break
            total -= self._kept.pop(old).bytes

    def find(self, look: str, kernel: str, backend: str, label: str) -> Kept | None:
        """Return what a look has kept of a kernel: of this id, else of the only one of its name."""
        found = self._kept.get((look, kernel, backend, label))
        if found is not None:
            return found
        name = kernel.rpartition(":")[2]
        alike = [
            one for (other, id, *rest), one in self._kept.items()
            if other == look and rest == [backend, label] and id.rpartition(":")[2] == name
        ]  # fmt: skip
        return alike[0] if len(alike) == 1 else None


class Earlier:
    """The launches that one look keeps, and those that it is compared with.

    keep, against: names of looks; empty for none. partners: the earlier name of a kernel, or of a
    backend with ``@`` before it, by the present one, where these differ. left_s: how long kernels
    may yet be launched for the precision of a comparison; later ones have fewer launches. longer_s:
    how long those that are `unclear` may go on, all together; longest_s: at first.
    """

    longest_s: ClassVar = _LONGEST_S

    def __init__(
        self, looks: KeptLooks, keep: str, against: str, partners: Mapping[str, str] | None = None
    ) -> None:
        self._looks: Final = looks
        self._keep: Final = keep
        self._against: Final = against
        self._partners: Final = dict(partners or {})
        self.left_s = _LONGEST_S
        self.longer_s = self.longest_s
        self.unclear: list[Unclear] = []
        self._held = 0

    def noted(self, capture: KernelCapture, record: LaunchRecord, timed: Timed) -> LaunchRecord:
        """The record, which says so if the comparison is to go on after the look."""
        place, partner = timed.place, timed.partner
        seconds = min(self.longer_s, _LONGER_BUSY_S if busy(record.load) else _LONGER_S)
        if record.earlier is None or place is None or partner is None or seconds <= 0:
            return record
        # The values, what restores them, and at most once more for the earlier compile.
        size = 4 * _size(place.given.values)
        if self._held + size > _MOST or decided(timed.contender, partner.contender):
            return record
        self._held += size
        kept = None if timed.kept is None else (partner.kept, timed.kept)
        backend = timed.started.name
        self.unclear.append(Unclear(capture, record.workload, backend, seconds, timed, kept))
        more = msgspec.structs.replace(record.earlier, more_s=seconds)
        return msgspec.structs.replace(record, earlier=more)

    def leave_program(self) -> None:
        """Let go of memory that ends with the program: another file comes next."""
        self.unclear = [one.detached() for one in self.unclear if one.kept is not None]

    def find(self, kernel: str, backend: str, label: str, compiled: FullCompile) -> Kept | None:
        """The earlier compile, if it is another one."""
        if not self._against:
            return None
        head, colon, name = kernel.rpartition(":")
        before = head + colon + self._partners.get(name, name)
        other = self._partners.get(f"@{backend}", f"@{backend}")[1:]
        kept = self._looks.find(self._against, before, other, label)
        code = compiled.artifact.code
        if kept is None or (code and kept.artifact.code == code):
            return None
        return kept

    def copied(self, compiled: FullCompile, values: Iterable[Any]) -> Kept | None:
        """A launch to keep, before it has changed its ``values``; None if they are too much."""
        several = tuple(values)
        if not self._keep or _size(several) > _LARGEST:
            return None
        stamp = f"{os.getpid()}.{time.time_ns():x}.{next(_number)}"
        return Kept(stamp, compiled.artifact, tuple(copies_of(several)))

    def keep(self, kernel: str, backend: str, label: str, kept: Kept) -> None:
        """Keep it for the next look."""
        self._looks.put((self._keep, kernel, backend, label), kept)


def partner_of(
    kept: Kept, compiled: FullCompile, place: Placed, budget_s: float
) -> tuple[Partner, Callable[[], None] | None] | None:
    """(the earlier compile, what restores arguments that the two share); None if the two cannot be
    launched on arguments of one shape.

    Both restore from one copy: what a cache still holds of arrays of several MiB depends on the
    addresses that were copied from, and should be the same for both.
    """
    old, new = kept.artifact.meta, compiled.artifact.meta
    where = {_bare(param): i for i, param in enumerate(new.params)}
    numbers = [where.get(_bare(param), -1) for param in old.params]
    name = kept.artifact.backend
    own = -1 in numbers or old.noalias != new.noalias or name != compiled.artifact.backend
    for value, at in zip(kept.values, numbers, strict=True):
        if at >= 0:
            if np.shape(value) != np.shape(place.given.values[at]):
                return None
            own = own or not _same(value, place.given.values[at])
    executable = base.find(name).load(kept.artifact)
    loaded = cast("Any", SimpleNamespace(executable=executable))
    if own:
        place = placed(loaded, HostValues(copies_of(kept.values)))
        numbers = list(range(len(old.params)))
    values = [place.values[i] for i in numbers]
    written = {numbers[i] for i in old.written}
    clock = place.clock
    device = device_of(loaded)
    if device is not None and not own:
        clock = clock_of(device, executable)
    restore = place.restorer(written if own else {*written, *new.written})
    contender = Contender(
        lambda: executable.launch(values, SEED), restore, budget_s, None, clock
    )  # fmt: skip
    return Partner(kept, place, contender), None if own else restore


def _bare(param: Param) -> Param:
    """A parameter without the number of another one."""
    return param._replace(grad=-1)


def _size(values: Iterable[Any]) -> int:
    return sum(cast("Any", v).nbytes for v in values if isinstance(v, np.ndarray))


def _same(one: Any, other: Any) -> bool:
    """True if two values have the same bytes."""
    a: Any = np.ascontiguousarray(one)
    b: Any = np.ascontiguousarray(other)
    if (a.shape, a.dtype) != (b.shape, b.dtype):
        return False
    return bool(np.array_equal(a.reshape(-1).view(np.uint8), b.reshape(-1).view(np.uint8)))


def with_earlier(record: LaunchRecord, timed: Timed) -> LaunchRecord:
    """The record with its stamp, and with what came of the comparison."""
    partner, kept, backend = timed.partner, timed.kept, timed.started.name
    record = msgspec.structs.replace(record, stamp="" if kept is None else kept.stamp)
    if partner is None or partner.contender.error is not None or timed.place is None:
        return record
    # Of single launches: in medians of several the short ones are lost.
    before, after = (x.record("", burst=1) for x in (partner.contender, timed.contender))
    if before is None or after is None:
        return record
    rivals = [
        Rival(backend, before, partner.place.record), Rival(backend, after, timed.place.record)
    ]  # fmt: skip
    for found in verdicts_of(rivals):
        times = [times_by(found.clock, x) for x in (before, after)]
        middles = middles_of(times[0], times[1], found.ratio, found.band)
        return msgspec.structs.replace(
            record,
            earlier=EarlierRecord(
                stamp=partner.kept.stamp, before_us=middles[0], after_us=middles[1], n=before.n,
                ratio=found.ratio, band=found.band, verdict=found.verdict, clock=found.clock,
                reason=found.reason,
            ),
        )  # fmt: skip
    return record
