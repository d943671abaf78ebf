"""Finds out if a captured kernel has a gradient to capture: a few questions that cost nothing.

It has one if arrays of its arguments, or fields that it uses, have gradients. The code that
captures it is in `gradients`, which takes 20 ms to load: callers do that for such kernels only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..frontend.specialization import NdarrayKey, RecordKey

if TYPE_CHECKING:
    from .capture import KernelCapture

__all__ = ["gradient_features", "gradient_name", "has_gradients"]


def gradient_name(name: str) -> str:
    """The name or id of a kernel's gradient: ``power.grad``."""
    return f"{name}.grad"


def gradient_features(primal: KernelCapture, *, make: bool = False) -> tuple[Any, ...] | None:
    """The specialization keys for the gradient of a kernel that was compiled; None if it has none.

    make: also make the arguments of the first case, to see whether they have gradients; without,
    what the kernel was compiled for and launched with has to say so.
    """
    if primal.kernel.decl.autodiff != "none":
        return None
    spec_keys = next((f for f in primal.seen if has_gradients(f)), None)
    if spec_keys is None and (has_gradients(primal.spec_keys) or primal.uses_gradient_fields()):
        spec_keys = primal.spec_keys
    if spec_keys is None and make and primal.cases and primal.cases[0].origin != "synthetic":
        made = primal.features_of_a_case()
        spec_keys = made if made is not None and has_gradients(made) else None
    return spec_keys


def has_gradients(spec_keys: tuple[Any, ...]) -> bool:
    """True if one of these arguments is, or holds, an array with gradients."""
    return any(map(_has_gradient, spec_keys))


def _has_gradient(spec_key: Any) -> bool:
    if isinstance(spec_key, NdarrayKey):
        return spec_key.needs_grad
    return isinstance(spec_key, RecordKey) and has_gradients(tuple(spec_key.members.values()))
