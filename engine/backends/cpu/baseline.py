"""First-tier code without LLVM: a baseline compiler for x86-64, in one pass over a kernel's text.

LLVM needs a millisecond for the code of the smallest kernel, whatever is asked of it. First-tier
code runs for some milliseconds at most, so what counts is the time to make it. `compile_text` reads
the text of such code (see `llvm.deadline`) line by line and emits instructions at once. There is no
register allocation: each value has a slot of 8 bytes on the stack, and operands are loaded from
there::

    rbp     the frame; slots and local variables are below it
    rbx     the argument buffer, the first argument of every function
    rax     the last integer or address   }  a value that the next instruction needs
    xmm0    the last float                }  is not loaded again

The instructions are those that LLVM has for the operations, so that results have the same bits;
mathematical functions are those of the system, as with LLVM. A value of fewer than 64 bits is in
the lower bits of its slot, below bits of any kind; an ``i1`` is 0 or 1 in all 64. Two names of one
value (a truncation) have one slot. A block's phis are written on the way to it: to their slots, or
to others from which the block copies them if there are several.

What this does not know raises `Unsupported`, and LLVM makes the code. Numbers and memory are in
`baseline_ops`, operands in `baseline_frame`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from .baseline_frame import RBX, Frame, Unsupported
from .baseline_ops import OPS, clamped, square_root
from .relocatable import Parts, address_of, pack

__all__ = ["Unsupported", "compile_text"]

_SLOTS: Final = 4096
"""The most values of a function: threads of the pool have stacks of ordinary size."""
_REGISTERS: Final = (7, 6, 2, 1)
"""rdi, rsi, rdx and rcx: for the integers and addresses that a call passes."""
_REALS: Final = 8
"""The most floats that a call passes."""
_SYSTEM: Final = {
    "llvm.memset.p0.i64": "memset", "llvm.memcpy.p0.p0.i64": "memcpy",
    **{
        f"llvm.{name}.{kind}": name + end
        for name in ("sin", "cos", "tan", "exp", "exp2", "log", "log2", "log10", "pow", "floor",
                     "ceil", "trunc", "rint", "nearbyint", "round", "fma")
        for kind, end in (("f32", "f"), ("f64", ""))
    },
}  # fmt: skip
"""LLVM's functions -> those of the system that it calls for them, or that have the same result."""

_PHI: Final = re.compile(
    r"^(?:([\w.$-]+):|  (%[\w.$-]+) = phi (\w+) (\[.*\]))$", re.MULTILINE
)  # fmt: skip
_FROM: Final = re.compile(r"\[ ([^ ,]+), %([^ ]+) \]")
_CALL: Final = re.compile(
    r"  (?:(%\S+) = )?call (?:(?:reassoc|nsz|arcp|contract|afn|zeroext) )*(\w+) "
    r"(?:(%[\w.$-]+|@[\w.$-]+)|inttoptr \(i64 (\d+) to ptr\))\((.*)\)$"
)
_SATURATED: Final = re.compile(r"llvm\.fpto([su])i\.sat\.(i8|i16|i32)\.(?:f32|f64)$")
_DEFINE: Final = re.compile(r"(?:internal )?\w+ @([\w.$-]+)\((.*)\) [^{}()]*\{$")
_DEFINED: Final = re.compile(r"^define (?:internal )?\w+ @([\w.$-]+)\(", re.MULTILINE)
_TABLE: Final = re.compile(r"@([\w.$-]+) = private unnamed_addr constant \[\d+ x i64\] \[(.*)\]$")
_OTHER: Final = ("declare ", "attributes ", "source_filename ", ";", "!")


