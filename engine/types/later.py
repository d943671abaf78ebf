"""Names of the language that this version lacks, and the error for looking one up."""

from __future__ import annotations

from typing import Final

from ..errors import QuadrantsUnsupportedError

__all__ = ["LATER", "NotYetError", "unsupported"]

_TOP = "AutodiffMode stream"

LATER: Final[dict[str, frozenset[str]]] = {
    "qd": frozenset(_TOP.split()),
    "qd.math": frozenset(),
    "qd.types": frozenset(["quant"]),
}
"""For each public module, the names it will have."""


_HINTS: Final = {
    "quant": "use whole types, such as qd.i8 or qd.f16, or pack bits into a qd.u32 with shifts"
}
"""For a name, the text to write instead."""


class NotYetError(QuadrantsUnsupportedError, AttributeError):
    """Raised for a name of the language that this version lacks; `hasattr` returns False for it."""


def unsupported(module: str, name: str) -> AttributeError:
    """The error for ``module.name``: `NotYetError`, or a plain AttributeError for other names."""
    if name in LATER[module]:
        return NotYetError(feature=f"{module}.{name}", hint=_HINTS.get(name))
    from .taichi_names import why_absent  # only for errors

    reason = why_absent(module, name)
    return AttributeError(reason or f"{module} has no attribute {name!r}")
