"""The shared cache, for people: its answer for a kernel, and its state.

Looking sends nothing and counts nothing. What is found stays where it is.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from ..cache import entry, folder
from ..cache.engine_id import engine_id
from ..cache.observe import HIT
from ..config import resolve
from ..named_tuple import NamedTuple
from .record import CacheLayer

if TYPE_CHECKING:
    from ..cache.store import Info, Store

__all__ = ["Last", "SharedCache", "asked", "last", "load_of", "push", "shared_cache"]

_ABSENT: Final = "0" * 64


class Last(NamedTuple):
    """The last shared entry of a kernel. made_on: host and target, in words."""

    info: Info
    made_on: str


class SharedCache(NamedTuple):
    """The shared cache of a program that starts here.

    url: empty if there is none. problem: why it cannot be used, or does not answer. mode: ``read``
    or ``read_write``. signer: the key that signs, empty for none; trusted: those that are accepted.
    answer_ms: the time of one request. programs: how many left counts here; counts: their sums, in
    which refused and why_unsent are {reason: number}. last: the last trouble, and its time.
    """

    url: str
    problem: str = ""
    mode: str = ""
    signer: str = ""
    trusted: tuple[str, ...] = ()
    answer_ms: float = 0.0
    deadline_ms: float = 0.0
    programs: int = 0
    counts: dict[str, Any] = {}  # noqa: RUF012
    last: str = ""
    last_time: float = 0.0


def asked(layer: CacheLayer, store: Store, kernel: str) -> CacheLayer:
    """``layer`` as a hit, if the shared cache has the entry; else with its trouble as reason."""
    remote = store.remote
    if remote is None:
        return layer
    engine_id()  # from now on the id is known, which entries are checked for
    reply = remote.look(store.layer, layer.key, kernel)
    if not reply.data:
        return replace(layer, reason=f"the shared entry {reply.reason}" if reply.about
                       else reply.reason)  # fmt: skip
    return replace(
        layer, state=HIT, source="remote", reason=reply.reason, size_bytes=len(reply.data),
        path=remote.settings.url, entry_created=_day(float(reply.about.get("made", 0.0))),
    )  # fmt: skip


def load_of(store: Store, key: str, kernel: str) -> Any:
    """The JSON values that the use of a shared entry needs; None if there is no good one."""
    remote = store.remote
    reply = None if remote is None else remote.look(store.layer, key, kernel)
    if reply is None or not reply.data:
        return None
    try:
        return entry.load_and_code(reply.data, key, kernel)[0]
    except entry.BadEntryError:
        return None


def last(store: Store, kernel: str) -> Last | None:
    """The last entry of a kernel in the shared cache."""
    remote = store.remote
    found = None if remote is None else remote.latest(store.layer, kernel)
    if remote is None or found is None:
        return None
    from ..cache.parts import key_of
    from ..cache.store import Info

    about, made_on = found
    created = float(about.get("created", 0.0))
    key = key_of(dict(about.get("parts") or {}).items())
    url = remote.settings.url
    return Last(Info(store.layer, key, kernel, url, 0, created, created, about), made_on)


def shared_cache(path: str = "") -> SharedCache:
    """The shared cache that the environment names, asked once; path: root of the caches."""
    from ..cache.remote import client, counts

    config = resolve({"offline_cache_file_path": path or None}, os.environ).config
    kept = counts.kept(folder.root_of(config))
    nothing: dict[str, Any] = {}
    trouble = next((one for one in reversed(kept) if one.get("last")), nothing)
    found = SharedCache(
        config.remote_cache, mode=config.remote_cache_mode,
        deadline_ms=config.remote_cache_deadline, programs=len(kept), counts=_sums(kept),
        last=str(trouble.get("last", "")), last_time=float(trouble.get("time", 0.0)),
    )  # fmt: skip
    if not config.remote_cache:
        return found
    remote = client.remote_of(config, warn=False)
    if isinstance(remote, str):
        shown = config.remote_cache if "password" not in remote else "(not shown)"
        return found._replace(url=shown, problem=remote)
    engine_id()
    began = time.perf_counter()
    reply = remote.look("offline", _ABSENT[:40], "")
    took = (time.perf_counter() - began) * 1e3
    good = reply.state in (client.NOTHING, client.FOUND, client.REFUSED)
    return found._replace(
        mode="read_write" if remote.writes else "read", signer=remote.keys.signer,
        trusted=remote.keys.trusted, answer_ms=took, problem="" if good else reply.reason,
    )  # fmt: skip


def push(path: str = "") -> dict[str, Any]:
    """Send the good entries of this engine that a root has; returns the counts of the cache.

    ValueError says why nothing can be sent.
    """
    from ..cache.remote import client
    from .stores import Caches

    config = resolve({"offline_cache_file_path": path or None}, os.environ).config
    if not config.remote_cache:
        raise ValueError("QD_REMOTE_CACHE is not set")
    remote = client.remote_of(config, warn=False)
    if isinstance(remote, str):
        raise ValueError(remote)
    if not remote.writes:
        raise ValueError("remote_cache_mode is read, or there is no key to sign with")
    mine = engine_id()
    for info in Caches(path).entries():
        if info.problem or info.about.get("engine") != mine or "parts" not in info.about:
            continue
        try:
            data, _ = folder.fetch(info.path, dry=True)
        except (OSError, entry.BadEntryError):
            continue
        remote.offer(info.layer, entry.Entry(info.key, info.kernel, info.about, None, b""), data)
        remote.flush(client.STEP_S)
    return remote.counts.as_dict()


def _sums(kept: list[dict[str, Any]]) -> dict[str, Any]:
    """The counts of programs, added up; the longest of their longest waits."""
    total: dict[str, Any] = {}
    for one in kept:
        for name, value in one.items():
            if isinstance(value, dict):
                into: dict[str, int] = total.setdefault(name, {})
                for why, number in value.items():  # pyright: ignore[reportUnknownVariableType]
                    into[str(why)] = into.get(str(why), 0) + int(number)  # pyright: ignore
            elif name == "longest_ms":
                total[name] = max(total.get(name, 0.0), float(value))
            elif isinstance(value, int | float) and name != "time":
                total[name] = total.get(name, 0) + value
    return total


def _day(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(seconds))
