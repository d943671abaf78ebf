"""LLVM IR for the device -> LLVM IR for the host, as text.

The code stays as it is but for what only a device has: kinds of memory (all become plain memory;
shared arrays become globals), special registers, barriers, warp operations and functions of
libdevice (`intrinsics`). Each kernel gets an entry that takes what a launch gives:

    i32 qdsim_run_<k>(ptr params, i32 blocks, i32 threads)    its threads meet nowhere: a loop
    void qdsim_thread_<k>(ptr params)                         one of threads that `warp` lets meet

where ``params`` points to the addresses of the parameters' values.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from . import fragments, intrinsics

__all__ = ["Entry", "Translated", "translate"]


class Entry(NamedTuple):
    """A kernel.

    sizes: bytes of its parameters. pointers: whether each is an address. meets: its threads wait
    for each other. shared: bytes of shared arrays. most_threads: of a block.
    """

    name: str
    symbol: str
    sizes: tuple[int, ...]
    pointers: tuple[bool, ...]
    meets: bool
    shared: int
    most_threads: int


class Translated(NamedTuple):
    """text: for the host. entries: its kernels. meets: any of them needs `warp`."""

    text: str
    entries: tuple[Entry, ...]
    meets: bool


_HEADS = re.compile(r"^(?:target (?:datalayout|triple)|source_filename).*\n", re.M)
_SPACE = re.compile(r"\s*addrspace\((\d+)\)")
_GLOBAL = re.compile(
    r"^(@[\w.$\"-]+)\s*=\s*([\w\s()]*?)addrspace\(3\)\s+(?:global|constant)\s+(.+?)"
    r"(?:\s+(?:undef|poison|zeroinitializer))?((?:,\s*align\s+\d+)?)\s*$", re.M,
)  # fmt: skip
_STOOD_IN = r"llvm\.nvvm\.[\w.]+|__nv_\w+|llvm\.trap|llvm\.debugtrap|cudaGraphSetConditional"
_USED = re.compile(rf"@({_STOOD_IN})")
_DECLARED = re.compile(rf"^declare\b.*@(?:{_STOOD_IN})\(.*\n", re.M)
_MANGLED = re.compile(r"(@llvm\.[\w.]+)")
_DEFINE = re.compile(r"^define\b(.*?)(@[\w.$\"-]+)\(", re.M)
_CALLED = re.compile(r"@([\w.$]+)")
_CPU = re.compile(r'"(?:target-cpu|target-features)"="[^"]*"')
_MAXNTID = re.compile(r'"nvvm\.(?:max|req)ntid(?:\.x)?"="(\d+)')
_GROUP = re.compile(r"#(\d+)")

_VECTOR_SUM = re.compile(
    r'  call void asm sideeffect "red\.relaxed\.gpu\.global\.add\.v(\d)\.f32 .*\n'
)

_SIZES = {"i1": 1, "i8": 1, "i16": 2, "i32": 4, "i64": 8, "half": 2, "bfloat": 2, "float": 4,
          "double": 8, "ptr": 8}  # fmt: skip


def size_of(text: str) -> int:
    """Bytes of a type."""
    text = text.strip()
    if text in _SIZES:
        return _SIZES[text]
    found = re.fullmatch(r"[\[<]\s*(\d+)\s+x\s+(.+)[\]>]", text)
    if found:
        return int(found[1]) * size_of(found[2])
    raise intrinsics.Lacking(f"type {text}")


def _closing(text: str, at: int) -> int:
    """Where the parenthesis that opens at ``at`` closes."""
    depth = 0
    for k in range(at, len(text)):
        depth += (text[k] in "([{<") - (text[k] in ")]}>")
        if depth == 0:
            return k
    raise ValueError("a parenthesis is not closed")


def _split(text: str) -> list[str]:
    parts, depth, start = [], 0, 0
    for k, c in enumerate(text):
        depth += (c in "([{<") - (c in ")]}>")
        if c == "," and depth == 0:
            parts.append(text[start:k])
            start = k + 1
    return [part.strip() for part in (*parts, text[start:]) if part.strip()]


def _type_of(parameter: str) -> str:
    if parameter[0] in "[<{":
        return parameter[: _closing(parameter, 0) + 1]
    return parameter.split()[0]


class _Function(NamedTuple):
    name: str
    head: str
    params: tuple[str, ...]
    body: str
    kernel: bool
    tail: str


def _functions(text: str) -> dict[str, _Function]:
    found: dict[str, _Function] = {}
    for match in _DEFINE.finditer(text):
        start = match.end() - 1
        close = _closing(text, start)
        brace = text.index("{", close)
        end = text.index("\n}", brace)
        name = match[2][1:].strip('"')
        found[name] = _Function(
            name, match[1], tuple(_split(text[start + 1 : close])), text[brace:end],
            "ptx_kernel" in match[1], text[close + 1 : brace],
        )  # fmt: skip
    return found


def _reached(functions: dict[str, _Function], name: str) -> set[str]:
    """Every symbol that a function uses, itself or by what it calls."""
    seen: set[str] = set()
    todo = [name]
    while todo:
        for symbol in _CALLED.findall(functions[todo.pop()].body):
            if symbol not in seen:
                seen.add(symbol)
                if symbol in functions:
                    todo.append(symbol)
    return seen


def _demangled(match: re.Match[str]) -> str:
    return re.sub(r"\.p[1-9](?=\.|$)", ".p0", match[1])


def _unspaced(text: str) -> str:
    """All memory is of one kind."""
    text = re.sub(r"\baddrspacecast\b", "bitcast", _SPACE.sub("", text))
    text = re.sub(r'\s*syncscope\("[^"]*"\)', "", text)
    return _MANGLED.sub(_demangled, text)


def _once(text: str) -> str:
    """Each declaration once: two may have become the same."""
    seen: set[str] = set()
    lines: list[str] = []
    for line in text.splitlines():
        if line.startswith("declare "):
            found = re.search(r"@[\w.$\"-]+", line)
            if found and found[0] in seen:
                continue
            seen.add(found[0] if found else line)
        lines.append(line)
    return "\n".join(lines) + "\n"


def _loads(entry: _Function) -> tuple[str, str]:
    """Lines that load a kernel's parameters, and the call's operands."""
    lines, operands = "", []
    for k, parameter in enumerate(entry.params):
        ty = _unspaced(_type_of(parameter))
        lines += f"  %p{k} = getelementptr ptr, ptr %params, i64 {k}\n"
        lines += f"  %q{k} = load ptr, ptr %p{k}\n"
        if ty == "i1":
            lines += f"  %b{k} = load i8, ptr %q{k}\n  %a{k} = trunc i8 %b{k} to i1\n"
        else:
            lines += f"  %a{k} = load {ty}, ptr %q{k}, align 1\n"
        operands.append(f"{ty} %a{k}")
    return lines, ", ".join(operands)


_LOOP = """\
define i32 @{symbol}(ptr %params, i32 %blocks, i32 %threads) {{
entry:
{loads}  store i32 %blocks, ptr @sim.nctaid
  store i32 %threads, ptr @sim.ntid
  br label %outer
outer:
  %b = phi i32 [ 0, %entry ], [ %bnext, %last ]
  %bend = icmp uge i32 %b, %blocks
  br i1 %bend, label %done, label %begin
begin:
  store i32 %b, ptr @sim.ctaid
  call void @qdsim_clean()
  br label %inner
inner:
  %t = phi i32 [ 0, %begin ], [ %tnext, %inner ]
  store i32 %t, ptr @sim.tid
  call void @"{name}"({operands})
  %tnext = add i32 %t, 1
  %tend = icmp uge i32 %tnext, %threads
  br i1 %tend, label %last, label %inner
last:
  %bnext = add i32 %b, 1
  br label %outer
done:
  ret i32 0
}}
"""
_THREAD = """\
define void @{symbol}(ptr %params) {{
{loads}  call void @"{name}"({operands})
  ret void
}}
"""


def _clean(shared: list[tuple[str, int]]) -> str:
    """A function that leaves garbage in shared memory, as the block before does."""
    lines = "".join(
        f"  call void @llvm.memset.p0.i64(ptr {name}, i8 -53, i64 {size}, i1 false)\n"
        for name, size in shared
    )
    declare = "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)\n"
    return f"{declare}define void @qdsim_clean() noinline {{\n{lines}  ret void\n}}\n"


DYNAMIC = 228 << 10
"""Bytes of an array of shared memory whose size the launch says."""


_MADE = re.compile(
    r"^  (%[\w.]+) = (alloca\b|getelementptr [^\n]*?ptr (%[\w.]+))"
    r"|(?:atomicrmw (?:volatile )?\w+|cmpxchg (?:weak )?) ?ptr (%[\w.]+)|^(})", re.M,
)  # fmt: skip


def _check_atomics(text: str) -> None:
    """PTX has no atomic updates of a thread's own memory: what they do there is undefined."""
    own: set[str] = set()
    for made, how, base, updated, end in _MADE.findall(text):
        if end:
            own.clear()
        elif made and (how == "alloca" or base in own):
            own.add(made)
        elif updated in own:
            raise intrinsics.Lacking(f"an atomic update of a thread's own memory, {updated}")


