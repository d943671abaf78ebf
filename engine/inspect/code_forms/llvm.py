"""LLVM IR in a form for people: infix, places of arrays, the user's names, loops of the source.

Each instruction stays on a line of its own, in its place. Attributes, flags, metadata, alignment
and declarations are left out or folded; the raw text has them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from ..record import Artefact
from .common import Facts, LoopFact, Row, about_loop
from .llvm_names import names_in, source_values
from .llvm_places import Places
from .llvm_text import Function, Inst, blocks_of, functions_of, plain_type
from .loops import Block, CodeLoop, loops_of

__all__ = ["rows"]

_BINARY: Final = {
    "add": "+", "fadd": "+", "sub": "-", "fsub": "-", "mul": "*", "fmul": "*", "fdiv": "/",
    "and": "&", "or": "|", "xor": "^", "shl": "<<", "lshr": ">>>", "ashr": ">>",
}  # fmt: skip
_COMPARE: Final = {
    "eq": "==", "ne": "!=", "slt": "<", "sle": "<=", "sgt": ">", "sge": ">=", "oeq": "==",
    "une": "!=", "olt": "<", "ole": "<=", "ogt": ">", "oge": ">=",
}  # fmt: skip
_NOISE: Final = (
    ("attributes #", "attributes"), ("; Function Attrs", "attributes"), ("!", "metadata"),
    ("declare ", "declarations"), ("; ModuleID", "header"), ("source_filename", "header"),
    ("target ", "header"),
)  # fmt: skip
_RAW_NAME: Final = re.compile(r'%([\w.$-]+|"[^"]*")')
_INTRINSIC: Final = re.compile(r"@llvm\.([\w.]+?)(?:\.(?:v\d+)?[if]\d+|\.p\d+)*$")
_VECTOR: Final = re.compile(r"<(\d+) x \w+>")
_PROPERTY: Final = re.compile(r"!llvm\.loop (!\d+)")
_NODE: Final = re.compile(r"(!\d+) = (?:distinct )?!\{(.*)\}")
_IN_BUFFER: Final = re.compile(r"(?:p|a|n\d+)\.\w+\.at$")


def rows(
    facts: Facts, artefact: Artefact, source: Artefact | None, source_facts: Facts | None
) -> list[Row]:
    """The lines of ``artefact``. source: the emitter's own text, None if it is ``artefact``."""
    lines = artefact.text.splitlines()
    functions = functions_of(lines)
    original = source is None or source_facts is None
    if source is None or source_facts is None:
        written = source_values(facts, functions)
    else:
        written = source_values(source_facts, functions_of(source.text.splitlines()))
    nodes = {m[1]: m[2] for line in lines if (m := _NODE.match(line)) is not None}
    out = [_outside(line) for line in lines]
    for function in functions:
        names = names_in(facts, function, written.get(function.name), original)
        _Writer(facts, lines, function, names, nodes).run(out)
    return out


def _outside(line: str) -> Row:
    noise = next((kind for start, kind in _NOISE if line.startswith(start)), "")
    return Row(line, "", noise)


