"""First-tier code without LLVM: a baseline compiler for x86-64, in one pass over a kernel's text.

LLVM needs a millisecond for the code of the smallest kernel, whatever is asked of it. First-tier
code runs for some milliseconds at most, so what counts is the time to make it. `compile_first`
reads the text of a kernel line by line and emits instructions at once, with checks of the deadline
as in `llvm.deadline`. There is no register allocation: each value has a slot of 8 bytes on the
stack, and operands are loaded from there::

    rbp     the frame; slots and local variables are below it
    rbx     the argument buffer, the first argument of every function
    rax     the last integer or address   }  a value that the next instruction needs
    xmm0    the last float                }  is not loaded again

The instructions are those that LLVM has for the operations, so that results have the same bits;
mathematical functions are those of the system, as with LLVM. A value of fewer than 64 bits is in
the lower bits of its slot, below bits of any kind; an ``i1`` is 0 or 1 in all 64. Two names of one
value (a truncation) have one slot. In long functions a value that one block alone uses has its slot
until its last use. A jump writes the phis of the block that it leads to.

What this does not know raises `Unsupported`, and LLVM makes the code. Numbers are in
`baseline_ops`, memory is in `baseline_memory`, and operands are in `baseline_frame`.
"""

from __future__ import annotations

import re
import struct
from collections import deque
from collections.abc import Callable, Container, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from ..kernarg.abi import LATE
from ..llvm import text
from .baseline_frame import RBP, RBX, REAL, SIZES, Frame, Unsupported, constant_load, near
from .baseline_ops import INLINED, OPS
from .relocatable import Parts, address_of, room

if TYPE_CHECKING:
    from ..llvm.kernel_text import KernelText, TaskBody

__all__ = ["Unsupported", "compile_first", "compile_functions"]

_SLOTS: Final = 1 << 20
"""The most bytes of a function's slots. LLVM's code for as many values has as large a frame."""
_FEW: Final = 128
"""Lines of a function with at most a kilobyte of slots."""
_REGISTERS: Final = (7, 6, 2, 1)
"""rdi, rsi, rdx and rcx: for the integers and addresses that a call passes."""
_FLOATS: Final = 8
"""The most floats that a call passes."""
_SYSTEM: Final = {
    name: name
    for name in ("sin", "cos", "tan", "asin", "acos", "atan2", "tanh", "exp", "exp2", "log", "log2",
                 "log10", "pow", "floor", "ceil", "trunc", "rint", "nearbyint", "round", "fma",
                 "memset", "memcpy")
}  # fmt: skip
"""LLVM's functions -> those of the system that it calls for them, or that have the same result."""
_ENDS: Final = {"f32": "f", "f64": "", "i64": ""}
_LEAVE: Final = b"\x48\x8b\x5d\xf8\xc9\xc3"  # mov rbx, [rbp - 8]; leave; ret
_FUEL: Final = "fuel"
"""The name of the slot with the operations until the next look at the clock."""

_CALL: Final = re.compile(
    r"  (?:%\S+ = )?call (?:(?:nnan|ninf|reassoc|nsz|arcp|contract|afn|zeroext) )*(\w+) "
    r"(?:(%[\w.$-]+|@[\w.$-]+)|inttoptr \(i64 (\d+) to ptr\))\((.*)\)$"
)
_DEFINE: Final = re.compile(
    r"define (?:internal |zeroext )?\w+ @([\w.$-]+)\(((?:[^()]++|\([^()]*+\))*+)\) "
)
_INSIDE: Final = re.compile(r"\([^()]*+\)")
"""The part in brackets of a parameter's attribute, such as ``range(i32 0, 8)``."""
_TABLE: Final = re.compile(r"@([\w.$-]+) = private unnamed_addr constant \[\d+ x i64\] \[(.*)\]$")
_VARIABLE: Final = re.compile(r"@([\w.$-]+) = internal global i64 0, align 8$")
_OTHER: Final = ("declare ", "attributes ", "source_filename ")
_NOTES: Final = ("", ";", "!")
"""The first characters of lines that are empty, comments and metadata."""

_Checks = tuple[tuple[int, int], ...]
"""Lines of a function that come after a check of the deadline, with its weight."""


