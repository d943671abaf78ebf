"""Names that the language has and this version has not, and the error for looking one up."""

from __future__ import annotations

from typing import Final

from ..errors import QuadrantsUnsupportedError

__all__ = ["LATER", "NotYetError", "unsupported"]

_MATH = """
    acosh asinh atanh cosh sinh vec2 vec3 vec4 ivec2 ivec3 ivec4 uvec2 uvec3 uvec4 mat2 mat3 mat4
    length normalize distance dot cross reflect refract eye inverse determinant rotation2d
    rotation3d rot_by_axis rot_yaw_pitch_roll translate scale cconj cdot cexp cinv clog cmul cpow
    csqrt cdiv frexp vdir
"""
_TOP = """
    AutodiffMode activate ad append checkpoint deactivate eig experimental frexp graph is_active
    length linalg make_spd polar_decompose profiler real_func ref rescale_index simt solve stop_grad
    stream stream_parallel svd sym_eig tools
"""

LATER: Final[dict[str, frozenset[str]]] = {
    "qd": frozenset(_TOP.split()),
    "qd.math": frozenset(_MATH.split()),
    "qd.types": frozenset(
        ["BufferViewType", "buffer_view_type", "quant", "ref", "sparse_matrix_builder"]
    ),
}
"""For each public module, the names it will have."""


class NotYetError(QuadrantsUnsupportedError, AttributeError):
    """A name that the language has and this version has not; `hasattr` says no to it."""


def unsupported(module: str, name: str) -> AttributeError:
    """The error for ``module.name``: `NotYetError`, or a plain AttributeError for other names."""
    if name in LATER[module]:
        return NotYetError(feature=f"{module}.{name}")
    return AttributeError(f"{module} has no attribute {name!r}")
