"""The messages between the studio and its worker process.

Messages are msgspec structs with a tag, as msgpack, each after its length (4 bytes, little
endian). They go over two pipes of their own: the worker's standard output and error belong to user
code and are read as text. One job is in work at a time:

::

    studio                      worker
      Job ─────────────────────▶
          ◀──────────── Working      before every step that user code or a bug could hang or crash
          ◀──────────── FileLoaded   what a file holds, its kernels not yet compiled
          ◀──────────── KernelDone   compiled; again with launches; `final` when nothing will follow
          ◀──────────── Looked       the cache lookups, to compare the next look with
          ◀──────────── Studied      the answer of a study, where the job asks for one
          ◀──────────── JobDone
      Job ─────────────────────▶     also in the middle of a job: the worker drops the old one

A worker ends when the studio's end of its pipe closes, or is killed.
`Working.limit_s` arms the studio's clock: a worker that stays silent for longer is killed. Which
pass runs is reported through a `FlightRecorder`, a few bytes of shared memory, since a message for
every pass would cost more than many passes do, and since it must outlive the worker.
"""

from __future__ import annotations

import gc
import mmap
import re
import struct
from collections.abc import Sequence
from typing import Any, Final, NamedTuple, cast

import msgspec

from ...engine.inspect.edit_file import IrEdit
from ...engine.inspect.record import (
    ConfigEntry,
    ErrorRecord,
    FileRecord,
    KernelRecord,
    RunName,
    ToolInfo,
)
from ...engine.inspect.steps import late_text

