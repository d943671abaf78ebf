"""A record of a kernel of many tasks, some of which repeat an earlier one, made by the engine."""

from __future__ import annotations

import functools
import importlib.util
import tempfile
from pathlib import Path

import pytest
from qd_studio.engine import inspect
from qd_studio.engine.inspect import record as rec
from qd_studio.engine.inspect import recorder

SOURCE = """\
import numpy as np
from qd_studio import engine as qd


@qd.kernel
def sweeps(x: qd.types.NDArray[qd.f32, 1], y: qd.types.NDArray[qd.f32, 1]):
    for i in x:
        y[i] = x[i] * 0.5
    for i in x:
        x[i] = y[i] + 1.0
    for i in x:
        y[i] = x[i] * 0.5


@sweeps.workload(n=[16])
def arrays(n):
    return np.ones(n, np.float32), np.ones(n, np.float32)
"""


@functools.cache
def make_record() -> rec.Record:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(recorder, "MANY_TASKS", 3)
        path = Path(folder) / "sweeps.py"
        path.write_text(SOURCE)
        spec = importlib.util.spec_from_file_location("repeated_kernels", path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        kernel = inspect.capture_kernel(module.sweeps, backends=("cpu", "interp"))
    file = rec.FileRecord(path=str(path), sha256="", text=SOURCE)
    return rec.Record(kernels=(kernel,), files=(file,))
