"""The name of the metadata that puts a dataclass member's value into fastcache keys.

::

    @dataclasses.dataclass
    class Config:
        layers: int = dataclasses.field(metadata={FIELD_METADATA_CACHE_VALUE: True})
"""

from __future__ import annotations

from ..runtime.fastcache.arguments import FIELD_METADATA_CACHE_VALUE

__all__ = ["FIELD_METADATA_CACHE_VALUE"]
