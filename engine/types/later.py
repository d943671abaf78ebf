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


class NotYetError(QuadrantsUnsupportedError, AttributeError):
    """Raised for a name of the language that this version lacks; `hasattr` returns False for it."""


def unsupported(module: str, name: str) -> AttributeError:
    """The error for ``module.name``: `NotYetError`, or a plain AttributeError for other names."""
    if module == "qd" and name in ("GUI", "ui"):
        return AttributeError(
            f"qd.{name}: there are no windows; draw field.to_numpy() with another library, or open "
            "the file with qd-studio --run, in which windows are stand-ins"
        )
    if name in LATER[module]:
        return NotYetError(feature=f"{module}.{name}")
    return AttributeError(f"{module} has no attribute {name!r}")
