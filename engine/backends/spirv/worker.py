"""The process that makes SPIR-V: a script of its own, since LLVM's target may end a process.

Reads jobs from its input and answers on its output, each part as its length (8 bytes) and bytes: an
optimised module as bitcode and its level in; the text and the binary out, or an empty text and what
LLVM said. Each of the two is made in a child of its own: the target keeps types and constants of
the last module in variables of the process, and what it makes of a second one may be wrong.
Imports nothing of the engine, so that it starts fast. `code` is its client.
"""

from __future__ import annotations

import importlib
import os
import struct
import sys
import tempfile
from collections.abc import Callable
from typing import IO, Any

__all__ = ["read", "write"]


def read(stream: IO[bytes]) -> bytes | None:
    """One part; None at the end of the stream."""
    head = stream.read(8)
    if len(head) < 8:
        return None
    (size,) = struct.unpack("<q", head)
    data = stream.read(size)
    return data if len(data) == size else None


def write(stream: IO[bytes], *parts: bytes) -> None:
    """Send parts."""
    stream.write(b"".join([struct.pack("<q", len(part)) + part for part in parts]))
    stream.flush()


class _Failed(Exception):
    """The error that a child reported before it ended."""


def _apart(make: Callable[[], bytes]) -> bytes:
    """The result of ``make``, computed in a child."""
    with tempfile.TemporaryFile() as said:
        incoming, outgoing = os.pipe()
        child = os.fork()
        if child == 0:
            os.dup2(said.fileno(), 2)
            os.close(incoming)
            with os.fdopen(outgoing, "wb") as stream:
                stream.write(make())
            os._exit(0)
        os.close(outgoing)
        with os.fdopen(incoming, "rb") as stream:
            found = stream.read()
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if status == 0:
            return found
        said.seek(0)
        lines = said.read().decode("utf-8", "replace").splitlines()
    errors = [line.strip() for line in lines if "error" in line.lower() or "ssert" in line]
    raise _Failed(errors[0] if errors else f"its code generator ends with {status}")


def _main(triple: str) -> None:
    llvm: Any = importlib.import_module("llvmlite.binding")
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    target: Any = llvm.Target.from_triple(triple)

    def machine() -> Any:
        return target.create_target_machine(opt=level, reloc="pic", codemodel="small")

    def text() -> bytes:
        return str(machine().emit_assembly(llvm.parse_bitcode(bitcode))).encode()

    def binary() -> bytes:
        return bytes(machine().emit_object(llvm.parse_bitcode(bitcode)))

    jobs, answers = sys.stdin.buffer, sys.stdout.buffer
    while True:
        number, bitcode = read(jobs), read(jobs)
        if number is None or bitcode is None:
            return
        level = int(number)
        try:
            made = _apart(text), _apart(binary)
        except _Failed as error:
            made = b"", str(error).encode()
        write(answers, *made)


if __name__ == "__main__":
    _main(sys.argv[1])
