"""Small functions that emitted code calls, as OpenCL C; a program gets those it uses.

`helper_text` makes one by its name, which says what it computes and on which type: ``div_i32``,
``max_f32``, ``i32_of_f32`` (a cast), ``half_value``. In the text each is called ``qd_<name>``.
"""

from __future__ import annotations

from typing import Final

from ....types import BY_NAME, DataType
from ..capabilities import Capabilities
from .minmax import key_text
from .names import UNSIGNED, VALUE, literal

__all__ = ["helper_text"]

_HALF: Final = {
    "half": """\
// x rounded to a half
static inline float qd_half(float x)
{
    ushort bits;
    vstore_half_rte(x, 0, (__private half *)&bits);
    return vload_half(0, (__private const half *)&bits);
}
""",
    "half_value": """\
// the half that these bits are
static inline float qd_half_value(ushort bits)
{
    return vload_half(0, (__private const half *)&bits);
}
""",
    "half_bits": """\
// the bits of x as a half
static inline ushort qd_half_bits(float x)
{
    ushort bits;
    vstore_half_rte(x, 0, (__private half *)&bits);
    return bits;
}
""",
    "f64_bits": """\
// the bits of x in 64 bits
static inline ulong qd_f64_bits(float x)
{
    const uint bits = as_uint(x), power = bits >> 23 & 255, low = bits & 0x7fffff;
    const ulong sign = (ulong)(bits >> 31) << 63;
    if (power == 255) return sign | 0x7ff0000000000000ul | (ulong)low << 29;
    if (power) return sign | (ulong)(power + 896) << 52 | (ulong)low << 29;
    if (low == 0) return sign;
    const uint up = clz(low) - 8;
    return sign | (ulong)(897 - up) << 52 | (ulong)(low << up & 0x7fffff) << 29;
}
""",
    "half_of_f64": """\
// x rounded to a half in one step: to a float rounding to odd, then to a half
static inline float qd_half_of_f64(double x)
{
    float near = (float)x;
    const double back = (double)near;
    uint bits = as_uint(near);
    bits -= fabs(back) > fabs(x);
    bits |= back != x;
    return qd_half(as_float(bits));
}
""",
    "print_room": """\
// where a record of so many bytes goes in the print buffer; 0 if there is no room
static __global uchar *qd_print_room(__global uchar *prints, uint size)
{
    const ulong limit = *(__global ulong *)(prints + 8);
    const ulong used = ADD;
    return used + size <= limit ? prints + 16 + used : (__global uchar *)0;
}
""",
    "claim": """\
// the row of the real adstacks that a work-item claims; -1 if there are no more than `rows`
static long qd_claim(__global uchar *claims, long thread, long rows, long predicated)
{
    const long row = predicated ? (long)atomic_inc((volatile __global uint *)claims) : thread;
    return row < rows ? row : -1;
}
""",
    "adstack_failed": """\
// notes the first adstack that is full; the high word of an error is never 0
static void qd_adstack_failed(__global uchar *kernarg, uint high, uint low)
{
    if (atomic_cmpxchg((volatile __global uint *)(kernarg + 4), 0u, high) == 0u)
        *(__global uint *)kernarg = low;
}
""",
}
_NEEDS: Final = {"half_of_f64": ("half", "=fabs")}


def helper_text(
    name: str, fast: bool, capabilities: Capabilities
) -> tuple[str, tuple[str, ...]]:  # fmt: skip
    """The definition of ``qd_<name>`` and the other helpers that it calls.

    With a ``=`` in front: functions of `maths`.
    """
    if name in _HALF:
        text = _HALF[name]
        if name == "print_room":
            add = (
                "atom_add((volatile __global ulong *)prints, (ulong)size)"
                if capabilities.int64_base
                else "atomic_add((volatile __global uint *)prints, size)"
            )
            text = text.replace("ADD", add)
        return text, _NEEDS.get(name, ())
    if "key_" in name or name.startswith("real_"):
        return key_text(name)
    if "_of_" in name:
        target, source = name.split("_of_")
        return _saturating(name, _type(source), _type(target)), ()
    what, kind = name.split("_", 1)
    t = _type(kind)
    if t.is_real:
        return _real(what, name, t, fast, capabilities.fp64)
    return _integer(what, name, t)


def _type(name: str) -> DataType:
    t = BY_NAME[name]
    assert isinstance(t, DataType)
    return t


def _function(name: str, t: DataType, params: str, *body: str) -> str:
    lines = "\n".join([f"    {line}" for line in body])
    return f"static inline {VALUE[t.name]} qd_{name}({params})\n{{\n{lines}\n}}\n"


def _saturating(name: str, source: DataType, target: DataType) -> str:
    """A cast of a real: truncated and saturated, 0 for a NaN."""
    low, high = float(target.min), float(target.max + 1)
    ty = VALUE[target.name]
    least, most = literal(target.min, target), literal(target.max, target)
    return _function(
        name, target, f"{VALUE[source.name]} x",
        "if (x != x) return 0;",
        f"return x <= {literal(low, source)} ? {least} : "
        f"x >= {literal(high, source)} ? {most} : ({ty})x;",
    )  # fmt: skip