__all__ = [
    "AFRESH", "LAST", "Assume", "Counts", "DeviceLost", "FileLoaded", "FlightRecorder",
    "FromWorker", "Hello", "Job", "JobDone", "KernelDone", "Limits", "Looked", "MessageDecoder",
    "Opening", "Problem", "Quarantined", "Studied", "Study", "ToWorker", "Unframer", "Working",
    "frame", "launch_in", "line_in", "note_of",
]  # fmt: skip


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds that each step may take, and how long timing may go on.

    measure_s: per workload and backend, warm-up included. interpret_s: per interpreted launch;
    a longer one is left out, which is not an error. grace_s: after a limit, for user code to be
    stopped from within, which can report its line, before the worker is killed.
    """

    import_s: float = 20.0
    run_s: float = 30.0
    compile_s: float = 60.0
    launch_s: float = 20.0
    measure_s: float = 0.4
    interpret_s: float = 2.0
    grace_s: float = 3.0


class Opening(msgspec.Struct, frozen=True, kw_only=True):
    """The environment of files when they are executed.

    arguments: each file's ``sys.argv`` after its own path. frames: how often windows are shown
    before they close. modules: the name of a module by its path, where it was opened by name.
    """

    arguments: tuple[str, ...] = ()
    frames: int = 8
    modules: dict[str, str] = {}


class Assume(msgspec.Struct, frozen=True, kw_only=True):
    """An assumption to try; see `engine.inspect.what_if`. kernel: name or id, empty for each.
    backend: empty for the first that launches."""

    text: str
    kernel: str = ""
    backend: str = ""


class Quarantined(msgspec.Struct, frozen=True, kw_only=True):
    """A step that ended an earlier worker: the error is reported and the step not tried again.

    kernel, backend: empty when the step belongs to the file. An import is tried again, up to the
    line of its error. launch: the number of the recorded launch that did not return; then the
    step is tried again up to that launch.
    """

    file: str
    stage: str
    error: ErrorRecord
    kernel: str = ""
    backend: str = ""
    launch: int = 0


class Study(msgspec.Struct, frozen=True, kw_only=True):
    """A question about one kernel, answered in place of a look; see `studies`.

    kind: bisect, repro, judge (a revision), nan or precision (see `nans`), check-grad (see
    `gradient_check`). backend: the one whose
    result is wrong; empty for the first that is wrong. predicate: a command that judges results;
    empty for the interpreter.
    metric: what became worse, in place of results. good, bad: options and passes left out, between
    which it became worse; ``good`` may be None.
    """

    kind: str
    backend: str = ""
    predicate: str = ""
    metric: str = ""
    good: str | None = None
    bad: str = ""


LAST: Final = "last"
"""The look that the next one is compared with, after a save."""


class Job(msgspec.Struct, frozen=True, kw_only=True, tag="job"):
    """Look at ``files``. skip: ids of kernels whose records the studio has and that still hold.

    labels: what kernel ids call a file, where that is not its base name. config: options of the
    studio, on top of the file's own `init`. backends: none means all known. run: record the calls
    that the file's `main` makes. launch: False only compiles. only: names or ids of kernels to
    look at, none for all; the others are listed. focus: the id of the kernel to look at first.
    watching: its passes are on the screen, and ``look`` is the name of the run shown (None: the
    first that changes something): that run is reported before the passes after it have run. looks:
    the lookups that earlier workers sent in `Looked`; passed to a worker with its first job. peaks:
    the speed of a backend that is not known is measured, once for the machine.
    texts: unsaved contents of files, by path, which count in place of the files; with ``careful``
    only those that differ inside of kernels are executed (see `unsaved`). brief: without launches,
    leave out generated code as well.
    assume: assumptions to try once the kernels have been launched. edit:
    edited IR for the kernel that it names; see `engine.inspect.edited`. study: what to
    find out about the kernels of ``only``. check: look for races and wrong indices. keep: the
    name under which launches are kept, to be timed in turns with those of later jobs; against: the
    name of those that are timed so with this job's; partners: earlier names by the present ones,
    see `engine.inspect.earlier`. longer: look at nothing, but go on with the comparisons that the
    job before has left unclear. locks:
    the folder of `locks`; empty without other jobs.
    """

    id: int
    files: tuple[str, ...]
    config: dict[str, str | int | float | bool] = {}
    labels: dict[str, str] = {}
    backends: tuple[str, ...] = ()
    run: bool = False
    launch: bool = True
    only: tuple[str, ...] = ()
    focus: str = ""
    watching: bool = False
    look: RunName | None = None
    skip: tuple[str, ...] = ()
    quarantined: tuple[Quarantined, ...] = ()
    limits: Limits = Limits()
    opening: Opening = Opening()
    edit: IrEdit | None = None
    looks: dict[str, bytes] = {}
    peaks: bool = False
    assume: tuple[Assume, ...] = ()
    study: Study | None = None
    check: bool = False
    keep: str = ""
    against: str = ""
    partners: dict[str, str] = {}
    longer: bool = False
    texts: dict[str, str] = {}
    careful: bool = True
    brief: bool = False
    locks: str = ""


class Hello(msgspec.Struct, frozen=True, kw_only=True, tag="hello"):
    """The worker is up."""

    pid: int
    tool: ToolInfo


class Working(msgspec.Struct, frozen=True, kw_only=True, tag="working"):
    """The step that starts now. stage: as in `ErrorRecord`; limit_s: 0 for no limit.

    note, loop: what may keep it from ending, in words, and the line of that in the kernel.
    """

    job: int
    stage: str
    text: str
    limit_s: float
    file: str = ""
    kernel: str = ""
    kernel_name: str = ""
    backend: str = ""
    line: int = 0
    done: int = 0
    total: int = 0
    note: str = ""
    loop: int = 0

    def late_text(self) -> str:
        """The message about the step if it exceeds its limit."""
        return late_text(self.limit_s, self.text, self.note)


class FileLoaded(msgspec.Struct, frozen=True, kw_only=True, tag="file"):
    """A file was imported, or could not be (then ``errors`` says why and ``ok`` is false).

    partial: an error ended the import, ``kernels`` are those that were defined before it. files:
    its text and those of the helper modules it imported, itself first. kernels: in source order,
    without backends.
    """

    job: int
    path: str
    ok: bool
    files: tuple[FileRecord, ...]
    partial: bool = False
    kernels: tuple[KernelRecord, ...] = ()
    errors: tuple[ErrorRecord, ...] = ()
    config: tuple[ConfigEntry, ...] = ()


class KernelDone(msgspec.Struct, frozen=True, kw_only=True, tag="kernel"):
    """A kernel's record as far as it is known. again: backends whose passes are those of the
    message before, and left out here (see `packing`)."""

    job: int
    kernel: KernelRecord
    final: bool
    again: tuple[str, ...] = ()


class Looked(msgspec.Struct, frozen=True, kw_only=True, tag="looked"):
    """The cache lookups for some kernels; see `engine.inspect.PastLookups`."""

    job: int
    looks: dict[str, bytes]


class Studied(msgspec.Struct, frozen=True, kw_only=True, tag="studied"):
    """The answer of a study, as JSON, for the kernel of this id."""

    job: int
    kernel: str
    answer: bytes


class Problem(msgspec.Struct, frozen=True, kw_only=True, tag="problem"):
    """A failure that belongs to a file, not to one kernel; the job goes on."""

    job: int
    path: str
    error: ErrorRecord


AFRESH: Final = 75
"""Exit status of a worker after `DeviceLost`."""


class DeviceLost(msgspec.Struct, frozen=True, kw_only=True, tag="lost"):
    """A device is of no more use to this process, which ends: another one does the rest of the job.

    quarantined: the launch that was at fault, if it was that of a kernel. files: what is left to be
    done.
    """

    job: int
    files: tuple[str, ...]
    quarantined: tuple[Quarantined, ...] = ()


class JobDone(msgspec.Struct, frozen=True, kw_only=True, tag="done"):
    """The job is over; ``given_up`` when a newer one took its place. unclear: comparisons of times
    that a job with `Job.longer` can go on with."""

    job: int
    elapsed_ms: float
    given_up: bool = False
    unclear: int = 0


ToWorker = Job
FromWorker = (
    Hello | Working | FileLoaded | KernelDone | Looked | Studied | Problem | DeviceLost | JobDone
)  # fmt: skip

_encoder: Final = msgspec.msgpack.Encoder()
_MAX_FRAME: Final = 1 << 30
_LARGE: Final = 1 << 16


def frame(message: ToWorker | FromWorker) -> bytes:
    """``message`` as it goes through the pipe."""
    try:
        body = _encoder.encode(message)
    except UnicodeEncodeError:
        body = _encoder.encode(_encodable(message))
    return len(body).to_bytes(4, "little") + body


def _encodable(value: Any) -> Any:
    """``value`` with halves of surrogate pairs, which messages of users may hold, as escapes."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, msgspec.Struct):
        parts = {name: _encodable(getattr(value, name)) for name in value.__struct_fields__}
        return msgspec.structs.replace(value, **parts)
    if isinstance(value, tuple | list):
        return tuple(map(_encodable, cast("Sequence[Any]", value)))
    if isinstance(value, dict):
        items = cast("dict[Any, Any]", value).items()
        return {_encodable(key): _encodable(part) for key, part in items}
    return value


