"""LLVM IR as data: functions, blocks and instructions, as far as the readable form needs them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from ...named_tuple import NamedTuple
from .common import split_operands
from .loops import Block

__all__ = ["Function", "Inst", "blocks_of", "functions_of", "plain_type", "read_inst"]


class Inst(NamedTuple):
    """One instruction. name: of its value, without ``%``, empty for none. type: of the value, or of
    the value that it stores. args: its operands without types. what: the predicate, the type that
    is cast to, the element type of an address, or the called function."""

    name: str
    op: str
    type: str
    args: tuple[str, ...]
    what: str = ""


class Function(NamedTuple):
    """A function. start, end: its lines, from ``define`` to ``}``. params: (name, type) of each.
    insts: by line. labels: by line."""

    name: str
    start: int
    end: int
    params: tuple[tuple[str, str], ...]
    insts: dict[int, Inst]
    labels: dict[int, str]


_FLAGS: Final = frozenset({
    "nuw", "nsw", "exact", "disjoint", "fast", "reassoc", "nnan", "ninf", "nsz", "arcp",
    "contract", "afn", "samesign", "nneg", "inbounds", "nusw", "tail", "musttail", "notail",
    "fastcc",
})  # fmt: skip
_TYPE: Final = re.compile(
    r"(?:ptr(?: addrspace\(\d+\))?|<[^<>]+>|\[[^\]]+\]|\{[^}]*\}|[a-z]\w*)(?= |$|,|\))"
)
_BINARY: Final = frozenset({
    "add", "sub", "mul", "sdiv", "udiv", "srem", "urem", "shl", "lshr", "ashr", "and", "or",
    "xor", "fadd", "fsub", "fmul", "fdiv", "frem",
})  # fmt: skip
_CAST: Final = frozenset({
    "sext", "zext", "trunc", "fpext", "fptrunc", "sitofp", "uitofp", "fptosi", "fptoui",
    "ptrtoint", "inttoptr", "bitcast", "addrspacecast",
})  # fmt: skip
_NAMES: Final = {"half": "f16", "float": "f32", "double": "f64"}
_NAMED: Final = re.compile(r'  %([\w.$-]+|"[^"]*") = (.*)')
_TAIL: Final = re.compile(r"(?:, ![\w.]+ !\d+|, align \d+|, !\w[\w.]* ![{][}])+$")
_DEFINE: Final = re.compile(r'define .*?@([\w.$-]+|"[^"]*")\((.*)\)')
_LABEL: Final = re.compile(r'([\w.$-]+|"[^"]*"):(?:\s*;.*)?$')
_TARGET: Final = re.compile(r'label %([\w.$-]+|"[^"]*")')
_ORDER: Final = re.compile(
    r"(?: syncscope\([^)]*\))? (?:monotonic|acquire|release|acq_rel|seq_cst)$"
)
_ADDRESS_SPACE: Final = re.compile(r" addrspace\(\d+\)")
_VECTOR: Final = re.compile(r"<(\d+) x (\w+)>$")


def plain_type(text: str) -> str:
    """``float``: f32, ``<16 x float>``: f32x16; a pointer is ``ptr``."""
    vector = _VECTOR.match(text)
    if vector is not None:
        return f"{_NAMES.get(vector[2], vector[2])}x{vector[1]}"
    return _NAMES.get(text, _ADDRESS_SPACE.sub("", text))


def _typed(text: str) -> tuple[str, str]:
    """(type, rest) of ``float %x, 1.0``; ("", text) if it begins with no type."""
    match = _TYPE.match(text)
    return (match[0], text[match.end() :].strip(" ,")) if match is not None else ("", text)


def _operand(text: str) -> str:
    """An operand without its type and attributes."""
    return text.rsplit(" ", 1)[-1] if not text.endswith((">", "}", "]", ")")) else _typed(text)[1]


def read_inst(line: str) -> Inst | None:
    """The instruction on a line; None if it is not understood."""
    named = _NAMED.match(line)
    name, text = (named[1], named[2]) if named else ("", line.strip())
    text = _TAIL.sub("", text)
    words = text.split(" ")
    while words and words[0] in _FLAGS:
        words.pop(0)
    if not words:
        return None
    op, words = words[0], words[1:]
    while words and words[0] in _FLAGS:
        words.pop(0)
    return _read(name, op, " ".join(words))


def _read(name: str, op: str, rest: str) -> Inst | None:
    if op in _BINARY or op == "fneg":
        type, args = _typed(rest)
        return Inst(name, op, type, tuple(split_operands(args)))
    if op in ("icmp", "fcmp"):
        what, _, rest = rest.partition(" ")
        while what in _FLAGS:
            what, _, rest = rest.partition(" ")
        type, args = _typed(rest)
        return Inst(name, op, "i1", tuple(split_operands(args)), what)
    if op in _CAST:
        value, _, to = rest.partition(" to ")
        return Inst(name, op, to, (_typed(value)[1],), to)
    if op == "select":
        parts = split_operands(rest)
        return Inst(name, op, _typed(parts[1])[0], tuple(map(_operand, parts)))
    if op == "phi":
        type, args = _typed(rest)
        return Inst(name, op, type, tuple(split_operands(args)))
    return _read_memory(name, op, rest)


def _read_memory(name: str, op: str, rest: str) -> Inst | None:
    if op == "alloca":
        return Inst(name, op, _typed(rest)[0], ())
    if op == "load":
        type, args = _typed(rest)
        return Inst(name, op, type, (_operand(split_operands(args)[0]),))
    if op == "store":
        parts = split_operands(rest)
        return Inst(name, op, _typed(parts[0])[0], tuple(map(_operand, parts[:2])))
    if op == "getelementptr":
        parts = split_operands(rest)
        return Inst(name, op, "ptr", tuple(map(_operand, parts[1:])), parts[0])
    if op == "atomicrmw":
        what, _, rest = rest.removeprefix("volatile ").partition(" ")
        parts = split_operands(_ORDER.sub("", rest))
        return Inst(name, op, _typed(parts[1])[0], tuple(map(_operand, parts[:2])), what)
    if op in ("extractelement", "insertelement", "shufflevector", "freeze"):
        parts = split_operands(rest)
        last = _typed(parts[0])[0]
        type = last[last.index(" x ") + 3 : -1] if op == "extractelement" else last
        # The length of a shuffled vector is that of its mask.
        type = "" if op == "shufflevector" else type
        return Inst(name, op, type, tuple(map(_operand, parts)))
    if op == "br":
        parts = split_operands(rest)
        return Inst(name, op, "", tuple(map(_operand, parts)))
    if op == "ret":
        return Inst(name, op, "", () if rest == "void" else (_typed(rest)[1],))
    if op == "call":
        return _read_call(name, rest)
    return None


_CALL: Final = re.compile(r"(.*?)([@%][\w.$-]+)\((.*)\)(?: #\d+)?$")


def _read_call(name: str, rest: str) -> Inst | None:
    match = _CALL.match(rest)
    if match is None:
        return None
    words = match[1].strip()
    while words and (found := re.match(r"(\w+)(?:\([^)]*\))? (?=\S)", words)) is not None:
        if _TYPE.fullmatch(words):
            break
        words = words[found.end() :]
    args = tuple([_operand(part) for part in split_operands(match[3])])
    return Inst(name, "call", "" if words == "void" else words, args, match[2])


def functions_of(lines: Sequence[str]) -> list[Function]:
    """The functions of a module."""
    out: list[Function] = []
    here: Function | None = None
    for i, line in enumerate(lines):
        if line.startswith("define "):
            match = _DEFINE.match(line)
            name, params = (match[1], match[2]) if match else ("", "")
            here = Function(name, i, i, tuple(map(_param, split_operands(params))), {}, {})
        elif here is None:
            continue
        elif line == "}":
            out.append(here._replace(end=i + 1))
            here = None
        elif line.startswith("  ") and not line.startswith("   "):
            inst = read_inst(line)
            if inst is not None:
                here.insts[i] = inst
        elif (label := _LABEL.match(line)) is not None:
            here.labels[i] = label[1]
    return out


def _param(text: str) -> tuple[str, str]:
    return text.rsplit("%", 1)[-1] if "%" in text else "", _typed(text)[0]


def blocks_of(lines: Sequence[str], function: Function) -> list[Block]:
    """The blocks of a function; the first may have no label."""
    starts = list(function.labels)
    first = function.start + 1
    if not starts or lines_before(lines, first, starts[0]):
        starts.insert(0, first)
    names = {function.labels[i]: k for k, i in enumerate(starts) if i in function.labels}
    out: list[Block] = []
    for k, start in enumerate(starts):
        end = starts[k + 1] if k + 1 < len(starts) else function.end - 1
        targets: dict[int, None] = {}
        for line in lines[start:end]:
            if "label %" in line:
                for target in _TARGET.findall(line):
                    targets[names[target]] = None
        out.append(Block(start, end, tuple(targets)))
    return out


def lines_before(lines: Sequence[str], first: int, start: int) -> bool:
    """True if instructions come before the first label."""
    return any(line.startswith("  ") for line in lines[first:start])
