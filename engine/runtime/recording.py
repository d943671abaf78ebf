"""The hooks for a recorder of a whole program: compiles, and launches by any path.

There is one recorder at most (`recorder`), and none by default: a launch then costs nothing more.
It is attached when a program begins (`starter`), before any kernel is compiled, and stays to the
end of the process. Each compiled kernel gets a `Tally` from it, in `Compiled.tally`:

- the slow path hands it the launch (`Tally.run`);
- a launch stub counts with an iterator in C, which ends after a number of launches that the tally
  chooses; the launch that finds it at its end is timed (`Tally.sample`, `Tally.timed`), or goes to
  the slow path where the tally wants its arguments (`sample` returns None). A loop that is left at
  once advances the iterator without a call, in a third of the time::

      for began in ticks: break
      else:
          began = sample()
          if began is None: return slow(a0, a1, *rest)
      ...
      if began: timed(began)

The implementation is in `inspect.application`, which a program without a record never imports.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from ..frontend.build import BuildResult
    from .compile import Compiled, CompileRequest
    from .program import Program
    from .variant import Variant

__all__ = ["Recorder", "Tally", "attach"]


class Tally(Protocol):
    """The launches of one compiled kernel."""

    def run(
        self, variant: Variant, values: Sequence[Any], sources: Sequence[Any], resume: int,
        stream: int,
    ) -> Any:  # fmt: skip
        """`Variant.run`, counted, timed, and kept if it is one of those to keep."""
        ...

    def watch(self, stub: Callable[..., Any]) -> None:
        """Let ``stub`` count with ``ticks``, one of its globals."""
        ...

    def sample(self) -> Any:
        """Called by a stub for a launch to be timed; None: take the slow path."""
        ...

    def timed(self, began: Any) -> None:
        """Called by a stub after such a launch, with what `sample` returned."""
        ...

    def uncount(self) -> None:
        """Called where a launch that a stub has counted goes to the slow path after all."""
        ...


class Recorder(Protocol):
    """The observer of a program."""

    def built(self, request: CompileRequest, build: BuildResult) -> None:
        """The frontend has made the IR of a kernel, which passes have not changed yet."""
        ...

    def compiled(self, program: Program, request: CompileRequest, compiled: Compiled) -> None:
        """A kernel is ready to be launched, from wherever it came; sets its ``tally``."""
        ...

    def failed(self, program: Program, request: CompileRequest, error: BaseException) -> None:
        """A kernel could not be compiled."""
        ...

    def before_fork(self) -> None:
        """Wait until no other thread is in the middle of writing."""
        ...

    def after_fork(self) -> None:
        """End `before_fork`, in the process that forked."""
        ...

    def in_child(self) -> None:
        """End `before_fork`, in the child."""
        ...


recorder: Recorder | None = None
starter: Callable[[], Recorder] | None = None
"""Makes the recorder; set before the engine is used."""


def attach() -> None:
    """Make the recorder, if one is wanted and there is none yet. Called when a program begins."""
    global recorder, starter
    if starter is not None:
        make, starter = starter, None
        recorder = make()
