"""The cache directory: its location, its owner, and how files get in and out of it.

The *root* is ``offline_cache_file_path``, or ``qd-studio/qdcache`` in the user's cache directory.
Below it each layer has a folder, and in that, a file per entry (see `entry`)::

    <root>/offline/<kernel>-<key>.qd1       kernel: 16 hexadecimal digits, key: 40
    <root>/fastcache/...
    <root>/lock                             held by a process while it removes files
    <root>/background                       held by the process that writes `orders`
    <root>/last_run/<script>.json           the entries that a program used (`last_run`)

There is no index: a listing finds the entries of a kernel, and damage to one file does not affect
another.

**Trust.** Code from here is executed. So a folder is used only if it is a folder itself, no
symbolic link, if it belongs to the effective user and if no one else may write to it. The same
holds for each file: it is opened without following links and then checked through its descriptor,
so that it cannot be exchanged in between.

**Writing** goes to a file of another name, and then into place in one step, so that a reader sees
the old file, the new one, or none, even if the writer is killed. Nothing waits for the disk, 5 ms
and more for each kernel: if the machine loses its power, a file may be cut, which its checksum
shows, and the kernel is compiled again. A writer holds a
lock on its unfinished file, which ends with the process for any cause: this distinguishes files
that dead writers left from files that are being written, across containers and machines as well.

**Failures** are never errors: a read returns nothing, a write reports that nothing was kept, and
one warning for each folder or entry says what is wrong and what to do.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

from .. import logs as log
from .entry import FORMAT, MAX_SIZE, BadEntryError, kernel_tag

if TYPE_CHECKING:
    from ..config import CompileConfig

__all__ = [
    "SUFFIX", "UntrustedError", "can_lock", "check", "create", "default_root", "dry", "entry_name",
    "fault_of", "fetch", "is_layer", "is_temporary", "is_there", "key_in_name", "locked",
    "names_in", "put", "root_of", "set_dry", "start_of", "warn_once",
]  # fmt: skip

SUFFIX: Final = f".qd{FORMAT}"
_TEMPORARY: Final = ".tmp"
_LAYERS: Final = frozenset({"offline", "fastcache", "runtime", "checks"})
_HEX: Final = frozenset("0123456789abcdef")

_READ: Final = (
    os.O_RDONLY
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_CLOEXEC", 0)
    # A pipe in an entry's place must not make us wait; for regular files it means nothing.
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_BINARY", 0)
)
_NO_ATIME: Final = getattr(os, "O_NOATIME", 0)
_CREATE: Final = (
    os.O_WRONLY
    | os.O_CREAT
    | os.O_EXCL
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)

_dry = False
_warned: set[str] = set()


def set_dry(on: bool) -> None:
    """Set whether this process is dry: it then uses, writes and touches nothing on disk."""
    global _dry
    _dry = on


def dry() -> bool:
    """True if this process is dry: see `set_dry`."""
    return _dry


def warn_once(path: str, text: str) -> None:
    """Warn once about ``path``, a folder or an entry; further faults of it are silent."""
    if path not in _warned:
        _warned.add(path)
        log.warn(text)


class UntrustedError(OSError):
    """A folder or file that may not be used; the message continues a sentence after its name."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(errno.EPERM, why, path)
        self.path, self.why = path, why


# ---- where


def default_root() -> str:
    """``qd-studio/qdcache`` in the user's cache directory; its own name keeps it separate."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):  # the rule of the XDG specification
        base = os.path.expanduser(
            "~/Library/Caches" if sys.platform == "darwin" else os.path.join("~", ".cache")
        )
    return os.path.join(os.path.abspath(base), "qd-studio", "qdcache")


def root_of(config: CompileConfig) -> str:
    """The root that the options name: an absolute path."""
    path = config.offline_cache_file_path
    return os.path.abspath(os.path.expanduser(path)) if path else default_root()


def is_layer(name: str) -> bool:
    """True if a folder of this name in the root belongs to a layer."""
    return name in _LAYERS or name.startswith("ptx_")


def entry_name(key: str, kernel: str) -> str:
    """The name of the file of an entry."""
    return f"{kernel_tag(kernel)}-{key}{SUFFIX}"


def key_in_name(name: str) -> tuple[str, str] | None:
    """(digits of the kernel, key) of an entry's file, in this format or in another; else None."""
    stem, _, number = name.rpartition(".qd")
    if len(stem) != 57 or stem[16] != "-" or not (number.isascii() and number.isdigit()):
        return None
    kernel, key = stem[:16], stem[17:]
    return (kernel, key) if _HEX.issuperset(kernel + key) else None


def is_temporary(name: str) -> bool:
    """True if a file is being written, or was left by a killed process."""
    return (
        len(name) == 21
        and name[0] == "."
        and name.endswith(_TEMPORARY)
        and _HEX.issuperset(name[1:17])
    )


# ---- owner


def _not_ours(info: os.stat_result) -> str:
    """The fault of the owner or the mode; empty if there is none."""
    if hasattr(os, "geteuid") and info.st_uid != os.geteuid():
        return "belongs to another user"
    if info.st_mode & 0o022:
        return "can be written by other users"
    return ""


def fault_of(path: str) -> str:
    """The reason not to use a folder, or "". FileNotFoundError; OSError if it is not accessible."""
    info = os.lstat(path)
    if not stat.S_ISDIR(info.st_mode):
        return "is a symbolic link" if stat.S_ISLNK(info.st_mode) else "is no folder"
    return _not_ours(info)


