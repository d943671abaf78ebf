"""Values at a moment of a run, by the names that the user wrote.

A frame is a function at a line: the kernel, a function inlined into it, a real function that is
called. The frontend names its variables ``s``, ``v[0]``, ``p.pos[1]``; `Names` puts those of one
name together: vectors, matrices and structs. Arrays and fields are NumPy arrays by index.
"""

from __future__ import annotations

import ast
import linecache
import re
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from ...frontend.values import MatrixValue, StructValue
from ...ir import Block, Op, all_ops
from ...ir import codes as C
from ...named_tuple import NamedTuple
from ...types import DataType, PointerType, u1
from ..contents import elements
from ..inputs import by_index
from .user_values import Elements, Struct, Vector, component

if TYPE_CHECKING:
    from ...ir import Loc
    from .machine import Machine

__all__ = ["DebugError", "Frame", "Names", "without_gradient"]

_PART: Final = re.compile(r"\.(\w+)|\[([^\]]*)\]")
_SAFE: Final = {f.__name__: f for f in (abs, all, any, bool, float, int, len, max, min, round, sum)}
_LONGEST: Final = 1 << 20
_SEQUENCES: Final = (list, tuple, str)


class _Bounded(ast.NodeTransformer):
    """Makes calls of the operators that could take all time or memory: no one can stop one that
    has begun, and a hover or a condition evaluates it."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        """Make a call of an operator whose result could be too large."""
        self.generic_visit(node)
        name = type(node.op).__name__
        if name not in _OPERATORS:
            return node
        return ast.Call(ast.Name(f"__{name}", ast.Load()), [node.left, node.right], [])


def _bounded(op: Callable[[Any, Any], Any], size: Callable[[Any, Any], int]) -> Any:
    """An operator that is refused if its result would be longer than a million."""

    def checked(a: Any, b: Any) -> Any:
        what, times = (b, a) if type(b) in _SEQUENCES else (a, b)
        plain = isinstance(what, int) or type(what) in _SEQUENCES
        if (
            plain
            and isinstance(times, int | np.integer)
            and size(what, int(cast("Any", times))) > _LONGEST
        ):
            raise DebugError("the result of an operation is too large")
        return op(a, b)

    return checked


_OPERATORS: Final = {
    "Pow": _bounded(lambda a, b: a**b, lambda a, b: a.bit_length() * b),
    "LShift": _bounded(lambda a, b: a << b, lambda a, b: b),
    "Mult": _bounded(lambda a, b: a * b, lambda a, b: 0 if isinstance(a, int) else len(a) * b),
}
_BUILTINS: Final = {
    **_SAFE, **{f"__{name}": function for name, function in _OPERATORS.items()},
    "__import__": __import__,
}  # fmt: skip
"""With what methods of NumPy's arrays need, which is refused as a name."""


class DebugError(ValueError):
    """Raised when an expression or a place cannot be evaluated; the message says why."""


class Frame(NamedTuple):
    """function, file, line: where. loc: there. pc: the instruction. level: the number of real
    functions that are called around it."""

    function: str
    file: str
    line: int
    loc: Loc
    pc: int
    level: int


