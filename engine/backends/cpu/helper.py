"""The helper process: makes full code while the program runs first-tier code.

It is a process and not a thread: LLVM cannot be interrupted, and a thread inside of it would keep
the program from ending or forking. A process can be ended at any time, shares neither Python's lock
nor that of llvmlite with the program, and may crash. It reads jobs from its standard input, one
after the other, and writes the results to its standard output, until its input ends or nothing has
come for some seconds. `background` is the side of the program.

A message is 8 bytes of length, then a value of `marshal`: a job is (number, fields of `CodeJob`), a
result (number, code) or (number, text of an error).
"""

from __future__ import annotations

import marshal
import os
import select
from contextlib import suppress
from typing import Any, Final

__all__ = ["BOOT", "message", "receive", "serve"]

_IDLE: Final = 10.0
"""Seconds without a job after which the process ends: LLVM takes 80 MB of memory."""
_NICE: Final = 5

BOOT: Final = """\
import importlib.util, signal, sys, types
signal.signal(signal.SIGINT, signal.SIG_IGN)
engine, folder, *sys.path = sys.argv[1:]
outer = engine.rpartition(".")[0]
if outer:
    sys.modules[outer] = types.ModuleType(outer)
    sys.modules[outer].__path__ = []
spec = importlib.util.spec_from_file_location(
    engine, folder + "/__init__.py", submodule_search_locations=[folder])
sys.modules[engine] = module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
importlib.import_module(engine + ".backends.cpu.helper").serve()
"""
"""The program of the process. Arguments: name and folder of the engine, then `sys.path`. It looks
for no ``site``: that takes longer than all else, and the paths are known."""


def message(value: Any) -> bytes:
    """A value as a message."""
    data = marshal.dumps(value)
    return len(data).to_bytes(8, "little") + data


def receive(file: int) -> Any:
    """The next message of a pipe. EOFError at its end."""
    size = int.from_bytes(_read(file, 8), "little")
    return marshal.loads(_read(file, size))


def _read(file: int, size: int) -> bytes:
    parts: list[bytes] = []
    while size:
        part = os.read(file, min(size, 1 << 20))
        if not part:
            raise EOFError
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def serve() -> None:
    """Work until the input ends."""
    # What a library prints must not end up between the results.
    out = os.dup(1)
    os.dup2(2, 1)
    with suppress(OSError):
        os.nice(_NICE)
    from ..base import Target
    from .code import CodeJob, full_code

    while select.select([0], [], [], _IDLE)[0]:
        try:
            number, (text, symbols, target, *rest) = receive(0)
        except EOFError:
            return
        try:
            result: bytes | str = full_code(CodeJob(text, symbols, Target(*target), *rest))
        except Exception as error:
            result = f"{type(error).__name__}: {error}"
        data = memoryview(message((number, result)))
        while data:
            data = data[os.write(out, data) :]
