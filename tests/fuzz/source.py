"""Generated kernels as Python source, many in a module."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from qd_studio.engine.types import DataType, f32, i32, u1

from .model import Bundle, E, For, Function, Group, Program, S, V, walk

__all__ = ["arguments_of", "module_source", "program_source"]

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
    """A constant that has type ``t`` wherever it is."""
    if t is u1:
        return "True" if value else "False"
    return f"qd.{t}({value!r})"


class Texts:
    """Writes the expressions of one program.

    A name of the program stands for itself unless it is a part of an aggregate; see `model`.
    """

    def __init__(self, p: Program) -> None:
        self.names: dict[str, str] = dict.fromkeys(p.records, "")
        for name in p.records:
            self.names[name] = f"rec.{name}"
        for name in p.method or ():
            self.names[name] = f"self.{name}"
        for bundle in p.bundles:
            self.names.update(zip(bundle.parts, bundle.texts, strict=True))
        for s in walk(p.body):
            if s.kind == "group":
                self.names.update(zip(s.data.parts, s.data.texts, strict=True))
        self.groups = {name: g for g in p.groups for name in g.parts}
        self.current = {g.name: g for g in p.groups}
        """Statements hold the groups as they were before arguments were shared out."""
        self.functions = {f.name: f for f in p.functions}
        self.program = p

    def container(self, group: Group) -> str:
        """What holds the arrays of a group."""
        group = self.current.get(group.name, group)
        if group.record:
            return f"{group.record}.{group.name}"
        if group.where == "field" and not group.template:
            return f"{self.program.name}_{group.name}"
        return group.name

    def element(self, group: Group, indices: tuple[E, ...]) -> str:
        """An element of the container, with all its parts."""
        group = self.current.get(group.name, group)
        texts = [self(e) for e in indices]
        if group.offset:
            texts = [f"{text} + ({group.offset})" for text in texts]
        return f"{self.container(group)}[{', '.join(texts) or 'None'}]"

    def array(self, name: str, indices: tuple[E, ...]) -> str:
        """An element of one of the program's arrays."""
        group = self.groups.get(name)
        if group is None:
            return f"{name}[{', '.join(map(self, indices)) or 'None'}]"
        return self.element(group, indices) + part_suffix(group, group.parts.index(name))

    def name(self, name: str) -> str:
        return self.names.get(name, name)

    def bare(self, e: E) -> str:
        """Operand text: a constant without its type, where Python cannot fold it."""
        if e.op == "const" and e.t in (i32, f32) and abs(e.data) < 2**31:
            return f"({e.data!r})" if str(e.data).startswith("-") else repr(e.data)
        return self(e)

    def __call__(self, e: E) -> str:
        """The expression in Python, in brackets where it needs them."""
        op, args = e.op, e.args
        if op == "const":
            return literal(e.data, e.t)
        if op == "var":
            return self.name(e.data)
        if op == "load":
            return self.array(e.data, args)
        if op == "shape":
            return self.shape(*e.data)
        if op == "vec":
            return self.from_vector(*e.data)
        if op == "cast":
            return f"qd.cast({self(args[0])}, qd.{e.t})"
        if op == "cast_bits":
            return f"qd.bit_cast({self(args[0])}, qd.{e.t})"
        if op == "chain":
            a, b, c = map(self, args)
            return f"({a} {_INFIX[e.data[0]]} {b} {_INFIX[e.data[1]]} {c})"
        if op == "ifexp":
            return f"({self(args[1])} if {self(args[0])} else {self(args[2])})"
        if op == "call":
            inside = ", ".join(map(self, args))
            return f"{e.data}(qd.Vector([{inside}]))" if self.functions[e.data].bundled else (
                f"{e.data}({inside})")  # fmt: skip
        if op in _INFIX:
            a, b = args
            left = self.bare(a) if b.op != "const" else self(a)
            right = self.bare(b) if a.op != "const" else self(b)
            return f"({left} {_INFIX[op]} {right})"
        if op in _PREFIX:
            return f"({_PREFIX[op]}{self(args[0])})"
        if op == "sgn" and e.t.is_int:  # the language's function gives a real number
            return f"qd.cast(qd.math.sign({self(args[0])}), qd.{e.t})"
        return f"{_CALLS.get(op, 'qd.' + op)}({', '.join(map(self, args))})"

    def shape(self, name: str, axis: int) -> str:
        """An extent. That of a field is known to Python, which must not compute with it."""
        group = self.groups.get(name)
        if group is None:
            return f"{name}.shape[{axis}]"
        text = f"{self.container(group)}.shape[{axis}]"
        return f"qd.i32({text})" if group.where == "field" else text

    def from_vector(self, kind: str, v: V, *more: Any) -> str:
        """A number that is computed from a vector."""
        whole = self.vector(v)
        if kind == "dot":
            return f"{whole}.dot({self.vector(more[0])})"
        if kind in ("elem", "dyn"):
            index = more[0] if kind == "elem" else self(more[0])
            return f"{whole}[{index}]"
        return f"{whole}.{kind}()"

    def vector(self, v: V | E) -> str:
        if isinstance(v, E):
            return self(v)
        if v.op == "var":
            return v.data.name
        if v.op == "load":
            return self.element(v.data, v.args)
        if v.op == "build":
            return built(v.shape, [self(e) for e in v.args])
        if v.op == "cast":
            return f"qd.cast({self.vector(v.args[0])}, qd.{v.t})"
        if v.op == "swizzle":
            return f"{self.vector(v.args[0])}.{''.join('xyzw'[k] for k in v.data)}"
        if v.op == "transpose":
            return f"{self.vector(v.args[0])}.transpose()"
        a, b = map(self.vector, v.args)
        if v.op == "matvec":
            return f"({a} @ {b})"
        if v.op in _INFIX:
            return f"({a} {_INFIX[v.op]} {b})"
        return f"{_CALLS[v.op]}({a}, {b})"


