"""Functions that move a tile of a matrix, as LLVM IR text; `ForAttr.move` asks for them.

A *transposed* move turns eight rows of eight elements at a time in registers: three rounds
interleave the halves of the eight vectors. A *streamed* move writes whole lines of the cache
past it: a store that the cache takes part in reads the line first.
"""

from __future__ import annotations

from typing import Final

__all__ = ["move_text"]

_SIDE: Final = 8
_AHEAD: Final = 256
"""Bytes ahead of a load that a prefetch asks for: 6 % of a transpose of 8192^2 f32."""

_PREFETCH: Final = "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)"

_STREAMED: Final = """\
; Rows of `cols` bytes, each from one array to another; whole lines of the cache go past it.
define internal void @qd.move.streamed(ptr %to, i64 %to.pitch, ptr %from, i64 %from.pitch, i64 %rows, i64 %cols) noinline nounwind {
entry:
  %far = mul i64 %to.pitch, 16
  %some = icmp sgt i64 %rows, 0
  br i1 %some, label %row, label %done
row:
  %r = phi i64 [ 0, %entry ], [ %r.next, %next ]
  %t = phi ptr [ %to, %entry ], [ %t.next, %next ]
  %f = phi ptr [ %from, %entry ], [ %f.next, %next ]
  %at = ptrtoint ptr %t to i64
  %t.ahead = getelementptr i8, ptr %t, i64 %far
  %back = sub i64 0, %at
  %off = and i64 %back, 63
  %head = call i64 @llvm.smin.i64(i64 %off, i64 %cols)
  %body = sub i64 %cols, %head
  %lines = and i64 %body, -64
  %last = add i64 %head, %lines
  %aligned = icmp eq i64 %head, 0
  br i1 %aligned, label %line, label %first
first:
  call void @llvm.prefetch.p0(ptr %t.ahead, i32 1, i32 3, i32 1)
  call void @llvm.memcpy.p0.p0.i64(ptr %t, ptr %f, i64 %head, i1 false)
  br label %line
line:
  %i = phi i64 [ %head, %row ], [ %head, %first ], [ %i.next, %store ]
  %in = icmp slt i64 %i, %last
  br i1 %in, label %store, label %end
store:
  %f.i = getelementptr i8, ptr %f, i64 %i
  %t.i = getelementptr i8, ptr %t, i64 %i
  %v = load <16 x i32>, ptr %f.i, align 1
  store <16 x i32> %v, ptr %t.i, align 64, !nontemporal !2
  %i.next = add i64 %i, 64
  br label %line
end:
  %rest = sub i64 %cols, %last
  %whole = icmp sle i64 %rest, 0
  br i1 %whole, label %next, label %tail
tail:
  %l.ahead = getelementptr i8, ptr %t.ahead, i64 %last
  call void @llvm.prefetch.p0(ptr %l.ahead, i32 1, i32 3, i32 1)
  %f.l = getelementptr i8, ptr %f, i64 %last
  %t.l = getelementptr i8, ptr %t, i64 %last
  call void @llvm.memcpy.p0.p0.i64(ptr %t.l, ptr %f.l, i64 %rest, i1 false)
  br label %next
next:
  %t.next = getelementptr i8, ptr %t, i64 %to.pitch
  %f.next = getelementptr i8, ptr %f, i64 %from.pitch
  %r.next = add i64 %r, 1
  %again = icmp slt i64 %r.next, %rows
  br i1 %again, label %row, label %done
done:
  fence seq_cst  ; such stores are in no order with those that say that the task is done
  ret void
}
"""  # noqa: E501

