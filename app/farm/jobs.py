"""One job of a farm, as plain data, and the function that a worker runs.

A job describes its surroundings: the variables of ours (``QD_*``), the folder, the arguments, and
the digests of the files. A worker on another machine needs the same version of this package and the
same files at the same paths, and says so where it lacks them.
"""

from __future__ import annotations

import hashlib
import os
import socket
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from typing import Final

import msgspec

from ...engine.inspect.record import Record
from ..worker.protocol import Limits, Opening, Study

__all__ = ["Answer", "FarmJob", "Outcome", "Value", "digests", "variables", "work"]

Value = str | int | float | bool
VERSION: Final = version("qd-studio")
_OURS: Final = ("QD_", "TI_", "CUDA_CACHE", "POCL_CACHE", "XDG_CACHE_HOME", "PYTHONHASHSEED")
# These name something of one machine or process, or are secrets: jobs cross networks as they are,
# and are in files of batch systems. A worker has its own.
_LOCAL: Final = ("QD_FARM_LOCKS", "QD_REMOTE_CACHE_KEY", "QD_REMOTE_CACHE_TOKEN")


class FarmJob(msgspec.Struct, frozen=True, kw_only=True):
    """Look at kernels of one file on some backends, with one set of options after another.

    kernels: names or ids, none for all. configs: each is one look; all looks of a job are made by
    the same worker, so that their times can be compared. digests: of files by path. labels: as in
    `protocol.Job`. variables, folder: of the process that measures.
    """

    file: str
    backends: tuple[str, ...] = ()
    kernels: tuple[str, ...] = ()
    configs: tuple[dict[str, Value], ...] = ({},)
    run: bool = False
    limits: Limits | None = None
    opening: Opening = Opening()
    study: Study | None = None
    labels: dict[str, str] = {}
    digests: dict[str, str] = {}
    variables: dict[str, str] = {}
    folder: str = ""
    version: str = VERSION

    @property
    def title(self) -> str:
        """The job in words."""
        parts = [os.path.basename(self.file)]
        if self.kernels:
            parts.append(f"({', '.join(self.kernels)})")
        if self.backends:
            parts.append(f"on {', '.join(self.backends)}")
        return " ".join(parts)


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of a study about the kernel of this id."""

    kernel: str
    answer: bytes


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a job: a record for each of its looks, or the reason why there is none.

    faults: what failed, as it is printed.
    """

    records: tuple[Record, ...] = ()
    answers: tuple[Answer, ...] = ()
    faults: tuple[str, ...] = ()
    error: str = ""
    host: str = ""


def digests(files: Iterable[str]) -> dict[str, str]:
    """The digests of the files that can be read; the worker says why another cannot."""
    out: dict[str, str] = {}
    for path in files:
        found = _digest(path)
        if found:
            out[path] = found
    return out


def variables(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that change what a look finds."""
    return {k: v for k, v in environment.items() if k.startswith(_OURS) and k not in _LOCAL}


def work(payload: bytes) -> bytes:
    """Do a job. It is called in the process of a worker, and raises nothing of ours."""
    job: FarmJob | None = None
    try:
        job = msgspec.msgpack.decode(payload, type=FarmJob)
        outcome = _looked(job)
    except Exception as error:
        found = msgspec.msgpack.decode(payload)
        theirs = found.get("version", "") if job is None else VERSION
        if theirs != VERSION:
            other = f"it has qd-studio {VERSION}, the command {theirs}: install the same"
            outcome = Outcome(error=f"the worker on {socket.gethostname()} is another: {other}")
        else:
            outcome = Outcome(error=f"{type(error).__name__}: {error}")
    return msgspec.msgpack.encode(msgspec.structs.replace(outcome, host=socket.gethostname()))


def _looked(job: FarmJob) -> Outcome:
    from ..worker.events import Event, Failed, Studied
    from ..worker.locks import lock_folder
    from ..worker.once import collect

    problem = _unlike(job)
    if problem:
        return Outcome(error=f"{problem} on {socket.gethostname()}")
    answers: list[Answer] = []
    faults: list[str] = []

    def listen(event: Event) -> None:
        if isinstance(event, Studied):
            answers.append(Answer(kernel=event.kernel, answer=event.answer))
        elif isinstance(event, Failed):
            faults.append(event.error.rendered or event.error.message)

    kept = {k: v for k, v in os.environ.items() if not k.startswith(_OURS) or k in _LOCAL}
    locks = lock_folder()
    records = tuple(
        collect(
            (job.file,), config, job.backends, listen, run=job.run, only=job.kernels,
            limits=job.limits, opening=job.opening, study=job.study, labels=job.labels,
            surroundings=({**kept, **job.variables}, job.folder), locks=locks,
        )
        for config in job.configs
    )  # fmt: skip
    return Outcome(records=records, answers=tuple(answers), faults=tuple(dict.fromkeys(faults)))


def _unlike(job: FarmJob) -> str:
    """The reason why this machine cannot do the job; empty if it can."""
    if job.version != VERSION:
        return f"the worker has qd-studio {VERSION}, the command {job.version}: install the same"
    if not os.path.isdir(job.folder):
        return f"there is no folder {job.folder}: workers need the same files at the same paths"
    for path, digest in job.digests.items():
        found = _digest(path)
        if found != digest:
            what = "is another file" if found else "is missing"
            return f"{path} {what}: workers need the same files at the same paths"
    return ""


def _digest(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""


def encoded(jobs: Sequence[FarmJob]) -> list[bytes]:
    """The jobs as workers get them."""
    return [msgspec.msgpack.encode(job) for job in jobs]
