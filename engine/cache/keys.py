"""The key of the offline cache: what the machine code of a kernel depends on, part by part.

::

    kernel       the name, which appears in symbols and messages
    engine       version and source of the compiler (`engine_id`)
    backend      cpu, interp, ...
    target       the machine that code is generated for
    toolchain    the compilers that generate it
    config.*     each option that changes code, by name
    noalias      whether written arrays are assumed to overlap nothing
    graph        whether a device may record its tasks
    signature    parameters and results of the compiled function, with the layouts of fields
    ir           digest of the frontend's IR: its ops, constants, and the functions it calls
    places       digest of the source locations that messages point to

Parameters carry the layout of a field and not its identity, and the IR refers to parameters by
index only: declaring another field changes no key. Neither does moving a kernel, or editing another
one in the file, because locations are relative to the start of their function. A release build
without checks points to no location, so that not even an empty line inside the kernel matters.
"""

from __future__ import annotations

import marshal
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from .locations import Function, RelativeLocations
from .parts import Part, config_parts, digest

if TYPE_CHECKING:
    from ..backends.base import Backend
    from ..config import CompileConfig
    from ..ir import Func, Loc, Op

__all__ = ["common_parts", "ir_digest", "kernel_parts", "signature"]


def common_parts(config: CompileConfig, backend: Backend) -> tuple[Part, ...]:
    """The parts that all kernels of a program share."""
    from .engine_id import engine_part

    return (
        engine_part(config),
        Part("backend", backend.name),
        Part("target", backend.fingerprint(config)),
        Part("toolchain", backend.identity()),
        *config_parts(config, backend.name),
    )


def kernel_parts(
    func: Func, functions: Sequence[Function], common: Sequence[Part], noalias: bool,
    locations: bool,
) -> tuple[Part, ...]:  # fmt: skip
    """The key's parts for ``func``, as the frontend made it.

    functions: those whose source it was made from. common: the result of `common_parts`. locations:
    code or messages may point to any op.
    """
    from ..ir import all_ops

    ops = all_ops(func)
    return (
        Part("kernel", func.name),
        *common,
        Part("noalias", str(noalias)),
        Part("graph", str(func.graph)),
        Part("signature", signature(func)),
        Part("ir", _digest_of_ops(func, ops)),
        Part("places", _locations_digest(func, ops, functions, locations)),
    )


def signature(func: Func) -> str:
    """Parameters and results as text."""
    # A kernel that is known by its source needs `common_parts` alone, and no IR.
    from ..ir.params import param_text

    text = f"({', '.join([param_text(p) for p in func.params])})"
    if func.results:
        text += f" -> ({', '.join([t.name for t in func.results])})"
    return text


def ir_digest(func: Func) -> str:
    """The digest of the ops and the functions called; parameters are in `signature`."""
    from ..ir import all_ops

    return _digest_of_ops(func, all_ops(func))


def _digest_of_ops(func: Func, ops: Sequence[Op]) -> str:
    """`ir_digest`. ops: all of the function and of those that it calls, outer before inner.

    By columns, not of the listing: that needs twice the time. Version 2 of `marshal` writes equal
    data as equal bytes, and -0.0 as other bytes than 0.0.
    """
    callees: list[str] = []
    if func.callees:
        from ..ir.printer import header, trailer

        callees = [header(callee) + trailer(callee) for callee in func.callees.values()]
    attrs = [op.attr for op in ops]
    columns = (
        callees,
        [len(body.ops) for body in func.bodies()],
        [(op.id, [len(region.ops) for region in op.regions]) for op in ops if op.regions],
        [op.id for op in ops],
        [op.code for op in ops],
        [op.type.name for op in ops],
        [len(op.args) for op in ops],
        [a.id for op in ops for a in op.args],
        [x if x.__class__ in _PLAIN else repr(x) for x in attrs],
    )
    return digest(marshal.dumps(columns, 2))


_PLAIN: Final = frozenset((type(None), bool, int, float, str))
"""Classes of attributes that are written as they are."""


def _locations_digest(
    func: Func, ops: Sequence[Op], functions: Sequence[Function], every: bool
) -> str:
    """The digest of the locations that messages may point to; with ``every``, of all locations.

    Without the checks that options turn on, only permanent asserts are left; those of barriers are
    made from the ops around them.
    """
    from ..ir import codes

    seen = {op.code for op in ops}
    waits = {codes.BLOCK_SYNC, codes.SUBGROUP_SHUFFLE, codes.SUBGROUP_BALLOT, codes.SUBGROUP_SYNC}
    if every or not waits.isdisjoint(seen):
        locs: list[Loc] = [op.loc for op in ops]
    elif codes.ASSERT in seen:
        locs = [op.loc for op in ops if op.code == codes.ASSERT and op.attr.kind != "user"]
    else:
        locs = []
    if not (every or locs):
        return "none"
    locations = RelativeLocations(functions)
    owners = [one.loc for one in (func, *func.callees.values())]
    numbers = [locations.number(loc) for loc in (*owners, *locs)]
    return digest(f"{locations.table} {numbers}")
