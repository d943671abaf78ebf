"""Finds the parts of the CUDA toolkit that kernels need: libdevice, libcudadevrt, nvJitLink.

Nothing is looked for before a kernel needs it. The places, in order:

1. a variable of the environment that names the file: ``QD_LIBDEVICE``, ``QD_LIBCUDADEVRT``,
   ``QD_NVJITLINK``; it must be there
2. what `cuda.pathfinder` finds
3. packages of pip: ``nvidia/.../nvvm/libdevice`` and the like on the import path
4. ``CUDA_HOME``, ``CUDA_PATH``
5. the usual places of a toolkit

Files whose version matters for linking (libcudadevrt, nvJitLink) are looked for in ``CUDA_HOME``
and ``CUDA_PATH`` before 2: a user who sets them has a toolkit that fits the driver.
"""

from __future__ import annotations

import glob
import importlib
import os
import sys
from collections.abc import Iterator
from functools import cache
from typing import Any, Final

from ...errors import CudaError
from ...named_tuple import NamedTuple

__all__ = ["NAMES", "libraries", "library", "need"]


class _Component(NamedTuple):
    """A file of the toolkit.

    variable: names it. finder: of `cuda.pathfinder`, with its argument. packages: patterns below a
    folder of the import path. toolkit: patterns below a toolkit. package: what pip installs it by.
    own: whether the toolkit that variables name goes first.
    """

    variable: str
    finder: tuple[str, str]
    packages: tuple[str, ...]
    toolkit: tuple[str, ...]
    package: str
    own: bool


_LIBRARIES: Final = ("lib64", "lib", "lib/x64", "targets/*/lib", "lib/*-linux-gnu")

NAMES: Final = {
    "libdevice": _Component(
        "QD_LIBDEVICE", ("find_bitcode_lib", "device"),
        ("nvidia/*/nvvm/libdevice/libdevice*.bc", "nvidia/*/libdevice/libdevice*.bc",
         "triton/backends/nvidia/lib/libdevice*.bc"),
        ("nvvm/libdevice/libdevice*.bc", "libdevice/libdevice*.bc"),
        "nvidia-nvvm", False,
    ),
    "libcudadevrt": _Component(
        "QD_LIBCUDADEVRT", ("find_static_lib", "cudadevrt"),
        ("nvidia/*/lib/libcudadevrt.a", "nvidia/*/lib/x64/cudadevrt.lib"),
        tuple(f"{folder}/{name}" for folder in _LIBRARIES
              for name in ("libcudadevrt.a", "cudadevrt.lib")),
        "nvidia-cuda-runtime", True,
    ),
    "nvjitlink": _Component(
        "QD_NVJITLINK", ("load_nvidia_dynamic_lib", "nvJitLink"),
        ("nvidia/*/lib/libnvJitLink.so*", "nvidia/*/bin/nvJitLink*.dll",
         "nvidia/*/bin/x86_64/nvJitLink*.dll"),
        (*[f"{folder}/libnvJitLink.so*" for folder in _LIBRARIES], "bin/nvJitLink*.dll"),
        "nvidia-nvjitlink", True,
    ),
}  # fmt: skip
"""The files by name."""

_USUAL: Final = (
    "/usr/local/cuda", "/usr/local/cuda-*", "/opt/cuda", "/usr/lib/cuda",
    "/usr/lib/nvidia-cuda-toolkit", "/usr", "C:/Program Files/NVIDIA GPU Computing Toolkit/CUDA/v*",
)  # fmt: skip


def library(name: str) -> str | None:
    """The path of a file, by a name of `NAMES`; None if it is not found.

    CudaError if a variable names a file that is not there.
    """
    return next(iter(libraries(name)), None)


def libraries(name: str) -> tuple[str, ...]:
    """The paths of a file, by a name of `NAMES`, in the order of the places.

    CudaError if a variable names a file that is not there.
    """
    component = NAMES[name]
    named = os.environ.get(component.variable, "")
    if not named:
        variables = tuple(os.environ.get(v, "") for v in ("CUDA_HOME", "CUDA_PATH"))
        return _found(name, variables)
    if not os.path.isfile(named):
        raise CudaError(f"{component.variable} is {named!r}, and there is no such file")
    return (named,)


def need(name: str, what: str) -> str:
    """The path of a file that ``what`` needs. CudaError if it is not found."""
    found = library(name)
    if found is None:
        component = NAMES[name]
        raise CudaError(
            f"{what} needs {name} of the CUDA toolkit, which was not found",
            hint=f"pip install {component.package}, set CUDA_HOME to the folder of a CUDA toolkit, "
            f"or {component.variable} to the file",
        )
    return found


@cache
def _found(name: str, roots: tuple[str, ...]) -> tuple[str, ...]:
    """All paths at which the file is. roots: folders that variables name, or empty."""
    component = NAMES[name]
    own = [path for root in roots if root for path in _matches(root, component.toolkit)]
    found = [*(own if component.own else ()), _by_pathfinder(*component.finder)]
    for folder in dict.fromkeys(sys.path):
        if folder and os.path.isdir(folder):
            found += _matches(folder, component.packages)
    found += own
    for root in (path for place in _USUAL for path in _newest(place)):
        found += _matches(root, component.toolkit)
    return tuple(dict.fromkeys(path for path in found if path))


def _by_pathfinder(function: str, argument: str) -> str:
    try:
        pathfinder: Any = importlib.import_module("cuda.pathfinder")
        found = getattr(pathfinder, function)(argument)
    except Exception:  # an older pathfinder, or none: other places follow
        return ""
    path = getattr(found, "abs_path", found)
    return path if isinstance(path, str) and os.path.isfile(path) else ""


def _newest(pattern: str) -> list[str]:
    return sorted(glob.glob(pattern), reverse=True)


def _matches(folder: str, patterns: tuple[str, ...]) -> Iterator[str]:
    """Files below ``folder``, those of higher versions first."""
    for pattern in patterns:
        yield from _newest(os.path.join(glob.escape(folder), *pattern.split("/")))
