"""Memory accesses of a kernel as formulas, as `symbolic` finds them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ...ir import Block, Func, Op, all_ops, base_of
from ...ir import codes as C
from ...named_tuple import NamedTuple
from ...types import PointerType

if TYPE_CHECKING:
    from .terms import Terms

__all__ = [
    "Access", "Limits", "Scope", "Taken", "Traced", "changed_by", "changed_of",
    "elem_of", "memory_of", "own", "written_of",
]  # fmt: skip

Limits = tuple[Any, Any]


@dataclass(eq=False)
class Scope:
    """A parallel loop. index: its indices. own: the constants that differ between iterations.
    bounds: (begin, end) of each axis. unfollowed: why it was not followed. hidden:
    what orders iterations that a proof assumes to be unordered. taken: see `Taken`."""

    loop: Op
    index: tuple[Any, ...] = ()
    own: list[Any] = field(default_factory=list[Any])
    bounds: tuple[Limits, ...] = ()
    unfollowed: str = ""
    hidden: str = ""
    taken: list[Taken] = field(default_factory=list["Taken"])


class Taken(NamedTuple):
    """An atomic addition to a signed integer: what it found there, and by how much it grew."""

    memory: str
    indices: tuple[Any, ...]
    old: Any
    by: int


class Access(NamedTuple):
    """An access of one element. kind: r(ead), w(rite), a(tomic). memory: what identifies the array.

    when: the conditions under which it is made. limits: of each index (first, end); empty if it
    cannot be outside. around: (index, begin, end) of the loops around it. value: what is stored,
    maybe `Late`.
    """

    op: Op
    kind: str
    memory: str
    indices: tuple[Any, ...]
    when: tuple[Any, ...]
    limits: tuple[Limits, ...]
    around: tuple[tuple[Any, Any, Any], ...]
    value: Any
    scope: Scope | None


@dataclass
class Traced:
    """The result of `Tracer`. sizes: arguments and extents by name. facts: hold in every launch.
    asserts: the assertions used as facts. read: the memory whose loads are the same at any time,
    since the kernel does not write it; written: the memory that it writes. hidden: why the kernel
    was not followed; unfollowed: the same, where races of the whole kernel are concerned. whole:
    nothing was left out because no verdict needs it."""

    terms: Terms
    accesses: list[Access] = field(default_factory=list[Access])
    scopes: list[Scope] = field(default_factory=list[Scope])
    sizes: dict[str, Any] = field(default_factory=dict[str, Any])
    facts: list[Any] = field(default_factory=list[Any])
    asserts: list[Op] = field(default_factory=list[Op])
    read: set[str] = field(default_factory=set[str])
    written: set[str] = field(default_factory=set[str])
    hidden: str = ""
    unfollowed: str = ""
    whole: bool = True


def own(scope: Scope | None, term: Any) -> Any:
    """``term``, which each iteration of the parallel loop has its own of."""
    if scope is not None:
        scope.own.append(term)
    return term


def memory_of(func: Func, base: Op) -> str:
    """The identity of the memory that addresses from ``base`` on point into.

    Arrays that no gradient passes through are parameters once more, with the same memory
    (`qd.stop_grad`): they have the same name.
    """
    if base.code != C.ARG_ADDR:
        return f"local {base.id}"
    number: int = base.attr[0]
    mine = func.params[number]._replace(grad=-1)
    first = next(
        i for i, param in enumerate(func.params)
        if param.name == mine.name and param._replace(grad=-1) == mine
    )  # fmt: skip
    return f"{first}{'.grad' if base.attr[1] else ''}"


def elem_of(variable: Op) -> Any:
    return variable.type.elem if isinstance(variable.type, PointerType) else None


def changed_of(body: Block) -> list[Op]:
    """The local variables that ops of a block change."""
    return list(dict.fromkeys(v for op in body.ops for v in changed_by(op)))


def changed_by(op: Op) -> list[Op]:
    """The local variables that an op changes, or those in its regions."""
    if op.code == C.LOCAL_STORE or C.ATOMIC[op.code]:
        return [op.args[0]] if op.args[0].code == C.ALLOCA else []
    return [v for region in op.regions for v in changed_of(region)]


def written_of(func: Func) -> set[str]:
    """The memory that a kernel writes."""
    out: set[str] = set()
    for op in all_ops(func):
        if op.code == C.GLOBAL_STORE or C.ATOMIC[op.code]:
            out.add(memory_of(func, base_of(op.args[0])))
    return out
