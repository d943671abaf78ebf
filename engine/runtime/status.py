"""Results of graph kernels, and checks of their arguments."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from .. import logs as log
from ..errors import QuadrantsRuntimeError
from ..frontend.specialization import follow, unwrapped
from .binding import torch_tensor

if TYPE_CHECKING:
    from ..backends.base import KernelMeta
    from ..frontend.signature import KernelDecl
    from .compile import Compiled

__all__ = ["GraphStatus", "check_device_arrays", "label_of", "status", "warn_of_host_loops"]

_warned: Final[set[str]] = set()
"""Backends that `warn_of_host_loops` has reported in this process."""


class GraphStatus:
    """The end of a launch of a kernel with checkpoints: the checkpoint that stopped it, if any.

    yielded: a checkpoint has stopped it. checkpoint: the ``cp_id`` of that checkpoint, else None.
    """

    __slots__ = ("checkpoint", "yielded")

    def __init__(self, yielded: bool = False, checkpoint: int | None = None) -> None:
        self.yielded = yielded
        self.checkpoint = checkpoint

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, GraphStatus):
            return NotImplemented
        return self.yielded == other.yielded and self.checkpoint == other.checkpoint

    def __hash__(self) -> int:
        return hash((self.yielded, self.checkpoint))

    def __repr__(self) -> str:
        where = f", checkpoint={self.checkpoint!r}" if self.yielded else ""
        return f"GraphStatus(yielded={self.yielded}{where})"


def status(decl: KernelDecl, labels: Sequence[int], yielded: int) -> GraphStatus:
    """The status for the value that a launch returns: 0, or 1 + the index of a label."""
    if not yielded:
        return GraphStatus()
    value = labels[yielded - 1]
    return GraphStatus(True, _members(decl).get(value, value))


def _members(decl: KernelDecl) -> dict[int, int]:
    """The members of enumerations that name checkpoints of the kernel, by value.

    They are read from the source, so that a kernel from a cache has them, too.
    """
    found: dict[int, int] = {}
    for node in ast.walk(decl.src.tree):
        if not isinstance(node, ast.With) or not isinstance(node.items[0].context_expr, ast.Call):
            continue
        call = node.items[0].context_expr
        name = next((k.value for k in call.keywords if k.arg == "cp_id"), None)
        name = call.args[0] if call.args else name
        if isinstance(name, ast.Name | ast.Attribute):
            try:
                value = decl.static_value(name)
            except (LookupError, AttributeError, ValueError, TypeError):
                continue
            if isinstance(value, IntEnum):
                found[int(value)] = value
    return found


def label_of(name: str, labels: Sequence[int], from_checkpoint: Any) -> int:
    """The value that makes a launch begin at a checkpoint: 1 + the index of its label.

    QuadrantsRuntimeError, which lists the labels, if the kernel has no such checkpoint.
    """
    try:
        return 1 + tuple(labels).index(from_checkpoint)
    except ValueError:
        raise QuadrantsRuntimeError(
            f"from_checkpoint={from_checkpoint!r} does not match any qd.checkpoint(cp_id=...) in "
            f"kernel {name!r}. Available cp_id labels (source-declaration order): {list(labels)}.",
            kernel=name,
        ) from None


def check_device_arrays(name: str, compiled: Compiled, args: Sequence[Any]) -> None:
    """QuadrantsRuntimeError for a host array where a graph kernel needs a device array.

    The check applies on every backend: a graph is replayed with the memory that it was recorded
    with, and code that works only on a CPU would fail where graphs matter.
    """
    params = compiled.executable.meta.params
    for param, binding in zip(params, compiled.plan.bindings, strict=True):
        if param.kind != "ndarray" or binding.field is not None:
            continue
        value = unwrapped(follow(args[binding.arg], binding.path))
        of_host = torch_tensor(value) and value.device.type == "cpu"
        if isinstance(value, np.ndarray) or of_host:
            kind = "a tensor of the host" if of_host else "a NumPy array"
            raise QuadrantsRuntimeError(
                f"graph requires all ndarrays to be device-resident: argument {param.name!r} is "
                f"{kind}", kernel=name,
                hint="copy it to a qd.ndarray once and pass that, or remove graph=True from the "
                "kernel",
            )  # fmt: skip


def warn_of_host_loops(backend: str, meta: KernelMeta) -> None:
    """Log once that the host runs the do_while loops, on backends of the host."""
    if backend not in _HOSTS or backend in _warned or not meta.graph:
        return
    if any(not isinstance(item, int) and item.kind == "do_while" for item in meta.flow):
        _warned.add(backend)
        log.info(
            f"{meta.name}: the host runs the loops of qd.graph.do_while: the {backend} backend has "
            "no graphs with conditions"
        )


_HOSTS: Final = frozenset(("cpu", "interp"))
