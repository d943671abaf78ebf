"""Launch stubs for the arrays of the launches before.

A kernel may read a hundred members of dataclasses or of ``self``, and a step of a simulation
launches it with the same objects each time. No member of a frozen dataclass is ever replaced. So
where the same *anchors* come a second time (the frozen dataclasses themselves, and of other objects
the arrays that are their members), their arrays are packed once more and *kept*: a copy of the
packed values, and argument buffers that hold them. From then on a launch compares the anchors
alone, and packs only what may have changed: other arguments, and members that are no arrays of the
engine. Arrays that were found to share no memory share none later, so such a launch has no overlap
check either.

A few sets of anchors are kept at a time, for programs that use them by turns. The kept values hold
the memory of the arrays, and the anchors hold the arrays: when the first anchor dies, the values
are dropped. A call with other anchors goes on to the full stub of `runtime.stub`. The stub has, in
essence::

    def launch(a0=MISSING, a1=MISSING, *rest):
        now = kept.now
        if now is None: return other(a0, a1, *rest)
        r0, free, new, writes, values = now
        if r0() is not a0: return other(a0, a1, *rest)
        c = a1.__class__
        if c is not float and c is not int: return miss(a0, a1, *rest)
        ...
        try: args = free.pop()
        except IndexError: args = new()
        try: pack_1(args.view, 72, a1)
        except RANGE: return slow(a0, a1, *rest)
        if enter(args): return failed(args, a0, a1, *rest)
        for w in writes: w.touched = True
        free.append(args)
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from ..backends.base import ArgumentPool
from ..frontend.specialization import InstanceKey, RecordKey, ValueKey, unwrapped
from . import args as arguments
from .alias_check import overlap
from .reading import UNSEEN
from .stub import StubWriter, pool_for_stubs
from .stub_checks import Fixed, TooInvolved, is_checked

if TYPE_CHECKING:
    from .launch import Launchers
    from .sizer import Need
    from .variant import Variant

__all__ = ["kept_stub"]

_FEWEST: Final = 4
"""With fewer parameters to keep, and members to compare, reading them costs no more than comparing
anchors."""

_SETS: Final = 8
"""Sets of anchors that are known at a time."""


def kept_stub(
    owner: Launchers, variant: Variant, args: tuple[Any, ...], full: Callable[..., Any],
    stream: int = 0,
) -> Callable[..., Any]:  # fmt: skip
    """A stub that is faster for the arrays of the launches before, else ``full``.

    full: accepts all calls of the kind of this one, and others. It is returned where nothing can be
    kept.
    """
    pool, meta = pool_for_stubs(owner, variant, stream), variant.executable.meta
    if pool is None or not variant.program.device.host_arrays:
        return full
    if meta.labels or meta.seeded:
        return full
    fixed = _fixed(owner, variant, args)
    fields = sum(binding.field is not None for binding in variant.compiled.plan.bindings)
    if not fixed.anchors or len(fixed.params) - fields + len(fixed.members) < _FEWEST:
        return full  # fields are in the buffers from the start
    held = [b.field for b in variant.compiled.plan.bindings if b.field is not None]
    memory = [field.flat() for field in held]  # held first: see `StubWriter`
    pool.bind_fields([field.address() for field in held])
    try:
        writer = _Writer(owner, variant, args, full, pool, memory, stream, fixed)
        kept = _Kept(owner, variant, pool, fixed, full, writer.watched, stream)
        stub = writer.kept_by(kept)
        kept.begin(args)
        return stub
    except TooInvolved:
        return full


def _fixed(owner: Launchers, variant: Variant, args: Sequence[Any]) -> Fixed:
    """The members and parameters that stay in calls with the anchors of this one."""
    plan, keys = variant.compiled.plan, variant.spec_keys
    objects = {i for i, key in enumerate(keys) if isinstance(key, RecordKey | InstanceKey)}
    frozen = {i for i in objects if isinstance(keys[i], RecordKey) and _frozen(args[i])}
    members = [
        (used.arg, used.path) for used in plan.used
        if used.arg in frozen and is_checked(used) and not isinstance(used.spec_key, ValueKey)
        and _reached(args[used.arg], used.path[:-1])
    ]  # fmt: skip
    anchors: dict[tuple[int, tuple[str, ...]], None] = {(arg, ()): None for arg, _ in members}
    params: list[int] = []
    for i, binding in enumerate(plan.bindings):
        if binding.field is not None:
            params.append(i)
        elif binding.arg in objects and binding.part < 0:
            depth = _anchor(owner, args[binding.arg], binding.path)
            if depth is not None:
                params.append(i)
                anchors[binding.arg, binding.path[:depth]] = None
    found = sorted(anchors)
    whole = [arg for arg, path in found if not path]
    return Fixed(found, whole, frozenset(members), frozenset(params))


def _frozen(value: Any) -> bool:
    """True for a dataclass whose members are never replaced."""
    params = getattr(value.__class__, "__dataclass_params__", None)
    return params is not None and params.frozen


def _reached(value: Any, path: Sequence[str]) -> bool:
    """True if all on the way from ``value`` along ``path``, and its end, is frozen."""
    for name in path:
        if not _frozen(value):
            return False
        value = getattr(value, name, None)
    return _frozen(value)


def _anchor(owner: Launchers, value: Any, path: Sequence[str]) -> int | None:
    """The length of the part of ``path`` to compare, so that the member at its end is, for good,
    the same array of the engine or number; None where it may be another all the same."""
    depth = 0
    for n, name in enumerate(path):
        if not _frozen(value) and value.__class__ is not owner.array_class:
            depth = n + 1
        value = unwrapped(getattr(value, name, None))
    if value.__class__ in (int, float, bool) and depth < len(path):
        return depth
    return depth if value.__class__ is owner.array_class else None


class _Kept:
    """The kept values of one stub.

    now: None, or what the stub reads: weak references to the anchors, free buffers, the function
    that makes one, write counters, the values by parameter, which hold the memory of arrays, and
    what the sizes of adstacks depend on. stub: set by its writer.
    """

    stub: Callable[..., Any]

    def __init__(
        self, owner: Launchers, variant: Variant, pool: ArgumentPool[Any], fixed: Fixed,
        full: Callable[..., Any], watched: Sequence[Need], stream: int,
    ) -> None:  # fmt: skip
        """watched: inputs of the sizes of adstacks that are kept."""
        self.owner: Final = owner
        self.variant: Final = variant
        self.pool: Final = pool
        self.fixed: Final = fixed
        self.full: Final = full
        self._watched: Final = watched
        self._stream: Final = stream
        self.now: tuple[Any, ...] | None = None
        self._sets: Final[dict[tuple[int, ...], tuple[Any, ...] | None]] = {}
        self._overlapping: Callable[..., Any] | None = None

    def begin(self, args: tuple[Any, ...]) -> None:
        """Keep the values of the call that the stub is made from, the second of its kind."""
        seen = self._seen(args)
        self._sets[seen] = None
        if not self._keep(args, seen):
            self._sets[seen] = ()

    def other(self, *args: Any) -> Any:
        """Launch with other anchors than the last ones; keep them if they come a second time.

        `_sets` has what is kept, by the identities of the anchors: None for those that came once,
        () for those that cannot be kept.
        """
        try:
            seen = self._seen(args)
        except (IndexError, AttributeError):  # some are missing
            return self.full(*args)
        known = seen in self._sets
        found = self._sets.get(seen)
        if found:
            if all(ref() is not None for ref in found[: len(seen)]):
                self.now = found
                return self.stub(*args)
        elif found is not None and self._overlapping is not None:
            return self._overlapping(*args)
        result = self.full(*args)
        if not known:
            if len(self._sets) >= _SETS:
                self._sets.pop(next(iter(list(self._sets))), None)
            self._sets[seen] = None
        elif found is None and not self._keep(args, seen):
            self._sets[seen] = ()
        return result

    def _seen(self, args: Sequence[Any]) -> tuple[int, ...]:
        """The identities of the anchors."""
        return tuple([id(self._at(args, arg, path)) for arg, path in self.fixed.anchors])

    def _at(self, args: Sequence[Any], arg: int, path: Sequence[str]) -> Any:
        found = args[arg]
        for name in path:
            found = getattr(found, name)
        return found

    def _keep(self, args: tuple[Any, ...], seen: tuple[int, ...]) -> bool:
        """Keep the values of a call; False where it has to be checked each time."""
        found = self.owner.fitting(self.variant, args)
        if found is None:
            return False
        values, classified = found
        plan, meta = self.variant.compiled.plan, self.variant.executable.meta
        if _fixed(self.owner, self.variant, args) != self.fixed:
            return False
        if meta.noalias and overlap(values, meta):
            other = self.variant.for_overlap()
            made = kept_stub(self.owner, other, args, self.full, self._stream)
            self._overlapping = made if made is not self.full else None
            return False
        image, start = self.pool.image(values), self.pool.start
        apart = all(param.kind == "scalar" or i in self.fixed.params
                    for i, param in enumerate(meta.params))  # fmt: skip

        def new() -> Any:
            made = self.pool.new()
            made.view[start : start + len(image)] = image
            if apart:
                self.pool.trust_apart(made)
            return made

        counters = [
            arguments.writes_of(plan.bindings[i], classified)
            for i in meta.written if i in self.fixed.params
        ]  # fmt: skip
        held = [value if i in self.fixed.params else None for i, value in enumerate(values)]
        try:
            anchors = [
                weakref.ref(self._at(args, *anchor), self._forget) for anchor in self.fixed.anchors
            ]
        except TypeError:  # a class with slots
            return False
        writes = [one for one in dict.fromkeys(counters) if one is not None]
        watched = [self._input(need, values, classified) for need in self._watched]
        if self._seen(args) != seen:  # another thread has replaced one
            return False
        self.now = self._sets[seen] = (*anchors, [], new, writes, held, watched)
        return True

    def _input(
        self, need: Need, values: Sequence[Any], found: Sequence[arguments.Argument]
    ) -> Any:  # fmt: skip
        """An input of the sizes of adstacks: a write counter, or a number that stays."""
        if need.kind == "content":
            binding = self.variant.compiled.plan.bindings[need.param]
            return arguments.writes_of(binding, found) or UNSEEN
        if need.kind == "arg":
            return int(values[need.param])
        sizer = self.variant.program.stacks.sizer(self.variant.executable)
        return sizer.env(values).extents(need.param)[need.axis]

    def _forget(self, anchor: weakref.ref[Any]) -> None:
        """Drop the values when one of their anchors dies."""
        count = len(self.fixed.anchors)
        now = self.now  # which may have left `_sets`
        if now is not None and any(one is anchor for one in now[:count]):
            self.now = None
        for seen, found in list(self._sets.items()):
            if found and any(one is anchor for one in found[:count]):
                self._sets.pop(seen, None)


class _Writer(StubWriter):
    """Writes the stub for kept values: other checks, and the same end as that of a full stub."""

    def kept_by(self, kept: _Kept) -> Callable[..., Any]:
        """The stub. TooInvolved where there cannot be one."""
        checks, stub, again = self.checks, self.stub, self.checks.again
        anchors = [".".join((checks.names[i], *path)) for i, path in checks.fixed.anchors]
        refs = [f"r{k}" for k in range(len(anchors))]
        differ = " or ".join([f"{r}() is not {a}" for r, a in zip(refs, anchors, strict=True)])
        self.env.update(kept=kept, other=kept.other)
        stub.checks.add(
            "now = kept.now",
            f"if now is None: return other({again})",
            f"{', '.join(refs)}, free, new, writes, values, watched = now",
        )
        compare = stub.checks
        if any(path for _, path in checks.fixed.anchors):
            compare = stub.checks.block("try:")
            stub.checks.add(f"except AttributeError: return other({again})")
        compare.add(f"if {differ}: return other({again})")
        checks.write(stub.checks.section())
        self.count()
        self._take()
        packs = self._packs()
        if packs:
            block = stub.pack.block("try:")
            block.add(*packs)
            stub.pack.add(f"except RANGE: {self.uncounted}return slow({again})")
        stub.enter.add(f"if enter(args): return failed(args, {again})")
        stub.after.add("for w in writes: w.touched = True")
        stub.after.add(*[f"{name}.touched = True" for name in checks.writes])
        self.results()
        kept.stub = self.made(f"<launch stub of {checks.owner.decl.name}, kept>")
        return kept.stub

    @property
    def watched(self) -> list[Need]:
        """The inputs of the sizes of adstacks that are kept."""
        needs = self.sizer.needs if self.sizer else ()
        return [need for need in needs if need.param in self.checks.fixed.params]

    def _observed(self, need: Need) -> str:
        if need.param not in self.checks.fixed.params:
            return super()._observed(need)
        name = f"watched[{self.watched.index(need)}]"
        return f"{name}.count" if need.kind == "content" else name

    def _canonical_of(self, number: int) -> str:
        fixed = number in self.checks.fixed.params
        return f"values[{number}]" if fixed else super()._canonical_of(number)

    def _packs(self) -> list[str]:
        """Pack each run of parameters that are not kept."""
        lines: list[str] = []
        runs: list[list[int]] = []
        for i in sorted(self.checks.counts):
            if runs and runs[-1][-1] == i - 1:
                runs[-1].append(i)
            else:
                runs.append([i])
        values = iter(self.checks.values)
        for run in runs:
            mine = [next(values) for i in run for _ in range(self.checks.counts[i])]
            at, pack = self.pool.part(run[0], run[-1] + 1)
            lines.append(
                f"{self.checks.constant('pack', pack)}(args.view, {at}, {', '.join(mine)})"
            )
        return lines
