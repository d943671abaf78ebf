"""``qd.sparse``: grids of sparse nodes, which this engine does not have."""

from __future__ import annotations

from typing import Any, NoReturn

from ...errors import QuadrantsUnsupportedError

__all__ = ["grid", "usage"]

_HINT = "use qd.Struct.field(members, shape), which stores every cell"


def grid(field_dict: dict[str, Any], shape: Any) -> NoReturn:
    """Not supported: raises QuadrantsUnsupportedError."""
    raise QuadrantsUnsupportedError(feature="qd.sparse.grid", hint=_HINT)


def usage(x: Any) -> NoReturn:
    """Not supported: raises QuadrantsUnsupportedError."""
    raise QuadrantsUnsupportedError(feature="qd.sparse.usage", hint=_HINT)
