"""Facts about PTX from NVIDIA's own tools: registers and memory by kernel, machine code as text.

Needs no device, only the programs::

    PTX text ── ptxas -v ──▶ Assembled: facts of each kernel, cubin
                             └── nvdisasm, else cuobjdump ──▶ Sass: text, the PTX line of each line

Nothing here takes part in running kernels: the driver has an assembler of its own, of its own
version. The output of ptxas describes what ptxas would do, not what the driver did.

Programs run in a temporary folder under a time limit. `ToolError` says in one sentence why there
are no facts; usually a program is not installed.
"""

from __future__ import annotations

import functools
import importlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from time import perf_counter
from typing import Any, Final

from ...named_tuple import NamedTuple

__all__ = [
    "Assembled", "KernelFacts", "Sass", "ToolError", "assemble", "disassemble", "find", "remedy",
    "version",
]  # fmt: skip

LIMIT_S: Final = 60.0
"""Seconds that a program may take."""

_PACKAGES: Final = {
    "ptxas": "nvidia-cuda-nvcc",
    "nvdisasm": "nvidia-cuda-nvdisasm",
    "cuobjdump": "nvidia-cuda-cuobjdump",
}


class ToolError(Exception):
    """A program is missing, failed, or took too long; the message is one sentence."""


class KernelFacts(NamedTuple):
    """The facts that ptxas reports about one kernel. stack, spill_*, shared, constant: bytes.

    spill_stores, spill_loads: of registers to memory and back, a thread, counted by instruction.
    constant: of all banks, parameters among them. barriers: hardware barriers used.
    """

    registers: int = 0
    stack: int = 0
    spill_stores: int = 0
    spill_loads: int = 0
    shared: int = 0
    constant: int = 0
    barriers: int = 0


class Assembled(NamedTuple):
    """Machine code. kernels: by name, in the order of the PTX. notes: warnings of ptxas."""

    arch: str
    kernels: dict[str, KernelFacts]
    cubin: bytes
    tool: str
    ms: float
    notes: tuple[str, ...] = ()


class Sass(NamedTuple):
    """Machine code as text. ptx_lines: for each line the line of the PTX, from 1, that it came
    from; 0 for none; empty where the tool does not report it."""

    text: str
    ptx_lines: tuple[int, ...]
    tool: str


# ---- programs


