"""Launch stubs: Python source generated for one kernel and one set of specialization keys.

The source generated for ``k(x: ndarray<f32, 1>, a: f32)`` is, in essence::

    def launch(a0=MISSING, a1=MISSING, *rest):
        c = a0.__class__
        if c is Ndarray:
            key, p0, s0, w0, h0 = a0._ready
            if key is not K0: return miss(a0, a1, *rest)
        elif c is ndarray:
            if a0.dtype is not D0 or a0.ndim != 1 or not a0.flags.carray: return miss(...)
            p0 = address_at(id(a0) + 16).value; s0 = a0.shape; w0 = UNSEEN
        else: return miss(...)
        c = a1.__class__
        if (c is not float and c is not int) or rest: return miss(...)
        try: args = free.pop()
        except IndexError: args = new()
        try: pack(args.view, 64, p0, *s0, a1)
        except RANGE: return slow(...)
        if enter(args): return failed(args, ...)
        w0.touched = True
        free.append(args)

`stub_checks` writes the checks; the code after them uses the `ArgumentPool` of the executable and
is the same for all backends. Members of dataclasses and of ``self`` are read by plain attribute
access, and only those that the kernel uses; the values it was compiled for (the class of a
dataclass, a field that an object holds) are compared by identity. The argument buffers contain the
addresses of fields from the start.

An assertion, or arrays that overlap where they must not, make ``enter`` fail before anything is
lost: `failed` raises the error or launches the other variant, by a stub of its own from the second
time on (`Overlapping`). One interpreter step removes a buffer
from the pool, and it is put back only after a launch without error; so each thread that launches
has its own buffer, and so has a launch by the callback of a kernel that prints. A data pointer is
read where NumPy keeps it (checked once when `reading` is imported); NumPy's own functions for it
cost as much as a whole launch.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from ..backends.base import ArgumentPool
from ..backends.stub import Stub
from .reading import memory_of
from .stub_checks import NOTHING, Checks, Fixed, TooInvolved

if TYPE_CHECKING:
    from .launch import Launchers
    from .sizer import Need, Sizer
    from .variant import Variant

__all__ = ["LateStub", "Overlapping", "StubWriter", "launch_stub", "pool_for_stubs"]

_LATE: Final = 3
"""Calls on the slow path after which a `LateStub` is made."""


def launch_stub(
    owner: Launchers, variant: Variant, args: tuple[Any, ...], miss: Callable[..., Any],
    stream: int = 0,
) -> Callable[..., Any] | None:  # fmt: skip
    """The launch stub for ``variant`` on a stream, which passes other calls to ``miss``.

    None if the executable has no argument buffers (as with the interpreter), or for kernels that
    need the slow path: those with checks to report after a launch, with timing, with both prints
    and adstacks, in the mode ``validation``, or with adstacks sized by a component of a vector.
    """
    pool = pool_for_stubs(owner, variant, stream)
    if pool is None:
        return None
    fields = [
        binding.field for binding in variant.compiled.plan.bindings if binding.field is not None
    ]
    memory = [field.flat() for field in fields]  # held first: see `StubWriter`
    pool.bind_fields([field.address() for field in fields])
    try:
        return StubWriter(owner, variant, args, miss, pool, memory, stream).function()
    except TooInvolved:
        return None


def pool_for_stubs(
    owner: Launchers, variant: Variant, stream: int
) -> ArgumentPool[Any] | None:  # fmt: skip
    """The argument buffers of ``variant``; None for a kernel that needs the slow path."""
    pool, meta = variant.executable.arguments(stream), variant.executable.meta
    timed = variant.program.profiler is not None
    if pool is None or meta.reports or timed or (meta.has_stacks and meta.prints):
        return None
    # In the mode ``validation`` only the slow path finds the flags (see `read_flags`).
    return None if owner.decl.autodiff == "validation" else pool


class LateStub:
    """The launch stub for ``kind``, made once some calls need it; until then they go to ``miss``.

    For kernels with kept values. Most never need it, and with a hundred members of dataclasses it
    costs some milliseconds to make.
    """

    def __init__(self, owner: Launchers, kind: tuple[Any, ...], miss: Callable[..., Any]) -> None:
        """kind: see `Launchers.call`; variant and stream come first."""
        self._owner: Final = owner
        self._kind: Final = kind
        self._left = _LATE
        self._made = False
        self._launch: Callable[..., Any] = miss

    def __call__(self, *args: Any) -> Any:
        return self._launch(*args)

    def needed(self, args: tuple[Any, ...]) -> None:
        """Note that the slow path has a call of its kind, with all of its arguments."""
        self._left -= 1
        if self._left <= 0 and not self._made:
            self.make(args)

    def make(self, args: tuple[Any, ...]) -> Callable[..., Any]:
        """Make the stub for the kind of a call; returns ``miss`` if there cannot be one."""
        self._made = True
        variant, stream, *_ = self._kind
        made = launch_stub(self._owner, variant, args, self._launch, stream)
        self._launch = made or self._launch
        return self._launch


class Overlapping:
    """Launches calls of one kind whose arrays overlap, where the kernel relies on that they do not.

    variant: compiled for such arrays, once there was a call.
    """

    def __init__(self, owner: Launchers, variant: Variant, stream: int) -> None:
        self._owner: Final = owner
        self._main: Final = variant
        self._stream: Final = stream
        self._launch: Callable[..., Any] | None = None
        self.variant: Variant | None = None

    def __call__(self, *args: Any) -> Any:
        if self._launch is not None:
            return self._launch(*args)
        result = self._slow(*args)
        if self.variant is None:
            self.variant = self._main.for_overlap()
        else:
            made = launch_stub(self._owner, self.variant, args, self._slow, self._stream)
            self._launch = made or self._slow
        return result

    def _slow(self, *args: Any) -> Any:
        return self._owner.slow(args, self._stream)


class StubWriter:
    """Writes one stub, with one method for each section."""

    def __init__(
        self, owner: Launchers, variant: Variant, args: tuple[Any, ...], miss: Callable[..., Any],
        pool: ArgumentPool[Any], memory: Sequence[Any], stream: int, fixed: Fixed = NOTHING,
    ) -> None:  # fmt: skip
        def slow(*args: Any) -> Any:
            return owner.slow(args, stream)

        def failed(used: Any, *args: Any) -> Any:
            try:
                pool.check(used)
            except BaseException as error:
                raise owner.failed(args, error) from None
            if tally is not None:
                tally.uncount()
            return overlapping(*args)

        tally = self.tally = variant.tally
        overlapping = Overlapping(owner, variant, stream)
        self.variant: Final = variant
        self.meta: Final = variant.executable.meta
        self.pool: Final = pool
        self.env: Final[dict[str, Any]] = {
            "miss": miss, "slow": slow, "failed": failed, "RANGE": (struct.error, OverflowError),
            "free": pool.free, "new": pool.new, "pack": pool.pack,
            "unpack": pool.unpack, "yielded": pool.yielded, "status": variant.status,
            "made": variant.makes_result, "next_seed": variant.program.next_seed,
            # Keeps the code mapped for a thread inside of it while another ends the program, and
            # the memory of fields as well.
            "running": variant.executable, "memory": memory,
        }  # fmt: skip
        self.sizer: Final[Sizer | None] = (
            variant.program.stacks.sizer(variant.executable) if self.meta.has_stacks else None
        )
        needs = self.sizer.needs if self.sizer else ()
        contents = {need.param for need in needs if need.kind == "content"}
        self.checks: Final = Checks(owner, variant, args, contents, self.env, fixed)
        parameters = ", ".join([*(f"{name}=MISSING" for name in self.checks.names), "*rest"])
        self.stub: Final = Stub("launch", parameters, "lock" if self.sizer else "")

    def function(self) -> Callable[..., Any]:
        """The stub. TooInvolved where there cannot be one."""
        self.checks.write(self.stub.checks)
        self.count()
        self._take()
        self._pack()
        again = self.checks.again
        self.stub.enter.add(f"if enter(args): return failed(args, {again})")
        self.stub.after.add(*[f"{name}.touched = True" for name in self.checks.writes])
        self.results()
        return self.made(f"<launch stub of {self.checks.owner.decl.name}>")

    def count(self) -> None:
        """Count the launch, for a recorder; see `recording`."""
        if self.tally is not None:
            self.env.update(
                sample=self.tally.sample, timed=self.tally.timed, uncount=self.tally.uncount
            )
            self.stub.checks.add(
                "for began in ticks: break",
                "else:",
                "    began = sample()",
                f"    if began is None: return slow({self.checks.again})",
            )
            self.stub.after.add("if began: timed(began)")

    @property
    def uncounted(self) -> str:
        """The statement for a launch that goes to the slow path after it was counted."""
        return "uncount(); " if self.tally is not None else ""

    def made(self, file: str) -> Callable[..., Any]:
        """The function, which counts if there is a recorder. file: for tracebacks."""
        self.pool.follow(self.env)
        stub = self.stub.function(self.env, file)
        if self.tally is not None:
            self.tally.watch(stub)
        return stub

    def _take(self) -> None:
        """Take a buffer; before that, get a plan for adstacks."""
        take = self.stub.take
        if self.sizer is not None:
            self._plan(self.sizer)
        take.add("try: args = free.pop()", "except IndexError: args = new()")
        if self.sizer is not None:
            take.add("if args.plan is not plan: write_stacks(args, plan)")

    def _plan(self, sizer: Sizer) -> None:
        """Get the plan for the present observations; the last one, if they are equal."""
        observed = "".join([f"{self._observed(need)}, " for need in sizer.needs])
        self.env.update(
            sizer=sizer, lock=sizer.stacks.lock, last_plan=sizer.caches.last_plan,
            write_stacks=self.pool.write_stacks, replan=sizer.replan, memory_of=memory_of,
        )  # fmt: skip
        values = ", ".join([self._canonical_of(i) for i in range(len(self.meta.params))])
        self.stub.checks.add(f"seen = ({observed})")
        self.stub.take.add(
            "ready = sizer.ready",
            "if ready is None or ready.observed != seen:",
            f"    ready = replan(seen, [{values}])",
            "else: last_plan.hits += 1",
            "plan = ready.plan",
        )

    def _canonical_of(self, number: int) -> str:
        """The value of one parameter as `Executable.launch` has it; 0 if no size depends on it."""
        needs = self.sizer.needs if self.sizer else ()
        binding = self.variant.compiled.plan.bindings[number]
        if binding.field is None and self.meta.params[number].kind == "scalar":
            return self.checks.known_as.get(number, "0")
        if all(need.param != number for need in needs):
            return "0"
        if binding.field is not None:
            return self.checks.constant("M", binding.field.flat())
        return f"memory_of({self.checks.member(binding.arg, binding.path)})"

    def _observed(self, need: Need) -> str:
        """The expression that observes an input of sizes."""
        if need.kind == "content":
            return f"{self.checks.counters[need.param]}.count"
        name = self.checks.known_as.get(need.param)
        if name is None:
            raise TooInvolved
        return f"{name}[{need.axis}]" if need.kind == "shape" else name

    def _pack(self) -> None:
        """Pack the seed, if the kernel has one, and all values."""
        values = ["next_seed()"] * self.meta.seeded + self.checks.values
        if values:
            self.stub.pack.add(
                f"try: pack(args.view, {self.pool.start}, {', '.join(values)})",
                f"except RANGE: {self.uncounted}return slow({self.checks.again})",
            )

    def results(self) -> None:
        """Read results, put the buffer back, and return the result of the call."""
        results, meta = self.stub.results, self.meta
        if meta.results:
            results.add(f"result = unpack(args.view, {self.pool.results_at})")
        if meta.labels:
            results.add("label = yielded(args)")
        results.add("free.append(args)")
        if meta.results:
            made = self.variant.makes_result
            results.add("return made(result)" if made else "return result[0]")
        if meta.labels:
            results.add("return status(label)")
