"""Entries that another process writes: the helper of `backends.cpu`, after the program has ended.

An *order* is all of an entry but its code, with the options that say where it is kept. The process
that has the lock of a root writes there, so that there is one at a time for each root. It makes no
root: what was removed with the program stays removed.
"""

from __future__ import annotations

import json
import os
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final

from . import folder
from .running import set_known

if TYPE_CHECKING:
    from ..config import CompileConfig
    from .store import Store

__all__ = ["accepts", "order", "write"]

_LOCK: Final = "background"
_OPTIONS: Final = ("offline_cache", "remote_")

_locks: Final = ExitStack()
_held: Final[dict[str, bool]] = {}


def order(config: CompileConfig, key: str, kernel: str, about: dict[str, Any], load: Any) -> str:
    """Plain data for `write`, independent of the working directory."""
    options = {k: v for k, v in config.as_dict().items() if k.startswith(_OPTIONS)}
    options["offline_cache_file_path"] = folder.root_of(config)
    if config.remote_cache_key_file:
        path = os.path.expanduser(config.remote_cache_key_file)
        options["remote_cache_key_file"] = os.path.abspath(path)
    return json.dumps([options, key, kernel, about, load], separators=(",", ":"))


def accepts(text: str) -> bool:
    """True if this process may write the entry, and no other process has done so."""
    options, key, kernel, _, _ = json.loads(text)
    store = _store(options)
    # An entry that is damaged is written again.
    return _has_lock(store.root) and store.peek(key, kernel) is None


def write(text: str, code: bytes) -> None:
    """Write the entry with its code."""
    from .store import Entry

    options, key, kernel, about, load = json.loads(text)
    set_known(str(about["engine"]))
    store = _store(options)
    if os.path.isdir(store.root):
        store.write(Entry(key, kernel, about, load, code))


def _store(options: dict[str, Any]) -> Store:
    from ..config import CompileConfig
    from .store import open_store

    return open_store(CompileConfig(**options), "offline")


def _has_lock(root: str) -> bool:
    """True if this process holds the lock of an existing root; it does until it ends."""
    if root not in _held:
        try:
            held = _locks.enter_context(folder.locked(f"{root}/{_LOCK}", make=True))
        except OSError:
            held = False
        _held[root] = held
    return _held[root]