def _real(
    what: str, name: str, t: DataType, fast: bool, doubles: bool
) -> tuple[str, tuple[str, ...]]:  # fmt: skip
    ty = VALUE[t.name]
    zero, one = literal(0.0, t), literal(1.0, t)
    two = f"{ty} a, {ty} b"
    if what in ("min", "max"):
        sign = "<" if what == "min" else ">"
        # With fast_math the result for a NaN does not matter, and this is one vector instruction.
        test = f"a {sign} b" if fast else f"a {sign}= b || b != b"
        return _function(name, t, two, f"return {test} ? a : b;"), ()
    if what == "sgn":
        return _function(
            name, t, f"{ty} x", f"return x > {zero} ? {one} : x < {zero} ? -{one} : {zero};"
        ), ()
    if what == "floordiv":
        floor, fma = ("floor", "fma") if ty == "double" else ("floorf", "fmaf")
        if not fast:
            return _function(name, t, two, f"return {floor}(a / b);"), (f"={floor}",)
        # A quotient that is off by one bit where it should be whole would have the wrong floor.
        if ty == "float" and doubles:
            text = f"return {floor}((float)((double)a / (double)b));"
            return _function(name, t, two, text), (f"={floor}",)
        return _function(
            name, t, two,
            f"const {ty} q = {floor}(a / b), r = {fma}(-q, b, a);",
            "if (isinf(q) || isinf(b)) return q;",
            f"return b > {zero} ? (r < {zero} ? q - {one} : r >= b ? q + {one} : q)",
            f"                 : (r > {zero} ? q - {one} : r <= b ? q + {one} : q);",
        ), (f"={floor}", f"={fma}")  # fmt: skip
    return _function(name, t, two, f"return a - b * qd_floordiv_{t.name}(a, b);"), (
        f"floordiv_{t.name}",
    )


def _integer(what: str, name: str, t: DataType) -> tuple[str, tuple[str, ...]]:
    ty = VALUE[t.name]
    wide = UNSIGNED[t.name]
    two = f"{ty} a, {ty} b"
    if what in ("min", "max"):
        return _function(name, t, two, f"return a {'<' if what == 'min' else '>'} b ? a : b;"), ()
    if what == "abs":
        return _function(
            name, t, f"{ty} x", f"return x < 0 ? ({ty})(({wide})0 - ({wide})x) : x;"
        ), ()
    if what == "sgn":
        test = "(x > 0) - (x < 0)" if t.is_signed else "x > 0"
        return _function(name, t, f"{ty} x", f"return {test};"), ()
    if what == "ffs":
        low = f"({ty})(x & ({wide})0 - ({wide})x)"
        count = f"{t.bits} - (int)clz({low})"
        text = _function(name, t, f"{ty} x", f"return x == 0 ? 0 : {count};")
        return text.replace(f"static inline {ty}", "static inline int", 1), ()
    if what == "ipow":
        return _power(name, t), ()
    return _division(what, name, t), ()


def _division(what: str, name: str, t: DataType) -> str:
    """div, mod, floordiv, floormod: defined for 0 and for MIN / -1."""
    ty, wide, two = VALUE[t.name], UNSIGNED[t.name], f"{VALUE[t.name]} a, {VALUE[t.name]} b"
    sign = "/" if what.endswith("div") else "%"
    if not t.is_signed:
        # x % 1 is 0 already, which is what % 0 must give.
        value = f"a {sign} (b == 0 ? 1 : b)"
        return _function(
            name, t, two, f"return b == 0 ? 0 : {value};" if sign == "/" else f"return {value};"
        )
    body = [f"const {ty} s = b == 0 || b == -1 ? 1 : b;"]
    if what == "div":
        body.append(f"const {ty} q = a / s;")
    elif what == "mod":
        body.append("return a % s;")
    elif what == "floordiv":
        body.append(f"const {ty} q = a / s - ((a % s != 0) & ((a % s ^ s) < 0));")
    else:
        body.append(f"const {ty} r = a % s;")
        body.append("return (r != 0) && ((r ^ s) < 0) ? r + s : r;")
    if sign == "/":
        body.append(f"return b == 0 ? 0 : b == -1 ? ({ty})(({wide})0 - ({wide})a) : q;")
    return _function(name, t, two, *body)


def _power(name: str, t: DataType) -> str:
    """x ** n by squaring, wrapping; for n < 0 the truncated real result."""
    ty, wide = VALUE[t.name], UNSIGNED[t.name]
    minus = f"x == ({ty})-1 ? (n & 1 ? -1 : 1) : " if t.is_signed else ""
    return _function(
        name, t, f"{ty} x, ulong n, bool negative",
        f"if (negative) return x == 1 ? 1 : {minus}0;",
        f"{wide} result = 1, square = ({wide})x;",
        "for (; n; n >>= 1) {",
        "    if (n & 1) result *= square;",
        "    square *= square;",
        "}",
        f"return ({ty})result;",
    )  # fmt: skip
