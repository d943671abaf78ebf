"""Launch stubs: Python functions that are generated for one kernel, written in named sections.

A launch is so short that each step of Python counts. A stub has the steps of its kernel and no
others, so it is generated as source. A launch runs through one or two: that of `runtime.stub`, from
the arguments of a call to a packed argument buffer, then on a device that of
`device_launch.control`, from the buffer to the driver. Both have these sections, in this order::

    checks      that the call is one that the stub is for; values get names
    take        an argument buffer, and what else it needs before it is packed
    pack        values into the buffer
    enter       the kernel
    after       what has to be noted once it is launched
    results     read, and returned

From ``take`` to ``enter``, or to the end, a stub may hold a lock. A writer fills the sections in
any order; it never looks for lines that are written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

__all__ = ["Lines", "Stub"]


class Lines:
    """Lines of Python, and places among them that are filled later."""

    def __init__(self) -> None:
        self._parts: Final[list[str | tuple[str, Lines]]] = []

    def add(self, *lines: str) -> None:
        """Append lines."""
        self._parts.extend(lines)

    def section(self, indent: str = "") -> Lines:
        """Append a place for lines, further in by ``indent``; it may stay empty."""
        place = Lines()
        self._parts.append((indent, place))
        return place

    def block(self, head: str) -> Lines:
        """Append the head of a compound statement; returns the place for its lines.

        It may stay empty, too: a kernel whose loops all went away has no task to launch.
        """
        self.add(head)
        return self.section("    ")

    def text(self, indent: str = "") -> Iterator[str]:
        """Every line, indented."""
        for part in self._parts:
            if isinstance(part, str):
                yield indent + part
                continue
            inner = indent + part[0]
            lines = list(part[1].text(inner))
            yield from lines or ([f"{inner}pass"] if part[0] else [])


class Stub:
    """One stub in the making. See the module docstring for its sections."""

    def __init__(
        self, name: str, parameters: str, lock: str = "", lock_all: bool = False, first: str = "",
        last: str = "",
    ) -> None:  # fmt: skip
        """lock: name of the lock to hold. lock_all: to the end. first, last: a statement before all
        sections, and the one that then runs whatever happens."""
        self.name: Final = name
        self._root: Final = Lines()
        body = self._root.block(f"def {name}({parameters}):")
        if last:
            body.add(first)
            outer, body = body, body.block("try:")
            outer.add(f"finally: {last}")
        self.checks: Final = body.section()
        inner = body.block(f"with {lock}:") if lock else body
        self.take: Final = inner.section()
        self.pack: Final = inner.section()
        self.enter: Final = inner.section()
        if not lock_all:
            inner = body
        self.after: Final = inner.section()
        self.results: Final = inner.section()

    def function(self, names: dict[str, Any], file: str) -> Callable[..., Any]:
        """Compile it. names: what its lines refer to, as its globals. file: for tracebacks."""
        exec(compile("\n".join(self._root.text()), file, "exec"), names)
        return names[self.name]
