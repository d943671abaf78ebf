"""The entries that a program used in its last run, in order: a list for each main script.

    <root>/last_run/<digest of the script and the folder it was started in>.json

A run keeps its list when it ends, if it differs from the one before it. With a shared cache the
list goes there, too, so that a machine whose folder is empty has it; what the folder lacks is then
fetched before it is asked for (`remote.ahead`). Entries of this machine are not read ahead.

A forked process, one of `multiprocessing`, and ``python -c`` keep no list. A list is a hint: one
that is damaged, or of another version, is as good as none. No program starts or ends with an error
because of it.
"""

from __future__ import annotations

import atexit
import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, cast

from ..named_tuple import NamedTuple
from . import folder, running
from .entry import BadEntryError
from .parts import KEY_LENGTH, digest

if TYPE_CHECKING:
    from ..config import CompileConfig
    from .remote.client import Remote

__all__ = ["FOLDER", "MOST", "Used", "begin", "compiled_last_time", "note", "read"]

FOLDER: Final = "last_run"
MOST: Final = 2000
"""Entries of a list; the first ones are kept."""
_MOST_LISTS: Final = 64
_MOST_ROOTS: Final = 4
_LARGEST: Final = 1 << 20
"""Bytes of a list that is read."""


class Used(NamedTuple):
    """An entry: the arguments of `Store.answer`, and the layer."""

    layer: str
    key: str
    kernel: str


class _Run:
    """The entries that this process used from one root. remote: the shared cache, if any."""

    def __init__(self, root: str, script: str) -> None:
        self.root, self.script = root, script
        self.used: dict[Used, None] = {}
        self.remote: Remote | None = None

    @property
    def path(self) -> str:
        return f"{self.root}/{FOLDER}/{digest(self.script)}.json"

    @property
    def shared_name(self) -> str:
        """The name of the list for all machines: the ends of both paths."""
        script, _, start = self.script.partition("\n")
        return "/".join(script.split(os.sep)[-3:]) + " in " + os.path.basename(start)


_runs: dict[str, _Run] = {}
_process = 0
"""The process whose list is kept; 0 before `begin`."""


def begin(config: CompileConfig, remote: Remote | None) -> None:
    """Start the list of a program, and fetch what its last run used from the shared cache."""
    global _process
    script = _main_script()
    if not script or not config.offline_cache or _process not in (0, os.getpid()):
        return
    if not _process:
        _process = os.getpid()
        atexit.register(_keep_all)
    root = folder.root_of(config)
    run = _runs.get(root)
    if run is None:
        if len(_runs) >= _MOST_ROOTS:
            del _runs[next(iter(_runs))]
        run = _runs[root] = _Run(root, script)
    run.remote = remote
    if remote is not None and not folder.dry():
        remote.fetch_ahead(run.shared_name, lambda: _kept(run.path), lambda used: _path(run, used))


def _main_script() -> str:
    """The main script and the folder it was started in, a line each; empty if there is none."""
    name = sys.argv[0] if getattr(sys, "argv", None) else ""
    parents: Any = getattr(sys.modules.get("multiprocessing.process"), "parent_process", None)
    if name in ("", "-c", "-m", "-") or (parents is not None and parents() is not None):
        return ""
    try:
        return f"{os.path.abspath(name)}\n{os.getcwd()}"
    except OSError:  # the folder was removed
        return ""


def note(root: str, layer: str, key: str, kernel: str) -> None:
    """Note that an entry was used or made."""
    run = _runs.get(root)
    if run is not None and len(run.used) < MOST:
        run.used[Used(layer, key, kernel)] = None


def compiled_last_time() -> int:
    """The number of kernels that the last run obtained; 0 if it is not known."""
    return max((_kernels(run) for run in list(_runs.values())), default=0)


def _kernels(run: _Run) -> int:
    data = _kept(run.path)
    return 0 if data is None else sum(used.layer == "offline" for used in read(data)[1])


def read(data: bytes) -> tuple[str, list[Used]]:
    """The engine that made a list, and its entries; empty for what is no list."""
    import json  # here and below: programs without the disk do not load it

    try:
        found: Any = json.loads(data)
        engine, entries = found["engine"], found["entries"]
        named = [Used(*map(str, one)) for one in cast("list[list[str]]", entries)[:MOST]]
    except (ValueError, LookupError, TypeError, RecursionError):
        return "", []
    return str(engine), [one for one in named if _is_usable(one)]


def _is_usable(used: Used) -> bool:
    hexadecimal = used.key.isascii() and used.key.isalnum()
    return folder.is_layer(used.layer) and "/" not in used.layer and (
        hexadecimal and len(used.key) == KEY_LENGTH
    )  # fmt: skip


def _path(run: _Run, used: Used) -> str:
    return f"{run.root}/{used.layer}/{folder.entry_name(used.key, used.kernel)}"


# ---- files


def _kept(path: str) -> bytes | None:
    """The list of the last run on this machine."""
    try:
        folder.check(os.path.dirname(os.path.dirname(path)), os.path.dirname(path))
        data, _ = folder.fetch(path, dry=True)
    except (OSError, BadEntryError):
        return None
    return data if len(data) <= _LARGEST else None


def _keep_all() -> None:
    """At the end of the process."""
    if _process == os.getpid() and not folder.dry():
        for run in _runs.values():
            with suppress(OSError):  # the caches have warned of this folder
                _keep(run)


def _keep(run: _Run) -> None:
    if not run.used:
        return
    import json

    data = json.dumps(
        {"engine": running.known(), "entries": list(run.used)}, separators=(",", ":")
    ).encode("ascii")
    if len(data) > _LARGEST or data == _kept(run.path):
        return
    where = f"{run.root}/{FOLDER}"
    if folder.fault_of(run.root):  # FileNotFoundError for one that the program removed
        return
    folder.create(run.root, where)
    if not folder.is_there(run.path):
        _make_room(where)
    folder.put(where, os.path.basename(run.path), data)
    if run.remote is not None:
        run.remote.offer_list(run.shared_name, data)


def _make_room(where: str) -> None:
    """Remove the oldest lists, and what killed writers left."""
    lists = [entry for entry in os.scandir(where) if entry.is_file(follow_symlinks=False)]
    lists.sort(key=lambda entry: entry.stat(follow_symlinks=False).st_mtime)
    for entry in lists[: max(0, len(lists) + 1 - _MOST_LISTS)]:
        with suppress(OSError):
            os.unlink(entry.path)