class _Function(Frame):
    """The code of one function as it grows.

    defined: the functions of the module. merged: those that get the argument buffer alone. late:
    the address of ``qd_late``. line: the current one. block: the current one. labels:
    where blocks begin. jumps: places of 4 bytes that get the distance to a block. phis: of each
    block; a name, its type, and its values by the block before.
    """

    def __init__(
        self, code: bytearray, links: list[tuple[int, str]], defined: Container[str],
        merged: Container[str], late: int,
    ) -> None:  # fmt: skip
        super().__init__(code, links)
        self.defined: Final = defined
        self.merged: Final = merged
        self.late: Final = late
        self.lines: Sequence[str] = ()
        self.at = 0
        self.block = "entry"
        self.labels: Final[dict[str, int]] = {}
        self.jumps: Final[list[tuple[int, str]]] = []
        self.phis: Final[dict[str, list[tuple[str, str, dict[str, str]]]]] = {}

    def compile(
        self, params: str, loads: Sequence[str], lines: Sequence[str], checks: _Checks
    ) -> None:
        """Append the code of a function. loads: lines of the first block."""
        out = self.out
        stops: dict[int, list[int]] = {}
        for at, weight in checks:
            stops.setdefault(at, []).append(weight)
        # push rbp; mov rbp, rsp; sub rsp, size; mov [rbp - 8], rbx; mov rbx, rdi
        out += b"\x55\x48\x89\xe5\x48\x81\xec\0\0\0\0\x48\x89\x5d\xf8\x48\x89\xfb"
        size_at = len(out) - 11
        self._parameters(_INSIDE.sub("", params).split(", "), checks)
        loaded = [line.split(" ", 3)[2] for line in loads if line[:3] == "  %"]
        self.bases = frozenset([*self.slots, *loaded])
        for k, line in enumerate(lines):
            if " = phi " in line:
                self._find_phi(lines, k)
        if lines[0] == "entry:":
            # mov qword [fuel], start
            out += b"\x48\xc7" + self.slot(_FUEL)[0] + text.START.to_bytes(4, "little")
            lines = (*loads, *lines[1:])
            stops = {at - 1 + len(loads): weights for at, weights in stops.items()}
        plain = "\n".join(lines).replace(",", "").split("\n")
        if len(lines) > _FEW:  # else each value may have a slot of its own
            # Blocks before write phis, and load what these get, at their own ends.
            self.find_ends(
                plain,
                [each for phis in self.phis.values() for name, _, values in phis
                 for each in (name, *values.values())],
            )  # fmt: skip
        self.lines = lines
        ending = self.ending
        for self.at, line in enumerate(plain):
            if self.at in stops:
                for weight in stops[self.at]:
                    self._check(weight)
            if line[:2] == "  ":
                words = line.split()
                if words[0][0] == "%":
                    _EVERY[words[2]](self, words[0], words)
                else:
                    _EVERY[words[0]](self, "", words)
                if self.at in ending:
                    self.release(self.at)
            elif line[-1:] == ":":
                self._label(line[:-1])
            elif line and line[0] != ";":
                raise Unsupported(line)
        if self.size - self.variables > _SLOTS:
            raise Unsupported("a function with very many values")
        out[size_at : size_at + 4] = (self.size + 15 & -16).to_bytes(4, "little")
        for at, label in self.jumps:
            self._link(at, self.labels[label])

    def _check(self, weight: int) -> None:
        """End the launch where it is late; see `llvm.deadline`."""
        out = self.out
        if not weight:
            # cmp qword [rbx], LATE; jne; mov eax, LATE; leave
            left = constant_load(0, LATE & (1 << 32) - 1) + _LEAVE
            out += bytes((0x48, 0x83, 0x3B, LATE & 255, 0x75, len(left))) + left
            return
        fuel = self.slots[_FUEL]
        # mov rdi, rbx; lea rsi, [fuel]; mov rax, late; call rax; test al, al; jne stop
        ask = b"\x48\x89\xdf\x48\x8d" + fuel[6] + constant_load(0, self.late) + b"\xff\xd0\x84\xc0"
        # sub qword [fuel], weight; jg
        out += b"\x48\x81" + fuel[5] + weight.to_bytes(4, "little") + bytes((0x7F, len(ask) + 6))
        out += ask
        self._jump("stop", b"\x0f\x85")
        self.held = self.real = ""

    def _parameters(self, params: Sequence[str], checks: _Checks) -> None:
        """Keep the parameters; those without a register are above the caller's address."""
        first, *rest = params
        registers, floats, above = list(_REGISTERS), 0, 16
        if first.startswith("ptr "):
            self.addresses[first.rpartition(" ")[2]] = RBX, 0
            del registers[0]
        elif checks:  # which need the argument buffer
            raise Unsupported("parameters")
        else:
            rest = params
        for param in rest:
            kind, _, name = param.partition(" ")
            name = name.rpartition(" ")[2]
            if kind not in SIZES:
                raise Unsupported(f"parameter {param}")
            if kind in REAL and floats < _FLOATS:
                self.out += REAL[kind] + b"\x11" + self.slot(name)[floats]
                floats += 1
            elif kind not in REAL and registers:
                self.out += b"\x48\x89" + self.slot(name)[registers.pop(0)]
            else:
                self.slots[name] = near(RBP, above)
                above += 8

    def _find_phi(self, lines: Sequence[str], k: int) -> None:
        """Note the phi of a line: those of a block follow its label."""
        name, _, _, kind, *pairs = lines[k].replace(",", "").split()
        while not lines[k].endswith(":"):
            k -= 1
        values = {pairs[i + 2][1:]: pairs[i + 1] for i in range(0, len(pairs), 4)}
        self.phis.setdefault(lines[k][:-1], []).append((name, kind, values))

    # Control flow

    def _link(self, at: int, target: int) -> None:
        self.out[at : at + 4] = (target - at - 4).to_bytes(4, "little", signed=True)

    def _label(self, label: str) -> None:
        out = self.out
        if self.jumps and self.jumps[-1] == (len(out) - 4, label) and out[-5] == 0xE9:
            self.jumps.pop()  # a jump to the next instruction
            del out[-5:]
        self.labels[label] = len(out)
        self.block, self.held, self.real = label, "", ""

    def _jump(self, label: str, opcode: bytes = b"\xe9") -> None:
        self.out += opcode + b"\0\0\0\0"
        self.jumps.append((len(self.out) - 4, label))

    def _edge(self, label: str) -> None:
        """Jump to a block, with the values of its phis."""
        phis = self.phis.get(label, ())
        moves = [(self.slot(name), values[self.block], kind) for name, kind, values in phis]
        if len(moves) > 1:
            old = {self.slots.get(value) for _, value, _ in moves}
            if not old.isdisjoint([at for at, _, _ in moves]):  # they may change places
                for k, (at, value, kind) in enumerate(moves):
                    self.load(0, value, kind)
                    self.result(f"%moved {k}")
                    moves[k] = at, f"%moved {k}", kind
        for at, value, kind in moves:
            self.load(0, value, kind)
            self.out += b"\x48\x89" + at[0]
        self._jump(label)

    def branch(self, name: str, words: Sequence[str]) -> None:
        if words[1] == "label":
            self._edge(words[2][1:])
            return
        _, kind, condition, _, yes, _, no, *_ = words
        yes, no = yes[1:], no[1:]
        self.load(0, condition, kind)
        self.out += b"\x85\xc0"  # test eax, eax
        if no not in self.phis:
            self._jump(no, b"\x0f\x84")  # jz
            self._edge(yes)
            return
        self.out += b"\x0f\x84\0\0\0\0"
        at = len(self.out)
        self._edge(yes)
        self._link(at - 4, len(self.out))
        self.held = ""
        self._edge(no)

    def leave(self, name: str, words: Sequence[str]) -> None:
        if words[1] in ("i1", "i32", "i64"):
            self.load(0, words[2], words[1])
        elif words[1] in REAL:
            self.load_real(0, words[2], words[1])
        elif words[1] != "void":
            raise Unsupported(" ".join(words))
        self.out += _LEAVE

    # Calls

    def call(self, name: str, words: Sequence[str]) -> None:
        line = self.lines[self.at]
        found = _CALL.match(line)
        if found is None:
            self._hidden_zero(name, words)
            return
        kind, callee, address, passed = found.groups()
        args = [arg.split(" ") for arg in passed.split(", ")] if passed else []
        if callee is not None and callee.startswith("@llvm."):
            function = callee.split(".")
            inlined = INLINED.get(function[1])
            if inlined is not None:
                inlined(self, name, function[1:], args)
                return
            end = function[-1]
            if end == "i64":
                *args, volatile = args
                if volatile != ["i1", "false"]:
                    raise Unsupported(line)
            callee = f"@{_SYSTEM[function[1]]}{_ENDS[end]}"
        elif callee is not None and callee[1:] in self.merged:
            del args[1:]
        if callee is not None and callee[1:] in self.defined:
            above = self._pass(args, True)
            self.out += b"\xe8\0\0\0\0"
            self.links.append((len(self.out) - 4, callee[1:]))
            if above:
                self.out += b"\x48\x81\xc4" + above.to_bytes(4, "little")  # add rsp
        else:
            self._pass(args, False)
            if callee is None:
                self.out += constant_load(0, int(address))
            elif callee.startswith("@"):
                self.out += constant_load(0, address_of(callee[1:]))
            else:
                self.load(0, callee, "ptr")
            self.out += b"\xff\xd0"  # call rax
        self.held = self.real = ""
        if not name:
            return
        if kind in ("float", "double"):
            self.real_result(name, kind)
            return
        if kind == "i1":
            self.out += b"\x0f\xb6\xc0"  # movzx eax, al
        self.result(name)

    def _hidden_zero(self, name: str, words: Sequence[str]) -> None:
        """A 0 that LLVM's passes must not see: an empty piece of assembly."""
        kind, *rest = words[3:]
        if rest != ["asm", '""', f'"=r0"({kind}', "0)"]:
            raise Unsupported(" ".join(words))
        self.load(0, "0", kind)
        self.result(name)

    def _pass(self, args: Sequence[Sequence[str]], own: bool) -> int:
        """Load the arguments of a call; floats first, which may need rcx. own: of a function of
        the module. Return the bytes on the stack of those without a register."""
        floats = [arg for arg in args if arg[0] in REAL]
        others = [arg for arg in args if arg[0] not in REAL]
        above = 0
        if len(floats) > _FLOATS or len(others) > len(_REGISTERS):
            if not own:
                raise Unsupported("a call with many arguments")
            floats, others, left = floats[:_FLOATS], others[: len(_REGISTERS)], list(args)
            for arg in (*floats, *others):
                left.remove(arg)
            above = 8 * len(left) + 15 & -16
            self.out += b"\x48\x81\xec" + above.to_bytes(4, "little")  # sub rsp
            for k, (kind, *_, value) in enumerate(left):
                self.load(0, value, kind)
                self.out += b"\x48\x89\x84\x24" + (8 * k).to_bytes(4, "little")  # mov [rsp + 8k]
        for k, (kind, *_, value) in enumerate(floats):
            self.load_real(k, value, kind)
        for register, (kind, *_, value) in zip(_REGISTERS, others, strict=False):
            self.load(register, value, kind)
        return above

    def phi(self, name: str, words: Sequence[str]) -> None:
        """Nothing: the blocks before have written it."""


