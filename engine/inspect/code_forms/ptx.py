"""PTX in a form for people: infix, the user's names of arguments, loops with their source.

A register keeps its raw name unless the text shows what it holds: it is written once, by the load
of an argument, or by a copy of such a register (also to another width). Registers that are sums of
the address of an array and something else are addresses in that array, which memory accesses say.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Final

from ...named_tuple import NamedTuple
from ..record import Artefact
from .common import Facts, Row, about_loop, split_operands
from .llvm_names import names_in
from .llvm_text import Function, functions_of
from .loops import Block, blocks_from, loops_of

__all__ = ["rows"]

_INST: Final = re.compile(r"\s+(?:@(!?%\w+)\s+)?([a-z][\w.:]*)\s*(.*?);\s*(?://.*)?$")
_LABEL: Final = re.compile(r"(\$?[\w$]+):")
_ENTRY: Final = re.compile(r"\s*(?:\.\w+ )*\.(?:entry|func)\b.*?([\w$]+)\(\s*$")
_PARAM: Final = re.compile(r"\[(\w+?)_param_(\d+)\]")
_BINARY: Final = {
    "add": "+", "sub": "-", "mul": "*", "and": "&", "or": "|", "xor": "^", "shl": "<<",
}  # fmt: skip
_OWN_FORM: Final = re.compile(r"\.(?:hi|cc|sat|rz|rm|rp)\b")
"""Parts of operations that infix would hide: these are written as calls."""
_COMPARE: Final = {
    "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "neu": "!=",
}  # fmt: skip
_SIZE: Final = re.compile(r"\.(pred|[bfsu]\d+x?2?)(?=\.|$)")
_COPIES: Final = ("mov", "cvta", "cvt")
_ENDS: Final = frozenset({"ret", "exit", "trap"})
_ADDRESS: Final = re.compile(r"\[(%\w+)(?:([+-])(-?\d+))?\]")


class _Inst(NamedTuple):
    """if_: the predicate that it depends on. op: with all of its parts. args: operands."""

    if_: str
    op: str
    args: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.op.split(".")[0]


def rows(facts: Facts, artefact: Artefact, source: Artefact | None) -> list[Row]:
    """The lines of PTX. source: the LLVM IR that it was made of."""
    lines = artefact.text.splitlines()
    given = {f.name: f for f in functions_of(source.text.splitlines())} if source else {}
    out = [_outside(line) for line in lines]
    start, name, inside = -1, "", False
    for i, line in enumerate(lines):
        entry = _ENTRY.match(line)
        if entry is not None:
            start, name, inside = i, entry[1], False
        elif line == "{" and start >= 0:
            inside = True
            _head(out, facts, given.get(name), name, start, i)
            start = i
        elif line == "}" and inside:
            _Function(facts, lines, given.get(name), start + 1, i).run(out)
            start, inside = -1, False
    return out


def _outside(line: str) -> Row:
    text = line.strip()
    if text.startswith((".", "//", "$L__func")) and "task" not in text:
        return Row(line, "", "directives")
    return Row(line)


def _head(
    out: list[Row], facts: Facts, source: Function | None, name: str, start: int, end: int
) -> None:
    """The lines from ``.entry`` to the bracket: one line with the names of parameters."""
    if source is None:
        return
    names = names_in(facts, source, None, True)
    texts = [names.get(x, f"%{x}") for x, _ in source.params]
    out[start] = Row(f"function {name}({', '.join(texts)})")
    for i in range(start + 1, end):
        out[i] = Row(out[i].text, "", "parameters")


class _Function:
    """Writes the lines of one function: those between its brackets."""

    def __init__(
        self, facts: Facts, lines: Sequence[str], source: Function | None, start: int, end: int
    ) -> None:
        self.facts = facts
        self.lines = lines
        self.start, self.end = start, end
        self.insts: dict[int, _Inst] = {}
        self.labels: dict[int, str] = {}
        for i in range(start, end):
            inst = _INST.match(lines[i])
            label = _LABEL.match(lines[i])
            if label is not None:
                self.labels[i] = label[1]
            elif inst is not None:
                args = tuple(split_operands(inst[3]))
                self.insts[i] = _Inst(inst[1] or "", inst[2], args)
        self.names: dict[str, str] = {}
        self.arrays: dict[str, str] = {}
        self.signs: dict[str, str] = {}
        if source is not None:
            self._find_names(source)

    def _find_names(self, source: Function) -> None:
        wanted = names_in(self.facts, source, None, True)
        once = Counter(x for inst in self.insts.values() for x in _written(inst))
        for inst in self.insts.values():
            target = inst.args[0] if inst.args else ""
            if once[target] != 1 or len(inst.args) < 2 or inst.if_:
                continue
            param = _PARAM.fullmatch(inst.args[1])
            if inst.op.startswith("ld.param") and param is not None:
                number = int(param[2])
                name = source.params[number][0] if number < len(source.params) else ""
                if name in wanted:
                    self.names[target] = wanted[name]
                    self.signs[target] = self._signs(name)
                    if name.startswith("p."):
                        self.arrays[target] = wanted[name]
            elif inst.name in _COPIES and len(inst.args) == 2:
                if _keeps(inst, self.signs.get(inst.args[1], "")):
                    self._copy(target, inst.args[1])
            elif inst.name == "add":
                self._sum(target, inst.args[1:])

    def _signs(self, name: str) -> str:
        if name.startswith("n"):
            return "su"
        param = self.facts.params.get(name[2:])
        return {"i32": "s", "u32": "u"}.get(param.dtype, "") if param is not None else ""

    def _copy(self, target: str, source: str) -> None:
        if source in self.names:
            self.names[target] = self.names[source]
            self.signs[target] = self.signs[source]
        if source in self.arrays:
            self.arrays[target] = self.arrays[source]

    def _sum(self, target: str, args: Sequence[str]) -> None:
        found = [self.arrays[x] for x in args if x in self.arrays]
        if len(found) == 1:
            self.arrays[target] = found[0]

    def run(self, out: list[Row]) -> None:
        noted = self._loops()
        for i in range(self.start, self.end):
            inst = self.insts.get(i)
            if i in self.labels:
                out[i] = Row(f"{self.labels[i]}:{noted.get(i, '')}")
            elif inst is None:
                continue
            elif inst.op.startswith("ld.param") and inst.args[0] in self.names:
                out[i] = Row(self.lines[i], "", "loads of arguments")
            else:
                out[i] = Row(f"  {self._text(inst)}", _type(inst.op))

    def _value(self, text: str) -> str:
        return self.names.get(text, text)

    def _text(self, inst: _Inst) -> str:
        text = self._plain(inst)
        if not inst.if_:
            return text
        test = f"not {inst.if_[1:]}" if inst.if_.startswith("!") else inst.if_
        return f"if {test}: {text}"

    def _plain(self, inst: _Inst) -> str:
        name, args = inst.name, [self._value(arg) for arg in inst.args]
        if name == "bra":
            return f"goto {args[-1]}"
        if name in _ENDS:
            return "return" if name == "ret" else name
        if name in ("ld", "ldu") and len(args) == 2:
            return f"{args[0]} = {self._place(inst.args[1])}"
        if name == "st" and len(args) == 2:
            return f"{self._place(inst.args[0])} = {args[1]}"
        if len(args) < 2:
            return f"{inst.op} {', '.join(args)}".rstrip()
        if name in _COPIES and len(args) == 2:
            return f"{args[0]} = {args[1] if name != 'cvt' else f'{_cast(inst.op)}({args[1]})'}"
        own = _OWN_FORM.search(inst.op) is not None
        args[1:] = [f"&{x}" if y in self.arrays and x != y else x
                    for x, y in zip(args[1:], inst.args[1:], strict=True)]  # fmt: skip
        if name in _BINARY and len(args) == 3 and not own:
            return f"{args[0]} = {args[1]} {_BINARY[name]} {args[2]}"
        if name in ("fma", "mad") and len(args) == 4 and not own:
            return f"{args[0]} = {args[1]} * {args[2]} + {args[3]}"
        if name == "setp" and len(args) == 3 and (test := inst.op.split(".")[1]) in _COMPARE:
            return f"{args[0]} = {args[1]} {_COMPARE[test]} {args[2]}"
        if name == "selp" and len(args) == 4:
            return f"{args[0]} = {args[1]} if {args[3]} else {args[2]}"
        return f"{args[0]} = {inst.op}({', '.join(map(self._in_place, args[1:]))})"

    def _in_place(self, arg: str) -> str:
        return self._place(arg) if arg.startswith("[") else arg

    def _place(self, text: str) -> str:
        """``[%rd5+4]`` in array x: ``x at %rd5+4``."""
        match = _ADDRESS.fullmatch(text)
        array = self.arrays.get(match[1]) if match is not None else None
        if match is None or array is None:
            return text
        if self.names.get(match[1]) == array:
            at = f"byte {match[3] or 0}"
            return f"{array}[{at}]"
        return f"{array}[at {text[1:-1]}]"

    # ---- loops

    def _loops(self) -> dict[int, str]:
        """By the line of a label: what is known of the loop that it begins."""
        blocks = self._blocks()
        out: dict[int, str] = {}
        for loop in loops_of(blocks):
            last = [max(i for i in range(blocks[k].start, blocks[k].end) if i in self.insts)
                    for k in loop.latches]  # fmt: skip
            start = blocks[loop.head].start
            if start in self.labels:
                out[start] = f"  {about_loop(self.facts.loop(last))}"
        return out

    def _blocks(self) -> list[Block]:
        """The blocks of the function; none where a branch goes through a table."""
        starts, leaves = {self.start, *self.labels}, set[int]()
        jumps: dict[int, str] = {}
        for i, inst in self.insts.items():
            if inst.name == "brx":
                return []
            if inst.name == "bra":
                jumps[i] = inst.args[-1]
            if inst.name in ("bra", *_ENDS):
                starts.add(i + 1)
                if not inst.if_:
                    leaves.add(i)
        return blocks_from(starts, self.end, self.labels, jumps, leaves)


def _written(inst: _Inst) -> list[str]:
    """The registers that an instruction may write: all of its first operand."""
    if inst.name in ("st", "bra", "red") or not inst.args:
        return []
    return re.findall(r"%\w+", inst.args[0])


def _keeps(inst: _Inst, signs: str) -> bool:
    """True if a copy of an argument is the same number. signs: ``s`` or ``u`` for the widening
    conversions that keep it, both for an extent, which is not negative."""
    if inst.name != "cvt":
        return True
    parts = inst.op.split(".")[1:]
    return any(parts == [f"{sign}64", f"{sign}32"] for sign in signs)


def _type(op: str) -> str:
    """The type of what an operation computes."""
    found = _SIZE.findall(op)
    if not found or op.startswith(("bra", "bar")):
        return ""
    if op.startswith("setp"):
        return "pred"
    if ".wide" in op:
        return f"{found[0][0]}{2 * int(found[0][1:])}"
    vector = re.search(r"\.v([24])\b", op)
    return f"{found[0]}x{vector[1]}" if vector else found[0]


def _cast(op: str) -> str:
    """``cvt.u64.u32``: u64."""
    return _SIZE.findall(op)[0] if _SIZE.findall(op) else op
