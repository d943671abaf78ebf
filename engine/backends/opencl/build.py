"""Programs: OpenCL C -> the program that the driver makes of it, and its binary.

A program is built when a kernel is compiled, and kept in its context, where loading the kernel
finds it. In another process it is made from its binary, which the offline cache has. A binary is
requested from the driver only when it is needed.

What a driver keeps by itself must not make a first compile look like a later one: PoCL's cache is
off unless the environment says otherwise (see `hardware.binding`), and in programs that have to
start cold the source ends in a line that no other process has.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

from ...errors import QuadrantsCompilationError
from ...named_tuple import NamedTuple
from . import headerless
from .errors import code_of, error_of
from .source.fused import ITEM

if TYPE_CHECKING:
    from ...config import CompileConfig
    from ...ir import Func
    from .context import Context

__all__ = ["Source", "binary_of", "build", "build_first", "built", "from_binary", "key_of"]

_BUILD_FAILED: Final = frozenset({-11, -43})
_UNOPTIMISED: Final = "-cl-opt-disable"
_MOST: Final = 40
"""Lines of a log that an error shows."""
_nonces: Final[dict[int, str]] = {}


class Source(NamedTuple):
    """OpenCL C. ids: for each line the id of the op of ``func`` that it was made of, or -1."""

    kernel: str
    text: str
    options: str = ""
    ids: Sequence[int] = ()
    func: Func | None = None

    def place(self, line: int) -> Any:
        """The user's place that a line, counted from 1, was made of; None if that is not known."""
        if self.func is None or line > len(self.ids):
            return None
        from ...ir import all_ops

        number = self.ids[line - 1]
        return next((op.loc for op in all_ops(self.func) if op.id == number and op.loc.line), None)


def key_of(text: str, options: str) -> str:
    """The key under which a context keeps a program."""
    return blake2b(f"{options}\0{text}".encode(), digest_size=16).hexdigest()


def _submitted(context: Context, text: str, cold: bool) -> str:
    """The source as the driver gets it."""
    keeps = context.hardware.is_pocl and os.environ.get("POCL_KERNEL_CACHE", "1") != "0"
    if not (cold or keeps):
        return text
    process = os.getpid()
    line = _nonces.get(process)
    if line is None:
        line = f"// qd-session-nonce: {time.time_ns()}-{os.urandom(4).hex()}"
        line = _nonces.setdefault(process, line)
    return f"{text.rstrip()}\n{line}\n"


def build(context: Context, source: Source, config: CompileConfig) -> Any:
    """Build a program for the context's device, and keep it there.

    QuadrantsCompilationError, with the log and the user's lines, if the driver does not take it.
    """
    program = built(context, source, not config.offline_cache)
    context.keep(key_of(source.text, source.options), program)
    return program


def build_first(context: Context, source: Source, config: CompileConfig) -> Any:
    """As `build`, without the driver's optimiser; the context does not keep it."""
    # A function that calls none of OpenCL's needs no inlining; see `source.coarsened`.
    text = source.text.replace(f"chunk = {ITEM}", "chunk = item")
    options = f"{source.options} {_UNOPTIMISED}"
    return built(context, source._replace(text=text, options=options), not config.offline_cache)


def built(context: Context, source: Source, cold: bool) -> Any:
    """As `build`; the context does not keep it. cold: no cache of a driver may have it."""
    cl = context.cl
    text = _submitted(context, source.text, cold)
    program = _without_header(context, source, text)
    if program is not None:
        return program
    try:
        program = cl._cl._Program(context.handle, text)
        program._build(source.options.encode(), [context.device])
    except cl.Error as error:
        if code_of(error) not in _BUILD_FAILED:
            raise error_of(error, "building a program", source.kernel) from None
        raise _build_error(context, source, _log(context, program, error)) from None
    return program