_EVERY: Final[dict[str, Callable[[Any, str, Sequence[str]], None]]] = {
    **OPS, "call": _Function.call, "br": _Function.branch, "ret": _Function.leave,
    "phi": _Function.phi,
}  # fmt: skip


def compile_first(kernel: KernelText, late: int) -> Parts:
    """First-tier code for a kernel.

    late: the address of ``qd_late``, which the code holds, as others of this process. Raises
    `Unsupported`.
    """
    lines, stops, bodies = kernel.first()
    return _checked(lines, bodies, stops, late, (kernel.symbol,))


def compile_functions(module: str, symbols: Sequence[str]) -> Parts:
    """The code of a module without kernels. symbols: functions that are called from
    outside. Raises `Unsupported`."""
    return _checked(module.split("\n"), (), (), 0, symbols)


def _checked(
    lines: list[str], bodies: Sequence[TaskBody], stops: Sequence[tuple[int, int]], late: int,
    symbols: Sequence[str],
) -> Parts:  # fmt: skip
    try:
        return _compiled(lines, bodies, stops, late, symbols)
    except (KeyError, IndexError, ValueError, OverflowError, struct.error) as error:
        raise Unsupported(f"text of an unknown form: {error!r}") from None


def _compiled(
    lines: list[str], kernel_bodies: Sequence[TaskBody], kernel_stops: Sequence[tuple[int, int]],
    late: int, symbols: Sequence[str],
) -> Parts:  # fmt: skip
    code = bytearray()
    links: list[tuple[int, str]] = []
    where: dict[str, int] = {}
    outside = _Outside()
    bodies = {body.line: body for body in kernel_bodies}
    left_out = {body.name for body in kernel_bodies if body.chunked}
    merged = frozenset([f"{body.name}.body" for body in kernel_bodies])
    starts = [k for k, line in enumerate(lines) if line[:7] == "define "]
    heads = {k: _DEFINE.match(lines[k]) for k in starts}
    defined = frozenset([head[1] for head in heads.values() if head is not None])
    pending = deque(kernel_stops)
    end = 0
    for start in starts:
        outside.read(lines[end:start])
        end = lines.index("}", start) + 1
        head, body = heads[start], bodies.get(start)
        if head is None:
            raise Unsupported(lines[start])
        name, params, loads = head[1], head[2], ()
        if body is not None:
            name = body.name if body.chunked else name
            params = "ptr %kernarg, i32 %chunk, i32 %thread" if body.chunked else "ptr %kernarg"
            loads = body.loads
        elif name in left_out:
            continue
        code += bytes(-len(code) % 16)
        where[name] = len(code)
        checks: _Checks = ()
        while pending and pending[0][0] < end:
            at, weight = pending.popleft()
            checks += ((at - start - 1, weight),)
        own = lines[start + 1 : end - 1]
        if body is not None or len(own) > _FEW:
            _Function(code, links, defined, merged, late).compile(params, loads, own, checks)
            continue
        found, calls = _kept(params, "\n".join(own), checks, defined, merged, late)
        links += [(len(code) + at, callee) for at, callee in calls]
        code += found
    outside.read(lines[end:])
    for name, values in outside.tables.items():
        code += bytes(-len(code) % 8)
        where[name] = len(code)
        code += struct.pack(f"<{len(values)}q", *values)
    zeros = 8 * len(outside.variables)
    data = room(len(code), 0, zeros).data
    where.update({name: data + 8 * k for k, name in enumerate(outside.variables)})
    for at, name in links:
        code[at : at + 4] = (where[name] - at - 4).to_bytes(4, "little", signed=True)
    entries = tuple([(symbol, where[symbol]) for symbol in symbols])
    return Parts(bytes(code), b"", b"", zeros, entries, (), ())


