"""cfg_optimization: loads and stores that the control-flow graph shows to be needless.

::

    <*f32> $1 = alloca ['t']
    $2 : local_store $1, $0
    $3 : if $9 then {                       $3 : if $9 then {
      <f32> $4 = local_load $1                $5 : global_store $8, $0
      $5 : global_store $8, $4              } else {
    } else {                                }
    }

* store-to-load forwarding: a load takes the value of the last store to the same address in its
  node, if no store that may hit it came between; otherwise the value that all stores which may
  reach it agree on, if that value is visible. A local holds 0 until it is stored to;
* identical loads: the second of two loads of an address, without a possible store between;
* identical stores: a store of what is there already;
* dead stores: overwritten before anything may load them, or never loaded: locals, and global
  temporaries that no later task loads. Arrays are live at the end;
* dead atomics: one whose destination is overwritten before anything loads it becomes a load, if
  no other iteration can see it: a local, or a node that is not parallel.

A load of a local that nothing was stored to is told as a remark. After lower_access only locals
are looked at. Before offload, and in the groups where it has no place (simplify_I, simplify_II
and those around differentiation), only instruments get to see the graph; nothing is changed.
"""

from __future__ import annotations

from typing import Final

from ..analysis.alias import Location, Memory
from ..analysis.cfg import Cfg, CfgNode, build_cfg
from ..analysis.dataflow import (
    ATOMIC, INIT, LOAD, STORE, Flow, analyze, loaded_later, show_live,
)  # fmt: skip
from ..analysis.uses import use_counts
from ..ir import Block, Func, Op, drop, normalize, replace_uses, same_value
from ..ir import codes as C
from ..types import DataType, PointerType
from .manager import PassCx
from .registry import register

_ONLY_SHOWN: Final = frozenset({"simplify_I", "simplify_II", "pre_autodiff", "post_autodiff"})


@register("cfg_optimization", optional=True, per_task=True)
def cfg_optimization(func: Func, cx: PassCx) -> bool:
    """Forward stores to loads; drop dead and repeated loads, stores and atomics."""
    shown_only = cx.phase in _ONLY_SHOWN
    if shown_only and not cx.watched:
        return False
    graph = build_cfg(func, cx.task, cx.task_index or 0)
    if cx.watched:
        cx.note("cfg_before", lambda: analyze(func, graph).graph)
    if shown_only:
        return False
    changed = _Optimizer(func, cx, graph).run()
    if cx.watched:
        cx.note("cfg_after", lambda: _shown(func, cx))
    return changed


def _shown(func: Func, cx: PassCx) -> Cfg:
    graph = build_cfg(func, cx.task, cx.task_index or 0)
    return analyze(func, graph).graph
