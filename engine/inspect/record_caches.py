"""The part of a record about caches; see `record`."""

from typing import Annotated

from .record_base import RecordPart, about

__all__ = [
    "CacheDifference",
    "CacheLayer",
]


class CacheDifference(RecordPart, frozen=True, kw_only=True):
    """One difference between a kernel and a cache entry."""

    part: Annotated[
        str, about("Part of the key; ``source`` and ``capture`` name what a digest covers.")
    ]
    text: Annotated[str, about("The difference in one line.")]
    before: Annotated[str | None, about("Earlier value; None if there is none.")] = None
    after: Annotated[str | None, about("Current value; None if there is none.")] = None
    name: Annotated[str, about("Name of the function or captured value.")] = ""
    file: Annotated[str, about("Source file.")] = ""
    line: Annotated[int, about("Source line.")] = 0
    lines: Annotated[
        tuple[str, ...],
        about(
            "Changed source lines: ``-12 text`` for the earlier, ``+12 text`` for the current text."
        ),
    ] = ()


class CacheLayer(RecordPart, frozen=True, kw_only=True):
    """The answer of one cache layer to a program that starts now."""

    name: Annotated[str, about("Name of the layer.")]
    state: Annotated[str, about("State: hit, miss, bypass, off, not_applicable or damaged.")]
    reason: Annotated[str, about("Reason of the state.")] = ""
    source: Annotated[str, about("Source of a hit: disk, memory or remote.")] = ""
    key: Annotated[str, about("Requested key; empty if there is none.")] = ""
    parts: Annotated[dict[str, str], about("Parts of the key by name.")] = {}  # noqa: RUF012
    size_bytes: Annotated[int, about("Size of the hit or nearest entry.")] = 0
    path: Annotated[str, about("File of that entry, or URL of the shared cache.")] = ""
    entry_created: Annotated[str, about("Creation time of that entry.")] = ""
    nearest: Annotated[str, about("Key of the nearest entry.")] = ""
    against: Annotated[
        str,
        about(
            "Subject of ``differences``: entry (the nearest one of this kernel), look (the "
            "previous look, if there is no entry), or empty."
        ),
    ] = ""
    differences: Annotated[
        tuple[CacheDifference, ...],
        about("The differences; empty with ``look`` if nothing has changed since."),
    ] = ()
    before: Annotated[
        dict[str, str],
        about("Parts that differ, with their earlier values; empty text for a new part."),
    ] = {}  # noqa: RUF012
    cost_ms: Annotated[float, about("Cost of a miss: the parts of a compile that a hit saves.")] = (
        0.0
    )
    advice: Annotated[str, about("What the user can do.")] = ""
