"""Locks of a machine's processors and device, for jobs that share it.

A job that imports or compiles holds one processor; a job that measures holds all that it may run
on, and the device. So at most as many jobs compute as there are processors, and no launch is timed
while another job computes. The locks are files: the system releases those of a process that died.

Processors come before the device, and in ascending order, so no two jobs wait for each other.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
import stat
import tempfile
import time
from hashlib import sha256
from typing import Final

__all__ = ["FOLDER", "LocksError", "Turns", "lock_folder"]

FOLDER: Final = "QD_FARM_LOCKS"
"""The variable that names another folder for the locks, where jobs do not share ``/tmp``."""
_RETRY_S: Final = 0.02


class LocksError(RuntimeError):
    """The locks cannot be used here; the message says why."""


def lock_folder() -> str:
    """The folder of this machine's locks, made if it is missing.

    Not that of ``TMPDIR``, which batch systems set for each job.
    """
    base = "/tmp" if os.path.isdir("/tmp") else tempfile.gettempdir()
    own = os.path.join(base, f"qd-studio-locks-{os.getuid()}-{socket.gethostname()}")
    path = os.environ.get(FOLDER) or own
    try:
        os.makedirs(path, 0o700, exist_ok=True)
        found = os.lstat(path)
    except OSError as error:
        why = f"{error.strerror}; name another folder with {FOLDER}"
        raise LocksError(f"cannot lock the processors in {path}: {why}") from None
    if path == own and (found.st_uid != os.getuid() or not stat.S_ISDIR(found.st_mode)):
        why = f"the folder belongs to someone else; name another one with {FOLDER}"
        raise LocksError(f"cannot lock the processors in {path}: {why}")
    return path


def processors() -> list[int]:
    """The processors that this process may run on."""
    affinity = getattr(os, "sched_getaffinity", None)
    return sorted(affinity(0)) if affinity is not None else list(range(os.cpu_count() or 1))


class Turns:
    """The locks that one process holds. Not for several threads."""

    def __init__(self, folder: str) -> None:
        self._folder: Final = folder
        self._cores: Final = processors()
        name = ",".join(map(str, self._cores))
        self._gate: Final = f"gate-{sha256(name.encode()).hexdigest()[:16]}"
        self._held: list[int] = []

    def compute(self) -> None:
        """Give up what is held; hold one processor, and share the device."""
        self.release()
        gate = self._locked(self._gate, fcntl.LOCK_EX)
        try:
            while not any(self._try(f"core-{core}") for core in self._cores):
                time.sleep(_RETRY_S)
        finally:
            os.close(gate)
        self._device(fcntl.LOCK_SH)

    def measure(self) -> None:
        """Give up what is held; hold all processors, and the device alone."""
        self.release()
        gate = self._locked(self._gate, fcntl.LOCK_EX)
        try:
            for core in self._cores:
                self._held.append(self._locked(f"core-{core}", fcntl.LOCK_EX))
        finally:
            os.close(gate)
        self._device(fcntl.LOCK_EX)

    def release(self) -> None:
        """Give up what is held."""
        while self._held:
            os.close(self._held.pop())

    def _device(self, mode: int) -> None:
        """Lock the device by its index; one that is named otherwise may be any of them."""
        first = os.environ.get("CUDA_VISIBLE_DEVICES", "0").partition(",")[0].strip()
        known = first.isdecimal()
        self._held.append(self._locked("device", fcntl.LOCK_SH if known else mode))
        if known:
            self._held.append(self._locked(f"device-{int(first)}", mode))

    def _opened(self, name: str) -> int:
        path = os.path.join(self._folder, f"{name}.lock")
        try:
            return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            why = f"{error.strerror}; name another folder with {FOLDER}"
            raise LocksError(f"cannot lock {path}: {why}") from None

    def _locked(self, name: str, mode: int) -> int:
        fd = self._opened(name)
        try:
            fcntl.flock(fd, mode)
        except OSError as error:
            os.close(fd)
            why = f"{error.strerror}; name another folder with {FOLDER}"
            raise LocksError(f"cannot lock {name} in {self._folder}: {why}") from None
        except BaseException:
            os.close(fd)
            raise
        return fd

    def _try(self, name: str) -> bool:
        fd = self._opened(name)
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._held.append(fd)
            return True
        os.close(fd)
        return False