class Names:
    """The meaning of the names in a run. values: its arguments. passed: of each inlined call, the
    values of its parameters (`BuildResult.passed`). constants: numbers outside of the kernel."""

    def __init__(
        self, machine: Machine, values: list[Any], passed: Mapping[Any, Mapping[str, Any]],
        constants: Mapping[str, Any],
    ) -> None:  # fmt: skip
        self._machine: Final = machine
        self._passed: Final = passed
        self._constants: Final = constants
        self.arguments: Final[dict[str, Any]] = {}
        self._shapes: Final[dict[int, tuple[tuple[int, ...], tuple[int, ...]]]] = {}
        """By number of a parameter, the shape and the first index of its elements."""
        for number, (param, value) in enumerate(zip(machine.func.params, values, strict=True)):
            self._argument(number, param, value)
        self._made: Final[dict[int, int]] = {}
        self._visible: Final[dict[Any, Any]] = {}
        self._parsed: Final[dict[str, tuple[Any, frozenset[str]]]] = {}
        for pc, instruction in enumerate(machine.code):
            op = instruction.op
            if op is not None and op.code in (C.ALLOCA, C.ARRAY_ALLOCA):
                self._made.setdefault(op.id, pc)
        self._around: Final = _parents(machine)
        self._variables: Final = [
            op
            for op in all_ops(machine.func)
            if op.code in (C.ALLOCA, C.ARRAY_ALLOCA) and _name_of(op)
        ]

    def _argument(self, number: int, param: Any, value: Any) -> None:
        if param.kind == "scalar":
            _put(self.arguments, param.name, _Scalar(self._machine.cx.scalars[number], param.dtype))
            return
        data, parts = without_gradient(value), len(param.element_shape)
        layout, origin = param.layout, (0,) * param.ndim
        if layout is not None:
            _put(self.arguments, param.name, _Field(layout, data, parts))
            shape, origin = layout.shape, (*layout.origin, *origin)[: param.ndim]
        else:
            array = Elements.of(by_index(param, data), parts)
            _put(self.arguments, param.name, array)
            shape = array.shape
        self._shapes[number] = shape[: param.ndim], origin

    def all_arguments(self) -> dict[str, Any]:
        """The values of the arguments and fields now."""
        return {name: _made(value) for name, value in self.arguments.items()}

    def frames(self) -> list[Frame]:
        """The functions that run, innermost first."""
        machine = self._machine
        pcs: list[int] = [after - 1 for _, _, after, _ in machine.frames]
        pcs.append(min(machine.pc, len(machine.code) - 1) if machine.pc >= 0 else -1)
        out: list[Frame] = []
        for level in reversed(range(len(pcs))):
            for loc in machine.code[pcs[level]].loc.chain():
                out.append(Frame(loc.func or machine.func.name, loc.file, loc.line, loc,
                                 pcs[level], level))  # fmt: skip
        return out

    def locals(self, frame: Frame, only: frozenset[str] | None = None) -> dict[str, Any]:
        """The variables of a frame that have a value, loop indices and parameters included.

        only: the names that are wanted."""
        key = frame.pc, frame.loc
        known = self._visible.get(key)
        if known is None:
            known = self._visible[key] = self._visible_at(frame)
        out: dict[str, Any] = {}
        self._parameters(frame, out)
        loops, variables = known
        for op, names in loops:
            if only is None or not only.isdisjoint(names):
                out.update(self._indices(op, names, frame))
        for base, name, op in variables:
            if only is None or base in only:
                value = self._value(op, frame)
                if value is not None:
                    _put(out, name, value)
        if only is not None:
            out = {name: value for name, value in out.items() if name in only}
        return {name: _made(value) for name, value in out.items()}

    def _visible_at(
        self, frame: Frame
    ) -> tuple[list[tuple[Op, tuple[str, ...]]], list[tuple[str, str, Op]]]:  # fmt: skip
        """The loops around a frame with the names of their indices, outermost first; and the
        variables that it may see: (first name, name, op)."""
        block: Block | None = self._machine.code[frame.pc].block
        inside: set[int] = set()
        loops: list[tuple[Op, tuple[str, ...]]] = []
        while block is not None:
            inside.add(id(block))
            op, outer = self._around.get(id(block), (None, None))
            is_loop = op is not None and op.code in (C.RANGE_FOR, C.OFFLOADED)
            if op is not None and is_loop and op.loc.parent is frame.loc.parent:
                loops.insert(0, (op, _loop_names(op.loc)))
            block = outer
        variables = [
            (re.split(r"[.\[]", name, maxsplit=1)[0], name, op)
            for op in self._variables
            if id(op.block) in inside
            and op.loc.parent is frame.loc.parent
            and self._made.get(op.id, -1) < frame.pc
            for name in (_name_of(op),)
        ]
        return loops, variables

    def _read(self, name: str, frame: Frame) -> Any:
        """A variable of the machine, as the frame sees it."""
        for saved, *_ in self._machine.frames[frame.level :]:
            if name in saved:
                return saved[name]
        return self._machine.env.get(name)

    def _value(self, op: Op, frame: Frame) -> Any:
        elem = op.type.elem if isinstance(op.type, PointerType) else None
        assert isinstance(elem, DataType)
        found = self._read(f"a{op.id}", frame)
        if found is None:
            return None
        if op.code == C.ARRAY_ALLOCA:
            return Vector([_Scalar(x, elem) for x in found])
        return _Scalar(_unboxed(found), elem)

    def _indices(
        self, op: Op, names: tuple[str, ...], frame: Frame
    ) -> Iterator[tuple[str, Any]]:  # fmt: skip
        values = [self._read(f"i{op.id}_{axis}", frame) for axis in range(max(len(names), 2))]
        if len(names) == 1 and values[1] is not None:
            more = (self._read(f"i{op.id}_{axis}", frame) for axis in range(2, 9))
            yield names[0], Vector([int(v) for v in (*values, *more) if v is not None])
            return
        for name, value in zip(names, values, strict=False):
            if value is not None:
                yield name, int(value)

    def _parameters(self, frame: Frame, out: dict[str, Any]) -> None:
        """The parameters of an inlined or real function."""
        given = self._passed.get(frame.loc.parent) if frame.loc.parent is not None else None
        for name, value in (given or {}).items():
            found = self._passed_value(value, frame)
            if found is not None:
                out[name] = found
        if frame.level and frame.loc.parent is None:
            callee = self._machine.func.callees[self._machine.frames[frame.level - 1][3]]
            for k, arg in enumerate(callee.args):
                if not arg.type.is_ptr and isinstance(arg.type, DataType):
                    _put(out, arg.name, _Scalar(self._read(f"q{k}", frame), arg.type))
                else:
                    memory, index = self._read(f"q{k}m", frame), self._read(f"q{k}i", frame)
                    elem = arg.type.elem if isinstance(arg.type, PointerType) else None
                    if memory is not None and isinstance(elem, DataType) and index < len(memory):
                        _put(out, arg.name, _Scalar(memory[index], elem))

    def _passed_value(self, value: Any, frame: Frame) -> Any:
        if isinstance(value, MatrixValue):
            if value.location is not None:
                return None
            parts = [self._passed_value(v, frame) for v in value.elems]
            if any(p is None for p in parts):
                return None
            if len(value.shape) == 1:
                return Vector(parts)
            width = value.shape[1]
            return Vector([Vector(parts[i : i + width]) for i in range(0, len(parts), width)])
        if isinstance(value, StructValue):
            members = {k: self._passed_value(v, frame) for k, v in value.members.items()}
            return None if None in members.values() else Struct(members)
        if isinstance(value, int | float):
            return value
        if not isinstance(value, Op) or (value.type.is_ptr and value.code != C.ALLOCA):
            return None
        text = self._machine.flat.values.get(value)
        if text is None:
            return None
        t = value.type.elem if isinstance(value.type, PointerType) else value.type
        name = text.partition("[")[0]
        found = self._read(name, frame) if name.isidentifier() else None
        if found is None:
            try:
                found = ast.literal_eval(text)
            except ValueError:
                return None
        return _Scalar(_unboxed(found), t) if isinstance(t, DataType) else None

    def outside_access(self, op: Op | None) -> str:
        """The array and the index of an access outside of it; empty for an op that is none."""
        at = op.args[0] if op is not None and op.args and op.code != C.EXTERNAL_PTR else op
        if at is None or at.code != C.EXTERNAL_PTR or at.args[0].code != C.ARG_ADDR:
            return ""
        attr: Any = at.args[0].attr
        func: Any = self._machine.func
        name: str = func.params[attr[0]].name
        shape, origin = self._shapes[attr[0]]
        texts = [self._machine.flat.values.get(x, "") for x in at.args[1 : 1 + len(shape)]]
        found: list[Any] = [self._machine.env.get(t) if t.isidentifier() else t for t in texts]
        try:
            index = [int(x) for x in found]
        except (TypeError, ValueError):
            return ""
        if all(0 <= i - o < n for i, o, n in zip(index, origin, shape, strict=True)):
            return ""
        where = ", ".join(map(str, index))
        first = f" and begins at {origin}" if any(origin) else ""
        return f"{name}[{where}] is outside of {name}, which has the shape {shape}{first}"

    def evaluate(self, text: str, frame: Frame | None = None) -> Any:
        """The value of a Python expression over the user's names in a frame, by default the
        innermost. Raises DebugError."""
        frame = frame or self.frames()[0]
        code, names = self.parsed(text)
        try:
            scope = {
                k: v for k in names
                if isinstance(v := self._constants.get(k), int | float)
            }  # fmt: skip
            scope |= {k: _made(self.arguments[k]) for k in names if k in self.arguments}
            scope |= self.locals(frame, names)
            return eval(code, {"__builtins__": _BUILTINS}, scope)
        except NameError as error:
            name = error.name or str(error)
            raise DebugError(f"no variable {name!r} has a value here") from None
        except DebugError:
            raise
        except Exception as error:
            raise DebugError(f"{text.strip()}: {error}") from None

    def parsed(self, text: str) -> tuple[Any, frozenset[str]]:
        """The code of an expression, and the names in it. Raises DebugError for what is none."""
        known = self._parsed.get(text)
        if known is not None:
            return known
        try:
            tree = ast.parse(text.strip(), mode="eval")
        except SyntaxError as error:
            raise DebugError(f"{text.strip()!r} is no expression: {error.msg}") from None
        except (ValueError, RecursionError, MemoryError) as error:
            raise DebugError(f"no expression: {error}") from None
        if any(isinstance(n, ast.Attribute) and n.attr.startswith("_") for n in ast.walk(tree)):
            raise DebugError("private attributes cannot be read")
        names = frozenset(n.id for n in ast.walk(tree) if isinstance(n, ast.Name))
        if "__import__" in names:
            raise DebugError("no variable '__import__' has a value here")
        tree = ast.fix_missing_locations(_Bounded().visit(tree))
        self._parsed[text] = found = compile(tree, "<expression>", "eval"), names
        return found

    def variable(self, keys: tuple[str | int, ...], frame: Frame) -> list[Op]:
        """The variables that make up a local: ``s``; ``p``, ``pos``; ``v``, 1; or the array that
        has such an element."""
        if keys[0] not in self.locals(frame):
            return []
        known = [(_keys_of(_name_of(op)), op) for op in self._variables
                 if op.loc.parent is frame.loc.parent]  # fmt: skip
        last = component(str(keys[-1]))
        several = [keys, (*keys[:-1], last)] if len(keys) > 1 and last >= 0 else [keys]
        found = [[op for own, op in known if own[: len(k)] == k] for k in several]
        arrays = [op for own, op in known if op.code == C.ARRAY_ALLOCA and keys[: len(own)] == own]
        return found[0] or found[-1] or arrays


