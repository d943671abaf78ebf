"""The parameters of the function being built, and the value that the launch passes for each.

Declared scalars and arrays are parameters from the start. The contents of other arguments
(members of a dataclass or of ``self``) and fields become parameters when the kernel first uses
them, so that a launch passes only what the kernel reads.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import Any

from ..ir import Block, Func, Op, Param
from ..ir import codes as C
from ..types import (
    BufferViewHandle,
    DataType,
    FieldHandle,
    MatrixType,
    StructType,
    flat_names,
    pointer_to,
)
from .specialization import (
    InstanceKey,
    NdarrayKey,
    ParamBinding,
    RecordKey,
    Used,
    ValueKey,
)  # fmt: skip
from .values import (
    BufferViewValue,
    InstanceValue,
    MatrixValue,
    NdarrayRef,
    RecordValue,
    StructValue,
)

__all__ = ["Parameters", "compound"]


def compound(t: Any, parts: Iterator[Any]) -> Any:
    """A value of (resolved) type ``t`` from its scalars, in the order of `types.flat_names`."""
    if isinstance(t, MatrixType):
        return MatrixValue(t.shape, [next(parts) for _ in range(t.size)])
    if isinstance(t, StructType):
        return StructValue(t, {key: compound(m, parts) for key, m in t.members.items()})
    return next(parts)


class Parameters:
    """The part of a `FuncBuilder` that holds the parameters; see the module docstring."""

    __slots__ = (
        "bindings", "bound_values", "copies", "depended", "field_params", "func", "params",
        "prologue", "stopped", "used",
    )  # fmt: skip

    def __init__(self, func: Func) -> None:
        self.func = func
        self.prologue: dict[tuple[int, int], Op] = {}
        self.params: list[Param] = []
        self.bindings: list[ParamBinding] = []
        self.bound_values: dict[tuple[int, tuple[str, ...]], Any] = {}
        self.depended: set[tuple[int, tuple[str, ...]]] = set()
        self.field_params: dict[FieldHandle, int] = {}
        self.used: list[Used] = []
        self.stopped: dict[Block, set[int]] = {}
        """By block: the parameters through whose elements no gradient passes from here on."""
        self.copies: dict[int, int] = {}
        """Parameters for such elements, by those of the arrays and fields that they belong to."""

    def python(self, node: ast.AST, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Run Python code of the user's; see `FuncBuilder.python`."""
        raise NotImplementedError

    def param(self, code: int, index: int) -> Op:
        """The op that reads parameter ``index``; made once, at the start of the function."""
        found = self.prologue.get((code, index))
        if found is None:
            func = self.func
            dtype = self.params[index].dtype
            attr: Any = (index, False) if code == C.ARG_ADDR else index
            type = pointer_to(dtype) if code == C.ARG_ADDR else dtype
            found = Op(code, type, (), attr, (), func.next_id, func.body, func.loc)
            func.next_id += 1
            self.prologue[code, index] = found
        return found

    def add_param(self, param: Param, binding: ParamBinding) -> int:
        """Add a parameter of the compiled function; return its index."""
        self.params.append(param)
        self.bindings.append(binding)
        return len(self.params) - 1

    def copy_without_gradient(self, index: int) -> int:
        """The index of a parameter with the same memory as ``index``, and no gradients."""
        found = self.copies.get(index)
        if found is None:
            param = self.params[index]
            found = self.add_param(param._replace(grad=-1), self.bindings[index])
            self.copies[index] = found
        return found

    def field_base(self, field: FieldHandle, name: str, node: ast.AST) -> Op:
        """The address of a field's base; ``name``: its name in the kernel."""
        return self.param(C.ARG_ADDR, self.field_param(field, name, node))

    def field_param(self, field: FieldHandle, name: str, node: ast.AST) -> int:
        """The index of a field's parameter; ``name``: its name in the kernel."""
        index = self.field_params.get(field)
        if index is None:
            layout = self.python(node, field.memory_layout)
            # A member of a struct field has the member's name, which does not say of what.
            shown = name if name.endswith(f".{field.name}") else field.name or name
            param = Param(
                shown, "field", field.dtype, len(field.shape), False, "unsafe",
                field.element_shape, None, layout,
            )  # fmt: skip
            index = self.add_param(param, ParamBinding(-1, field=field))
            self.field_params[field] = index
        return index

    def bind(
        self, arg: int, path: tuple[str, ...], spec_key: Any, name: str, boundary: str = "unsafe"
    ) -> Any:
        """The value of argument ``arg``, or of its member at ``path``.

        Its parameters are made when it is first asked for.
        """
        key = arg, path
        found = self.bound_values.get(key)
        if found is None:
            found = self.bound_values[key] = self._bind(arg, path, spec_key, name, boundary)
            if path:
                self.used.append(Used(arg, path, spec_key))
        return found

    def depend(self, arg: int, path: tuple[str, ...], spec_key: Any) -> None:
        """Note that the code is right only for the present value at ``path`` in an argument."""
        key = arg, path
        # A number of NumPy may be read at each launch and also appear in a qd.static.
        if key not in self.depended and not isinstance(self.bound_values.get(key), NdarrayRef):
            self.depended.add(key)
            self.used.append(Used(arg, path, spec_key))

    def _bind(
        self, arg: int, path: tuple[str, ...], spec_key: Any, name: str, boundary: str
    ) -> Any:
        if isinstance(spec_key, NdarrayKey):
            f = spec_key
            param = Param(
                name, "ndarray", f.dtype, f.ndim, f.needs_grad, boundary, f.element_shape, f.axes
            )
            index = self.add_param(param, ParamBinding(arg, path))
            return NdarrayRef(name, index, f.dtype, f.ndim, boundary, f.element_shape, f, arg, path)
        if isinstance(spec_key, DataType):
            index = self.add_param(Param(name, "scalar", spec_key), ParamBinding(arg, path))
            return self.param(C.ARG_LOAD, index)
        if isinstance(spec_key, MatrixType | StructType):
            numbers: list[Op] = []
            for k, (flat, dtype) in enumerate(flat_names(spec_key, name)):
                param = Param(flat, "scalar", dtype)
                index = self.add_param(param, ParamBinding(arg, path, k, spec_key))
                numbers.append(self.param(C.ARG_LOAD, index))
            return compound(spec_key, iter(numbers))
        if isinstance(spec_key, RecordKey):
            if issubclass(spec_key.cls, BufferViewHandle):
                parts = spec_key.members
                array = self.bind(arg, (*path, "arr"), parts["arr"], name, boundary)
                offset, size = [
                    self.bind(arg, (*path, key), parts[key], f"{name}.{key}")
                    for key in ("offset", "size")
                ]
                return BufferViewValue(name, array, offset, size)
            return RecordValue(name, arg, path, spec_key)
        if isinstance(spec_key, InstanceKey):
            return InstanceValue(name, arg, path, spec_key.instance, spec_key)
        return spec_key.value if isinstance(spec_key, ValueKey) else spec_key