def built(shape: tuple[int, ...], parts: list[str]) -> str:
    """A vector or matrix of these parts."""
    if len(shape) == 1:
        return f"qd.Vector([{', '.join(parts)}])"
    m = shape[1]
    rows = [f"[{', '.join(parts[i * m : (i + 1) * m])}]" for i in range(shape[0])]
    return f"qd.Matrix([{', '.join(rows)}])"


def part_suffix(group: Group, k: int) -> str:
    """How part ``k`` of an element of a group's container is written after the element."""
    if group.form == "scalar":
        return ""
    if group.form == "vector":
        return f"[{k}]" if k % 2 else f".{'xyzw'[k]}"
    if group.form == "matrix":
        i, j = divmod(k, group.shape[1])
        return f"[{i}, {j}]"
    key = group.keys[k]
    before = group.keys[:k].count(key)
    return f".{key}[{before}]" if group.keys.count(key) > 1 else f".{key}"


class _Writer:
    def __init__(self, texts: Texts, arrays: Iterable[str]) -> None:
        self.text = texts
        self.arrays = set(arrays)
        self.lines: list[str] = []

    def line(self, pad: int, text: str) -> None:
        self.lines.append("    " * pad + text)

    def body(self, body: tuple[S, ...], pad: int) -> None:
        for s in body:
            self.statement(s, pad)
        if not body:
            self.line(pad, "pass")

    def target(self, name: str, indices: tuple[E, ...]) -> str:
        return self.text.array(name, indices) if name in self.arrays else self.text.name(name)

    def statement(self, s: S, pad: int) -> None:
        kind, exprs, text = s.kind, s.exprs, self.text
        if kind in ("let", "set"):
            self.line(pad, f"{text.name(s.data)} = {text(exprs[0])}")
        elif kind == "store":
            self.line(pad, f"{text.array(s.data, exprs[1:])} = {text(exprs[0])}")
        elif kind == "aug":
            op, name = s.data
            self.line(pad, f"{self.target(name, exprs[1:])} {_INFIX[op]}= {text(exprs[0])}")
        elif kind == "atomic":
            self.atomic(s, pad)
        elif kind in ("group", "whole", "pick"):
            self.line(pad, self.several(s))
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
            values = ", ".join(map(text, exprs))
            as_vector = text.program.vector_result and len(exprs) > 1
            self.line(pad, f"return qd.Vector([{values}])" if as_vector else f"return {values}")
        else:
            self.line(pad, kind)

    def several(self, s: S) -> str:
        """A statement on all parts of a vector, matrix or struct."""
        text = self.text
        if s.kind == "pick":
            return f"{s.data.name}[{text(s.exprs[1])}] = {text(s.exprs[0])}"
        if s.kind == "whole":
            op, target, v, axes = s.data
            place = target.name
            if isinstance(target, Group):
                place = text.element(target, s.exprs[len(s.exprs) - axes :])
            return f"{place} {_INFIX.get(op, '')}= {text.vector(v)}"
        bundle: Bundle = s.data
        parts = [text(e) for e in s.exprs]
        if bundle.form != "struct":
            return f"{bundle.name} = {built(bundle.shape, parts)}"
        members = ", ".join(f"{k}={v}" for k, v in zip(bundle.keys, parts, strict=True))
        return f"{bundle.name} = {bundle.kind}({members})"

    def atomic(self, s: S, pad: int) -> None:
        result, op, name = s.data
        extra = 2 if op == "cas" else 1
        target = self.target(name, s.exprs[extra:])
        if op == "cas":
            new, expected = s.exprs[:2]
            call = f"qd.atomic_cas({target}, {self.text(expected)}, {self.text(new)})"
        else:
            call = f"qd.{_ATOMIC[op]}({target}, {self.text(s.exprs[0])})"
        self.line(pad, f"{result} = {call}" if result else call)

    def iterable(self, loop: For, exprs: tuple[E, ...]) -> str:
        bare = self.text.bare
        if loop.form == "array":
            group = self.text.groups.get(loop.array)
            return self.text.container(group) if group else loop.array
        if loop.form == "static":
            return f"qd.static(range({exprs[0].data}, {exprs[1].data}))"
        pairs = list(zip(exprs[::2], exprs[1::2], strict=True))
        if loop.form == "range":
            begin, end = pairs[0]
            whole = begin.op == "const" and begin.data == 0
            return f"range({bare(end)})" if whole else f"range({bare(begin)}, {bare(end)})"
        parts = [
            bare(end)
            if begin.op == "const" and begin.data == 0
            else f"({bare(begin)}, {bare(end)})"
            for begin, end in pairs
        ]
        inner = f"qd.ndrange({', '.join(parts)})"
        return f"qd.grouped({inner})" if loop.form == "grouped" else inner

    def loop(self, s: S, pad: int) -> None:
        loop: For = s.data
        if loop.serialize:
            self.line(pad, "qd.loop_config(serialize=True)")
        group = self.text.groups.get(loop.array)
        offset = group.offset if group and loop.form == "array" else 0
        iterable = self.iterable(loop, s.exprs)
        if loop.form == "grouped" or (loop.form == "array" and len(loop.names[0]) % 2):
            index = "I" + loop.names[0]
            over = iterable if loop.form == "grouped" else f"qd.grouped({iterable})"
            self.line(pad, f"for {index} in {over}:")
            for k, name in enumerate(loop.names):
                back = f" - ({offset})" if offset else ""
                self.line(pad + 1, f"{name} = {index}[{k}]{back}")
        elif offset:
            self.line(pad, f"for {', '.join(f'o{n}' for n in loop.names)} in {iterable}:")
            for name in loop.names:
                self.line(pad + 1, f"{name} = o{name} - ({offset})")
        else:
            self.line(pad, f"for {', '.join(loop.names)} in {iterable}:")
        self.body(s.bodies[0], pad + 1)


