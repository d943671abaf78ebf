"""Fragments of matrices and asynchronous copies, as functions of the host.

A copy is done when it is started, which is one of the times at which a device may do it, and so is
a product of a warpgroup; that nothing is read before it was waited for, the interpreter shows.
"""

from __future__ import annotations

import re

__all__ = ["definition", "without_warpgroups"]

_FOUR = "{{ {0}, {0}, {0}, {0} }}"
_PLACE = """\
  %lane = call i32 @sim.lane()
  %g = lshr i32 %lane, 2
  %t = and i32 %lane, 3
"""


def definition(bare: str, here: str, kind: int) -> str:
    """The function in place of an intrinsic; empty if it is none of these.

    bare: its name without the prefix. here: the function's. kind: number of the exchange.
    """
    if bare.startswith("mma.m16n8k16.row.col.f32.f32"):
        return _mma(here, kind)
    if bare.startswith("ldmatrix.sync.aligned.m8n8.x4"):
        return _ldmatrix(here, kind, ".trans" in bare)
    if bare == "cp.async.cg.shared.global.16":
        return (f"define internal void @{here}(ptr %to, ptr %from) {{\n"
                "  %v = load <2 x i64>, ptr %from, align 16\n"
                "  store <2 x i64> %v, ptr %to, align 16\n  ret void\n}\n")  # fmt: skip
    if bare in ("cp.async.commit.group", "cp.async.wait.group"):
        count = "i32 %n" if "wait.group" in bare else ""
        return f"define internal void @{here}({count}) {{\n  ret void\n}}\n"
    return ""


def _ldmatrix(here: str, kind: int, across: bool) -> str:
    result = _FOUR.format("i32")
    text = f"define internal {result} @{here}(ptr %p) {{\n"
    text += "  %x = ptrtoint ptr %p to i64\n"
    text += f"  %r = call ptr @qdsim_wait(i32 2, i32 {kind}, i32 -1, i64 %x)\n" + _PLACE
    text += "  %t2 = shl i32 %t, 1\n"
    held = "poison"
    for m in range(4):
        rows = ("g",) if not across else ("t2", "t2")
        for n, row in enumerate(rows):
            text += f"  %l{m}{n} = add i32 %{row}, {8 * m + n}\n"
            text += f"  %s{m}{n} = call i64 @sim.seen(ptr %r, i32 %l{m}{n})\n"
            text += f"  %a{m}{n} = inttoptr i64 %s{m}{n} to ptr\n"
            ty, at = ("i16", "g") if across else ("i32", "t")
            text += f"  %p{m}{n} = getelementptr {ty}, ptr %a{m}{n}, i32 %{at}\n"
            text += f"  %v{m}{n} = load {ty}, ptr %p{m}{n}\n"
        value = f"%v{m}0"
        if across:
            text += f"  %w{m}0 = zext i16 %v{m}0 to i32\n  %w{m}1 = zext i16 %v{m}1 to i32\n"
            text += f"  %h{m} = shl i32 %w{m}1, 16\n  %b{m} = or i32 %h{m}, %w{m}0\n"
            value = f"%b{m}"
        text += f"  %o{m} = insertvalue {result} {held}, i32 {value}, {m}\n"
        held = f"%o{m}"
    return text + f"  ret {result} {held}\n}}\n"


