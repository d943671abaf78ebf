"""Compiles whose machine code is there twice: as a relocatable object, and as LLVM's object
code."""

import io
import struct
from contextlib import redirect_stdout
from typing import NamedTuple

import numpy as np
from qd_studio.engine.backends import base
from qd_studio.engine.backends.base import Artifact
from qd_studio.engine.backends.cpu import native, relocatable
from qd_studio.engine.backends.llvm import toolchain
from qd_studio.engine.config import CompileConfig
from qd_studio.engine.errors import QuadrantsAssertionError
from qd_studio.engine.runtime.compile import CompileRequest, compile_kernel

from tests.frontend.harness import spec_keys_of


class Twice(NamedTuple):
    """One compile. object_code: what LLVM made of it; the artifact's own code is the object."""

    artifact: Artifact
    object_code: bytes

    def load(self, linked_by_llvm: bool):
        """An executable whose code our loader, or LLVM's, has brought into memory."""
        artifact = self.artifact
        if linked_by_llvm:
            artifact = artifact.replaced(code=self.object_code)
        return base.find("cpu").load(artifact)


def compile_twice(monkeypatch, kernel, **options) -> Twice:
    """Compile a kernel as its annotations say; the code must be a relocatable object."""
    seen = []
    finish = native.finish

    def spy(object_code, symbols):
        seen.append(object_code)
        return finish(object_code, symbols)

    with monkeypatch.context() as patch:
        patch.setattr(native, "finish", spy)
        config = CompileConfig().replace(random_seed=3, **options)
        spec_keys = spec_keys_of(kernel.decl)
        made = compile_kernel(CompileRequest(kernel.decl, spec_keys, config, base.find("cpu")))
    assert relocatable.is_relocatable(made.artifact.code)
    assert seen[0].startswith(b"\x7fELF")
    return Twice(made.artifact, seen[0])


def outcome(executable, values):
    """All that a launch leaves behind: results, prints, the text of an error, every byte of the
    arrays."""
    values = [v.copy() if isinstance(v, np.ndarray) else v for v in values]
    printed, error, results = io.StringIO(), "", ()
    with redirect_stdout(printed):
        try:
            results = executable.launch(values, 12345)
        except QuadrantsAssertionError as caught:
            error = str(caught)
    lines = sorted(printed.getvalue().splitlines())
    arrays = [v.tobytes() for v in values if isinstance(v, np.ndarray)]
    return repr(results), lines, error, arrays


def object_of(text, features=None, level=2):
    """Object code of LLVM IR text, for this machine or one with other features."""
    target = toolchain.host_target()
    if features is not None:
        target = target._replace(features=f"{target.features},{features}")
    module = toolchain.machine(target, level).parse(text, verify=True)
    module.optimise(level)
    return module.object_code()


def sections_of(object_code):
    """The sections of ELF object code: name -> flags, and the kinds of all relocations."""
    at, count, names = (
        struct.unpack_from("<Q", object_code, 40)[0], *struct.unpack_from("<2H", object_code, 60)
    )  # fmt: skip
    raw = [struct.unpack_from("<2I4Q2I2Q", object_code, at + 64 * i) for i in range(count)]
    table = object_code[raw[names][4] :]
    found, kinds = {}, {}
    for section in raw:
        name = table[section[0] :].split(b"\0")[0].decode()
        found[name] = section[2]
        if section[1] == 4:
            for i in range(section[4], section[4] + section[5], 24):
                kinds.setdefault(name, set()).add(struct.unpack_from("<I", object_code, i + 8)[0])
    return found, kinds
