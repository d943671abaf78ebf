"""Kernels written to files, and what the offline cache says of a call of them."""

import importlib.util
import itertools
import sys

import numpy as np
from qd_studio import engine as qd
from qd_studio.engine.cache.in_process import IN_PROCESS
from qd_studio.engine.cache.observe import Observation

_numbers = itertools.count()

HEAD = "from qd_studio import engine as qd\n"


def module(path, text: str, head: str = HEAD):
    """The module that ``text`` is, written to ``path`` after a line that imports the engine."""
    path.write_text(head + text, encoding="utf-8")
    name = f"offline_kit_{next(_numbers)}"
    spec = importlib.util.spec_from_file_location(name, path)
    found = importlib.util.module_from_spec(spec)
    sys.modules[name] = found
    spec.loader.exec_module(found)
    return found


def compiled(kernel):
    """The last compile of a kernel."""
    return list(kernel.launchers.variants.values())[-1].compiled


def seen(kernel, layer: str = "offline") -> Observation:
    """What a layer said of the last compile of a kernel."""
    return next(o for o in compiled(kernel).layers if o.layer == layer)


def start(**options):
    """A program, by default one that looks at no disk."""
    given = {"arch": qd.cpu, "offline_cache": False, "log_level": "error", "random_seed": 3}
    qd.init(**{**given, **options})


def parts(kernel, *args, **options) -> dict[str, str]:
    """The parts of the key of a call under these options."""
    start(**options)
    kernel(*args)
    return dict(seen(kernel).parts)


def differing(one: dict[str, str], other: dict[str, str]) -> set[str]:
    """Names of the parts in which two keys differ."""
    return {name for name in {*one, *other} if one.get(name) != other.get(name)}


def numbers(n: int = 8, dtype=np.float32):
    return np.arange(n, dtype=dtype)


def forget():
    """What a new process would not know."""
    IN_PROCESS.clear()
