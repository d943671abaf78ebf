"""A kernel compiled for one set of specialization keys, and the slow path of its launches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, Final

from ..backends.base import Executable
from ..errors import AdStackOverflowError
from ..frontend.specialization import RecordKey
from . import args as arguments
from .alias_check import overlap
from .compile import Compiled, CompileRequest
from .obtain import obtain
from .program import Program

if TYPE_CHECKING:
    from ..backends.base import KernelMeta
    from ..frontend.signature import KernelDecl
    from .nan_checks import Kept
    from .status import GraphStatus

__all__ = ["Maker", "Variant"]

Maker = Callable[[Sequence[Any]], "Callable[[tuple[Any, ...]], Any] | None"]
"""Types of a result -> the function that makes it from numbers; see `lang.results`."""


class Variant:
    """A kernel compiled for one set of specialization keys.

    found: the arguments of the call it is made for. compiled: with the assumption that written
    arrays overlap nothing; `overlapping` compiles without it when a launch needs that.
    makes_result: makes the result from the numbers of a launch; None if the only number, if any,
    is the result. tally: counts launches for a recorder, if there is one. of: see `for_overlap`.
    ahead: see `obtain`.
    """

    def __init__(
        self, decl: KernelDecl, maker: Maker, program: Program, spec_keys: tuple[Any, ...],
        found: Sequence[arguments.Argument] = (), of: Variant | None = None, ahead: bool = False,
    ) -> None:  # fmt: skip
        self.of: Final = of
        self._decl: Final = decl
        self._maker: Final = maker
        self.spec_keys: Final = spec_keys
        self.program: Final = program
        self._request: Final = CompileRequest(decl, spec_keys, program.config, program.backend)
        self.compiled: Final = (
            of.overlapping() if of else obtain(program, self._request, found, ahead=ahead)
        )
        meta = self.compiled.executable.meta
        if meta.graph:
            from .status import warn_of_host_loops

            warn_of_host_loops(program.backend.name, meta)
        self.makes_result: Final = maker(decl.result_types(program.config))
        self.tally: Final = of.tally if of else self.compiled.tally
        self._overlapping: Compiled | None = None
        self._for_overlap: Variant | None = None

    @property
    def executable(self) -> Executable:
        return self.compiled.executable

    def overlapping(self) -> Compiled:
        """The kernel compiled for arrays that may overlap."""
        if self._overlapping is None:
            with self.program.lock:
                if self._overlapping is None:
                    request = self._request._replace(noalias=False, quiet=True)
                    self._overlapping = obtain(self.program, request, first=self.compiled)
        return self._overlapping

    def for_overlap(self) -> Variant:
        """`overlapping` as a variant ``of`` this one, for launch stubs."""
        if self._for_overlap is None:
            made = Variant(self._decl, self._maker, self.program, self.spec_keys, of=self)
            self._for_overlap = made
        return self._for_overlap

    def is_void(self) -> bool:
        """True if it can never run again, because memory of its fields was freed."""
        fields = [binding.field for binding in self.compiled.plan.bindings]
        return any(field is not None and field.is_freed() for field in fields)

    def fits(self, spec_keys: tuple[Any, ...]) -> bool:
        """True if the kernel is valid for these keys, which may differ where it ignores them."""
        for mine, other in zip(self.spec_keys, spec_keys, strict=True):
            if isinstance(mine, RecordKey):
                if not isinstance(other, RecordKey) or other.cls is not mine.cls:
                    return False
            elif mine is not other:
                from ..frontend.contents import same

                if not same(mine, other):
                    return False
        used = self.compiled.plan.used
        if not used:
            return True
        from ..frontend.contents import still_has

        return all(still_has(one, spec_keys) for one in used)

    def run(
        self, values: Sequence[Any], sources: Sequence[Any] = (), resume: int = 0, stream: int = 0
    ) -> Any:
        """Launch with canonical values, and return the kernel's result for Python.

        sources: the write counters of the arrays and fields of the values, for a kernel with
        adstacks. resume: the checkpoint to begin at; stream: its handle; see
        `base.Executable.launch`.
        """
        return self.result(self.numbers(values, sources, resume, stream))

    def numbers(
        self, values: Sequence[Any], sources: Sequence[Any], resume: int, stream: int
    ) -> tuple[Any, ...]:
        """`run` without its last step: the numbers that the kernel returned."""
        executable = self.executable
        meta = executable.meta
        if meta.noalias and meta.written and overlap(values, meta):
            executable = self.overlapping().executable
        seed = self.program.next_seed() if meta.seeded else 0
        profiler = self.program.profiler
        times: list[int] | None = None if profiler is None or not meta.timed else []
        kept = self._kept(values, meta) if self.program.config.debug_nan else None
        begin = perf_counter_ns()
        if meta.has_stacks:
            results = self.program.stacks.launch(executable, values, seed, sources, times)
        else:
            results = executable.launch(values, seed, None, stream, resume, times)
        if profiler is not None and times is None:
            profiler.record(meta.name, [meta.name], (begin, perf_counter_ns()))
        elif profiler is not None and times:
            names = [f"{t.name}_{t.loop_name}" if t.loop_name else t.name for t in meta.tasks]
            profiler.record(meta.name, names, times)
        if kept is None:
            return results
        try:
            if results[-1]:
                self._stored_nan(kept, results[-1], seed, executable)
        finally:
            kept.free()
        return results[:-1]

    def _kept(self, values: Sequence[Any], meta: KernelMeta) -> Kept | None:
        """The contents of arrays before a launch with checks for NaN; None for one without."""
        from .nan_checks import Kept, is_checked  # which loads the passes

        program = self.program
        return (
            Kept(values, meta, program.device, program.spare_memory) if is_checked(meta) else None
        )

    def _stored_nan(self, kept: Kept, key: int, seed: int, executable: Executable) -> None:
        """Raise the error of a launch that stored a NaN or infinity, unless it is on purpose."""
        from .nan_checks import error_of, find, traced_ir

        request = self._request._replace(noalias=executable.meta.noalias)
        found = find(traced_ir(request), kept.arrays, key, seed, kept.lost)
        if found is None:
            return
        writers = self.program.nan_writers
        writer = writers.get(kept.address(found.param)) if found.param >= 0 else None
        if writer is not None:
            found = found._replace(note=f"an earlier launch of {writer} raised, and stored to it")
        for i in executable.meta.written:
            writers[kept.address(i)] = self._decl.name
        raise error_of(found)

    def failed(self, error: AdStackOverflowError, values: Sequence[Any]) -> Exception:
        """The error of a launch by a stub that found an adstack full."""
        stacks = self.program.stacks
        sizer = stacks.sizer(self.executable)
        plan = sizer.plan_made
        return error if plan is None else stacks.diagnosed(sizer, values, plan, error)

    def result(self, numbers: tuple[Any, ...]) -> Any:
        """The result of a call, made from the numbers that the kernel returned."""
        if self.executable.meta.labels:
            return self.status(numbers[-1])
        if self.makes_result is not None:
            return self.makes_result(numbers)
        return numbers[0] if numbers else None

    def status(self, yielded: int) -> GraphStatus:
        """The result of a call of a kernel with checkpoints."""
        from .status import status

        return status(self._decl, self.executable.meta.labels, yielded)
