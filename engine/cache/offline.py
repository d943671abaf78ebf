"""The offline cache: from IR and options to machine code, in memory and on disk.

A kernel's key is made of parts (`keys`); the entry of a key is the artifact of the backend
(`codec`). Memory is always asked first: within a process no kernel is compiled twice for one key,
even if programs end in between (`in_process`). The disk is read and written only with
``offline_cache=True``; what such a program finds in memory goes to its folder, too, if another
program has compiled it with another folder. If the code of a backend is
cheaper to obtain after a launch (`Artifact.later`), its entries are written when the program ends.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

from .. import logs as log
from ..errors import QuadrantsRuntimeError
from ..named_tuple import NamedTuple
from .in_process import IN_PROCESS
from .locations import Function
from .observe import DAMAGED, HIT, OFF, Observation
from .parts import Part, key_of_text, text_of

if TYPE_CHECKING:
    from ..backends.base import Artifact, Backend
    from ..backends.tiers import Order
    from ..config import CompileConfig
    from ..ir import Func
    from .library import Library
    from .store import Store

__all__ = ["UNREADABLE", "Found", "Offline", "Slot"]

_OFF_REASON: Final = "offline_cache=False"
UNREADABLE: Final = (ValueError, TypeError, LookupError, AttributeError, OverflowError)
"""The errors that `codec.decode` raises for data that `codec.encode` did not make."""


About = Callable[[], dict[str, Any]]
"""Returns the description of an entry for people; see `store`."""


class Slot(NamedTuple):
    """The place of code in the cache.

    kernel: its qualified name. functions: those whose source it was made from, at their present
    locations. key: of `Offline.parts`.
    """

    kernel: str
    functions: Sequence[Function]
    key: str


class Found(NamedTuple):
    """The answer of the cache. artifact: None if there is none."""

    artifact: Artifact | None
    observation: Observation


class Offline:
    """The cache as one program sees it: with its options, and its parts of every key."""

    def __init__(self, config: CompileConfig, backend: Backend) -> None:
        self._config: Final = config
        self._backend: Final = backend
        self._common: tuple[Part, ...] | None = None
        self._common_text = ""
        self._store: Store | None = None
        self._late: list[tuple[Store, Slot, Artifact, About]] = []

    @property
    def common(self) -> tuple[Part, ...]:
        """The parts that all kernels of the program share."""
        if self._common is None:
            from .keys import common_parts

            self._common = common_parts(self._config, self._backend)
            self._common_text = text_of(self._common)
        return self._common

    def parts(self, func: Func, functions: Sequence[Function], noalias: bool) -> tuple[Part, ...]:
        """The parts of the key of ``func``, as the frontend made it of these functions."""
        from .keys import kernel_parts

        config = self._config
        locations = config.debug or config.check_out_of_bound or self._backend.keeps_locations
        return kernel_parts(func, functions, self.common, noalias, locations)

    def key(self, parts: Sequence[Part]) -> str:
        """The key that `parts` make; those that all kernels share have their text already."""
        end = 1 + len(self.common)
        return key_of_text(text_of(parts[:1]) + self._common_text + text_of(parts[end:]))

    @property
    def store(self) -> Store | None:
        """The entries on disk; None where options keep the program off it."""
        if self._store is None and self._config.offline_cache:
            from .store import open_store

            self._store = open_store(self._config, "offline")
        return self._store

    def find(self, slot: Slot, parts: tuple[Part, ...] = ()) -> Found:
        """Look a key up. parts: those that made the key, for the observation.

        A caller that cannot load what comes from the disk calls `spoiled`.
        """
        kernel, functions, key = slot
        began = perf_counter()
        artifact = IN_PROCESS.artifact(key, functions)
        state, reason, source = HIT, "", "memory"
        if artifact is None:
            store = self.store
            if store is None:
                state, reason, source = OFF, _OFF_REASON, ""
            else:
                state, reason, load, code, _, source = store.answer(key, kernel)
                if state == HIT:
                    from .codec import decode

                    try:
                        artifact = decode(load, code, functions)
                    except UNREADABLE as error:
                        why = f"cannot be read back: {type(error).__name__}: {error}"
                        state, reason, source = DAMAGED, store.spoiled(key, kernel, why), ""
                    else:
                        IN_PROCESS.put(key, artifact, functions)
                        IN_PROCESS.owes(key, store.folder, kernel)
        ms = (perf_counter() - began) * 1e3
        return Found(artifact, Observation("offline", state, reason, source, key, parts, ms=ms))

    def spoiled(self, slot: Slot, seen: Observation, error: Exception) -> Observation:
        """The observation that replaces the hit ``seen``, whose code could not be loaded."""
        IN_PROCESS.drop(slot.key)
        why = f"cannot be loaded: {error}"
        if seen.source != "memory" and self.store is not None:
            why = self.store.spoiled(slot.key, slot.kernel, why)
        return seen._replace(state=DAMAGED, reason=why, source="")

    def keep(self, slot: Slot, artifact: Artifact, about: About) -> bool:
        """Keep a compiled artifact. True if it is on disk now."""
        IN_PROCESS.put(slot.key, artifact, slot.functions)
        store = self.store
        if store is None:
            return False
        IN_PROCESS.owes(slot.key, store.folder, slot.kernel)  # no longer
        from . import last_run

        last_run.note(store.root, store.layer, slot.key, slot.kernel)  # its code may come later
        return self._write(store, slot, artifact, about)

    def keep_held(self, slot: Slot, artifact: Artifact, about: About) -> bool:
        """As `keep`, for an artifact found in memory: it is written once per folder and kernel."""
        store = self.store
        if store is None or not IN_PROCESS.owes(slot.key, store.folder, slot.kernel):
            return False
        if os.path.lexists(store.path_of(slot.key, slot.kernel)):
            return False  # of a kernel whose code this process has under another kernel's name
        return self._write(store, slot, artifact, about)

    def _write(self, store: Store, slot: Slot, artifact: Artifact, about: About) -> bool:
        """Write an entry now or, where its code comes later, in `finish`."""
        if artifact.later is None:
            return _write(store, slot, artifact, about)
        if artifact.first is not None:
            known = about()  # as below
            store.prepare()
            artifact.first.pending.then(
                lambda: _write_full(store, slot, artifact, known),
                lambda: _order(self._config, slot, artifact, known),
            )
            return False
        if not self._late:
            atexit.register(self.finish)  # before the device that has the code ends
        facts = about()  # now: it would keep the objects alive that the kernel was compiled for
        self._late.append((store, slot, artifact, lambda: facts))
        return False

    def finish(self) -> None:
        """Write the entries that were put off; called before the program ends."""
        late, self._late = self._late, []
        if late:
            atexit.unregister(self.finish)
        for store, slot, artifact, about in late:
            try:
                artifact.machine_code()
            except QuadrantsRuntimeError as error:
                log.debug(f"the code of {slot.kernel} is not kept: {error.message}")
                continue
            _write(store, slot, artifact, about)

    def start(self) -> None:
        """Compute the id of the engine, a part of every key, when the program begins: the start of
        the program waits for it, not its first call."""
        if self._config.offline_cache:
            from . import last_run
            from .engine_id import engine_id
            from .memo import runtime_store

            engine_id(runtime_store(self._config))
            last_run.begin(self._config, self.store and self.store.remote)

    def is_empty(self) -> bool:
        """True if no earlier process can have left code for this one."""
        if not self._config.offline_cache:
            return True
        store = self.store
        if store is None or store.remote is not None:
            return False
        try:
            with os.scandir(store.folder) as entries:
                return next(entries, None) is None
        except OSError:
            return True

    def injected(self, bypass: str = "") -> Library:
        """The injected cache that the backend gets for one compile.

        bypass: the reason why no cache of code may answer; empty if they may.
        """
        if not self._backend.makes_ptx:
            from .library import Library

            return Library(self._config, self._backend.name)
        from .ptx import PtxLayers

        return PtxLayers(self._config, self._backend.name, bypass)


def _write_full(store: Store, slot: Slot, artifact: Artifact, about: dict[str, Any]) -> None:
    """Write an entry whose code was made in the background."""
    artifact.machine_code()
    _write(store, slot, artifact, lambda: about)


def _order(
    config: CompileConfig, slot: Slot, artifact: Artifact, about: dict[str, Any]
) -> Order | None:
    """The data with which another process writes an entry; None if it cannot be kept."""
    from . import folder, orders

    if folder.dry():
        return None
    from .codec import encode

    try:
        load, _ = encode(artifact, slot.functions)
    except TypeError:
        return None
    return orders.__name__, orders.order(config, slot.key, slot.kernel, about, load)


def _write(store: Store, slot: Slot, artifact: Artifact, about: About) -> bool:
    from .codec import encode
    from .store import Entry

    try:
        load, code = encode(artifact, slot.functions)
    except TypeError as error:
        log.warn(f"code of the backend {artifact.backend} is not kept: {error}", once=True)
        return False
    return store.write(Entry(slot.key, slot.kernel, about(), load, code))
