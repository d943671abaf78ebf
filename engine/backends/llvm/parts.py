"""A large module in parts, which LLVM compiles on several threads.

`split` puts the tasks of a kernel, and the functions that `outline` has made of very large ones,
into modules of similar size, each with copies of the helpers that it calls; these are never inlined
into each other, so their code is that of the whole module. The parts depend
on the text alone, never on the number of threads: so do the bytes of the code.

What is marked `optnone` (the entry, and the functions that load the arguments of a task) is a part
of its own in a kernel of many tasks: LLVM's fastest code generator makes it in a tenth of the time.

The time for two threads is 0.53 of that for one, measured with kernels of 4,500 lines.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from typing import Any, Final, Protocol

from ...named_tuple import NamedTuple
from ..base import Target
from . import toolchain
from .outline import OUTLINED
from .text import PLAIN

__all__ = ["compile_parts", "split"]

_LINES: Final = 600
"""Lines of a part: the fixed cost of a module, under a millisecond, is then below 3 %."""
_MOST: Final = 16
_MANY: Final = 64
"""Functions of a kernel from which on those that are not optimised are a part of their own."""
_COPIES: Final = 1.25
"""The lines of all parts together, over those of the module: more copies are not worth it."""

_DEFINED: Final = re.compile(r'define (internal )?[^@]*(@[\w.$-]+|@"[^"]*")\(')
_GLOBAL: Final = re.compile(r"(@[\w.$-]+) = private unnamed_addr constant ")
_NAME: Final = re.compile(r'@[\w.$-]+|@"[^"]*"')


class PartsJob(Protocol):
    """The settings of a compile; see `cpu.code.CodeJob`."""

    @property
    def target(self) -> Target: ...
    @property
    def level(self) -> int: ...
    @property
    def pipeline(self) -> toolchain.Pipeline: ...
    @property
    def verify(self) -> bool: ...
    @property
    def threads(self) -> int: ...


class _Function(NamedTuple):
    """A definition. inlined: copied to the parts that use it. plain: not optimised. uses: the names
    in its body."""

    lines: list[str]
    internal: bool
    inlined: bool
    plain: bool
    uses: list[str]


class _Text:
    """A module's text by definitions. common: the lines that every part gets."""

    def __init__(self, text: str) -> None:
        self.functions: Final[dict[str, _Function]] = {}
        self.constants: Final[dict[str, str]] = {}
        self.common: Final[list[str]] = []
        lines = text.split("\n")
        i = 0
        while i < len(lines):
            line = lines[i]
            found = _DEFINED.match(line)
            if found is not None:
                end = lines.index("}", i) + 1
                body = lines[i:end]
                uses = list(dict.fromkeys(_NAME.findall("\n".join(body[1:]))))
                self.functions[found[2]] = _Function(
                    body, bool(found[1]), "alwaysinline" in line, line.endswith(PLAIN), uses
                )
                i = end
                continue
            if (constant := _GLOBAL.match(line)) is not None:
                self.constants[constant[1]] = line
            elif line and not line.startswith(";"):
                self.common.append(line)
            i += 1

    def reached(self, start: str, stop: frozenset[str] = frozenset()) -> dict[str, None]:
        """The functions and constants that a function needs, not through those of ``stop``."""
        found: dict[str, None] = {}
        todo = [start]
        while todo:
            name = todo.pop()
            if name in found or (name in stop and name != start):
                continue
            function = self.functions.get(name)
            if function is not None or name in self.constants:
                found[name] = None
            if function is not None:
                todo += reversed(function.uses)
        return found

    def internal(self, name: str) -> list[str]:
        """The internal functions that one calls, or passes on, and that are not inlined."""
        of = self.functions
        return [
            use for use in of[name].uses if use in of and of[use].internal and not of[use].inlined
        ]

    def size(self, names: Sequence[str]) -> int:
        return sum(len(self.functions[n].lines) if n in self.functions else 1 for n in names)

    def module(self, roots: Sequence[str], tasks: frozenset[str]) -> str:
        """A module that defines ``roots``, visible to the others, and what they need."""
        names: dict[str, None] = {}
        for root in roots:
            names.update(self.reached(root, tasks))
        lines = [self.constants[name] for name in names if name in self.constants]
        used = [name for root in names if root in self.functions
                for name in self.functions[root].uses]  # fmt: skip
        for name in dict.fromkeys(used):
            if name in tasks and name not in names:
                head = self.functions[name].lines[0].removesuffix("{")
                lines.append(head.replace("define internal", "declare hidden", 1))
        for name in names:
            if name in self.functions:
                head, *body = self.functions[name].lines
                if name in tasks:
                    head = head.replace("define internal", "define hidden", 1)
                lines += [head, *body]
        return "\n".join([*self.common, *lines, ""])