class _Function(Frame):
    """The code of one function as it grows.

    defined: the functions of the module. block: the current one. labels: where blocks begin. jumps:
    places of 4 bytes that get the distance to a block. phis: of each block; a name, its type, and
    its values by the block before.
    """

    def __init__(
        self, code: bytearray, links: list[tuple[int, str]], defined: frozenset[str],
        params: str, lines: str,
    ) -> None:  # fmt: skip
        super().__init__(code, links)
        self.defined: Final = defined
        self.block = "entry"
        self.labels: Final[dict[str, int]] = {}
        self.jumps: Final[list[tuple[int, str]]] = []
        self.phis: Final[dict[str, list[tuple[str, str, dict[str, str]]]]] = {}
        # push rbp; mov rbp, rsp; sub rsp, size
        self.out += b"\x55\x48\x89\xe5\x48\x81\xec\0\0\0\0"
        size_at = len(self.out) - 4
        self.out += b"\x48\x89\x5d\xf8\x48\x89\xfb"  # mov [rbp - 8], rbx; mov rbx, rdi
        self._parameters(params.split(", "))
        self._find_phis(lines)
        for line in lines.split("\n"):
            self._line(line)
        if len(self.slots) > _SLOTS:
            raise Unsupported("too many values")
        self.out[size_at : size_at + 4] = (self.size + 15 & -16).to_bytes(4, "little")
        for at, label in self.jumps:
            self._link(at, self.labels[label])

    def _parameters(self, params: Sequence[str]) -> None:
        first, *rest = params
        if not first.startswith("ptr ") or len(rest) >= len(_REGISTERS):
            raise Unsupported("parameters")
        self.addresses[first.rpartition(" ")[2]] = RBX, 0
        for param, register in zip(rest, _REGISTERS[1:], strict=False):
            kind, _, name = param.partition(" ")
            if kind not in ("ptr", "i32", "i64"):
                raise Unsupported(f"parameter {param}")
            self.out += b"\x48\x89" + self.slot(name.rpartition(" ")[2])[register]

    def _find_phis(self, lines: str) -> None:
        block = self.block
        for label, name, kind, pairs in _PHI.findall(lines):
            if label:
                block = label
            else:
                values = {source: value for value, source in _FROM.findall(pairs)}
                self.phis.setdefault(block, []).append((name, kind, values))

    def _line(self, line: str) -> None:
        if line.startswith("  "):
            words = line.replace(",", "").split()
            is_value = words[1] == "=" if len(words) > 1 else False
            name = words[0] if is_value else ""
            code = words[2] if is_value else words[0]
            op = OPS.get(code)
            if op is not None:
                op(self, name, words)
            elif code == "call":
                self._call(line)
            elif code == "br":
                self._branch(words)
            elif code == "ret":
                self._return(words)
            elif code != "phi":
                raise Unsupported(line)
        elif line.endswith(":"):
            self._label(line[:-1])
        elif line and not line.startswith(";"):
            raise Unsupported(line)

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
        phis = self.phis.get(label, ())
        if len(phis) > 1:
            for name, kind, _ in phis:
                self.load(0, f"{name} next", kind)
                self.result(name)

    def _jump(self, label: str, opcode: bytes = b"\xe9") -> None:
        self.out += opcode + b"\0\0\0\0"
        self.jumps.append((len(self.out) - 4, label))

    def _edge(self, label: str) -> None:
        """Jump to a block, with the values of its phis."""
        phis = self.phis.get(label, ())
        for name, kind, values in phis:
            self.load(0, values[self.block], kind)
            self.out += b"\x48\x89" + self.slot(name if len(phis) == 1 else f"{name} next")[0]
        self._jump(label)

    def _branch(self, words: Sequence[str]) -> None:
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

    def _return(self, words: Sequence[str]) -> None:
        if words[1] in ("i32", "i64"):
            self.load(0, words[2], words[1])
        elif words[1] != "void":
            raise Unsupported(" ".join(words))
        self.out += b"\x48\x8b\x5d\xf8\xc9\xc3"  # mov rbx, [rbp - 8]; leave; ret

    # Calls

    def _call(self, line: str) -> None:
        found = _CALL.match(line)
        if found is None:
            raise Unsupported(line)
        name, kind, callee, address, passed = found.groups()
        args = [arg.split(" ") for arg in passed.split(", ")] if passed else []
        if callee is not None and callee.startswith("@llvm."):
            function = callee[1:]
            if function == "llvm.sideeffect":
                return
            if function.startswith("llvm.sqrt.f"):
                square_root(self, name, kind, args[0][-1])
                return
            if (saturated := _SATURATED.match(function)) is not None:
                clamped(self, name, args[0][0], args[0][-1], saturated[2], saturated[1] == "s")
                return
            callee = f"@{_SYSTEM[function]}"
            if callee.startswith("@mem"):
                *args, volatile = args
                if volatile != ["i1", "false"]:
                    raise Unsupported(line)
        self._pass(args)
        if callee is not None and callee[1:] in self.defined:
            self.out += b"\xe8\0\0\0\0"
            self.links.append((len(self.out) - 4, callee[1:]))
        else:
            if callee is None:
                self.load_constant(0, int(address))
            elif callee.startswith("@"):
                self.load_constant(0, address_of(callee[1:]))
            else:
                self.load(0, callee, "ptr")
            self.out += b"\xff\xd0"  # call rax
        self.held = self.real = ""
        if name is None:
            return
        if kind in ("float", "double"):
            self.real_result(name, kind)
            return
        if kind == "i1":
            self.out += b"\x0f\xb6\xc0"  # movzx eax, al
        self.result(name)

    def _pass(self, args: Sequence[Sequence[str]]) -> None:
        """Load the arguments of a call; floats first, which may need rcx."""
        reals = [arg for arg in args if arg[0] in ("float", "double")]
        others = [arg for arg in args if arg not in reals]
        if len(reals) > _REALS or len(others) > len(_REGISTERS):
            raise Unsupported("a call with many arguments")
        for k, (kind, *_, value) in enumerate(reals):
            self.load_real(k, value, kind)
        for register, (kind, *_, value) in zip(_REGISTERS, others, strict=False):
            self.load(register, value, kind)


def compile_text(text: str, symbol: str) -> bytes:
    """The relocatable object of first-tier code, in which ``symbol`` is called from outside.

    It holds addresses of functions of this process. Raises `Unsupported`.
    """
    try:
        return _compiled(text, symbol)
    except (KeyError, IndexError, ValueError, OverflowError) as error:
        raise Unsupported(f"text of an unknown form: {error!r}") from None


def _compiled(text: str, symbol: str) -> bytes:
    code = bytearray()
    links: list[tuple[int, str]] = []
    where: dict[str, int] = {}
    tables: dict[str, list[int]] = {}
    defined = frozenset(_DEFINED.findall(text))
    for part in text.split("\n}\n"):
        outside, define, inside = part.partition("\ndefine ")
        for line in outside.split("\n"):
            if (table := _TABLE.match(line)) is not None:
                tables[table[1]] = [int(value[4:]) for value in table[2].split(", ")]
            elif line and not line.startswith(_OTHER):
                raise Unsupported(line)
        if define:
            head, _, lines = inside.partition("\n")
            if (found := _DEFINE.match(head)) is None:
                raise Unsupported(head)
            code += bytes(-len(code) % 16)
            where[found[1]] = len(code)
            _Function(code, links, defined, found[2], lines)
    for name, values in tables.items():
        code += bytes(-len(code) % 8)
        where[name] = len(code)
        for value in values:
            code += value.to_bytes(8, "little", signed=True)
    for at, name in links:
        code[at : at + 4] = (where[name] - at - 4).to_bytes(4, "little", signed=True)
    return pack(Parts(bytes(code), b"", b"", 0, ((symbol, where[symbol]),), (), ()))
