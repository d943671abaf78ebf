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

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .locations import Function, RelativeLocations
from .parts import Part, config_parts, digest

if TYPE_CHECKING:
    from ..backends.base import Backend
    from ..config import CompileConfig
    from ..ir import Func, Loc

__all__ = ["common_parts", "ir_digest", "kernel_parts", "locations_digest", "signature"]


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
    return (
        Part("kernel", func.name),
        *common,
        Part("noalias", str(noalias)),
        Part("graph", str(func.graph)),
        Part("signature", signature(func)),
        Part("ir", ir_digest(func)),
        Part("places", locations_digest(func, functions, locations)),
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
    from ..ir import listing

    return digest("\n".join(listing(func).lines[1:]))


def locations_digest(func: Func, functions: Sequence[Function], every: bool) -> str:
    """The digest of the locations that messages may point to; with ``every``, of all locations.

    Without the checks that options turn on, only permanent asserts are left; those of barriers are
    made from the ops around them.
    """
    from ..ir import all_ops, codes

    ops = all_ops(func)
    waits = {codes.BLOCK_SYNC, codes.SUBGROUP_SHUFFLE, codes.SUBGROUP_BALLOT, codes.SUBGROUP_SYNC}
    if every or not waits.isdisjoint([op.code for op in ops]):
        locs: list[Loc] = [op.loc for op in ops]
    else:
        locs = [op.loc for op in ops if op.code == codes.ASSERT and op.attr.kind != "user"]
        if not locs:
            return "none"
    locations = RelativeLocations(functions)
    owners = [one.loc for one in (func, *func.callees.values())]
    numbers = [locations.number(loc) for loc in (*owners, *locs)]
    return digest(f"{locations.table} {numbers}")
