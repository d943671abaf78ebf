"""The user's names of the values of LLVM IR, where the text itself shows that they are right.

The emitter names values after what they are: ``%p.x`` is the address of parameter x, ``%n1.x`` its
extent of axis 1, ``%a.s`` a scalar, ``%i72.1`` the index of axis 1 of loop 72, ``%v13`` something
that op 13 computes. In the emitter's own text that is enough: the value of an op is the only one of
its lines that lines of other ops use, and has the op's type.

LLVM's passes keep names, append to them, and give them to instructions that compute something else:
sums are put in another order, an operation after a loop moves into its phi. There a name is kept
for an instruction that is what the emitter wrote: the same operation on the same operands. Reads of
a local variable are matched by what is stored to it. All others keep the raw name.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from ...backends.llvm.text import VALUE
from .common import Facts
from .llvm_text import Function, Inst

__all__ = ["names_in", "param_name", "source_values"]

_PARAM: Final = re.compile(r"(p|a|n\d+)\.(\w+?)(\.wide)?$")
_NUMBERED: Final = re.compile(r"v(\d+)((?:\.\d+)?)$")
_INDEX: Final = re.compile(r"i(\d+)\.(\d+)$")
_COMMUTES: Final = frozenset({"add", "mul", "and", "or", "xor", "fadd", "fmul", "call"})


def param_name(facts: Facts, name: str) -> str:
    """The user's text for a value that every function gets from the argument buffer."""
    match = _PARAM.match(name)
    param = facts.params.get(match[2]) if match is not None else None
    if match is None or param is None:
        return ""
    axis = match[1][1:]
    return f"{param.name}.shape[{axis}]" if axis else param.name


class _Source:
    """A function as the emitter wrote it: the op of each of its values.

    values: by name, the op. stores: by variable, all that is stored to it.
    """

    def __init__(self, facts: Facts, function: Function) -> None:
        self.insts = {x.name: x for x in function.insts.values() if x.name}
        row_of = {x.name: row for row, x in function.insts.items() if x.name}
        self.stores: dict[str, set[str]] = {}
        outside: dict[int, set[str]] = {}
        for row, inst in function.insts.items():
            if inst.op == "store" and len(inst.args) > 1:
                self.stores.setdefault(inst.args[1][1:], set()).add(inst.args[0])
            for arg in _names(inst.args):
                at = row_of.get(arg)
                if at is not None and facts.op(at) != facts.op(row):
                    outside.setdefault(facts.op(at), set()).add(arg)
        self.values: dict[str, int] = {}
        for op, found in outside.items():
            wanted = VALUE.get(facts.types.get(op, ""), "")
            typed = [name for name in found if self.insts[name].type == wanted]
            if op >= 0 and len(found) == 1 and typed:
                self.values[typed[0]] = op


def _names(args: Iterable[str]) -> list[str]:
    """The values among operands, also those of a phi."""
    return [name for arg in args for name in re.findall(r"%([\w.$-]+)", arg.split(", %")[0])]


def source_values(facts: Facts, functions: Iterable[Function]) -> dict[str, _Source]:
    """By function of the emitter's text: what its values are."""
    return {f.name: _Source(facts, f) for f in functions}


def names_in(
    facts: Facts, function: Function, source: _Source | None, original: bool
) -> dict[str, str]:
    """The user's text for values of ``function``. source: as the emitter wrote it. original: the
    function is that."""
    wanted: dict[str, str] = {}
    defined = {x.name: x for x in function.insts.values() if x.name}
    for name in [*(name for name, _ in function.params), *defined]:
        text = param_name(facts, name)
        if text:
            wanted[name] = text
    checked = _Checked(facts, function, source) if source is not None and not original else None
    for name, inst in defined.items():
        if name in wanted:
            continue
        if inst.op == "alloca":
            op = _number(name)
            if original and op in facts.variables:
                wanted[name] = facts.variables[op]
            continue
        text = _index_name(facts, name, inst, defined)
        if not text and checked is not None:
            text = checked.name(name)
        elif not text and source is not None:
            text = facts.values.get(source.values.get(name, -1), "")
        if text:
            wanted[name] = text
    # A variable that is still in memory has the name; values that are stored to it do not.
    kept = {
        wanted[name] for name, inst in defined.items() if inst.op == "alloca" and name in wanted
    }
    wanted = {
        name: text
        for name, text in wanted.items()
        if text not in kept or name not in defined or defined[name].op in ("alloca", "phi")
    }
    claims = Counter(wanted.values())
    free = {text for name, text in wanted.items() if _PARAM.match(name)}
    # A parameter and its copy of another width are the same number.
    return {
        name: text if claims[text] == 1 or _PARAM.match(name) else f"{text}${name}"
        for name, text in wanted.items()
        if text not in free or _PARAM.match(name) or claims[text] > 1
    }


def _number(name: str) -> int:
    match = _NUMBERED.match(name)
    return int(match[1]) if match else -1


