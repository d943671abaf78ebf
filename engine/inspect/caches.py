"""Predicts the answers of the user's caches for a kernel, without a trace in them.

A capture runs the whole pipeline and asks no cache. Afterwards `dry_lookup` makes the keys that a
program started now would ask for, with the same options, and `answer` looks for them: no byte and
no timestamp changes, nothing is counted, and code of the user that runs in this process has no
cache on disk at all (`dry_caches`).

A shared cache (`shared`) is asked as well, within a second.
For a miss the nearest entry of the kernel is found, and what differs from it. If there is none, it
compares with the last request in this session: `PastLookups` keeps that.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec

from ..cache import explain, folder
from ..cache.observe import DAMAGED, HIT, MISS
from ..cache.parts import Part, key_of
from ..cache.store import remedy
from ..named_tuple import NamedTuple
from . import shared
from .record import CacheDifference, CacheLayer

if TYPE_CHECKING:
    from ..cache.store import Info, Store

__all__ = [
    "Asked", "PastLookups", "answer", "dry_caches", "layer_of", "missed", "of_entry", "trouble_of",
]  # fmt: skip

_SHOWN: Final = 2
"""Differences that the reason of a layer names."""


def dry_caches() -> None:
    """From now on this process neither reads nor writes caches on disk; it may look at them."""
    folder.set_dry(True)


class PastLookups:
    """The last request for each kernel, backend and layer.

    Requests are plain bytes, so that they can be handed to another process: `unsent` returns those
    since its last call, `take` adds them.
    """

    def __init__(self) -> None:
        self._kept: dict[str, bytes] = {}
        self._unsent: dict[str, bytes] = {}

    def take(self, kept: Mapping[str, bytes]) -> None:
        """Add the requests of another process; those known already are newer and stay."""
        self._kept = {**kept, **self._kept}

    def unsent(self) -> dict[str, bytes]:
        """Return the requests since the last call of this."""
        unsent, self._unsent = self._unsent, {}
        return unsent

    def swap(self, place: str, about: Mapping[str, Any]) -> dict[str, Any] | None:
        """Keep ``about``; return what was kept before."""
        before = self._kept.get(place)
        self._kept[place] = self._unsent[place] = msgspec.json.encode(about)
        return None if before is None else msgspec.json.decode(before)


class Asked(NamedTuple):
    """The request to one layer. about: of the entry that a program would write."""

    layer: str
    kernel: str
    parts: tuple[Part, ...]
    about: Mapping[str, Any]
    cost_ms: float = 0.0


def layer_of(asked: Asked) -> CacheLayer:
    """The record of a layer that was asked and has not answered: a miss."""
    return CacheLayer(
        name=asked.layer,
        state=MISS,
        key=key_of(asked.parts),
        parts=dict(asked.parts),
        cost_ms=asked.cost_ms,
    )


def answer(asked: Asked, store: Store, before: Mapping[str, Any] | None = None) -> CacheLayer:
    """Return the answer of ``store``. before: the last request, if it is known."""
    layer = layer_of(asked)
    trouble, advice = _trouble(store)
    if trouble:
        return msgspec.structs.replace(layer, state=DAMAGED, reason=trouble, advice=advice)
    info = store.info(layer.key, asked.kernel)
    if info is not None and info.problem:
        layer = of_entry(layer, info)
        reason, advice = f"the entry {info.problem}", f"to remove it: {remedy(info.path)}"
        return msgspec.structs.replace(layer, state=DAMAGED, reason=reason, advice=advice)
    if info is not None:
        return msgspec.structs.replace(of_entry(layer, info), state=HIT, source="disk")
    layer = shared.asked(layer, store, asked.kernel)
    if layer.state == HIT:
        return layer
    backend = asked.about.get("backend")
    there = store.of_kernel(asked.kernel)
    others = [x for x in there if x.about.get("backend") == backend]
    found = explain.nearest(others, asked.about)
    last = shared.last(store, asked.kernel)
    theirs = explain.nearest([] if last is None else [last.info], asked.about)
    count = len(theirs.differences) if theirs is not None else 0
    if theirs and last and (found is None or count < len(found.differences)):
        answered = missed(of_entry(layer, theirs.info), "entry", theirs.about, asked.about)
        text = f"shared entry {last.made_on}: {answered.reason}"
        return _noted(msgspec.structs.replace(answered, reason=text), layer.reason)
    if found is not None:
        answered = missed(of_entry(layer, found.info), "entry", found.about, asked.about)
        return _noted(answered, layer.reason)
    if before is None:
        # One that cannot be read may be the one that is missed, with another key or backend.
        bad = next((info.problem for info in there if info.problem), "")
        reason = f"no good entry of this kernel: one {bad}" if bad else "no entry of this kernel"
        return _noted(msgspec.structs.replace(layer, reason=reason), layer.reason)
    return _noted(missed(layer, "look", before, asked.about), layer.reason)


def _noted(layer: CacheLayer, trouble: str) -> CacheLayer:
    """A miss, with the trouble that the shared cache made."""
    return msgspec.structs.replace(layer, reason=f"{layer.reason}; {trouble}") if trouble else layer


def trouble_of(store: Store) -> str:
    """The reason why the store's folder is not used; empty if it is used or does not exist yet."""
    return _trouble(store)[0]


def _trouble(store: Store) -> tuple[str, str]:
    """Return the reason of `trouble_of`, and the remedy."""
    try:
        folder.check(store.root, store.folder)
    except FileNotFoundError:
        return "", ""
    except folder.UntrustedError as error:
        return f"the folder {error.path} {error.why}", remedy(error.path, error.why)
    except OSError as error:
        return f"the folder {store.folder} cannot be read: {error.strerror}", ""
    return "", ""


def of_entry(layer: CacheLayer, info: Info) -> CacheLayer:
    """``layer`` with what is known of an entry: the one that is hit, or the nearest."""
    made = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(info.created))
    return msgspec.structs.replace(
        layer, nearest=info.key, size_bytes=info.size, path=info.path, entry_created=made
    )


def missed(
    layer: CacheLayer, against: str, old: Mapping[str, Any], new: Mapping[str, Any]
) -> CacheLayer:
    """A miss, with the differences of ``new`` from ``old``. against: as in `CacheLayer`."""
    found = explain.differences(old, new)
    texts = [d.text for d in found[:_SHOWN]]
    if len(found) > _SHOWN:
        texts.append(f"and {len(found) - _SHOWN} more")
    reason = "; ".join(texts)
    if against == "look":
        options = bool(found) and all(d.part.startswith("config.") for d in found)
        last = "look" if options else "save"
        reason = f"no entry; since the last {last}: {reason or 'nothing has changed'}"
    theirs: Mapping[str, str] = old.get("parts") or {}
    return msgspec.structs.replace(
        layer,
        state=MISS,
        reason=reason,
        against=against,
        before={k: str(theirs.get(k, "")) for k, v in layer.parts.items() if theirs.get(k) != v},
        differences=tuple([CacheDifference(**d._asdict()) for d in found]),
    )
