"""x86-64 assembly in a form for people: loops with their source, memory operands as sums.

Registers keep their names: debug information has the line of an instruction, not the variable that
a register holds. Arguments are named where they are loaded: in a function that gets the
argument buffer, while a register holds the address of that. Operands of memory are
``[rbx + rcx*4 + 8]``, the result of an instruction comes first, and moves, sums and products of one
source are infix.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from ..record import Artefact
from .common import Facts, Row, about_loop, split_operands
from .llvm_names import param_name as _param_name
from .loops import Block, CodeLoop, blocks_from, loops_of

__all__ = ["rows"]

_INST: Final = re.compile(r"\t([a-z][\w.]*)(?:\s+(.*?))?(?:\s+#.*)?$")
_LABEL: Final = re.compile(r"([\w.$]+):")
_MEMORY: Final = re.compile(r"(?P<at>[^(]*)\((?P<parts>[^)]*)\)$")
_FRAME: Final = re.compile(r"(?:push|pop)q$")
_ENDS: Final = ("ret", "ud2")
_PACKED: Final = re.compile(r"v?\w+?(?:\d\d\d)?p([sd])$|vmov[ua]p([sd])$")
_WIDTH: Final = {"x": 128, "y": 256, "z": 512}
_VECTOR: Final = re.compile(r"%([xyz])mm\d+")
_TWO: Final = {"add": "+=", "sub": "-=", "and": "&=", "or": "|=", "xor": "^=", "imul": "*="}
_THREE: Final = {"vadd": "+", "vsub": "-", "vmul": "*", "vdiv": "/"}
_SLOT: Final = re.compile(
    r"  %((?:p|a|n\d+)\.\w+)\.at = getelementptr inbounds i8, ptr %kernarg, i64 (\d+)"
)
_KEPT: Final = ("rbx", "rbp", "r12", "r13", "r14", "r15")
"""Registers that a called function restores."""
_FIRST: Final = "rdi"
"""The register of the first parameter."""
_KIND: Final = {"ss": "f32", "sd": "f64", "ps": "f32", "pd": "f64"}


def rows(facts: Facts, artefact: Artefact, source: Artefact | None) -> list[Row]:
    """The lines of assembly."""
    lines = artefact.text.splitlines()
    if "%r" not in artefact.text:  # of another processor
        return [Row(line) for line in lines]
    out = [_row(line) for line in lines]
    starts = [i for i in range(len(lines)) if _is_function(lines, i)]
    ir = source.text if source is not None else ""
    slots = {int(m[2]): _param_name(facts, m[1]) for m in _SLOT.finditer(ir)}
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        _note_loops(out, facts, lines, start, end)
        if _gets_buffer(lines[start][:-1], ir):
            _name_slots(out, lines, start, end, slots)
    return out


def _gets_buffer(name: str, ir: str) -> bool:
    """True if the first parameter is the argument buffer, in its usual register: LLVM may change
    that for functions that only this module calls."""
    head = re.search(rf"define (internal )?.*@{re.escape(name)}\(ptr .*?%kernarg[,)]", ir)
    return head is not None and (not head[1] or f"ptr @{name}," in ir)


def _name_slots(
    out: list[Row], lines: Sequence[str], start: int, end: int, slots: Mapping[int, str]
) -> None:
    """Add the names of arguments to operands of memory in the buffer."""
    text = [_INST.match(line) for line in lines[start:end]]
    written = Counter(
        reg for inst in text if inst is not None and not _FRAME.match(inst[1])
        for reg in _written(inst)
    )  # fmt: skip
    holds, always, first = {_FIRST}, set[str](), True
    for i, inst in enumerate(text, start):
        if inst is None:
            if i > start and _LABEL.match(lines[i]):
                # Control may come from elsewhere, where other registers hold it.
                if first:
                    always = {reg for reg in holds if reg in _KEPT and written[reg] == 1}
                first, holds = False, set(always)
            continue
        if not _FRAME.match(inst[1]):
            out[i] = _with_slots(out[i], holds, slots)
        args = split_operands(inst[2] or "")
        copy = inst[1] == "movq" and len(args) == 2 and args[0].lstrip("%") in holds
        holds.difference_update(_written(inst))
        if inst[1].startswith("call"):
            holds.intersection_update(_KEPT)
        elif copy and re.fullmatch(r"%r\w+", args[1]):
            holds.add(args[1][1:])


def _with_slots(row: Row, holds: Iterable[str], slots: Mapping[int, str]) -> Row:
    text = row.text
    for reg in holds:
        for match in re.finditer(rf"\[{reg} \+ (\d+)\]", text):
            name = slots.get(int(match[1]))
            if name:
                text = text.replace(match[0], f"[{match[0][1:-1]}: {name}]")
    return row._replace(text=text)


_FAMILY: Final = re.compile(
    r"%(?:[re]?(ax|bx|cx|dx|si|di|bp|sp)|(r\d+)[dwb]?|([abcd])[lh]|(si|di|bp)l)$"
)


def _written(inst: re.Match[str]) -> list[str]:
    """The registers of 64 bits that an instruction may change, besides those of a call."""
    op, args = inst[1], split_operands(inst[2] or "")
    if _FRAME.match(op) and op.startswith("push"):
        return []
    if op.startswith(("div", "idiv", "mul", "cqto", "cltd", "cltq", "cqt", "rep", "cpuid", "rdtsc",
                      "cmpxchg", "lock", "xchg", "xadd", "imul")) and len(args) < 3:  # fmt: skip
        return ["rax", "rdx", "rcx", "rsi", "rdi", "rbx", *map(_family, args)]
    if op.startswith(("cmp", "test", "j", "ucomi", "vucomi", "vcomi", "comi")):
        return []
    return [_family(arg) for arg in args[-1:]]


def _family(arg: str) -> str:
    """``%edi``: rdi; empty for what is no general register."""
    match = _FAMILY.match(arg)
    if match is None:
        return ""
    name = match[1] or match[2] or match[4] or f"{match[3]}x"
    return name if match[2] else f"r{name}"


def _is_function(lines: Sequence[str], i: int) -> bool:
    """True for the label of a function, which directives declare above."""
    match = _LABEL.match(lines[i])
    near = "\n".join(lines[max(0, i - 4) : i])
    return match is not None and f"{match[1]},@function" in near


def _row(line: str) -> Row:
    if _LABEL.match(line):
        return Row(line, "", "directives" if line.startswith(".Lfunc_end") else "")
    inst = _INST.match(line)
    if inst is None:
        return Row(line, "", "directives" if line.startswith("\t.") else "")
    if _FRAME.match(inst[1]):
        return Row(line, "", "saved registers")
    args = [_operand(x) for x in split_operands(inst[2] or "")]
    return Row(f"  {_text(inst[1], args)}")


def _operand(text: str) -> str:
    """``8(%rbx,%rcx,4)``: ``[rbx + rcx*4 + 8]``; ``%rax``: rax; ``$3``: 3."""
    star = "*" if text.startswith("*") else ""
    text = text.removeprefix("*")
    match = _MEMORY.match(text)
    if match is None:
        return star + text.removeprefix("$").replace("%", "")
    parts = [part.strip().lstrip("%") for part in match["parts"].split(",")]
    terms = parts[:1] if parts[0] else []
    if len(parts) > 1:
        scale = parts[2] if len(parts) > 2 else "1"
        terms.append(f"{parts[1]}*{scale}" if scale != "1" else parts[1])
    at = match["at"].replace("%", "")
    text = " + ".join(terms)
    if at:
        text += f" - {at[1:]}" if re.fullmatch(r"-\d+", at) else f" + {at}"
    return f"{star}[{text}]"


def _text(op: str, args: list[str]) -> str:
    """An instruction: the result first."""
    if op == "jmp" and args:
        return f"goto {args[0]}"
    if op.startswith("ret"):
        return "return"
    if op.startswith("j") and len(args) == 1:
        return f"{op} {args[0]}"
    if op.startswith("call"):
        return f"call {', '.join(args)}"
    if len(args) == 2 and re.fullmatch(r"v?mov(?:[lqwb]|ss|sd|[ua]p[sd]|abs|absq|dq[ua]\w*)", op):
        return f"{args[1]} = {args[0]}"
    if len(args) == 2 and re.fullmatch(r"lea[lq]", op):
        return f"{args[1]} = &{args[0]}"
    base = op[:-1] if op[-1:] in "lqwb" else op
    if len(args) == 2 and base in _TWO:
        return f"{args[1]} {_TWO[base]} {args[0]}"
    if len(args) == 1 and base in ("inc", "dec"):
        return f"{args[0]} {'+=' if base == 'inc' else '-='} 1"
    if len(args) == 3 and op[:-2] in _THREE and op[-2:] in _KIND:
        return f"{args[2]} = {args[1]} {_THREE[op[:-2]]} {args[0]}"
    fused = re.fullmatch(r"vfmadd(132|213|231)[sp][sd]", op)
    if fused is not None and len(args) == 3:
        third, second, first = args
        a, b, c = {"132": (first, third, second), "213": (second, first, third),
                   "231": (second, third, first)}[fused[1]]  # fmt: skip
        return f"{first} = {a} * {b} + {c}"
    # Compares have no result; their operands are in the order of the processor's manual.
    return f"{op} {', '.join(args[::-1])}".rstrip()


# ---- loops


def _note_loops(out: list[Row], facts: Facts, lines: Sequence[str], start: int, end: int) -> None:
    blocks = _blocks(lines, start, end)
    for loop in loops_of(blocks):
        head = blocks[loop.head].start
        if not _LABEL.match(lines[head]):
            continue
        last = [max(i for i in range(blocks[k].start, blocks[k].end) if _INST.match(lines[i]))
                for k in loop.latches]  # fmt: skip
        parts = [about_loop(facts.loop(last))]
        vectors = _vectors(lines, blocks, loop)
        parts += [f"vectors of {vectors}"] if vectors else []
        out[head] = Row(f"{lines[head]}  {'; '.join(parts)}")


def _blocks(lines: Sequence[str], start: int, end: int) -> list[Block]:
    """The blocks of a function; none if a jump goes through a table."""
    labels: dict[int, str] = {}
    starts = {start}
    targets: dict[int, str] = {}
    leaves = set[int]()
    for i in range(start, end):
        label, inst = _LABEL.match(lines[i]), _INST.match(lines[i])
        if lines[i].startswith(".Lfunc_end"):
            end = i
            break
        if label is not None:
            labels[i] = label[1]
            starts.add(i)
        elif inst is not None and inst[1].startswith(("j", *_ENDS)):
            if (inst[2] or "").startswith("*"):
                return []
            starts.add(i + 1)
            if inst[1].startswith("j"):
                targets[i] = inst[2]
            if not inst[1].startswith("j") or inst[1].startswith("jmp"):
                leaves.add(i)
    return blocks_from(starts, end, labels, targets, leaves)


def _vectors(lines: Sequence[str], blocks: Sequence[Block], loop: CodeLoop) -> str:
    """``16 f32``: the elements of the registers of packed arithmetic in a loop; empty if there is
    none, or of several sizes."""
    found: set[str] = set()
    for k in loop.inner:
        for line in lines[blocks[k].start : blocks[k].end]:
            inst = _INST.match(line)
            packed = _PACKED.fullmatch(inst[1]) if inst is not None else None
            if inst is None or packed is None or inst[1].startswith(("vxor", "xor", "vbroadcast")):
                continue
            sizes = set(_VECTOR.findall(inst[2] or ""))
            bits = 32 if (packed[1] or packed[2]) == "s" else 64
            if len(sizes) == 1:
                found.add(f"{_WIDTH[sizes.pop()] // bits} f{bits}")
    return found.pop() if len(found) == 1 else ""