def _index_name(facts: Facts, name: str, inst: Inst, defined: Mapping[str, Inst]) -> str:
    """The name of a loop index: a phi that begins somewhere and is stepped by one addition."""
    if inst.op != "phi":
        return ""
    base = name
    while base and not _INDEX.match(base):
        base = base[:-1]
    # LLVM appends digits, or parts after a dot: i13.05 is i13.0.
    for end in range(len(base), 0, -1):
        match = _INDEX.match(base[:end])
        if match is None:
            break
        loop = facts.loops.get(int(match[1]))
        axis = int(match[2])
        if loop is not None and axis < len(loop.names):
            return loop.names[axis] if _is_stepped(name, inst, defined) else ""
    return ""


def _is_stepped(name: str, inst: Inst, defined: Mapping[str, Inst]) -> bool:
    """True if one of the values of a phi is itself plus a constant."""
    for arg in _names(inst.args):
        step = defined.get(arg)
        if step is not None and step.op in ("add", "or", "sub") and f"%{name}" in step.args:
            return True
    return False


class _Checked:
    """Finds the values of an optimised function that are those of the emitter's."""

    def __init__(self, facts: Facts, function: Function, source: _Source) -> None:
        self.facts = facts
        self.source = source
        self.defined = {x.name: x for x in function.insts.values() if x.name}
        rows = {x.name: row for row, x in function.insts.items() if x.name}
        self.base = {
            name: found
            for name, inst in self.defined.items()
            if (found := self._base(name, inst, facts.op(rows[name])))
        }
        params = {name for name, _ in function.params}
        self.right = {*params, *self.base}
        self._narrow()

    def _base(self, name: str, inst: Inst, op: int) -> str:
        """The value of the emitter that ``name`` is named after."""
        known = self.source.insts
        ends = range(len(name), 1, -1)
        for base in [name[:end] for end in ends if _is_suffix(name[end:])]:
            original = known.get(base)
            number = _number(base)
            if original is None or (0 <= op != number and number >= 0 and inst.op != "phi"):
                continue
            if inst.op == "phi" and original.op == "alloca":
                return base
            if original.op == inst.op and original.what == inst.what:
                return base
        return ""

    def _narrow(self) -> None:
        """Begin with all; leave out those whose operands do not match, and look again at what
        uses them."""
        users: dict[str, list[str]] = {}
        for name in self.base:
            for arg in _names(self.defined[name].args):
                users.setdefault(arg, []).append(name)
        todo = list(self.base)
        while todo:
            name = todo.pop()
            if name in self.right and not self._matches(self.defined[name], self.base[name]):
                self.right.discard(name)
                todo += users.get(name, ())

    def _matches(self, inst: Inst, base: str) -> bool:
        original = self.source.insts[base]
        if inst.op == "phi":
            if original.op == "alloca":
                return all(self._holds(arg[1:].split(", %")[0].strip(), base) for arg in inst.args)
            return bool(_INDEX.match(base))
        if inst.op in ("load", "getelementptr"):
            # What is read is named by the op that reads it; addresses are written in other ways.
            return inst.op == "load"
        pairs = [(inst.args, original.args)]
        if inst.op in _COMMUTES and len(inst.args) == 2:
            pairs.append((inst.args[::-1], original.args))
        return any(
            len(a) == len(b) and all(self._same(x, y) for x, y in zip(a, b, strict=True))
            for a, b in pairs
        )

    def _holds(self, value: str, variable: str) -> bool:
        """True if ``value`` is one that is stored to a variable, or that it holds already."""
        if value in ("poison", "undef"):
            return True
        stored = self.source.stores.get(variable, set[str]())
        if not value.startswith("%"):
            return value in stored
        name = value[1:]
        base = self.base.get(name, name)
        return name in self.right and (base == variable or f"%{base}" in stored)

    def _same(self, value: str, original: str) -> bool:
        if not original.startswith("%"):
            return value == original
        source = self.source.insts.get(original[1:])
        if source is not None and source.op == "load" and source.args[0][1:] in self.source.stores:
            variable = source.args[0][1:]
            kept = self.source.insts.get(variable)
            if kept is not None and kept.op == "alloca" and self._holds(value, variable):
                return True
        if not value.startswith("%"):
            return False
        name = value[1:]
        return name in self.right and self.base.get(name, name) == original[1:]

    def name(self, name: str) -> str:
        """The user's name of a value, empty if it is not known to be that."""
        base = self.base.get(name, "")
        if not base or name not in self.right:
            return ""
        source = self.source.insts[base]
        if source.op == "alloca":
            return self.facts.variables.get(_number(base), "")
        if self.defined[name].type != source.type:
            return ""
        return self.facts.values.get(self.source.values.get(base, -1), "")


def _is_suffix(text: str) -> bool:
    """True for what LLVM appends to a name: digits, or parts after dots."""
    return not text or text.isdigit() or text.startswith(".")