class _Scalar(NamedTuple):
    """A number with its type."""

    value: Any
    type: DataType


class _Field(NamedTuple):
    """The memory of a field. parts: the axes of its vectors or matrices."""

    layout: Any
    flat: Any
    parts: int


def _made(value: Any) -> Any:
    """A value for the user."""
    if isinstance(value, _Scalar):
        if value.type.is_real:
            return value.type.np(value.value) if value.type.bits < 64 else float(value.value)
        return bool(value.value) if value.type is u1 else int(value.value)
    if isinstance(value, _Field):
        return Elements.of(elements(value.layout, value.flat), value.parts)
    if isinstance(value, Vector):
        return Vector(map(_made, value))
    if isinstance(value, Struct):
        return Struct({k: _made(v) for k, v in vars(value).items()})
    if isinstance(value, dict):
        parts = cast("dict[Any, Any]", value)
        made = {k: _made(v) for k, v in parts.items()}
        if all(isinstance(k, tuple) for k in made):
            if len(next(iter(made))) == 2:
                rows: dict[int, list[Any]] = {}
                for (i, _), v in sorted(made.items()):
                    rows.setdefault(i, []).append(v)
                return Vector(map(Vector, rows.values()))
            return Vector([v for _, v in sorted(made.items())])
        return Struct({str(k): v for k, v in made.items()})
    return value


