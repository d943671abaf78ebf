"""A process with the engine imported, which forks for each program that it is asked to run.

A request is a line of JSON: ``path``, ``cwd``, ``env``, ``out``, ``err`` (files). The answer is a
line with the exit status. The child runs the program as `two_runs_child` does in a process of its
own, and ends as any process does, with what the engine writes at the end. Until the fork nothing
of the engine has run but its imports: of `PRELOADED`, which each program needs that finds its
kernels in the cache. LLVM's library is mapped, but not imported: tests look whether it is.
"""

import ctypes
import importlib.util
import json
import os
import sys
from pathlib import Path

from tests.caches import two_runs_child

ENGINE = "qd_studio.engine"
PRELOADED = (
    "dataclasses", "enum", "numpy", ENGINE, f"{ENGINE}.lang._kernel_types", f"{ENGINE}.lang.kernel",
    f"{ENGINE}.lang.ndarray", f"{ENGINE}.runtime.program", f"{ENGINE}.runtime.fastcache.captures",
    f"{ENGINE}.runtime.fastcache.entry", f"{ENGINE}.backends.cpu.backend",
    f"{ENGINE}.backends.cpu.executable", f"{ENGINE}.cache.cleaning", f"{ENGINE}.cache.keys",
    f"{ENGINE}.cache.store",
)  # fmt: skip


def map_llvm():
    """Map LLVM's library, which takes most of the time of its import."""
    spec = importlib.util.find_spec("llvmlite")
    if spec is not None and spec.origin is not None:
        for path in Path(spec.origin).parent.glob("binding/libllvmlite.*"):
            ctypes.CDLL(str(path))


def become(request):
    """Be the process that the request describes."""
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    sys.dont_write_bytecode = True
    for descriptor, name in ((1, request["out"]), (2, request["err"])):
        file = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(file, descriptor)
        os.close(file)
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    os.close(empty)


def next_request():
    """Answer requests; in the child of one, return it. None at the end of the requests."""
    for line in iter(sys.stdin.readline, ""):
        request = json.loads(line)
        child = os.fork()
        if not child:
            return request
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)
    return None


if __name__ == "__main__":
    for name in PRELOADED:
        __import__(name)
    map_llvm()
    asked = next_request()
    if asked is not None:
        become(asked)
        two_runs_child.main(asked["path"])
