"""The helper process: makes full code while the program runs first-tier code.

It is a process and not a thread: LLVM cannot be interrupted, and a thread inside of it would keep
the program from ending or forking. A process can be ended at any time, shares neither Python's lock
nor that of llvmlite with the program, and may crash. It reads jobs from its standard input, one
after the other, and writes the results to its standard output, until its input ends or nothing has
come for some seconds. `background` is the side of the program.

When the program ends, caches may still wait for code. The program then leaves jobs with orders
(`tiers.Order`) in a file without a name, which is open here from the start. So it waits for
nothing. The process makes the code and has it written, with the lowest priority and for a bounded
time. A program that was killed has left none: then it ends at once, also in the middle of a job.
It holds no pipe, terminal, directory or lock of the program, and stays in its process group: a
signal to the group ends it. The end of the terminal does not: it may end with the program.

A message is 8 bytes of length, then a value of `marshal`: a job is (name of a module, arguments of
its ``made``), a result code or the text of an error, a message of the file (job, orders).
"""

from __future__ import annotations

import marshal
import os
import threading
from contextlib import suppress
from importlib import import_module
from typing import Any, Final

__all__ = ["BOOT", "ORDERS", "message", "receive", "serve"]

_IDLE: Final = 10.0
"""Seconds without a job after which the process ends: LLVM takes 80 MB of memory."""
_NICE: Final = 5
ORDERS: Final = 3
"""The descriptor of the file with orders."""
_AFTER: Final = 300
"""Seconds after the end of the program in which the process ends."""
_EACH: Final = 60
"""Seconds of the processor's time that a job may take then: time by the clock would say little,
since the process has the lowest priority."""

BOOT: Final = """\
import importlib.util, os, signal, sys, types
signal.signal(signal.SIGINT, signal.SIG_IGN)
signal.signal(signal.SIGHUP, signal.SIG_IGN)
signal.signal(signal.SIGCHLD, signal.SIG_DFL)
os.chdir("/")
try:
    inherited = os.listdir("/dev/fd")
except OSError:
    inherited = range(1024)
for file in map(int, inherited):
    if file > 3:
        try:
            os.close(file)
        except OSError:
            pass
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
    """Work until the input ends, then carry out the orders that the program has left."""
    # What a library prints must not end up between the results.
    out = os.dup(1)
    os.dup2(2, 1)
    with suppress(OSError):
        os.nice(_NICE)
    import select  # the program needs neither this module nor `signal`

    threading.Thread(target=_bounded, daemon=True).start()
    made: dict[Any, bytes | str] = {}
    while select.select([0], [], [], _IDLE)[0]:
        try:
            job = receive(0)
            made = {job: _result(job)}
            data = memoryview(message(made[job]))
            while data:
                data = data[os.write(out, data) :]
        except (EOFError, BrokenPipeError):
            os.close(out)
            _carry_out(made)
            return


def _bounded() -> None:
    """Bound the time after the end of the program, also for a job that LLVM does not end."""
    import select

    hung_up = select.poll()
    hung_up.register(0, 0)
    hung_up.poll()
    if not os.fstat(ORDERS).st_size:
        os._exit(0)  # the program was killed, say: no one waits for the job
    _limit()


_limited = False


def _limit() -> None:
    """The program has ended, and a job begins or is being done."""
    global _limited
    import signal

    if not _limited:
        _limited = True
        signal.alarm(_AFTER)
    signal.setitimer(signal.ITIMER_PROF, _EACH)


def _result(job: tuple[str, tuple[Any, ...]]) -> bytes | str:
    """The code of a job, or the text of an error."""
    module, arguments = job
    try:
        return import_module(module).made(*arguments)
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def _carry_out(made: dict[Any, bytes | str]) -> None:
    """Make the code that caches wait for, and write it. made: the last result, by its job."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_DFL)
    with suppress(OSError):
        os.nice(19)
    os.lseek(ORDERS, 0, os.SEEK_SET)
    while True:
        try:
            job, orders = receive(ORDERS)
        except EOFError:
            return
        wanted = [(module, text) for name, text in orders
                  if (module := import_module(name)).accepts(text)]  # fmt: skip
        if not wanted:
            continue
        _limit()  # `_bounded` may come late: PoCL makes a binary with Python's lock held
        code = made[job] if job in made else _result(job)
        if isinstance(code, bytes):
            for module, text in wanted:
                module.write(text, code)