def find(name: str) -> str | None:
    """The path of the program ``name``; None if it is not installed.

    PATH comes first, then the places that `cuda.pathfinder` knows: packages of pip and conda,
    ``CUDA_HOME`` and ``CUDA_PATH``; then the usual places of a toolkit.
    """
    found = shutil.which(name)
    if found:
        return found
    try:
        pathfinder: Any = importlib.import_module("cuda.pathfinder")
        found = pathfinder.find_nvidia_binary_utility(name)
    except Exception:  # an older pathfinder, or none: a search more or less is no failure
        found = None
    if found:
        return str(found)
    homes = (os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda")
    places = os.pathsep.join(os.path.join(home, "bin") for home in homes if home)
    return shutil.which(name, path=places)


def remedy(name: str) -> str:
    """The command that installs the program ``name``."""
    return f"python -m pip install {_PACKAGES[name]}"


def _need(name: str) -> str:
    path = find(name)
    if path is None:
        raise ToolError(f"{name} is not installed ({remedy(name)})")
    return path


@functools.cache
def version(path: str) -> str:
    """``ptxas 13.0.88`` of the program at ``path``; only its name if it reports no version."""
    name = os.path.splitext(os.path.basename(path))[0]
    try:
        out = _run([path, "--version"], ".", 10.0).stdout
    except ToolError:
        return name
    found = re.search(r"release [\d.]+, V([\d.]+)", out)
    return f"{name} {found[1]}" if found else name


def _run(command: Sequence[str], folder: str, limit_s: float) -> subprocess.CompletedProcess[str]:
    name = os.path.basename(command[0])
    try:
        return subprocess.run(
            command, cwd=folder, timeout=limit_s, check=False, text=True, errors="replace",
            stdin=subprocess.DEVNULL, capture_output=True,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise ToolError(f"{name} took longer than {limit_s:g} s") from None
    except OSError as error:
        raise ToolError(f"{name} cannot be run: {error.strerror or error}") from None


# ---- ptxas


def assemble(ptx: str, arch: str, max_registers: int = 0, limit_s: float = LIMIT_S) -> Assembled:
    """Assemble ``ptx`` for ``arch``. ToolError if that cannot be done, with what ptxas says.

    max_registers: a thread may use; 0 for no limit.
    """
    path = _need("ptxas")
    command = [path, "-v", "-lineinfo", f"-arch={arch}", "kernel.ptx", "-o", "kernel.cubin"]
    if max_registers:
        command.append(f"-maxrregcount={max_registers}")
    with tempfile.TemporaryDirectory(prefix="qd-ptxas-") as folder:
        with open(os.path.join(folder, "kernel.ptx"), "w", encoding="utf-8", newline="\n") as file:
            file.write(ptx)
        began = perf_counter()
        done = _run(command, folder, limit_s)
        ms = (perf_counter() - began) * 1e3
        said = done.stdout + done.stderr
        if done.returncode:
            raise ToolError(f"{version(path)}: {_complaint(said, done.returncode)}")
        with open(os.path.join(folder, "kernel.cubin"), "rb") as file:
            cubin = file.read()
    order = entries_of(ptx)
    found = facts_of(said)
    kernels = {name: found[name] for name in order if name in found}
    notes = tuple(re.findall(r"^ptxas warning\s*: (.*)$", said, re.M))
    return Assembled(arch, kernels, cubin, version(path), ms, notes)


_ENTRY: Final = re.compile(r"^\s*(?:\.visible\s+|\.weak\s+)?\.entry\s+([\w$.]+)", re.M)


def entries_of(ptx: str) -> list[str]:
    """Names of the kernels that PTX defines, in order."""
    return _ENTRY.findall(ptx)


def _complaint(said: str, status: int) -> str:
    """The first thing that ptxas complained about."""
    found = re.search(r"(line \d+; )?(?:error|fatal)\s*: (.*)", said)
    if found is None:
        return f"it ended with status {status}"
    return f"{found[1] or ''}{found[2]}".replace("; ", ": ", 1)


_COMPILING: Final = re.compile(r"Compiling entry function '([^']+)'")
_STACK: Final = re.compile(
    r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads"
)
_COUNTS: Final = {
    "registers": re.compile(r"Used (\d+) registers"),
    "barriers": re.compile(r"used (\d+) barriers"),
    "shared": re.compile(r"(\d+) bytes smem"),
}
_CONSTANT: Final = re.compile(r"(\d+) bytes cmem\[\d+\]")


def facts_of(said: str) -> dict[str, KernelFacts]:
    """The facts that ``ptxas -v`` printed, by kernel; device functions are left out."""
    out: dict[str, KernelFacts] = {}
    name = ""
    for line in said.splitlines():
        entry = _COMPILING.search(line)
        if entry:
            name = entry[1]
            out[name] = KernelFacts()
        if line.startswith("ptxas info    : Function properties for "):
            function = line.split(" for ", 1)[1].strip()
            name = function if function in out else ""
        if not name:
            continue
        stack = _STACK.search(line)
        if stack:
            frame, stores, loads = map(int, stack.groups())
            out[name] = out[name]._replace(stack=frame, spill_stores=stores, spill_loads=loads)
        if "Used " in line:
            counts = {k: int(m[1]) for k, p in _COUNTS.items() if (m := p.search(line))}
            constant = sum(map(int, _CONSTANT.findall(line)))
            out[name] = out[name]._replace(**counts, constant=constant)
    return out


# ---- disassemblers


def disassemble(found: Assembled, limit_s: float = LIMIT_S) -> Sass:
    """The machine code as text, by nvdisasm, else by cuobjdump. ToolError if there is neither."""
    path = find("nvdisasm")
    other = None if path else find("cuobjdump")
    if path is None and other is None:
        raise ToolError(f"neither nvdisasm nor cuobjdump is installed ({remedy('nvdisasm')})")
    with tempfile.TemporaryDirectory(prefix="qd-sass-") as folder:
        with open(os.path.join(folder, "kernel.cubin"), "wb") as file:
            file.write(found.cubin)
        options = ["-c", "-gp"] if path else ["-sass"]
        tool = path or other or ""
        done = _run([tool, *options, "kernel.cubin"], folder, limit_s)
    if done.returncode:
        said = " ".join((done.stderr or done.stdout).split())
        raise ToolError(f"{version(tool)}: {said or f'it ended with status {done.returncode}'}")
    order = list(found.kernels)
    parts = _of_nvdisasm(done.stdout) if path else _of_cuobjdump(done.stdout)
    return _joined(parts, order, version(tool), lines=path is not None)


_Lines = list[tuple[str, int]]
_SECTION: Final = re.compile(r"^//-+ \.text\.([\w$.]+)\s+-+$")
_FROM: Final = re.compile(r'^\s*//## File "[^"]*", line (\d+)')
_INSTRUCTION: Final = re.compile(r"^\s*/\*([0-9a-f]{4,})\*/\s+(.*?;)")
_LABEL: Final = re.compile(r"^(\.L\w*):")


def _of_nvdisasm(text: str) -> dict[str, _Lines]:
    """Labels and instructions of each function, with their lines of the PTX."""
    out: dict[str, _Lines] = {}
    now: _Lines | None = None
    at = 0
    for line in text.splitlines():
        section = _SECTION.match(line)
        if section:
            now, at = out.setdefault(section[1], []), 0
        elif line.startswith("//---"):
            now = None
        elif now is not None:
            source = _FROM.match(line)
            if source:
                at = int(source[1])
            now += _kept(line, at)
    return out


def _of_cuobjdump(text: str) -> dict[str, _Lines]:
    out: dict[str, _Lines] = {}
    now: _Lines | None = None
    for line in text.splitlines():
        function = re.match(r"\s*Function : ([\w$.]+)", line)
        if function:
            now = out.setdefault(function[1], [])
        elif now is not None:
            now += _kept(line, 0)
    return out


def _kept(line: str, at: int) -> _Lines:
    label, code = _LABEL.match(line), _INSTRUCTION.match(line)
    if label:
        return [(f"{label[1]}:", 0)]
    return [(f"    /*{code[1]}*/ {code[2]}", at)] if code else []


def _joined(parts: dict[str, _Lines], order: list[str], tool: str, lines: bool) -> Sass:
    """One text of all functions, kernels in the order of the PTX, without what pads their ends."""
    names = [*(n for n in order if n in parts), *(n for n in parts if n not in order)]
    whole: _Lines = []
    for name in names:
        body = parts[name]
        while body and (body[-1][0].endswith(" NOP;") or body[-1][0].endswith(":")):
            body.pop()
        whole += [("", 0)] if whole else []
        whole += [(f"{name}:", 0), *body]
    text = "".join(f"{line}\n" for line, _ in whole)
    return Sass(text, tuple(at for _, at in whole) if lines else (), tool)
