"""``ti.types.argpack`` of Taichi: arguments of kernels that are passed together.

A pack is a dataclass: a kernel reads its members, and a launch uses what they are at the time.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from ...errors import QuadrantsTypeError

__all__ = ["argpack"]


def argpack(**members: Any) -> type:
    """The type of packs with these members: data types, vector, matrix and struct types, arrays,
    other packs.

    ``Pack(a=1, b=x)`` makes one; ``def k(p: Pack)`` annotates a parameter.
    """
    if not members:
        raise QuadrantsTypeError("an argument pack needs at least one member")
    return dataclasses.make_dataclass("ArgPack", list(members.items()))
