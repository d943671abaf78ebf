"""``qd.ad``: automatic differentiation of programs that call kernels.

======================== ===========================================================================
`Tape`                   records the kernels called in a ``with`` block, and runs their gradients
                         in reverse order when it ends: reverse mode
`FwdMode`                kernels called in a ``with`` block carry derivatives along: forward mode
`clear_all_gradients`    sets the gradients (or duals) of all fields to zero
`grad_replaced`,         a Python function that calls kernels, and the gradient that its author
`grad_for`               wrote for it
`no_grad`                a Python function whose kernels are not differentiated
======================== ===========================================================================

Data flow: `watching` reports every kernel call to the current tape or forward mode. `gradients` has
their operations on arrays (losses, seeds, clearing). The derivatives themselves are kernels,
``Kernel.in_mode``, made like all others by the frontend and the passes.
"""

from .forward import FwdMode
from .gradients import clear_all_gradients
from .replaced import grad_for, grad_replaced, no_grad
from .tape import Tape

__all__ = [
    "FwdMode", "Tape", "clear_all_gradients", "grad_for", "grad_replaced", "no_grad",
]  # fmt: skip