def check(root: str, folder: str) -> None:
    """UntrustedError if either may not be used; FileNotFoundError if either is not there."""
    if why := fault_of(root):
        raise UntrustedError(root, why)
    if why := fault_of(folder):
        raise UntrustedError(folder, why)


def create(root: str, folder: str) -> None:
    """Make both if they are not there, for this user alone, and `check` them."""
    try:
        check(root, folder)
    except FileNotFoundError:
        missing = [folder]
        while (parent := os.path.dirname(missing[-1])) and not os.path.lexists(parent):
            missing.append(parent)
        for path in reversed(missing):
            try:
                os.mkdir(path, 0o700)
            except FileExistsError:
                continue  # another process was faster; the owner is checked below
        check(root, folder)


# ---- files


def fetch(path: str, *, dry: bool = False) -> tuple[bytes, os.stat_result]:
    """The bytes of a file of ours, and its status before it was read.

    dry: change nothing; else its time of last use is set to now. OSError, UntrustedError,
    BadEntryError.
    """
    fd = _open_dry(path) if dry else _open(path, _READ)
    try:
        info = _own_file(path, fd)
        size = info.st_size
        if size > MAX_SIZE:
            raise BadEntryError(f"is too large: {size} bytes")
        # One byte more than there should be shows the end, and a file that grows.
        data = os.read(fd, size + 1)
        while len(data) < size and (more := os.read(fd, size + 1 - len(data))):
            data += more
        if not dry:
            _touch(fd)
    finally:
        os.close(fd)
    return data, info


def start_of(path: str, size: int) -> bytes:
    """The first bytes of a file of ours; changes nothing. OSError, UntrustedError."""
    fd = _open_dry(path)
    try:
        _own_file(path, fd)
        return os.read(fd, size)
    finally:
        os.close(fd)


def _own_file(path: str, fd: int) -> os.stat_result:
    """The status of an open file that may be used. UntrustedError for any other."""
    info = os.fstat(fd)
    if not stat.S_ISREG(info.st_mode):
        raise UntrustedError(path, "is no regular file")
    if why := _not_ours(info):
        raise UntrustedError(path, why)
    return info


def _open(path: str, flags: int, mode: int = 0) -> int:
    try:
        return os.open(path, flags, mode)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EMLINK):
            raise UntrustedError(path, "is a symbolic link") from None
        if error.errno == errno.ENXIO:
            raise UntrustedError(path, "is no regular file") from None
        raise


def _open_dry(path: str) -> int:
    try:
        return _open(path, _READ | _NO_ATIME)
    except PermissionError:
        return _open(path, _READ)  # some file systems know no O_NOATIME


def _touch(fd: int) -> None:
    with suppress(OSError):  # a read-only file system; it was read all the same
        os.utime(fd)


def put(folder: str, name: str, data: bytes) -> None:
    """Write a file, so that at any moment the old one or the whole new one is there. OSError."""
    # Random, not counted: processes share the folder, and a forked one continues our counters.
    temporary = f"{folder}/.{os.urandom(8).hex()}{_TEMPORARY}"
    fd = os.open(temporary, _CREATE, 0o600)
    try:
        _lock(fd)
        view = memoryview(data)
        while view:
            view = view[os.write(fd, view) :]
        os.replace(temporary, f"{folder}/{name}")
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
    finally:
        os.close(fd)


def is_there(path: str) -> bool:
    """True if there is anything of this name."""
    return os.path.lexists(path)


def names_in(folder: str) -> list[str]:
    """Names in a folder, sorted; its time of last access stays as it is. Empty without one."""
    flags = _READ | getattr(os, "O_DIRECTORY", 0)
    fd = -1
    try:
        try:
            fd = os.open(folder, flags | _NO_ATIME)
        except PermissionError:
            fd = os.open(folder, flags)  # some file systems know no O_NOATIME
        return sorted(os.listdir(fd))
    except OSError:
        return []
    finally:
        if fd >= 0:
            os.close(fd)


# ---- locks


def can_lock(path: str) -> bool:
    """True if a file can be locked now: the file system has locks, and no process holds it."""
    try:
        import fcntl

        fd = _open(path, os.O_RDWR | _READ)
    except (ImportError, OSError):
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(fd)  # which ends the lock
    return True


def _lock(fd: int) -> bool:
    """Lock an open file, unless another process has locked it; True on a system without locks."""
    try:
        import fcntl
    except ImportError:
        return True
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno not in (errno.EWOULDBLOCK, errno.EACCES)
    return True


def _unlock(fd: int) -> None:
    # Closing is not enough: a process forked meanwhile still holds the same open file.
    try:
        import fcntl

        fcntl.flock(fd, fcntl.LOCK_UN)
    except (ImportError, OSError):
        pass


@contextmanager
def locked(path: str, *, make: bool = False) -> Generator[bool]:
    """Hold the lock on a file, without waiting; yields True if it is held. Ends with the process.

    make: create the file if it does not exist. OSError if it cannot be opened.
    """
    flags = os.O_RDWR | (os.O_CREAT if make else 0)
    fd = _open(path, flags | _READ, 0o600)
    held = False
    try:
        held = _lock(fd)
        yield held
    finally:
        if held:
            _unlock(fd)
        os.close(fd)
