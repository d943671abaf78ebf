"""Names that the language has and this version has not, and the error for them."""

from __future__ import annotations

from typing import Final

from ..errors import QuadrantsUnsupportedError

__all__ = ["LATER", "NotYetError", "unsupported"]

LATER: Final = frozenset({
    "AutodiffMode", "Backend", "Field", "FieldsBuilder", "Layout", "Matrix", "MatrixField",
    "MatrixNdarray", "SNode", "ScalarField", "ScalarNdarray", "Struct", "StructField", "Tensor",
    "Vector", "VectorNdarray", "activate", "ad", "append", "axes", "checkpoint", "data_oriented",
    "dataclass", "deactivate", "eig", "experimental", "field", "frexp", "graph", "i", "ij", "ijk",
    "ijkl", "ijl", "ik", "ikl", "il", "is_active", "j", "jk", "jkl", "jl", "k", "kl", "l",
    "length", "linalg", "polar_decompose", "profiler", "real_func", "ref", "root",
    "rescale_index", "simt", "solve", "stop_grad", "stream", "stream_parallel", "svd", "sym_eig",
    "tensor", "tools", "wrap",
})  # fmt: skip


class NotYetError(QuadrantsUnsupportedError, AttributeError):
    """A name that the language has and this version has not; `hasattr` says no to it."""


def unsupported(name: str) -> NotYetError:
    """The error for ``qd.<name>``."""
    return NotYetError(feature=f"qd.{name}")