def _keys_of(name: str) -> tuple[str | int, ...]:
    """The parts of ``p.pos[1]``: ``p``, ``pos``, 1."""
    parts = re.findall(r"\w+", name)
    return tuple([int(part) if part.isdecimal() else part for part in parts])


def _put(out: dict[str, Any], name: str, value: Any) -> None:
    """Store the value of ``p.pos[1]`` in nested dicts."""
    base = re.match(r"\w+", name)
    if base is None:
        out[name] = value
        return
    keys: list[Any] = [base[0]]
    for part in _PART.finditer(name, base.end()):
        if part[1] is not None:
            keys.append(part[1])
        else:
            try:
                index = ast.literal_eval(part[2])
            except (ValueError, SyntaxError):
                index = part[2]
            is_index = isinstance(index, int | tuple)
            keys.append((index if isinstance(index, tuple) else (index,)) if is_index else index)
    place: dict[Any, Any] = out
    for key in keys[:-1]:
        if not isinstance(place.get(key), dict):
            place[key] = {}
        place = place[key]
    place[keys[-1]] = value


def without_gradient(value: Any) -> Any:
    """The array of an argument."""
    return value[0] if isinstance(value, tuple) else value  # pyright: ignore[reportUnknownVariableType]


def _unboxed(value: Any) -> Any:
    """The value of a variable, which is in a list if calls get its address."""
    return value[0] if isinstance(value, list) else value  # pyright: ignore[reportUnknownVariableType]