def _function(f: Function, p: Program) -> list[str]:
    texts = Texts(p)
    params = ", ".join(f"{name}: qd.{t}" for name, t in f.params)
    if f.bundled:
        texts.names.update({name: f"fv[{k}]" for k, (name, _) in enumerate(f.params)})
        params = f"fv: qd.types.vector({len(f.params)}, qd.{f.params[0][1]})"
    writer = _Writer(texts, ())
    writer.lines += ["@qd.func", f"def {f.name}({params}):"]
    for s in f.body:
        writer.statement(s, 1)
    writer.line(1, f"return {texts(f.result)}")
    return [*writer.lines, "", ""]


def array_annotation(p: Program, group: Group) -> str:
    """The annotation of an array argument."""
    array = next(a for a in p.arrays if a.name == group.parts[0])
    ndim = len(array.dims)
    if group.form == "scalar":
        return f"qd.types.NDArray[qd.{array.dtype}, {ndim}]"
    inner = ", ".join(map(str, group.shape))
    kind = f"qd.types.{group.form}({inner}, qd.{array.dtype})"
    return f"qd.types.ndarray(dtype={kind}, ndim={ndim})"


def _types(p: Program) -> list[str]:
    """The struct and dataclass types that a program uses."""
    lines: list[str] = []
    for name, members in p.structs:
        inside = ", ".join(f"{key}=qd.{t}" for key, t in members)
        lines.append(f"{name} = qd.types.struct({inside})")
    inside_record = [g for g in p.groups if g.record == "rec"]
    if p.records or inside_record:
        lines += ["", "", "@dataclasses.dataclass", f"class {p.name}_Record:"]
        lines += [f"    {g.name}: {array_annotation(p, g)}" for g in inside_record]
        lines += [f"    {s.name}: qd.{s.dtype}" for s in p.scalars if s.name in p.records]
        lines += ["", ""]
    return lines