_TRANSPOSED: Final = """\
; Element c of row r becomes element r of row c. `rows` and `cols` count elements, pitches bytes.
define internal void @qd.move.transposed.{size}(ptr %to, i64 %to.pitch, ptr %from, i64 %from.pitch, i64 %rows, i64 %cols) noinline nounwind {{
entry:
  %rows.8 = and i64 %rows, -8
  %cols.8 = and i64 %cols, -8
  br label %row
row:
  %r = phi i64 [ 0, %entry ], [ %r.next, %row.end ]
  %r.in = icmp slt i64 %r, %rows
  br i1 %r.in, label %row.begin, label %done
row.begin:
  %r.whole = icmp slt i64 %r, %rows.8
  %r.step = select i1 %r.whole, i64 8, i64 1
  %c.whole = select i1 %r.whole, i64 %cols.8, i64 0
  %r.from = mul i64 %r, %from.pitch
  %r.to = mul i64 %r, {size}
  %f.r = getelementptr i8, ptr %from, i64 %r.from
  %t.r = getelementptr i8, ptr %to, i64 %r.to
  br label %block
block:
  %c = phi i64 [ 0, %row.begin ], [ %c.next, %turn ]
  %c.in = icmp slt i64 %c, %c.whole
  br i1 %c.in, label %turn, label %single
turn:
  %c.from = mul i64 %c, {size}
  %c.to = mul i64 %c, %to.pitch
  %f0 = getelementptr i8, ptr %f.r, i64 %c.from
  %t0 = getelementptr i8, ptr %t.r, i64 %c.to
{turn}
  %c.next = add i64 %c, 8
  br label %block
single:
  %s = phi i64 [ %c.whole, %block ], [ %s.next, %column.end ]
  %s.in = icmp slt i64 %s, %cols
  br i1 %s.in, label %column, label %row.end
column:
  %k = phi i64 [ 0, %single ], [ %k.next, %one ]
  %k.in = icmp slt i64 %k, %r.step
  br i1 %k.in, label %one, label %column.end
one:
  %k.from = mul i64 %k, %from.pitch
  %s.from = mul i64 %s, {size}
  %o.from = add i64 %k.from, %s.from
  %k.to = mul i64 %k, {size}
  %s.to = mul i64 %s, %to.pitch
  %o.to = add i64 %k.to, %s.to
  %o.f = getelementptr i8, ptr %f.r, i64 %o.from
  %o.t = getelementptr i8, ptr %t.r, i64 %o.to
  %o = load {ty}, ptr %o.f, align {size}
  store {ty} %o, ptr %o.t, align {size}
  %k.next = add i64 %k, 1
  br label %column
column.end:
  %s.next = add i64 %s, 1
  br label %single
row.end:
  %r.next = add i64 %r, %r.step
  br label %row
done:
  ret void
}}
"""  # noqa: E501


def move_text(name: str) -> tuple[str, tuple[str, ...]]:
    """The definition of ``@qd.<name>`` and the intrinsics that it calls."""
    if name == "move.streamed":
        return _STREAMED, (
            "declare i64 @llvm.smin.i64(i64, i64)",
            _PREFETCH,
            "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)",
        )
    size = int(name.rpartition(".")[2])
    text = _TRANSPOSED.format(size=size, ty=f"i{8 * size}", turn="\n".join(_turn(size)))
    return text, (_PREFETCH,)


def _turn(size: int) -> list[str]:
    """Load, transpose and store eight rows of eight elements."""
    vector = f"<{_SIDE} x i{8 * size}>"
    lines: list[str] = []
    for k in range(_SIDE):
        if k:
            lines += [
                f"  %f{k} = getelementptr i8, ptr %f{k - 1}, i64 %from.pitch",
                f"  %t{k} = getelementptr i8, ptr %t{k - 1}, i64 %to.pitch",
            ]
        lines += [
            f"  %a0.{k} = load {vector}, ptr %f{k}, align {size}",
            f"  %p{k} = getelementptr i8, ptr %f{k}, i64 {_AHEAD}",
            f"  call void @llvm.prefetch.p0(ptr %p{k}, i32 0, i32 3, i32 1)",
        ]
    half = _SIDE // 2
    for turn in range(3):
        for k in range(_SIDE):
            first = half * (k % 2)
            mask = ", ".join(f"i32 {first + n // 2 + _SIDE * (n % 2)}" for n in range(_SIDE))
            one, other = (f"{vector} %a{turn}.{k // 2 + half * n}" for n in (0, 1))
            lines.append(
                f"  %a{turn + 1}.{k} = shufflevector {one}, {other}, <{_SIDE} x i32> <{mask}>"
            )
    stores = (f"  store {vector} %a3.{k}, ptr %t{k}, align {size}" for k in range(_SIDE))
    return [*lines, *stores]
