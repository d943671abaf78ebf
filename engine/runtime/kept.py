"""Launch stubs for the frozen records of the launch before.

A kernel may read a hundred members of dataclasses, and a step of a simulation launches it with the
same objects each time. No member of a frozen dataclass is ever replaced. So where the same records
come a second time, their arrays are packed once more and *kept*: a copy of the packed values, and
argument buffers that hold them. From then on a launch compares the records alone, and packs only
what may have changed: other arguments, and members that are no arrays of the engine. Arrays that
were found to share no memory share none later, so such a launch has no overlap check either.

The kept values hold the memory of the arrays, and the records hold the arrays: when the first
record dies, the values are dropped. A call with other records goes on to the full stub of
`runtime.stub`. The stub has, in essence::

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
from ..frontend.specialization import RecordKey, ValueKey, unwrapped
from . import args as arguments
from .alias_check import overlap
from .stub import StubWriter
from .stub_checks import Fixed, TooInvolved

if TYPE_CHECKING:
    from .launch import Launchers
    from .variant import Variant

__all__ = ["kept_stub"]

_FEWEST: Final = 4
"""With fewer parameters to keep, reading them costs no more than comparing records."""


def kept_stub(
    owner: Launchers, variant: Variant, args: tuple[Any, ...], full: Callable[..., Any],
    stream: int = 0,
) -> Callable[..., Any]:  # fmt: skip
    """A stub that is faster for the records of the launch before, else ``full``.

    full: the stub for all calls of the kind of this one. It is returned where nothing can be kept.
    """
    pool, meta = variant.executable.arguments(stream), variant.executable.meta
    if pool is None or not variant.program.device.host_arrays:
        return full
    if meta.has_stacks or meta.labels or meta.seeded:
        return full
    fixed = _fixed(owner, variant, args)
    if not fixed.args or len(fixed.params) < _FEWEST:
        return full
    memory = [b.field.flat() for b in variant.compiled.plan.bindings if b.field is not None]
    kept = _Kept(owner, variant, pool, fixed, full)
    try:
        return _Writer(owner, variant, args, full, pool, memory, stream, fixed).kept_by(kept)
    except TooInvolved:
        return full


def _fixed(owner: Launchers, variant: Variant, args: Sequence[Any]) -> Fixed:
    """The members and parameters that stay in calls with the frozen records of this one."""
    plan, keys = variant.compiled.plan, variant.spec_keys
    frozen = {i for i, key in enumerate(keys) if isinstance(key, RecordKey) and _frozen(args[i])}
    members = [
        (used.arg, used.path) for used in plan.used
        if used.arg in frozen and not isinstance(used.spec_key, ValueKey)
        and _reached(args[used.arg], used.path[:-1])
    ]  # fmt: skip
    params = [
        i for i, binding in enumerate(plan.bindings)
        if binding.field is not None
        or (binding.arg in frozen and binding.part < 0
            and _constant(owner, args[binding.arg], binding.path))
    ]  # fmt: skip
    records = frozen & {plan.bindings[i].arg for i in params}
    members = [member for member in members if member[0] in records]
    return Fixed(tuple(sorted(records)), frozenset(members), frozenset(params))


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


def _constant(owner: Launchers, value: Any, path: Sequence[str]) -> bool:
    """True if the member at ``path`` is, for good, an array of the engine or a number."""
    for name in path:
        if not _frozen(value) and value.__class__ is not owner.array_class:
            return False
        value = unwrapped(getattr(value, name, None))
    return value.__class__ in (owner.array_class, int, float, bool)


class _Kept:
    """The kept values of one stub.

    now: None, or what the stub reads: weak references to the records, free buffers, the function
    that makes one, write counters, and the values, which hold the memory of arrays.
    """

    def __init__(
        self, owner: Launchers, variant: Variant, pool: ArgumentPool[Any], fixed: Fixed,
        full: Callable[..., Any],
    ) -> None:  # fmt: skip
        self.owner: Final = owner
        self.variant: Final = variant
        self.pool: Final = pool
        self.fixed: Final = fixed
        self.full: Final = full
        self.now: tuple[Any, ...] | None = None
        self._seen: tuple[int, ...] = ()
        self._refused: tuple[int, ...] = ()

    def other(self, *args: Any) -> Any:
        """Launch with other records than those kept; keep them if they come a second time."""
        try:
            seen = tuple([id(args[i]) for i in self.fixed.args])
        except IndexError:  # some are missing
            return self.full(*args)
        again, self._seen = seen == self._seen and seen != self._refused, seen
        result = self.full(*args)
        if again and not self._keep(args):
            self._refused = seen
        return result

    def _keep(self, args: tuple[Any, ...]) -> bool:
        """Keep the values of a call; False where it has to be checked each time."""
        found = self.owner.fitting(self.variant, args)
        if found is None:
            return False
        values, classified = found
        plan, meta = self.variant.compiled.plan, self.variant.executable.meta
        if _fixed(self.owner, self.variant, args) != self.fixed or overlap(values, meta):
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
        held = [value for i, value in enumerate(values) if i in self.fixed.params]
        try:
            records = [weakref.ref(args[i], self._forget) for i in self.fixed.args]
        except TypeError:  # a class with slots
            return False
        writes = [one for one in dict.fromkeys(counters) if one is not None]
        self.now = (*records, [], new, writes, held)
        return True

    def _forget(self, record: weakref.ref[Any]) -> None:
        """Drop the values when one of their records dies."""
        now = self.now
        if now is not None and any(one is record for one in now[: len(self.fixed.args)]):
            self.now = None


class _Writer(StubWriter):
    """Writes the stub for kept values: other checks, and the same end as that of a full stub."""

    def kept_by(self, kept: _Kept) -> Callable[..., Any]:
        """The stub. TooInvolved where there cannot be one."""
        checks, stub, again = self.checks, self.stub, self.checks.again
        records = [checks.names[i] for i in checks.fixed.args]
        refs = [f"r{i}" for i in checks.fixed.args]
        differ = " or ".join(f"{r}() is not {a}" for r, a in zip(refs, records, strict=True))
        self.env.update(kept=kept, other=kept.other)
        stub.checks.add(
            "now = kept.now",
            f"if now is None: return other({again})",
            f"{', '.join(refs)}, free, new, writes, values = now",
            f"if {differ}: return other({again})",
        )
        checks.write(stub.checks.section())
        self.count()
        stub.take.add("try: args = free.pop()", "except IndexError: args = new()")
        packs = self._packs()
        if packs:
            block = stub.pack.block("try:")
            block.add(*packs)
            stub.pack.add(f"except RANGE: {self.uncounted}return slow({again})")
        stub.enter.add(f"if enter(args): return failed(args, {again})")
        stub.after.add("for w in writes: w.touched = True")
        stub.after.add(*[f"{name}.touched = True" for name in checks.writes])
        self.results()
        return self.made(f"<launch stub of {checks.owner.decl.name}, kept>")

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
