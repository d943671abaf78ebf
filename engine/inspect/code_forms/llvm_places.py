"""Addresses in LLVM IR as places: ``a[i, k]`` where the text of the index says so."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from ...backends.llvm.text import MEMORY
from ...named_tuple import NamedTuple
from .common import Facts
from .llvm_text import Function, Inst

__all__ = ["Places"]

_SHORT: Final = 48
"""Columns of the longest index that is written out."""
_DEEP: Final = 6
_INFIX: Final = {"add": "+", "sub": "-", "mul": "*"}
_EXTENT: Final = re.compile(r"%n\d+\.")
_FLOAT: Final = re.compile(r"(?<![\w.%])-?\d\.\d+e[+-]\d+")


class _Sum(NamedTuple):
    """An index: a name, or two of them and an operation."""

    text: str
    op: str = ""
    parts: tuple[_Sum, ...] = ()


class Places:
    """The places of one function's addresses. names: the user's text for values."""

    def __init__(self, facts: Facts, function: Function, names: Mapping[str, str]) -> None:
        self._facts: Final = facts
        self._names: Final = names
        self._defined: Final = {x.name: x for x in function.insts.values() if x.name}
        self._known: Final = dict[str, str]()

    def value(self, operand: str) -> str:
        """An operand as text."""
        if operand.startswith("%"):
            return self._names.get(operand[1:], operand)
        return _constant(operand)

    def at(self, operand: str) -> str:
        """The place at an address."""
        found = self._known.get(operand)
        if found is None:
            found = self._known[operand] = self._find(operand)
        return found

    def _find(self, operand: str) -> str:
        name = operand[1:]
        inst = self._defined.get(name)
        if inst is not None and inst.op == "alloca":
            return self.value(operand)
        if name.startswith("p.") and name in self._names:
            return f"{self._names[name]}[flat: 0]"
        array, terms = self._array(operand)
        if array:
            return self._element(array, terms)
        if inst is not None and inst.op == "getelementptr" and len(inst.args) == 2:
            base, index = inst.args
            of = "bytes" if inst.what == "i8" else f"of {inst.what}"
            return f"*({self.value(base)} + {self.value(index)} {of})"
        return f"*{self.value(operand)}"

    def _array(self, operand: str) -> tuple[str, list[_Sum]]:
        """(the parameter, the indices that are added up) of an address; an empty name for none."""
        terms: list[_Sum] = []
        for _ in range(_DEEP):
            name = operand[1:]
            if name.startswith("p.") and name in self._names:
                return name, terms[::-1]
            inst = self._defined.get(name)
            if inst is None or inst.op != "getelementptr" or len(inst.args) != 2:
                break
            terms.append(self._sum(inst.args[1], _DEEP))
            if not self._is_element(inst, operand):
                break
            operand = inst.args[0]
        return "", []

    def _is_element(self, inst: Inst, operand: str) -> bool:
        """True if an address steps by elements of the parameter that it begins at."""
        base = inst.args[0][1:]
        for _ in range(_DEEP):
            if base.startswith("p."):
                param = self._facts.params.get(base[2:])
                return param is not None and MEMORY.get(param.dtype) == inst.what
            found = self._defined.get(base)
            if found is None or found.op != "getelementptr":
                return False
            base = found.args[0][1:]
        return False

    def _sum(self, operand: str, deep: int) -> _Sum:
        """An index, through additions, products and changes of width that keep the number."""
        text = self.value(operand)
        inst = self._defined.get(operand[1:]) if operand.startswith("%") else None
        if inst is None or operand[1:] in self._names or not deep:
            return _Sum(text)
        # Only of extents it is certain here that they are not negative.
        if inst.op == "sext" or (inst.op == "zext" and _EXTENT.match(inst.args[0])):
            inner = self._sum(inst.args[0], deep - 1)
            return inner if inner.text != inst.args[0] else _Sum(text)
        if inst.op in _INFIX and inst.type == "i64":
            a, b = (self._sum(arg, deep - 1) for arg in inst.args)
            left = f"({a.text})" if a.op in ("add", "sub") and inst.op == "mul" else a.text
            loose = inst.op != "add" and b.op in ("add", "sub")
            right = f"({b.text})" if loose or (inst.op == "mul" and b.op == "mul") else b.text
            long = f"{left} {_INFIX[inst.op]} {right}"
            if len(long) <= _SHORT:
                return _Sum(long, inst.op, (a, b))
        return _Sum(text)

    def _element(self, array: str, terms: list[_Sum]) -> str:
        param = self._facts.params[array[2:]]
        total = terms[0]
        for term in terms[1:]:
            total = _Sum(f"{total.text} + {term.text}", "add", (total, term))
        axes = param.ndim if not param.element_shape and param.kind == "ndarray" else 0
        found = self._axes(param.name, total, axes - 1) if axes > 0 else None
        if found is not None:
            return f"{param.name}[{', '.join(found)}]"
        return f"{param.name}[flat: {total.text}]"

    def _axes(self, name: str, index: _Sum, axis: int) -> list[str] | None:
        """The indices by axis of ``(i * extent + j)``; None if it is not of that form."""
        if axis == 0:
            return [index.text]
        if index.op != "add":
            return None
        for head, last in (index.parts, index.parts[::-1]):
            if head.op != "mul":
                continue
            for rest, extent in (head.parts, head.parts[::-1]):
                if extent.text == f"{name}.shape[{axis}]":
                    outer = self._axes(name, rest, axis - 1)
                    return None if outer is None else [*outer, last.text]
        return None


def _constant(text: str) -> str:
    """A constant of LLVM IR; decimal floats in their shortest form."""
    return _FLOAT.sub(lambda m: repr(float(m[0])), text) if "e" in text else text
