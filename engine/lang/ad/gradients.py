"""The memory of gradients and duals: finding, setting and clearing it.

A loss or a parameter may be a field, an ndarray, the tensor that holds either, and some may be
tensors of torch.
"""

from __future__ import annotations

import sys
from typing import Any, Final

import numpy as np

from ...errors import QuadrantsRuntimeError
from ...frontend.specialization import unwrapped
from ...runtime import program
from ...runtime.binding import torch_tensor
from ..fields.builder import placed_fields
from ..fields.make import ScalarField
from ..fields.placed import Field
from ..ndarray import Ndarray

__all__ = [
    "clear", "clear_all_gradients", "clear_duals_of_arrays", "fill", "grad_of", "is_array",
    "loss_of",
]  # fmt: skip

_KINDS: Final = {"adjoint": "grad", "dual": "dual"}


def clear_all_gradients(gradient_type: Any = "adjoint") -> None:
    """Set the gradients of all fields to zero.

    gradient_type: ``"adjoint"``, or ``"dual"`` for the duals of forward mode. Those of ndarrays
    are left as they are: ``x.grad.fill(0)``. ValueError for another type.
    """
    name = str(getattr(gradient_type, "name", gradient_type)).lower()
    kind = _KINDS.get(name)
    if kind is None:
        raise ValueError(f"gradient_type must be 'adjoint' or 'dual', not {gradient_type!r}")
    clear(kind)


def clear(kind: str) -> None:
    """Set the memory of this ``kind``, ``grad`` or ``dual``, of all fields to zero."""
    whole: dict[int, list[ScalarField]] = {}
    for field in placed_fields(kind):
        # Memory that was not made yet is zero when it is.
        if field.snode.builder.finalized is not None:
            whole.setdefault(id(field.owner()), []).append(field)
    for parts in whole.values():
        owner: Any = parts[0].owner()
        try:
            owner.fill(0)
        except QuadrantsRuntimeError:  # the components of a vector field that are not adjacent
            for part in parts:
                part.fill(0)


def clear_duals_of_arrays() -> None:
    """Set the duals of all ndarrays to zero."""
    for one in list(program.current().owned):
        if isinstance(one, Ndarray) and one.dual is not None:
            one.dual.fill(0)


def is_array(value: Any) -> bool:
    """True if ``value`` is a field or ndarray of numbers."""
    return isinstance(value, ScalarField) or (
        isinstance(value, Ndarray) and not value.element_shape
    )


def fill(value: Any, number: float) -> None:
    """Set every element of a field, an ndarray or a tensor of torch."""
    if torch_tensor(value):
        with sys.modules["torch"].no_grad():
            value.fill_(number)
    else:
        value.fill(number)


def grad_of(value: Any) -> Any:
    """The gradients of a loss; those of a torch tensor are created if they are missing."""
    if torch_tensor(value) and value.grad is None:
        value.grad = sys.modules["torch"].zeros_like(value)
    return value.grad


def loss_of(given: Any) -> Any:
    """A loss, without the wrapper of a tensor.

    QuadrantsRuntimeError if it does not have exactly one element, or has no gradients; TypeError
    for objects other than a field, ndarray or torch tensor.
    """
    loss: Any = unwrapped(given)
    kind: Any = loss.__class__
    if issubclass(kind, Field):
        if tuple(loss.shape) != ():
            raise QuadrantsRuntimeError(
                "The loss of `Tape` must be a 0-D field, i.e. scalar",
                hint="sum its elements into a field of shape ()",
            )
        if not loss.has_grad():
            raise QuadrantsRuntimeError(
                "Gradients of loss are not allocated, please use qd.field(..., needs_grad=True)"
                " for all fields that are required by autodiff."
            )
        return loss
    if issubclass(kind, Ndarray):
        if np.prod(loss.shape + loss.element_shape, dtype=np.int64) != 1:
            raise QuadrantsRuntimeError(
                "The loss of `Tape` must be an ndarray with only one element"
            )
        if loss.grad is None:
            raise QuadrantsRuntimeError(
                "Gradients of loss are not allocated, please set needs_grad=True for all ndarrays"
                " that are required by autodiff."
            )
        return loss
    if torch_tensor(loss):
        if loss.numel() != 1:
            raise QuadrantsRuntimeError(
                "The loss of `Tape` must be a tensor only contains one element"
            )
        if not loss.requires_grad:
            raise QuadrantsRuntimeError(
                "Gradients of loss are not allocated, please set requires_grad=True for all"
                " tensors that are required by autodiff."
            )
        return loss
    raise TypeError(
        f"The loss of `Tape` must be a field, an ndarray or a torch tensor, not {given!r}"
    )
