"""Generated kernels as Python source, many in a module."""

from __future__ import annotations

from collections.abc import Iterable

from qd_studio.engine.types import DataType, f32, i32, u1

from .model import E, For, Function, Program, S

__all__ = ["module_source", "program_source"]

_INFIX = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "floormod": "%",
    "pow": "**", "bit_and": "&", "bit_or": "|", "bit_xor": "^", "bit_shl": "<<", "bit_sar": ">>",
    "cmp_lt": "<", "cmp_le": "<=", "cmp_gt": ">", "cmp_ge": ">=", "cmp_eq": "==", "cmp_ne": "!=",
    "and": "and", "or": "or",
}  # fmt: skip
_PREFIX = {"neg": "-", "bit_not": "~", "not": "not "}
_CALLS = {
    "div": "qd.raw_div", "mod": "qd.raw_mod", "max": "max", "min": "min", "bit_shr": "qd.bit_shr",
    "abs": "abs", "atan2": "qd.atan2", "popcnt": "qd.math.popcnt", "clz": "qd.math.clz",
    "ffs": "qd.math.ffs", "sgn": "qd.math.sign", "select": "qd.select",
}  # fmt: skip
_ATOMIC = {
    "add": "atomic_add", "sub": "atomic_sub", "min": "atomic_min", "max": "atomic_max",
    "mul": "atomic_mul", "bit_and": "atomic_and", "bit_or": "atomic_or", "bit_xor": "atomic_xor",
    "xchg": "atomic_exchange",
}  # fmt: skip


def literal(value: float | int, t: DataType) -> str:
    """A constant that has type ``t`` wherever it stands."""
    if t is u1:
        return "True" if value else "False"
    return f"qd.{t}({value!r})"


def bare(e: E) -> str:
    """Operand text: a constant of a default type without its type, where Python cannot fold it."""
    if e.op == "const" and e.t in (i32, f32) and abs(e.data) < 2**31:
        return f"({e.data!r})" if str(e.data).startswith("-") else repr(e.data)
    return text(e)


def text(e: E) -> str:
    """The expression in Python, in brackets where it needs them."""
    op, args = e.op, e.args
    if op == "const":
        return literal(e.data, e.t)
    if op == "var":
        return e.data
    if op == "load":
        return f"{e.data}[{', '.join(map(text, args)) or 'None'}]"
    if op == "shape":
        return f"{e.data[0]}.shape[{e.data[1]}]"
    if op == "cast":
        return f"qd.cast({text(args[0])}, qd.{e.t})"
    if op == "cast_bits":
        return f"qd.bit_cast({text(args[0])}, qd.{e.t})"
    if op == "chain":
        a, b, c = map(text, args)
        return f"({a} {_INFIX[e.data[0]]} {b} {_INFIX[e.data[1]]} {c})"
    if op == "ifexp":
        return f"({text(args[1])} if {text(args[0])} else {text(args[2])})"
    if op == "call":
        return f"{e.data}({', '.join(map(text, args))})"
    if op in _INFIX:
        a, b = args
        left = bare(a) if b.op != "const" else text(a)
        right = bare(b) if a.op != "const" else text(b)
        return f"({left} {_INFIX[op]} {right})"
    if op in _PREFIX:
        return f"({_PREFIX[op]}{text(args[0])})"
    return f"{_CALLS.get(op, 'qd.' + op)}({', '.join(map(text, args))})"


def _target(name: str, indices: tuple[E, ...], is_array: bool) -> str:
    return f"{name}[{', '.join(map(text, indices)) or 'None'}]" if is_array else name


def _iterable(loop: For, exprs: tuple[E, ...]) -> str:
    if loop.form == "array":
        return loop.array
    if loop.form == "static":
        return f"qd.static(range({exprs[0].data}, {exprs[1].data}))"
    pairs = list(zip(exprs[::2], exprs[1::2], strict=True))
    if loop.form == "range":
        begin, end = pairs[0]
        whole = begin.op == "const" and begin.data == 0
        return f"range({bare(end)})" if whole else f"range({bare(begin)}, {bare(end)})"
    parts = [
        bare(end) if begin.op == "const" and begin.data == 0 else f"({bare(begin)}, {bare(end)})"
        for begin, end in pairs
    ]
    inner = f"qd.ndrange({', '.join(parts)})"
    return f"qd.grouped({inner})" if loop.form == "grouped" else inner


