"""Mathematics for GPUs: functions of NVIDIA's libdevice, linked into the kernels that call them.

libdevice is 450 KB of LLVM bitcode with 350 functions. It is read (25 ms) when a process needs a
function that no cache has; the function is then extracted with all it calls, specialised by whether
small numbers are flushed to zero (the value of its ``__nvvm_reflect("__CUDA_FTZ")``), and
optimised. The result is a module of a few KB, which is kept in the process and in an
`InjectedCache`, so that a kernel only pays for parsing and inlining what it calls.
"""

from __future__ import annotations

import os
import re
from functools import cache
from typing import Any, Final

from ..injected import InjectedCache
from ..llvm import toolchain
from . import toolkit
from .targets import TRIPLE, machine

__all__ = ["called", "identity", "link"]

_CALLED: Final = re.compile(r"^declare [^@\n]*@(__nv_\w+)\(", re.M)
_SYMBOL: Final = re.compile(r"@([\w.$]+)")
_STRUCT: Final = re.compile(r"%struct[\w.]*")
_REFLECT: Final = re.compile(r"(%[\w.]+ = )(?:tail )?call i32 @__nvvm_reflect\(.*")
_NOTES: Final = re.compile(r" #\d+|, ![\w.]+ !\d+")
_LEVEL: Final = 2

_bitcodes: Final[dict[tuple[str, str, bool], bytes]] = {}


def called(llvm_ir: str) -> list[str]:
    """The functions of libdevice that a module declares."""
    return _CALLED.findall(llvm_ir) if "@__nv_" in llvm_ir else []


def identity() -> str:
    """The identity of libdevice: name, size and time of the file. CudaError if there is none."""
    return _identity(_path())


def _path() -> str:
    return toolkit.need("libdevice", "mathematics on the GPU")


@cache
def _identity(path: str) -> str:
    facts = os.stat(path)
    return f"{path} {facts.st_size} {facts.st_mtime_ns}"


def link(module: toolchain.Module, names: list[str], ftz: bool, cache: InjectedCache) -> None:
    """Link what ``module`` calls into it. Callers hold `toolchain.LOCK`.

    ftz: small numbers are flushed to zero.
    """
    llvm: Any = toolchain.binding()
    for name in names:
        module.link(llvm.parse_bitcode(_bitcode(name, ftz, cache)))
    for function in module.ref.functions:
        if function.name.startswith("__nv_") and not function.is_declaration:
            function.linkage = "internal"


def _bitcode(name: str, ftz: bool, cache: InjectedCache) -> bytes:
    """A module with one function of libdevice, as bitcode."""
    path = _path()
    key = path, name, ftz
    found = _bitcodes.get(key)
    if found is None:
        kept = f"{toolchain.identity()} {_identity(path)} {name} ftz={int(ftz)}"
        found = _bitcodes[key] = cache.library(
            kept, lambda: _cut(path, name, ftz), lambda code: _whole(code, name)
        )
    return found


def _whole(code: bytes, name: str) -> bytes:
    """Bitcode that may have been kept. ValueError if it is not whole."""
    llvm: Any = toolchain.binding()
    try:
        module = llvm.parse_bitcode(code)
        module.verify()
        missing = module.get_function(name).is_declaration
    except (RuntimeError, NameError):
        missing = True
    if missing:
        raise ValueError(f"is no bitcode of {name}")
    return code


class _Library:
    """libdevice, parsed. texts: of functions and globals, made when first asked for."""

    def __init__(self, path: str) -> None:
        llvm: Any = toolchain.binding()
        with open(path, "rb") as file:
            self.module: Any = llvm.parse_bitcode(file.read())
        self.functions: Final = {f.name: f for f in self.module.functions}
        self.globals: Final = {g.name: g for g in self.module.global_variables}
        self.structs: Final = {s.name: str(s) for s in self.module.struct_types}


_library: Final = cache(_Library)


def _cut(path: str, name: str, ftz: bool) -> bytes:
    """The function with all that it needs, optimised."""
    library = _library(path)
    done: dict[str, str] = {}
    wanted = [name]
    while wanted:
        symbol = wanted.pop()
        if symbol in done:
            continue
        text = str(library.functions.get(symbol) or library.globals[symbol]).strip()
        text = _REFLECT.sub(rf"\g<1>add i32 0, {int(ftz)}", text)
        lines = [_NOTES.sub("", line) for line in text.splitlines() if not line.startswith(";")]
        lines = [
            _defined(line, symbol != name) if line.startswith("define ") else line
            for line in lines
        ]  # fmt: skip
        done[symbol] = "\n".join(lines)
        wanted += [s for s in _SYMBOL.findall("\n".join(lines)) if s not in done]
    body = "\n".join(done.values())
    structs = set(_STRUCT.findall(body))
    types = [library.structs.get(s[1:], "") for s in sorted(structs)]
    triple = f'target triple = "{TRIPLE}"'
    sm_75 = machine("sm_75", _LEVEL)
    module = sm_75.parse("\n".join([triple, *types, body]) + "\n")
    module.ref.data_layout = str(sm_75.ref.target_data)
    _simplify(sm_75, module.ref)
    return bytes(module.ref.as_bitcode())


def _defined(line: str, internal: bool) -> str:
    """The first line of a function, for its new module."""
    if internal and not line.startswith("define internal "):
        line = line.replace("define ", "define internal ", 1)
    return line.replace(" {", " alwaysinline nounwind {")


def _simplify(machine: toolchain.Machine, module: Any) -> None:
    """Follow up on what is known now; the rest is for the passes over the kernel."""
    llvm: Any = toolchain.binding()
    passes = llvm.create_new_module_pass_manager()
    passes.add_always_inliner_pass()
    passes.add_sroa_pass()
    passes.add_instruction_combine_pass()
    passes.add_simplify_cfg_pass()
    passes.add_global_dead_code_eliminate_pass()
    options = llvm.create_pipeline_tuning_options(speed_level=1)
    passes.run(module, llvm.create_pass_builder(machine.ref, options))
