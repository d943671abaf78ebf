"""PoCL without its header: a program that declares what it calls builds seven times faster.

PoCL's compiler reads a header of a megabyte for every program: 80 of 95 ms. A macro says that the
header has been read already (`OPTIONS`); `declarations` makes what a program of ours needs of it:
some 10 lines. They go in front of the text, followed by ``#line 1``, so that the lines of a
compiler's messages are those of the text.

Programs that call what is not in the table here get the header.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["OPTIONS", "declarations"]

OPTIONS: Final = "-D_OPENCL_H_ -w"
"""-w: of what is left of PoCL's headers, something needs the part that is not there."""

_INTS: Final = ("char", "uchar", "short", "ushort", "int", "uint", "long", "ulong")
_FLOATS: Final = ("float", "double")
_SPACES: Final = ("__global", "__local")

_MACROS: Final = {
    "INT_MAX": "2147483647", "INT_MIN": "(-2147483647 - 1)",
    "LONG_MAX": "0x7fffffffffffffffL", "LONG_MIN": "(-0x7fffffffffffffffL - 1)",
    "UINT_MAX": "0xffffffffu", "INFINITY": "(__builtin_inff())", "NAN": '(__builtin_nanf(""))',
    "FLT_MAX": "0x1.fffffep127f", "DBL_MAX": "0x1.fffffffffffffp1023",
    "CLK_LOCAL_MEM_FENCE": "1", "CLK_GLOBAL_MEM_FENCE": "2",
}  # fmt: skip
_CONST: Final = "__attribute__((overloadable, const))"
_OTHER: Final = "__attribute__((overloadable))"
_CONVERGENT: Final = "__attribute__((overloadable, convergent))"


def _each(result: str, params: str, types: tuple[str, ...], mark: str = _CONST) -> list[str]:
    """Declarations of NAME for each type; T stands for it."""
    pattern = f"{result} {mark} NAME({params});"
    return [re.sub(r"\bT\b", t, pattern) for t in types]


def _atomic(params: str, types: tuple[str, ...]) -> list[str]:
    return [
        re.sub(r"\bT\b", t, f"T {_OTHER} NAME(volatile {space} T *{params});")
        for t in types for space in _SPACES
    ]  # fmt: skip


def _table() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name in ("global_id", "global_size", "local_id", "local_size", "group_id", "num_groups"):
        found[f"get_{name}"] = [f"size_t {_CONST} NAME(uint);"]
    for name in ("barrier", "mem_fence"):
        found[name] = [f"void {_CONVERGENT} NAME(uint);"]
    for name in ("acos", "asin", "atan", "ceil", "cos", "exp", "fabs", "floor", "log", "rint",
                 "round", "rsqrt", "sin", "sqrt", "tan", "tanh", "trunc"):  # fmt: skip
        found[name] = _each("T", "T", _FLOATS)
    for name in ("atan2", "fmax", "fmin", "fmod", "pow"):
        found[name] = _each("T", "T, T", _FLOATS)
    found["fma"] = _each("T", "T, T, T", _FLOATS)
    for name in ("isinf", "isnan"):
        found[name] = _each("int", "T", _FLOATS)
    for name in ("clz", "popcount"):
        found[name] = _each("T", "T", _INTS)
    for name in ("max", "min"):
        found[name] = _each("T", "T, T", (*_INTS, *_FLOATS))
    for name in ("add", "and", "max", "min", "or", "sub", "xor", "xchg"):
        real = ("float",) if name == "xchg" else ()
        found[f"atomic_{name}"] = _atomic(", T", ("int", "uint", *real))
        found[f"atom_{name}"] = _atomic(", T", ("long", "ulong"))
    for name in ("inc", "dec"):
        found[f"atomic_{name}"] = _atomic("", ("int", "uint"))
        found[f"atom_{name}"] = _atomic("", ("long", "ulong"))
    found["atomic_cmpxchg"] = _atomic(", T, T", ("int", "uint"))
    found["atom_cmpxchg"] = _atomic(", T, T", ("long", "ulong"))
    spaces = (*_SPACES, "__private")
    found["vload_half"] = [f"float {_OTHER} NAME(size_t, const {s} half *);" for s in spaces]
    found["vstore_half_rte"] = [f"void {_OTHER} NAME(float, size_t, {s} half *);" for s in spaces]
    return found


_TABLE: Final = _table()
_SKIPPED: Final = re.compile(r"//[^\n]*|/\*.*?\*/|^ *#pragma [^\n]*", re.DOTALL | re.MULTILINE)
_CALL: Final = re.compile(r"\b([A-Za-z_]\w*)\s*\(")
_DEFINED: Final = re.compile(r"^(?:__kernel\b.*\bvoid |static [^(\n]*?)(\w+)\(", re.MULTILINE)
_MACRO: Final = re.compile(r"^#define (\w+) (\w+)$", re.MULTILINE)
_VECTOR: Final = re.compile(
    r"\b(?:as_)?((?:u?char|u?short|u?int|u?long|float|double)(?:2|3|4|8|16))\b"
)
_WORDS: Final = frozenset({
    "if", "for", "while", "switch", "return", "sizeof", "defined", "__attribute__",
    "reqd_work_group_size", "vec_type_hint", "work_group_size_hint",
})  # fmt: skip
_UNSIGNED: Final = "".join(
    [f"typedef unsigned {t} u{t};\n" for t in ("char", "short", "int", "long")]
)


def declarations(text: str) -> str | None:
    """The text before a program that is built with `OPTIONS`; None if it needs the header."""
    code = _SKIPPED.sub("", text)
    called = set(_CALL.findall(code))
    own = set(_DEFINED.findall(code))
    for name, meaning in _MACRO.findall(code):
        own.add(name)
        called.add(meaning)
    lines = [_UNSIGNED, "typedef __SIZE_TYPE__ size_t;\n"]
    for vector in sorted(set(_VECTOR.findall(code))):
        base = vector.rstrip("0123456789")
        size = vector[len(base) :]
        lines.append(f"typedef {base} {vector} __attribute__((ext_vector_type({size})));\n")
    words = set(re.findall(r"\b[A-Z][A-Z_]+\b", code))
    lines += [f"#define {name} {_MACROS[name]}\n" for name in sorted(words & _MACROS.keys())]
    for name in sorted(called - own - _WORDS):
        if name.startswith("as_"):
            lines.append(f"#define {name}(x) __builtin_astype((x), {name[3:]})\n")
        elif name in _TABLE:
            lines += [f"{line.replace('NAME', name)}\n" for line in _TABLE[name]]
        elif not name.startswith("__builtin_"):
            return None
    return "".join([*lines, "#line 1\n"])