@lru_cache(64)
def _kept(
    params: str, text: str, checks: _Checks, defined: frozenset[str], merged: frozenset[str],
    late: int,
) -> tuple[bytes, tuple[tuple[int, str], ...]]:  # fmt: skip
    """The code of a function, and its links. Specializations of a kernel often have the same entry
    function, and all kernels that need them the same helpers."""
    code = bytearray()
    links: list[tuple[int, str]] = []
    _Function(code, links, defined, merged, late).compile(params, (), text.split("\n"), checks)
    return bytes(code), tuple(links)


class _Outside:
    """The part of a module outside of functions. variables: names of numbers of 8 bytes, 0 at
    first."""

    def __init__(self) -> None:
        self.tables: Final[dict[str, tuple[int, ...]]] = {}
        self.variables: Final[list[str]] = []

    def read(self, lines: Sequence[str]) -> None:
        for line in lines:
            first = line[:1]
            if first == "@" and (table := _TABLE.match(line)) is not None:
                self.tables[table[1]] = tuple([int(value[4:]) for value in table[2].split(", ")])
            elif first == "@" and (variable := _VARIABLE.match(line)) is not None:
                self.variables.append(variable[1])
            elif first not in _NOTES and not line.startswith(_OTHER):
                raise Unsupported(line)
