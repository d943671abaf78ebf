"""The interpreter as a backend: runs the finished IR, as if one iteration after the other."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from ...errors import IRParseError
from ...ir import Func, all_ops, loc_table, marked_text, param_of, parse, to_text
from ...ir import codes as C
from ...pipeline_kind import PipelineKind
from ...types import PRIMITIVE_TYPES
from ..base import Artifact, Caps, HostBackend, KernelMeta, StackPlan, Target
from ..flow import flow_of, labels_of, task_meta
from ..injected import NO_CACHE, InjectedCache
from .run import compile_func

if TYPE_CHECKING:
    from ...config import CompileConfig

__all__ = ["BACKEND", "InterpBackend", "InterpExecutable"]


def _meta(func: Func) -> KernelMeta:
    written: set[int] = set()
    seeded = False
    for op in all_ops(func):
        if op.code == C.CALL:
            written.update([n for n in map(param_of, op.args) if n is not None])
        if C.WRITE[op.code] or C.ATOMIC[op.code]:
            number = param_of(op.args[0])
            if number is not None:
                written.add(number)
        seeded = seeded or op.code in (C.LAUNCH_SEED, C.RAND)
    tasks = [
        task_meta(f"{func.name}_kernel_{i}_{task.attr.kind}", task)
        for i, task in enumerate(func.tasks())
    ]
    return KernelMeta(
        func.name, func.params, func.results, func.global_tmp_size, tuple(sorted(written)),
        func.noalias, seeded, tuple(tasks), graph=func.graph, flow=flow_of(func),
        labels=labels_of(func),
    )  # fmt: skip


class InterpExecutable:
    """A function ready to be interpreted."""

    def __init__(self, func: Func, meta: KernelMeta) -> None:
        self.meta: KernelMeta = meta
        self.program: Final = compile_func(func)

    def arguments(self, stream: int = 0) -> None:
        """See `base.Executable`: there are no argument buffers."""

    def launch(
        self, values: Sequence[Any], seed: int = 0, stacks: StackPlan | None = None,
        stream: int = 0, resume: int = 0, times: list[int] | None = None,
    ) -> tuple[Any, ...]:  # fmt: skip
        """Run once; see `base.Executable`. Stacks without a plan have no limit."""
        return self.program.launch(values, seed=seed, stacks=stacks, resume=resume)


class InterpBackend(HostBackend):
    """See `base.Backend`."""

    name = "interp"
    caps = Caps(frozenset(PRIMITIVE_TYPES), parallel=False)
    keeps_locations = True

    def pipeline(self, config: CompileConfig) -> PipelineKind:
        return PipelineKind.INTERP

    def available(self) -> tuple[bool, str]:
        return True, ""

    def target(self, config: CompileConfig) -> Target:
        return Target("interp")

    def toolchain(self) -> str:
        return "Python " + sys.version.split()[0]

    def fingerprint(self, config: CompileConfig) -> str:
        """The code is the IR's text, the same everywhere."""
        return "any machine"

    def identity(self) -> str:
        return "interpreter"

    def lower(self, func: Func, config: CompileConfig, cache: InjectedCache = NO_CACHE) -> Artifact:
        """The code is the IR's text with marks for its locations."""
        code, locations = marked_text(func)
        artifact = Artifact(
            "interp", Target("interp"), _meta(func), {"ir": to_text(func)},
            code.encode("utf-8", "surrogatepass"), languages={"ir": "ir", "python": "python"},
            locations=locations,
        )  # fmt: skip
        return _with_later_texts(artifact)

    def load(self, artifact: Artifact, cache: InjectedCache = NO_CACHE) -> InterpExecutable:
        try:
            func = _func_of(_with_later_texts(artifact))
        except IRParseError as error:
            raise ValueError(f"the code is no IR: {error.message}") from None
        return InterpExecutable(func, artifact.meta)


def _func_of(artifact: Artifact) -> Func:
    code = artifact.code.decode("utf-8", "surrogatepass")
    return parse(code + loc_table(artifact.locations))


def _with_later_texts(artifact: Artifact) -> Artifact:
    """The artifact with texts that are made from its code on request."""
    later = {
        "ir": lambda: to_text(_func_of(artifact)),
        "python": lambda: compile_func(_func_of(artifact)).source,
    }
    for name, make in later.items():
        artifact.lazy.setdefault(name, make)
    return artifact


BACKEND: Final = InterpBackend()