def _name_of(op: Op) -> str:
    """The user's name of a variable; empty if it has none."""
    name = op.attr if op.code == C.ALLOCA else op.attr.name
    return name if isinstance(name, str) else ""


def _parents(machine: Machine) -> dict[int, tuple[Op, Block]]:
    """By id of a block: the op that it is a region of, and the block of that."""
    out: dict[int, tuple[Op, Block]] = {}

    def visit(block: Block) -> None:
        for op in block.ops:
            for region in op.regions:
                out[id(region)] = op, block
                visit(region)

    for body in machine.func.bodies():
        visit(body)
    return out


def _loop_names(loc: Loc) -> tuple[str, ...]:
    """The names that a ``for`` at a location binds, as far as they are in the source."""
    for node in _loops(loc.file):
        if node.lineno == loc.line and (node.col_offset == loc.col or not loc.col):
            target = node.target
            parts = target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
            return tuple([p.id for p in parts if isinstance(p, ast.Name)])
    return ()


_known_loops: Final[dict[tuple[str, int], list[ast.For]]] = {}


def _loops(file: str) -> Iterator[ast.For]:
    text = "".join(linecache.getlines(file))
    key = file, hash(text)
    found = _known_loops.get(key)
    if found is None:
        try:
            tree = ast.parse(text)
        except SyntaxError:
            tree = ast.Module([], [])
        found = [node for node in ast.walk(tree) if isinstance(node, ast.For)]
        _known_loops.clear()
        _known_loops[key] = found
    return iter(found)