def _mma(here: str, kind: int) -> str:
    result = _FOUR.format("float")
    pairs = [f"%r{k}" for k in range(6)]
    params = [f"<2 x half> {x}" for x in pairs] + [f"float %c{k}" for k in range(4)]
    text = "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)\n"
    text += f"define internal {result} @{here}({', '.join(params)}) {{\n"
    text += "  %seen = alloca [96 x i64], align 16\n"
    for n in range(3):
        low, high = pairs[2 * n : 2 * n + 2]
        text += f"  %b{2 * n} = bitcast <2 x half> {low} to i32\n"
        text += f"  %b{2 * n + 1} = bitcast <2 x half> {high} to i32\n"
        text += f"  %w{2 * n} = zext i32 %b{2 * n} to i64\n"
        text += f"  %w{2 * n + 1} = zext i32 %b{2 * n + 1} to i64\n"
        text += f"  %h{n} = shl i64 %w{2 * n + 1}, 32\n  %x{n} = or i64 %h{n}, %w{2 * n}\n"
        text += f"  %at{n} = call ptr @qdsim_wait(i32 2, i32 {kind}, i32 -1, i64 %x{n})\n"
        text += f"  %from{n} = getelementptr i8, ptr %at{n}, i64 64\n"
        text += f"  %to{n} = getelementptr i8, ptr %seen, i64 {256 * n}\n"
        text += f"  call void @llvm.memcpy.p0.p0.i64(ptr %to{n}, ptr %from{n}, i64 256, i1 false)\n"
    text += _PLACE + "  %ga = shl i32 %g, 5\n  %pa = getelementptr i8, ptr %seen, i32 %ga\n"
    text += "  %tb = shl i32 %t, 6\n  %pb = getelementptr i8, ptr %seen, i32 %tb\n"
    held = "poison"
    for e in range(4):
        total = f"%c{e}"
        for k in range(16):
            far, inside = k // 8, k % 8 // 2 * 8 + k % 2 * 2
            places = {
                "a": ("pa", 256 * far + 4 * (e // 2) + inside),
                "b": ("pb", 512 + 32 * (e % 2) + 4 * far + inside),
            }
            name = f"{e}.{k}"
            for part, (base, offset) in places.items():
                text += f"  %p{part}{name} = getelementptr i8, ptr %{base}, i64 {offset}\n"
                text += f"  %h{part}{name} = load half, ptr %p{part}{name}\n"
                text += f"  %f{part}{name} = fpext half %h{part}{name} to float\n"
            text += f"  %m{name} = fmul float %fa{name}, %fb{name}\n"
            text += f"  %s{name} = fadd float {total}, %m{name}\n"
            total = f"%s{name}"
        text += f"  %o{e} = insertvalue {result} {held}, float {total}, {e}\n"
        held = f"%o{e}"
    return text + f"  ret {result} {held}\n}}\n"


_HELPER = re.compile(
    r"^define internal (.*?) @qd\.warpgroup_([\w.]+)\((.*?)\) alwaysinline .*?^\}$", re.M | re.S
)

_PRODUCT = """\
define internal {result} @qd.warpgroup_{name}({params}) {{
  %sums = alloca {result}, align 16
  store {result} {held}, ptr %sums
  %tid = call i32 @sim.get.tid()
  %lane = and i32 %tid, 31
  %g = lshr i32 %lane, 2
  %t2 = and i32 %lane, 3
  %pair = shl i32 %t2, 1
  %warp = and i32 %tid, 96
  %rows = lshr i32 %warp, 1
  %first = or i32 %rows, %g
  br label %outer
outer:
  %i = phi i32 [ 0, %0 ], [ %i.next, %done ]
  %low = lshr i32 %i, 1
  %low1 = and i32 %low, 1
  %down = shl i32 %low1, 3
  %row = add i32 %first, %down
  %n = lshr i32 %i, 2
  %right = shl i32 %n, 3
  %k1 = and i32 %i, 1
  %near = or i32 %pair, %k1
  %column = add i32 %right, %near
  %at = getelementptr float, ptr %sums, i32 %i
  %old = load float, ptr %at
  br label %inner
inner:
  %k = phi i32 [ 0, %outer ], [ %k.next, %inner ]
  %total = phi float [ %old, %outer ], [ %new, %inner ]
{places}  %x = load half, ptr %a.at
  %y = load half, ptr %b.at
  %x.wide = fpext half %x to float
  %y.wide = fpext half %y to float
  %product = fmul float %x.wide, %y.wide
  %new = fadd float %total, %product
  %k.next = add i32 %k, 1
  %more = icmp ult i32 %k.next, 64
  br i1 %more, label %inner, label %done
done:
  store float %new, ptr %at
  %i.next = add i32 %i, 1
  %again = icmp ult i32 %i.next, {count}
  br i1 %again, label %outer, label %end
end:
  %found = load {result}, ptr %sums
  ret {result} %found
}}
"""

_PLACE_OF = """\
  %{part}.panel = lshr i32 %{across}, 6
  %{part}.begin = shl i32 %{part}.panel, 12
  %{part}.inside = and i32 %{across}, 63
  %{part}.turn = and i32 %{along}, 7
  %{part}.turned = shl i32 %{part}.turn, 3
  %{part}.swapped = xor i32 %{part}.inside, %{part}.turned
  %{part}.line = shl i32 %{along}, 6
  %{part}.near = add i32 %{part}.line, %{part}.swapped
  %{part}.place = add i32 %{part}.near, %{part}.begin
  %{part}.at = getelementptr half, ptr addrspace(3) %{part}, i32 %{part}.place
"""


def without_warpgroups(text: str) -> str:
    """A module whose helpers for warpgroups are functions of the host."""
    return _HELPER.sub(_of_host, text)


def _of_host(match: re.Match[str]) -> str:
    result, name, params = match.groups()
    held, sums = "poison", [p.split()[1] for p in params.split(", ") if p.startswith("float")]
    lines: list[str] = []
    for k, value in enumerate(sums):
        lines.append(f"  %h{k} = insertvalue {result} {held}, float {value}, {k}\n")
        held = f"%h{k}"
    if not name.startswith("mma"):
        value = f"{result} {held}" if sums else "void"
        body = "".join(lines) + f"  ret {value}\n"
        return f"define internal {result} @qd.warpgroup_{name}({params}) {{\n{body}}}\n"
    places = ""
    for part, across, index in zip("ab", name.rpartition(".")[2], ("row", "column"), strict=True):
        order = (index, "k") if across == "1" else ("k", index)
        places += _PLACE_OF.format(part=part, across=order[0], along=order[1])
    of_host = _PRODUCT.format(
        result=result, name=name, params=params, held=held, places=places, count=len(sums)
    )
    return of_host.replace("{\n", "{\n" + "".join(lines), 1)
