"""The answers of the cache layers for one compile of one kernel.

The caller of a layer makes the `Observation` at once, and it costs a tuple; nothing is looked up,
compared or formatted for it. Explanations are made later, when a user asks for them (`explain`).
"""

from __future__ import annotations

from typing import Final

from ..named_tuple import NamedTuple
from .parts import Part

__all__ = ["BYPASS", "DAMAGED", "HIT", "LAYERS", "MISS", "NOT_APPLICABLE", "OFF", "STATES",
           "Observation"]  # fmt: skip

LAYERS: Final = ("in_process", "fastcache", "offline", "ptx", "driver")
"""The layers, in the order in which they are asked."""

HIT: Final = "hit"
MISS: Final = "miss"
BYPASS: Final = "bypass"
"""The layer is on, but was not asked: the reason names the parameter, capture or switch."""
OFF: Final = "off"
"""Options turn the layer off, or the kernel did not ask for it."""
NOT_APPLICABLE: Final = "not_applicable"
DAMAGED: Final = "damaged"
"""A miss, because what was found could not be used; one warning has been printed."""
STATES: Final = (HIT, MISS, BYPASS, OFF, NOT_APPLICABLE, DAMAGED)


class Observation(NamedTuple):
    """The answer of one layer.

    layer: one of `LAYERS`. state: one of `STATES`. reason: a short sentence, for all but plain hits
    and misses; of a hit in the shared cache, where it was made. source: ``memory``, ``disk`` or
    ``remote``, of a hit. key, parts: what was asked for; empty if
    no key could be made. stored: an entry was written after the compile. ms: the time that it took.
    """

    layer: str
    state: str
    reason: str = ""
    source: str = ""
    key: str = ""
    parts: tuple[Part, ...] = ()
    stored: bool = False
    ms: float = 0.0