def _vector_sum(match: re.Match[str]) -> str:
    """Atomic sums of neighbours, one by one; NaNs where a device would refuse the address."""
    width = int(match[1])
    text = f"  %low = ptrtoint ptr %to to i64\n  %rest = and i64 %low, {4 * width - 1}\n"
    text += "  %bad = icmp ne i64 %rest, 0\n"
    for k in range(width):
        text += f"  %n{k} = select i1 %bad, float 0x7FF8000000000000, float %v{k}\n"
        text += f"  %p{k} = getelementptr float, ptr %to, i64 {k}\n"
        text += f"  %o{k} = atomicrmw fadd ptr %p{k}, float %n{k} monotonic, align 4\n"
    return text


def translate(text: str) -> Translated:
    """Translate a module. Lacking if it uses what the simulator has not."""
    _check_atomics(text)
    shared: list[tuple[str, int]] = []
    dynamic: set[str] = set()

    def place(match: re.Match[str]) -> str:
        size = size_of(match[3])
        ty = match[3]
        if size == 0:
            dynamic.add(match[1])
            size, ty = DYNAMIC, f"[{DYNAMIC} x i8]"
        shared.append((match[1], size))
        align = match[4] or ", align 16"
        # Other threads write it while one waits: it must not look private to the module.
        return f"{match[1]} = global {ty} zeroinitializer{align}"

    text = _VECTOR_SUM.sub(_vector_sum, text)
    text = fragments.without_warpgroups(text)
    functions = _functions(text)
    groups = dict(re.findall(r"^attributes #(\d+) = \{(.*)\}", text, re.M))
    text = _HEADS.sub("", text)
    text = _GLOBAL.sub(place, text)
    text = _DECLARED.sub("", text)
    used = dict.fromkeys(_USED.findall(text))
    text = _USED.sub(lambda m: "@" + intrinsics.stand_in(m[1]), text)
    text = _unspaced(text).replace("ptx_kernel ", "").replace("ptx_device ", "")
    text = _CPU.sub("", text)
    entries: list[Entry] = []
    static = sum(size for name, size in shared if name not in dynamic)
    reached = {f.name: _reached(functions, f.name) for f in functions.values() if f.kernel}
    # One module is of one kind: its special registers are either globals or those of `warp`.
    meets = any(map(intrinsics.meets, used))
    for k, (name, symbols) in enumerate(reached.items()):
        function = functions[name]
        loads, operands = _loads(function)
        symbol = f"qdsim_entry_{k}"
        form = _THREAD if meets else _LOOP
        text += form.format(symbol=symbol, name=name, loads=loads, operands=operands)
        used_shared = sum(
            size for n, size in shared if n not in dynamic and n[1:].strip('"') in symbols
        )
        notes = function.tail + "".join(groups.get(g, "") for g in _GROUP.findall(function.tail))
        most = _MAXNTID.search(notes)
        types = [_unspaced(_type_of(p)) for p in function.params]
        entries.append(
            Entry(name, symbol, tuple(map(size_of, types)), tuple(t == "ptr" for t in types),
                  meets, min(used_shared, static), int(most[1]) if most else 1024)
        )  # fmt: skip
    text += intrinsics.MEETING if meets else intrinsics.ALONE
    text += intrinsics.COMMON + "".join(map(intrinsics.definition, used)) + _clean(shared)
    for name in dict.fromkeys(re.findall(r"@(llvm\.[\w.]+)\(", text)):
        if not re.search(rf"^declare .*@{re.escape(name)}\(", text, re.M):
            text += _declaration(name, text)
    return Translated(_once(text), tuple(entries), meets)


def _declaration(name: str, text: str) -> str:
    """Declare an intrinsic as its first call uses it."""
    call = re.search(rf"call\s+(?:[\w]+\s+)*?([\w]+|\{{.*?\}}|<.*?>)\s+@{re.escape(name)}\(", text)
    assert call, name
    start = call.end() - 1
    types = ", ".join(_type_of(p) for p in _split(text[start + 1 : _closing(text, start)]))
    return f"declare {call[1]} @{name}({types})\n"
