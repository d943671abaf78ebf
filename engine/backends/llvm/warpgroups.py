"""Helpers in the words of NVIDIA's sm_90a: products of matrices in shared memory, by four warps.

``wgmma`` reads both matrices through descriptors (PTX ISA, "Asynchronous Warpgroup Level Matrix
Instructions"): an address in units of 16 bytes, how far apart groups of 8 rows are and, where rows
run across the product, panels, and how elements of a row are exchanged. An `ir.attrs.WarpgroupAttr`
says where they are.
"""

from __future__ import annotations

from typing import Final

__all__ = ["warpgroup_text"]

_DEPTH: Final = 64
_K: Final = 16
"""Terms of a product, and of one instruction."""
_ROW: Final = 128
"""Bytes of a row."""
_UNIT: Final = 16
_ADDRESS: Final = 0x3FFFF
_EXCHANGED: Final = 1 << 62
"""Of a descriptor: pieces of 16 bytes are exchanged within 8 rows of 128."""


def warpgroup_text(name: str) -> str:
    """The definition of ``@qd.<name>``.

    ``warpgroup_mma.<columns>.<across of a><across of b>`` starts a product, and returns new sums;
    ``warpgroup_wait.<n>`` waits until n are under way, ``warpgroup_done.<sums>`` for all of them;
    ``warpgroup_fence`` orders what the thread wrote to shared memory before later products.
    """
    kind, _, rest = name.partition(".")
    if kind == "warpgroup_mma":
        columns, across = rest.split(".")
        return _multiply(name, int(columns), across)
    if kind == "warpgroup_done":
        return _function(name, int(rest), [], [], ["wgmma.wait_group.sync.aligned 0;"])
    text = f"wgmma.wait_group.sync.aligned {rest};" if rest else "fence.proxy.async;"
    return f"""\
define internal void @qd.{name}() alwaysinline convergent {{
  call void asm sideeffect "{text}", "~{{memory}}"() convergent
  ret void
}}"""


def _multiply(name: str, columns: int, across: str) -> str:
    lines, words = list[str](), ["wgmma.fence.sync.aligned;"]
    for part, turned in zip("ab", across, strict=True):
        apart = _DEPTH * _ROW // _UNIT if turned == "1" else 1
        fixed = _EXCHANGED | (8 * _ROW // _UNIT) << 32 | apart << 16
        step = (_K * _ROW if turned == "1" else 2 * _K) // _UNIT
        lines += [
            f"%{part}.at = ptrtoint ptr addrspace(3) %{part} to i32",
            f"%{part}.seen = and i32 %{part}.at, {_ADDRESS}",
            f"%{part}.units = lshr i32 %{part}.seen, {_UNIT.bit_length() - 1}",
            f"%{part}.wide = zext i32 %{part}.units to i64",
            *[f"%{part}.{k} = add i64 %{part}.wide, {fixed + k * step}"
              for k in range(_DEPTH // _K)],
        ]  # fmt: skip
    count = 4 * columns
    sums = ", ".join([f"${k}" for k in range(count)])
    shape = f"m64n{8 * columns}k{_K}.f32.f16.f16"
    for k in range(_DEPTH // _K):
        a, b = (f"${2 * count + 2 * k + side}" for side in (0, 1))
        words.append(
            f"wgmma.mma_async.sync.aligned.{shape} {{{sums}}}, {a}, {b}, "
            f"p, 1, 1, {', '.join(across)};"
        )
    words.append("wgmma.commit_group.sync.aligned;")
    given = [f"i64 %{part}.{k}" for k in range(_DEPTH // _K) for part in "ab"]
    return _function(name, count, lines, given, words, "ptr addrspace(3) %a, ptr addrspace(3) %b, ")


def _function(
    name: str, count: int, lines: list[str], given: list[str], words: list[str], params: str = ""
) -> str:
    """A function from sums to sums around instructions. given: other operands of these."""
    result = f"[{count} x float]"
    of_asm = f"{{ {', '.join(['float'] * count)} }}"
    kinds = ["=f"] * count + [str(k) for k in range(count)] + ["l"] * len(given) + ["~{memory}"]
    sums = [f"float %s{k}" for k in range(count)]
    text = " ".join(words)
    if given:
        text = "{ .reg .pred p; setp.ne.b32 p, 1, 0; " + text + " }"
    found, held = list[str](), "poison"
    for k in range(count):
        found.append(f"%part.{k} = extractvalue {of_asm} %found, {k}")
        found.append(f"%held.{k} = insertvalue {result} {held}, float %part.{k}, {k}")
        held = f"%held.{k}"
    body = [
        *lines,
        f'%found = call {of_asm} asm sideeffect "{text}", "{",".join(kinds)}"'
        f"({', '.join([*sums, *given])}) convergent",
        *found,
        f"ret {result} {held}",
    ]
    text = "".join([f"  {line}\n" for line in body])
    return (
        f"define internal {result} @qd.{name}({params}{', '.join(sums)}) "
        f"alwaysinline convergent {{\n{text}}}"
    )
