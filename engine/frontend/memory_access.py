"""Variables and memory: the part of a `FuncBuilder` that reads and writes them."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any, cast

from ..ir import ArrayAttr, Block, Op
from ..ir import codes as C
from ..types import DataType, Type, i32, i64, pointer_to, u1, void
from .params import Parameters
from .values import SEQUENCES, DynamicElement, ElementLocation, MatrixValue, StructValue

__all__ = ["MemoryAccess", "Saved"]

Saved = tuple[Block, "list[Op]"]


class MemoryAccess(Parameters):
    """See the module docstring. Members of `FuncBuilder` that this part needs raise here."""

    __slots__ = ()

    block: Block

    def emit(
        self, node: ast.AST, code: int, args: tuple[Op, ...] = (), attr: Any = None,
        type: Type | None = None, regions: int = 0,
    ) -> Op:  # fmt: skip
        raise NotImplementedError

    def op(self, value: Any, node: ast.AST) -> Op:
        raise NotImplementedError

    def typed(self, value: Any, t: DataType, node: ast.AST) -> Op:
        raise NotImplementedError

    def warn(self, text: str, node: ast.AST, category: type[Warning] | None = None) -> None:
        raise NotImplementedError

    def enter(self, block: Block) -> Saved:
        raise NotImplementedError

    def cast(self, value: Op, t: DataType, node: ast.AST) -> Op:
        raise NotImplementedError

    def leave(self, saved: Saved, what: str, node: ast.AST) -> None:
        raise NotImplementedError

    def variable(self, value: Op, name: str, node: ast.AST, t: Type | None = None) -> Op:
        """A new local variable that holds ``value``."""
        var = self.emit(node, C.ALLOCA, (), name, pointer_to(t or value.type))
        self.emit(node, C.LOCAL_STORE, (var, value), None, void)
        return var

    def load(self, ptr: Op, node: ast.AST) -> Op:
        code = C.LOCAL_LOAD if ptr.code == C.ALLOCA else C.GLOBAL_LOAD
        pointer: Any = ptr.type
        return self.emit(node, code, (ptr,), None, pointer.elem)

    def store(self, ptr: Op | DynamicElement, value: Op, node: ast.AST) -> None:
        if isinstance(ptr, DynamicElement):
            self._store_dynamic(ptr, value, node)
            return
        pointer: Any = ptr.type
        target: DataType = pointer.elem
        if value.type.is_real and target.is_int:
            self.warn(f"Assigning {value.type} to {target} may lose precision", node)
        code = C.LOCAL_STORE if ptr.code == C.ALLOCA else C.GLOBAL_STORE
        self.emit(node, code, (ptr, value), None, void)

    def _picks(self, at: DynamicElement, k: int, node: ast.AST) -> Op:
        """An op that is 1 if the index picks part ``k``."""
        key = self.block, k
        found = at.picks.get(key)
        if found is None:
            number = self.typed(k, cast(DataType, at.index.type), node)
            found = self.emit(node, C.CMP_EQ, (at.index, number), None, u1)
            at.picks[key] = found
        return found

    def _store_dynamic(self, at: DynamicElement, value: Op, node: ast.AST) -> None:
        if not all(self.is_private(part) for part in at.parts):
            self.at_picked(at, lambda part: self.store(part, value, node), node)
            return
        value = self.cast(value, at.parts[0].type.elem, node)
        for k, part in enumerate(at.parts):
            old = self.load(part, node)
            new = self.emit(node, C.SELECT, (self._picks(at, k, node), value, old))
            self.store(part, new, node)

    def is_private(self, ptr: Op) -> bool:
        """True if ``ptr`` is a variable that no other thread can see here."""
        func = self.func
        at_root = func.is_root(self.block)
        return ptr.code == C.ALLOCA and (at_root or not func.is_root(ptr.block))

    def at_picked(self, at: DynamicElement, do: Callable[[Op], None], node: ast.AST) -> None:
        """``do`` at the picked part, which other threads may see."""
        for k, part in enumerate(at.parts):
            branch = self.emit(node, C.IF, (self._picks(at, k, node),), None, void, 2)
            saved = self.enter(branch.regions[0])
            do(part)
            self.leave(saved, "", node)

    def _load_dynamic(self, at: DynamicElement, node: ast.AST) -> Op:
        found, *rest = [self.op(self.loaded(part, node), node) for part in at.parts]
        for k, value in enumerate(rest, 1):
            found = self.emit(node, C.SELECT, (self._picks(at, k, node), value, found))
        return found

    def loaded(self, value: Any, node: ast.AST) -> Any:
        """``value`` with local variables, alone or in containers, read."""
        kind: Any = value.__class__
        if kind is Op:
            return self.load(value, node) if value.type.is_ptr else value
        if kind is MatrixValue:
            elems = [
                v if v.__class__ is Op and not v.type.is_ptr else self.loaded(v, node)
                for v in self.parts(value, node)
            ]
            return MatrixValue(value.shape, elems)
        if kind is DynamicElement:
            return self._load_dynamic(value, node)
        if kind is StructValue:
            members = {k: self.loaded(v, node) for k, v in value.members.items()}
            return StructValue(value.type, members)
        if kind in SEQUENCES:
            return kind([self.loaded(v, node) for v in value])
        if kind is dict:
            return {k: self.loaded(v, node) for k, v in value.items()}
        return value

    def parts(self, value: MatrixValue, node: ast.AST) -> Sequence[Any]:
        """The parts of a vector or matrix, row-major; pointers if it is bound."""
        if value.location is None:
            return value.elems
        return [self.part(value, k, node) for k in range(value.size)]

    def part(self, value: MatrixValue, k: int, node: ast.AST) -> Any:
        """Part ``k`` of a vector or matrix, counted row-major; a pointer if it is bound."""
        location = value.location
        if location is None:
            return value.elems[k]
        shape = value.shape
        index = (k,) if len(shape) == 1 else divmod(k, shape[1])
        return self.part_at(value, [self.typed(i, i32, node) for i in index], node)

    def part_at(self, value: MatrixValue, index: Sequence[Op], node: ast.AST) -> Op:
        """The address of a part of a vector or matrix in memory."""
        location = value.location
        assert location is not None
        base = location.base
        if base.code != C.ARRAY_ALLOCA:
            return self.address_of(base, (*location.indices, *index), location.boundary, node)
        offset = index[0]
        if len(index) == 2:
            columns = self.typed(value.shape[1], i32, node)
            offset = self.emit(node, C.LINEARIZE, (*index, columns), 2, i64)
        return self.emit(node, C.SHIFT_PTR, (base, offset), None, base.type)

    def local_array(self, value: MatrixValue, name: str, node: ast.AST) -> MatrixValue:
        """A new local vector or matrix, in memory that can be indexed at run time."""
        parts = [cast(Op, self.loaded(part, node)) for part in self.parts(value, node)]
        t = cast(DataType, parts[0].type)
        attr = ArrayAttr(name, value.size)
        base = self.emit(node, C.ARRAY_ALLOCA, (), attr, pointer_to(t))
        local = MatrixValue(value.shape, (), ElementLocation(base, (), t, "unsafe"))
        for k, part in enumerate(parts):
            self.store(self.part(local, k, node), part, node)
        return local

    def address_of(self, base: Op, indices: tuple[Op, ...], boundary: str, node: ast.AST) -> Op:
        """The address of a scalar in an array or field."""
        return self.emit(node, C.EXTERNAL_PTR, (base, *indices), boundary, base.type)
