"""Graph regions as Python statements.

::

    $5 : graph_region {kind='do_while' param=1} body {      while True:
      ...                                                    ...
    }                                                        if not m1[0]: break
    $9 : graph_region {kind='checkpoint' param=2            if not cx.resume or cx.resume == 1:
                       label=0 name=7} body {                cx.resume = 0
      ...                                                    ...
    }                                                        if m2[0]: cx.yielded = 1; return ()

``cx.resume`` is 1 + the label of the checkpoint that the launch begins at, until it is met; see
`backends.flow`. Sections follow each other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...ir import Op
from ..flow import holds

if TYPE_CHECKING:
    from .emit import Emitter

__all__ = ["graph_region"]


def graph_region(e: Emitter, op: Op) -> None:
    """Emit a graph region; its tests are emitted only for kernels that can begin further on."""
    attr, body = op.attr, op.regions[0]
    saved = e.pad
    if e.resumable:
        inside = [label + 1 for label in holds(op)]
        e.line("if not cx.resume" + "".join(f" or cx.resume == {n}" for n in inside) + ":")
        e.pad += " "
        if attr.kind == "checkpoint":
            e.line("cx.resume = 0")
    if attr.kind == "do_while":
        e.loop("while True:", body)
        e.op = op
        e.line(f" if not m{attr.param}[0]: break")
    else:
        before = len(e.lines)
        e.block(body)
        e.op = op
        if attr.kind == "checkpoint" and attr.param >= 0:
            e.line(f"if m{attr.param}[0]: cx.yielded = {attr.label + 1}; return ()")
        if len(e.lines) == before:
            e.line("pass")
    e.pad = saved
