"""`FwdMode`: derivatives carried along with the values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self, cast

import numpy as np

from ...errors import QuadrantsAssertionError, QuadrantsRuntimeError
from ...frontend.specialization import unwrapped
from ..kernel import Kernel
from . import gradients, watching

__all__ = ["FwdMode"]

_NO_SEED = (
    "`seed` is not set for non 0-D field, please specify. `seed` is a list to specify which"
    " parameters the computed derivatives respect to. The length of the `seed` should be same to"
    " that of the `parameters`"
)


class FwdMode:
    """Kernels called in a ``with`` block compute derivatives and values: forward mode.

    loss: a field or ndarray of numbers with duals, or a list of these. After the block their
        ``dual`` holds the derivative of each element along the seed: the product of the Jacobian
        and the seed.
    param: the field or ndarray that is differentiated by, with duals.
    seed: the direction: a number for each element of ``param``, as a list in the order of its
        elements, or as an array of its shape. It may be left out for a 0-D ``param``, and is 1
        then. After the block the duals of ``param`` are 0 again.
    clear_gradients: set the duals of all fields and ndarrays to zero when the block begins.

    Only calls made by the thread that entered the block are differentiated; their results are
    those of the kernels. QuadrantsAssertionError for another loss, param or length of the seed,
    QuadrantsRuntimeError for one without duals and for a seed that is missing; an object serves
    once.
    """

    name = "FwdMode"

    def __init__(
        self, loss: Any, param: Any, seed: Sequence[Any] | None = None, clear_gradients: bool = True
    ) -> None:
        self.loss = loss
        self.param = param
        self.seed = seed
        self.clear_gradients = clear_gradients
        self.entered = False

    def __enter__(self) -> Self:
        if self.entered:
            raise QuadrantsAssertionError("Forward mode manager can be entered only once.")
        given = self.loss
        several = isinstance(given, list | tuple)
        losses = [unwrapped(one) for one in cast("list[Any]", given if several else [given])]
        param = unwrapped(self.param)
        for what, one in [*(("loss", loss) for loss in losses), ("param", param)]:
            _check(what, one)
        seed = self._seed_of(param)
        watching.begin(self)
        self.entered = True
        self.loss, self.param = losses, param
        try:
            if self.clear_gradients:
                gradients.clear("dual")
                gradients.clear_duals_of_arrays()
            param.dual.from_numpy(seed)
        except BaseException:
            watching.end()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        watching.end()
        self.param.dual.fill(0)

    def called(self, kernel: Kernel, args: tuple[Any, ...]) -> Any:
        """Run a kernel with duals. Called for every kernel within the block."""
        return kernel.in_mode("forward")(*args)

    def _seed_of(self, param: Any) -> Any:
        """The seed, in the shape of ``param``."""
        shape = tuple(param.shape)
        if self.seed is None:
            if shape:
                raise QuadrantsRuntimeError(
                    _NO_SEED,
                    hint="seed=[1.0, 0.0, ...] selects the derivative by the first element",
                )
            return np.ones((), param.dtype.np)
        seed = np.asarray(self.seed, param.dtype.np)
        count = int(np.prod(shape, dtype=np.int64))
        if seed.shape != shape and seed.shape != (count,):
            raise QuadrantsAssertionError(
                f"the seed must have a number for each of the {count} elements of the parameter,"
                f" not the shape {seed.shape}"
            )
        return seed.reshape(shape)


def _check(what: str, value: Any) -> None:
    """QuadrantsAssertionError or QuadrantsRuntimeError for what cannot be a loss or parameter."""
    if not gradients.is_array(value):
        raise QuadrantsAssertionError(
            f"the {what} of `FwdMode` must be a field or ndarray of numbers, not {value!r}"
        )
    if not value.has_dual():
        raise QuadrantsRuntimeError(
            f"Duals of the {what} are not allocated, please use needs_dual=True for all fields and"
            " ndarrays that are required by autodiff.",
            hint="or place the duals of fields with qd.root.lazy_dual()",
        )
