"""Kernels compiled for a machine that is not here, by any backend."""

from qd_studio.engine import passes
from qd_studio.engine.backends import base
from qd_studio.engine.config import CompileConfig
from qd_studio.engine.runtime.compile import CompileRequest, make_code, make_ir
from qd_studio.engine.runtime.program import current


def config(name, **options):
    """The options for a backend or target by its name, such as ``amdgpu:gfx90a``."""
    backend, _, target = name.partition(":")
    chosen = CompileConfig().replace(arch=backend, **options)
    return base.find(backend).with_target(chosen, target) if target else chosen


def artifact(name, kernel, *args, mode=None, **options):
    """What a kernel is compiled to for a call; a program must run, on whatever backend."""
    of = kernel.in_mode(mode) if mode else kernel
    spec_keys = tuple(a.spec_key for a in of.launchers.classify(args, current()))
    chosen = config(name, **options)
    request = CompileRequest(of.decl, spec_keys, chosen, base.find(chosen.arch))
    return make_code(make_ir(request).func, chosen, request.backend)[1]


def of_func(name, func, **options):
    """The same for a function of stage ``ast``."""
    chosen = config(name, **options)
    backend = base.find(chosen.arch)
    return backend.lower(passes.run(func, chosen, backend.pipeline(chosen)), chosen)