def arguments_of(p: Program) -> list[tuple[str, str]]:
    """The kernel's parameters: name and annotation.

    Arrays and fields first, then scalars, then a vector (``av``) or struct (``as_``) of scalars,
    then the dataclass (``rec``). Not ``self``.
    """
    out = [
        (g.name, "qd.template()" if g.template else array_annotation(p, g))
        for g in p.groups
        if not g.record and (g.where == "ndarray" or g.template)
    ]
    bundled = {name for b in p.bundles for name in b.parts}
    inside = {*bundled, *p.records, *(p.method or ())}
    alone = [s for s in p.scalars if s.name not in inside]
    out += [(s.name, f"qd.{s.dtype}") for s in alone]
    for b in p.bundles:
        vector = f"qd.types.vector({len(b.parts)}, qd.{b.t})"
        out.append((b.name, vector if b.form == "vector" else b.kind))
    if p.records or any(g.record == "rec" for g in p.groups):
        out.append(("rec", f"{p.name}_Record"))
    return out


def program_source(p: Program) -> str:
    """The types, functions and kernel of one program. Fields are globals, set by the caller."""
    lines = _types(p)
    for f in p.functions:
        lines += _function(f, p)
    writer = _Writer(Texts(p), (a.name for a in p.arrays))
    params = [f"{name}: {annotation}" for name, annotation in arguments_of(p)]
    arrow = ""
    if len(p.results) == 1:
        arrow = f" -> qd.{p.results[0]}"
    elif p.vector_result:
        arrow = f" -> qd.types.vector({len(p.results)}, qd.{p.results[0]})"
    elif p.results:
        arrow = f" -> tuple[{', '.join(f'qd.{t}' for t in p.results)}]"
    pad = 0
    if p.method is not None:
        pad = 1
        params.insert(0, "self")
        writer.line(0, "@qd.data_oriented(template_primitives=False)")
        writer.line(0, f"class {p.name}_Class:")
    writer.line(pad, "@qd.kernel")
    writer.line(pad, f"def {p.name}({', '.join(params)}){arrow}:")
    writer.body(p.body, pad + 1)
    return "\n".join([*lines, *writer.lines]) + "\n"


def module_source(programs: Iterable[Program]) -> str:
    """A module that holds all the programs."""
    head = "import dataclasses\n\nfrom qd_studio import engine as qd\n\n\n"
    return head + "\n\n".join(program_source(p) for p in programs)