def _without_header(context: Context, source: Source, text: str) -> Any:
    """A program built as `headerless` says, where that is worth it and works; else None."""
    head = headerless.declarations(source.text) if context.hardware.is_pocl else None
    if head is None:
        return None
    cl = context.cl
    program: Any = cl._cl._Program(context.handle, head + text)
    try:
        program._build(f"{source.options} {headerless.OPTIONS}".encode(), [context.device])
    except cl.Error:
        return None  # what is wrong is said of the text as it is
    return program


def _log(context: Context, program: Any, error: Any) -> str:
    """The messages of the driver's compiler."""
    cl = context.cl
    try:
        found = program.get_build_info(context.device, cl.program_build_info.LOG)
    except cl.Error:
        found = ""
    return str(found).strip("\0 \n") or str(error)


_FILE: Final = re.compile(r"(?:\S*\.cl|<[^>\s]*>)(?=:\d+:\d)")
_PLACE: Final = re.compile(r":(\d+):\d+:")


def _build_error(context: Context, source: Source, log: str) -> QuadrantsCompilationError:
    """The error for a program that does not build: at the user's line of its first error."""
    lines = log.splitlines()
    loc: Any = None
    code = source.text.splitlines()
    marked: list[str] = []
    for line in lines[:_MOST]:
        line = _FILE.sub(f"{source.kernel}.cl", line)
        marked.append(line)
        found = _PLACE.search(line) if "error" in line else None
        number = int(found[1]) if found else 0
        if 0 < number <= len(code):
            place = source.place(number)
            at = ""
            if place is not None:
                loc = loc or place
                at = f"   from {os.path.basename(place.file)}:{place.line}"
            marked.append(f"    {number} | {code[number - 1].strip()}{at}")
    if len(lines) > _MOST:
        marked.append(f"... {len(lines) - _MOST} more lines")
    who = f"{context.hardware.name} ({context.hardware.driver_name})"
    text = "\n  ".join([f"{who} does not build the"
                        f" OpenCL C of kernel {source.kernel}:", *marked])  # fmt: skip
    hint = "this is a fault of the engine or of the driver; please report it with the source above"
    if "unknown target CPU" in log:
        hint = (
            "this driver is older than the processor: install a newer one (pocl-opencl-icd of the"
            " system, or pocl of conda-forge) and choose it with opencl_device"
        )
    if loc is None:
        return QuadrantsCompilationError(text, hint=hint)
    return QuadrantsCompilationError.from_loc(text, loc, hint=hint)


def binary_of(context: Context, program: Any) -> bytes:
    """The binary of a program that was built."""
    cl = context.cl
    try:
        (found,) = program.get_info(cl.program_info.BINARIES)
    except cl.Error as error:
        raise error_of(error, "asking for the binary of a program") from None
    return sealed(bytes(found))


_MAGIC: Final = b"QDCL"
_MAGIC_IL: Final = b"QDIL"


def sealed(binary: bytes, il: bool = False) -> bytes:
    """A binary after its digest: some drivers end the process if a binary is damaged.

    il: it is SPIR-V, which a driver is to compile.
    """
    return (_MAGIC_IL if il else _MAGIC) + blake2b(binary, digest_size=16).digest() + binary


def _opened(code: bytes) -> tuple[bytes, bool]:
    binary, il = code[len(_MAGIC) + 16 :], code.startswith(_MAGIC_IL)
    if sealed(binary, il) != code:
        raise ValueError("the program binary is damaged")
    return binary, il


def from_binary(context: Context, code: bytes, kernel: str, options: str) -> Any:
    """A program made from the result of `sealed`. ValueError if the driver does not accept it."""
    cl, (binary, il) = context.cl, _opened(code)
    try:
        if il:
            program = cl._cl._create_program_with_il(context.handle, binary)
        else:
            program = cl._cl._Program(context.handle, [context.device], [binary])
        program._build(options.encode(), [context.device])
    except cl.Error as error:
        if code_of(error) in (-5, -6):
            raise error_of(error, "loading a program", kernel) from None
        raise ValueError(f"the driver does not take the program binary: {error}") from None
    return program
