"""`Tape`: reverse mode over the kernels that a program calls."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Self

from ...errors import NoGradientsError, QuadrantsAssertionError
from ...runtime import program, read_flags
from ..kernel import Kernel
from . import gradients, watching
from .checking import GradChecker

__all__ = ["Tape"]

Call = tuple[Any, tuple[Any, ...]]
"""A call: the function that was called, and its arguments."""


class Tape:
    """Records the kernels called in a ``with`` block; their gradients run when it ends.

    loss: what is differentiated: a 0-D field, an ndarray or torch tensor of one element, with
        gradients. It is set to 0 when the block begins. When the block ends its gradient is set to
        1, and the gradients of the calls run in reverse order, with the same arguments. None:
        nothing runs at the end; seed gradients yourself and call `grad`.
    clear_gradients: set the gradients of all fields to zero when the block begins.
    validation: run the kernels with checks that nothing is overwritten after it was read, without
        which gradients are wrong: QuadrantsAssertionError names the field.
    grad_check: fields and ndarrays whose gradients are compared with differences of the loss, an
        f64, when the block ends: QuadrantsAssertionError for those that do not agree.

    Only calls made by the thread that entered the block are recorded. Kernels that use nothing
    with gradients are passed over. QuadrantsRuntimeError for a loss of another kind, TypeError for
    what cannot be one; a tape serves once.
    """

    name = "Tape"

    def __init__(
        self,
        loss: Any = None,
        clear_gradients: bool = True,
        validation: bool = False,
        grad_check: Sequence[Any] | None = None,
    ) -> None:
        self.loss = loss
        self.clear_gradients = clear_gradients
        self.validation = validation
        self.calls: list[Call] = []
        self.entered = False
        if validation and not program.current().config.debug:
            warnings.warn(
                "Debug mode is disabled: this tape finds elements that are overwritten too early, "
                "but kernels check no asserts and no indices. Please specify `qd.init(debug=True)` "
                "to enable those checks.",
                UserWarning, stacklevel=2,
            )  # fmt: skip
        self._to_check = list(grad_check or ())
        self._checker: GradChecker | None = None

    def __enter__(self) -> Self:
        if self.entered:
            raise QuadrantsAssertionError("Tape can be entered only once.")
        if self.loss is not None:
            self.loss = gradients.loss_of(self.loss)
        watching.begin(self)
        self.entered = True
        try:
            if self.clear_gradients:
                gradients.clear("grad")
            if self.loss is not None:
                gradients.fill(self.loss, 0)
            if self.validation:
                read_flags.clear()
            if self._to_check:
                self._checker = GradChecker(self.loss, self._to_check)
        except BaseException:
            watching.end()
            raise
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        watching.end()
        try:
            if self.loss is not None:
                self.grad()
        except Exception:
            if error is None:
                raise  # else what the block raised matters more
        if self._checker is not None and error is None:
            self._checker.check([*self.calls])

    def called(self, kernel: Kernel, args: tuple[Any, ...]) -> Any:
        """Run a kernel and record it. Called for every kernel within the block."""
        self.insert(kernel, args)
        return watching.run(kernel.in_mode("validation") if self.validation else kernel, args)

    def insert(self, func: Callable[..., Any], args: Sequence[Any]) -> None:
        """Record a call: of a kernel, or of anything with a callable ``grad``."""
        self.calls.append((func, tuple(args)))

    def grad(self) -> None:
        """Run the gradients of the recorded calls, the last first.

        With a loss its gradient is set to 1 before.
        """
        if self.loss is not None:
            gradients.fill(gradients.grad_of(self.loss), 1)
        with watching.unwatched():
            for func, args in reversed(self.calls):
                run_gradient(func, args)


def run_gradient(func: Any, args: tuple[Any, ...]) -> None:
    """Run the gradient of a recorded call, if there is one."""
    if not isinstance(func, Kernel):
        gradient = getattr(func, "grad", None)
        if gradient is not None:
            gradient(*args)
        return
    with contextlib.suppress(NoGradientsError):  # it has no part in what is differentiated
        func.in_mode("reverse")(*args)