def split(text: str, entry: str) -> list[str]:
    """The module as modules to be linked together; itself where it is small, or is one task.

    entry: the function that calls the tasks.
    """
    parts = min(text.count("\n") // _LINES, _MOST)
    if parts < 2:
        return [text]
    whole = _Text(text)
    entry = f"@{entry}"
    if entry not in whole.functions or any(line.startswith("@") for line in whole.common):
        return [text]  # a global that is written must not be copied
    tasks = whole.internal(entry)
    first = [entry]
    if len(tasks) >= _MANY:
        plain = [name for name in tasks if whole.functions[name].plain]
        first += plain
        tasks = [name for name in tasks if not whole.functions[name].plain]
        tasks += dict.fromkeys(name for task in plain for name in whole.internal(task))
    tasks += [name for name in whole.functions if OUTLINED in name]
    stop = frozenset([*tasks, *first[1:]])
    groups: list[list[str]] = [first]
    total = whole.size(list(whole.functions))
    filled = whole.size(first)
    for task in tasks:
        size = whole.size(list(whole.reached(task, stop)))
        full = filled + size / 2 > total / parts or (groups[-1] is first and len(first) > 1)
        if filled and full:
            groups.append([])
            filled = 0
        groups[-1].append(task)
        filled += size
    made = [whole.module(group, stop) for group in groups]
    if len(made) < 2 or sum(part.count("\n") for part in made) > _COPIES * text.count("\n"):
        return [text]
    return made


def _object(text: str, job: PartsJob) -> bytes:
    """The object code of one part, in a context of its own."""
    llvm: Any = toolchain.library()
    context = llvm.create_context()
    heads = [line for line in text.split("\n") if line.startswith("define ")]
    level = 0 if all(line.endswith(PLAIN) for line in heads) else job.level
    module = toolchain.Machine(job.target, level).parse(text, job.verify, context)
    try:
        if level:
            module.optimise(level, job.pipeline)
        return module.object_code()
    finally:
        module.close()
        context.close()


def compile_parts(parts: Sequence[str], job: PartsJob) -> list[bytes]:
    """The object code of each part; callers hold `toolchain.LOCK`.

    An interrupt is raised once no thread is inside of LLVM.
    """
    toolchain.library()
    found: dict[int, bytes] = {}
    errors: list[BaseException] = []
    todo = sorted(range(len(parts)), key=lambda i: -len(parts[i]))

    def work() -> None:
        while todo and not errors:
            try:
                i = todo.pop(0)
            except IndexError:
                return
            try:
                found[i] = _object(parts[i], job)
            except BaseException as error:
                errors.append(error)

    others = [
        threading.Thread(target=work, name="qd-compile", daemon=True)
        for _ in range(min(job.threads, len(parts)) - 1)
    ]
    for thread in others:
        thread.start()
    work()
    for thread in others:
        while thread.is_alive():
            try:
                thread.join()
            except BaseException as error:
                errors.append(error)
    if errors:
        raise errors[0]
    return [found[i] for i in range(len(parts))]