class MessageDecoder:
    """Reads message bodies. Python's collector pauses meanwhile: of a large message it would look
    at every part again and again, ten times as long as reading lasts."""

    def __init__(self) -> None:
        self._decoder: Final = msgspec.msgpack.Decoder(FromWorker)

    def decode(self, body: bytes) -> FromWorker:
        """The message of a body."""
        pause = len(body) > _LARGE and gc.isenabled()
        if pause:
            gc.disable()
        try:
            return self._decoder.decode(body)
        finally:
            if pause:
                gc.enable()


class Unframer:
    """Cuts a byte stream into message bodies; the caller decodes them."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        """The bodies that ``data`` completes. ValueError if this cannot be our stream."""
        self._bytes += data
        out: list[bytes] = []
        start = 0
        while len(self._bytes) - start >= 4:
            size = int.from_bytes(self._bytes[start : start + 4], "little")
            if size > _MAX_FRAME:
                raise ValueError(f"a message of {size} bytes")
            if len(self._bytes) - start - 4 < size:
                break
            out.append(bytes(self._bytes[start + 4 : start + 4 + size]))
            start += 4 + size
        del self._bytes[:start]
        return out


_PLACE: Final = re.compile(r"line (\d+)(?:, launch (\d+))?")


def note_of(line: int, launch: int = 0) -> str:
    """The note of a flight recorder for a line of a file and the number of a recorded launch."""
    return f"line {line}, launch {launch}" if launch else f"line {line}"


def line_in(note: str) -> int:
    """The line in a note; 0 if it is the note of a pass."""
    found = _PLACE.fullmatch(note)
    return int(found[1]) if found else 0


def launch_in(note: str) -> int:
    """The number of the launch in a note; 0 if there is none."""
    found = _PLACE.fullmatch(note)
    return int(found[2] or 0) if found else 0


class Counts(NamedTuple):
    """The progress of a step: done of total (0: unknown), of what, and the statements of the IR."""

    done: int = 0
    total: int = 0
    statements: int = 0
    unit: str = ""


_COUNTS: Final = struct.Struct("<III20s")
_MOST: Final = (1 << 32) - 1


class FlightRecorder:
    """A short text in a file that two processes map: the pass that runs, readable after a crash.
    Next to it the `Counts` of the step, which change too often for messages."""

    _TEXT: Final = 256
    SIZE: Final = _TEXT + _COUNTS.size

    def __init__(self, fd: int) -> None:
        """``fd``: a file of at least SIZE bytes, open for reading and writing."""
        self._map = mmap.mmap(fd, self.SIZE)

    def count(self, counts: Counts) -> None:
        """Replace the counts."""
        numbers = (min(max(n, 0), _MOST) for n in counts[:3])
        _COUNTS.pack_into(self._map, self._TEXT, *numbers, counts.unit.encode()[:20])

    def counts(self) -> Counts:
        """The counts last set, by whichever process. One that is being written may be mixed."""
        done, total, statements, unit = _COUNTS.unpack_from(self._map, self._TEXT)
        return Counts(done, total, statements, unit.rstrip(b"\0").decode("utf-8", "replace"))

    def note(self, text: str) -> None:
        """Replace the text; cut off if too long."""
        data = text.encode("utf-8", "replace")[: self._TEXT - 1]
        self._map[: len(data) + 1] = data + b"\0"

    def read(self) -> str:
        """The text last noted, by whichever process."""
        return self._map[: self._TEXT].split(b"\0", 1)[0].decode("utf-8", "replace")