class _Writer:
    def __init__(self, arrays: Iterable[str]) -> None:
        self.arrays = set(arrays)
        self.lines: list[str] = []

    def line(self, pad: int, text: str) -> None:
        self.lines.append("    " * pad + text)

    def body(self, body: tuple[S, ...], pad: int) -> None:
        for s in body:
            self.statement(s, pad)
        if not body:
            self.line(pad, "pass")

    def statement(self, s: S, pad: int) -> None:
        kind, exprs = s.kind, s.exprs
        if kind in ("let", "set"):
            self.line(pad, f"{s.data} = {text(exprs[0])}")
        elif kind == "store":
            self.line(pad, f"{_target(s.data, exprs[1:], True)} = {text(exprs[0])}")
        elif kind == "aug":
            op, name = s.data
            target = _target(name, exprs[1:], name in self.arrays)
            self.line(pad, f"{target} {_INFIX[op]}= {text(exprs[0])}")
        elif kind == "atomic":
            self.atomic(s, pad)
        elif kind == "if":
            self.line(pad, f"if {text(exprs[0])}:")
            self.body(s.bodies[0], pad + 1)
            if s.bodies[1]:
                self.line(pad, "else:")
                self.body(s.bodies[1], pad + 1)
        elif kind == "for":
            self.loop(s, pad)
        elif kind == "while":
            counter, limit = s.data
            self.line(pad, f"{counter} = qd.i32(0)")
            condition = f"{counter} < {limit}"
            if exprs:
                condition += f" and {text(exprs[0])}"
            self.line(pad, f"while {condition}:")
            self.line(pad + 1, f"{counter} += 1")
            self.body(s.bodies[0], pad + 1)
        elif kind == "assert":
            self.line(pad, f"assert {text(exprs[0])}")
        elif kind == "return":
            self.line(pad, f"return {', '.join(map(text, exprs))}")
        else:
            self.line(pad, kind)

    def atomic(self, s: S, pad: int) -> None:
        result, op, name = s.data
        extra = 2 if op == "cas" else 1
        target = _target(name, s.exprs[extra:], name in self.arrays)
        if op == "cas":
            new, expected = s.exprs[:2]
            call = f"qd.atomic_cas({target}, {text(expected)}, {text(new)})"
        else:
            call = f"qd.{_ATOMIC[op]}({target}, {text(s.exprs[0])})"
        self.line(pad, f"{result} = {call}" if result else call)

    def loop(self, s: S, pad: int) -> None:
        loop: For = s.data
        if loop.serialize:
            self.line(pad, "qd.loop_config(serialize=True)")
        names = ", ".join(loop.names)
        if loop.form == "grouped":
            index = "I" + loop.names[0]
            self.line(pad, f"for {index} in {_iterable(loop, s.exprs)}:")
            for k, name in enumerate(loop.names):
                self.line(pad + 1, f"{name} = {index}[{k}]")
        else:
            self.line(pad, f"for {names} in {_iterable(loop, s.exprs)}:")
        self.body(s.bodies[0], pad + 1)


def _function(f: Function) -> list[str]:
    writer = _Writer(())
    params = ", ".join(f"{name}: qd.{t}" for name, t in f.params)
    writer.lines += ["@qd.func", f"def {f.name}({params}):"]
    for s in f.body:
        writer.statement(s, 1)
    writer.line(1, f"return {text(f.result)}")
    return [*writer.lines, "", ""]


def program_source(p: Program) -> str:
    """The functions and the kernel of one program."""
    lines: list[str] = []
    for f in p.functions:
        lines += _function(f)
    writer = _Writer(a.name for a in p.arrays)
    params = [f"{a.name}: qd.types.NDArray[qd.{a.dtype}, {len(a.dims)}]" for a in p.arrays]
    params += [f"{s.name}: qd.{s.dtype}" for s in p.scalars]
    arrow = ""
    if len(p.results) == 1:
        arrow = f" -> qd.{p.results[0]}"
    elif p.results:
        arrow = f" -> tuple[{', '.join(f'qd.{t}' for t in p.results)}]"
    writer.lines += ["@qd.kernel", f"def {p.name}({', '.join(params)}){arrow}:"]
    writer.body(p.body, 1)
    return "\n".join([*lines, *writer.lines]) + "\n"


def module_source(programs: Iterable[Program]) -> str:
    """A module that holds all the programs."""
    head = "from qd_studio import engine as qd\n\n\n"
    return head + "\n\n".join(program_source(p) for p in programs)
