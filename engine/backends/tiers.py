"""The types of code that is launched before the full code of a kernel is there.

`base` knows them by name alone, so that a program whose code is in a cache does not load them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from ..named_tuple import NamedTuple

__all__ = ["FirstCode", "Job", "LaterCode", "Order", "PendingCode"]

Order = tuple[str, str]
"""The name of a module, whose ``accepts`` and ``write`` a helper process calls, and their text."""


class Job(Protocol):
    """Code that a helper process may make. lines: of the text that it is made of."""

    @property
    def lines(self) -> int: ...

    def make(self) -> bytes:
        """The code, made in this process."""
        ...

    def plain(self) -> tuple[str, tuple[Any, ...]]:
        """The name of a module whose ``made`` returns the code, and the arguments of that: values
        of `marshal`."""
        ...

    def safer(self) -> Job:
        """The job to do once a helper process has died of this one."""
        ...


class FirstCode(Protocol):
    """Code of the first tier, which is quick to make and slow to run.

    code: machine code, as its backend loads it. pending: the code that `base.Artifact.later`
    returns, in the making.
    """

    @property
    def code(self) -> Any: ...

    @property
    def pending(self) -> PendingCode: ...


class PendingCode(Protocol):
    """Code that another thread or process is making."""

    @property
    def ready(self) -> bool:
        """True if `finish` returns at once."""
        ...

    def finish(self) -> bytes:
        """The code, waited for. It is `base.Artifact.later`."""
        ...

    def settled(self, wait: bool) -> bool:
        """True if the code is there. wait: until it is."""
        ...

    def then(
        self, call: Callable[[], None], order: Callable[[], Order | None] | None = None
    ) -> None:
        """Call ``call`` once the code is there, on any thread.

        order: for a call that writes to a cache, makes what another process needs to do that if
        this one ends before.
        """
        ...


class LaterCode(NamedTuple):
    """No code of the first tier: a launch waits for what is in the making."""

    pending: PendingCode
    code: bytes = b""