class _Writer:
    """Writes the lines of one function."""

    def __init__(
        self, facts: Facts, lines: Sequence[str], function: Function, names: Mapping[str, str],
        nodes: Mapping[str, str],
    ) -> None:  # fmt: skip
        self.facts = facts
        self.lines = lines
        self.function = function
        self.names = names
        self.nodes = nodes
        self.places = Places(facts, function, names)
        self.defined = {x.name: x for x in function.insts.values() if x.name}

    def run(self, out: list[Row]) -> None:
        function = self.function
        out[function.start] = Row(self._head())
        noted = self._loops()
        for i in range(function.start + 1, function.end - 1):
            line = self.lines[i]
            inst = function.insts.get(i)
            if i in function.labels:
                label = function.labels[i]
                out[i] = Row(f"{label}:{noted.get(i, '')}")
            elif inst is None:
                out[i] = Row(self._substituted(line))
            elif _IN_BUFFER.match(inst.name) or self._is_loaded(inst):
                out[i] = Row(line, "", "loads of arguments")
            elif inst.name.endswith(".wide") and inst.name in self.names:
                out[i] = Row(line, "", "extents in 64 bits")
            else:
                out[i] = Row(f"  {self._text(inst, line)}", plain_type(inst.type))

    def _is_loaded(self, inst: Inst) -> bool:
        return inst.op == "load" and bool(inst.args) and inst.args[0] == f"%{inst.name}.at"

    def _head(self) -> str:
        parts: list[str] = []
        for name, type in self.function.params:
            param = self.facts.params.get(name[2:]) if name[:2] == "p." else None
            text = self.names.get(name, f"%{name}")
            if param is not None:
                axes = ", ".join(":" * param.ndim)
                parts.append(f"{text}: {param.dtype}[{axes}]" if param.ndim else text)
            else:
                parts.append(f"{text}: {plain_type(type)}")
        return f"function {self.function.name}({', '.join(parts)}) {{"

    def _substituted(self, line: str) -> str:
        """A line that is not understood, with the names that are known."""
        return _RAW_NAME.sub(lambda m: self.names.get(m[1], m[0]), line)

    # ---- instructions

    def _text(self, inst: Inst, line: str) -> str:
        value = self.places.value
        target = value(f"%{inst.name}") if inst.name else ""
        text = self._expression(inst)
        if not text:
            return self._substituted(line).strip()
        if inst.op == "alloca":
            return f"var {target}"
        return f"{target} = {text}" if target else text

    def _expression(self, inst: Inst) -> str:
        args = [self.places.value(arg) for arg in inst.args]
        op = inst.op
        if op in _BINARY and len(args) == 2:
            return f"{args[0]} {_BINARY[op]} {args[1]}"
        if op in ("icmp", "fcmp") and len(args) == 2:
            if inst.what in _COMPARE:
                return f"{args[0]} {_COMPARE[inst.what]} {args[1]}"
            return f"{inst.what}({args[0]}, {args[1]})"
        if op == "select" and len(args) == 3:
            return f"{args[1]} if {args[0]} else {args[2]}"
        if op == "phi":
            return f"phi({', '.join(map(self._incoming, inst.args))})"
        if op == "load":
            return self.places.at(inst.args[0])
        if op == "store" and len(args) == 2:
            return f"{self.places.at(inst.args[1])} = {args[0]}"
        if op == "getelementptr":
            place = self.places.at(f"%{inst.name}")
            return place[2:-1] if place.startswith("*(") else f"&{place}"
        return self._other(inst, args)

    def _other(self, inst: Inst, args: Sequence[str]) -> str:
        if inst.op == "br":
            if len(args) == 1:
                return f"goto {inst.args[0][1:]}"
            return f"if {args[0]} goto {inst.args[1][1:]} else {inst.args[2][1:]}"
        if inst.op == "ret":
            return f"return {args[0]}" if args else "return"
        if inst.op == "fneg":
            return f"-{args[0]}"
        if inst.op == "alloca":
            return "var"
        if inst.op == "atomicrmw":
            return f"atomic {inst.what} {self.places.at(inst.args[0])}, {args[1]}"
        name = self._called(inst.what) if inst.op == "call" else inst.op
        return f"{name}({', '.join(args)})"

    def _called(self, name: str) -> str:
        if name.startswith("%"):
            return self.places.value(name)
        match = _INTRINSIC.match(name)
        return match[1] if match is not None else name[1:]

    def _incoming(self, arg: str) -> str:
        """``%v, %b`` of a phi, in brackets: ``v from b``."""
        value, _, block = arg.strip("[] ").rpartition(", ")
        return f"{self.places.value(value)} from {block[1:]}"

    # ---- loops

    def _loops(self) -> dict[int, str]:
        """By the line of a label: what is known of the loop that it begins."""
        function = self.function
        try:
            blocks = blocks_of(self.lines, function)
        except KeyError:
            return {}
        out: dict[int, str] = {}
        for loop in loops_of(blocks):
            text = self._about(loop, blocks)
            out[blocks[loop.head].start] = f"  {text}"
        return out

    def _about(self, loop: CodeLoop, blocks: Sequence[Block]) -> str:
        head = blocks[loop.head]
        index = self._index(head)
        latches = [self._last(blocks[i]) for i in loop.latches]
        found = index or (self.facts.loop(latches), 0)
        parts = [about_loop(*found)]
        step = self._step(head)
        if self._is_vectorised(loop, blocks):
            lanes = self._lanes(loop, blocks)
            parts.append(f"vectors of {lanes}" if lanes else "vectors")
        if step > 1:
            parts.append(f"{step} iterations a round")
        return "; ".join(parts)

    def _index(self, head: Block) -> tuple[LoopFact, int] | None:
        """The user's loop whose index is a phi at the head."""
        found: list[tuple[LoopFact, int]] = []
        for i in range(head.start, head.end):
            inst = self.function.insts.get(i)
            name = self.names.get(inst.name, "") if inst is not None and inst.op == "phi" else ""
            match = re.match(r"i(\d+)\.(\d)", inst.name) if inst is not None and name else None
            for end in range(len(match[1]) if match else 0, 0, -1):
                assert match is not None
                loop = self.facts.loops.get(int(match[1][:end]))
                if loop is not None and end == len(match[1]) and int(match[2]) < len(loop.names):
                    found.append((loop, int(match[2])))
        return found[0] if len(found) == 1 else None

    def _last(self, block: Block) -> int:
        """The line of the last instruction of a block."""
        return max((i for i in range(block.start, block.end) if i in self.function.insts),
                   default=block.start)  # fmt: skip

    def _step(self, head: Block) -> int:
        """The iterations a round: the step of the only counter that LLVM made or widened."""
        steps: set[int] = set()
        for i in range(head.start, head.end):
            inst = self.function.insts.get(i)
            if inst is None or inst.op != "phi" or not re.match(r"(i\d+\.|index|niter)", inst.name):
                continue
            for arg in inst.args:
                value = arg.strip("[] ").rpartition(", ")[0]
                step = self.defined.get(value[1:])
                if step is not None and step.op == "add" and step.args[0] == f"%{inst.name}":
                    steps.add(int(step.args[1]) if step.args[1].isdigit() else 0)
        return steps.pop() if len(steps) == 1 else 0

    def _is_vectorised(self, loop: CodeLoop, blocks: Sequence[Block]) -> bool:
        for i in loop.latches:
            match = _PROPERTY.search(self.lines[self._last(blocks[i])])
            for node in re.findall(r"!\d+", self.nodes.get(match[1], "")) if match else ():
                if "llvm.loop.isvectorized" in self.nodes.get(node, "") and self._lanes(
                    loop, blocks
                ):
                    return True
        return False

    def _lanes(self, loop: CodeLoop, blocks: Sequence[Block]) -> int:
        """The elements of the vectors in a loop; 0 if there are none, or several sizes."""
        found: set[str] = set()
        for k in loop.inner:
            for i in range(blocks[k].start, blocks[k].end):
                inst = self.function.insts.get(i)
                if inst is not None and inst.op != "phi":
                    found.update(_VECTOR.findall(inst.type))
        return int(found.pop()) if len(found) == 1 else 0
