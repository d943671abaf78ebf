"""Kernels that the engine makes for itself are compiled for the kind of device that runs them."""

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.engine.adstack import reducer_kernels
from qd_studio.engine.adstack.host_eval import Env
from qd_studio.engine.adstack.max_reducer import recognise
from qd_studio.engine.adstack.size_expr import parse
from qd_studio.engine.backends.opencl.backend import BACKEND, OpenclBackend
from qd_studio.engine.config import CompileConfig, of_environment
from qd_studio.engine.inspect import self_test
from qd_studio.engine.ir import Param, to_text
from qd_studio.engine.pipeline_kind import PipelineKind
from qd_studio.engine.runtime import program
from qd_studio.engine.types import i32

pytest.importorskip("pyopencl")
ARRAY = (Param("a", "ndarray", i32, 1),)
MAXIMUM = "(maxover 0 0 (shape 0 0) (read 0 (var 0)))"


@pytest.fixture
def lowered(monkeypatch):
    """The finished IR of what is compiled for OpenCL, as text by name."""
    found, lower = {}, OpenclBackend.lower

    def noting(self, func, *args):
        found[func.name] = to_text(func)
        return lower(self, func, *args)

    monkeypatch.setattr(OpenclBackend, "lower", noting)
    yield found
    qd.reset()


@pytest.mark.parametrize("mapping", ["chunks", "lanes"])
def test_a_reducer(lowered, mapping):
    """One maximum a chunk or a group goes to memory."""
    qd.init(arch=qd.opencl, opencl_mapping=mapping, offline_cache=False, enable_fallback=False)
    (spec,) = recognise([parse(MAXIMUM)])
    reducer = reducer_kernels.Reducer(spec, ARRAY, program.current().stacks._compile)
    env = Env(ARRAY, [np.arange(1000, dtype=np.int32)])
    assert reducer.run(reducer_kernels._at_launch(spec, env, {}), env, {}) == 999
    text = lowered["adstack_max"]
    assert ("unit='chunk'" in text) == (mapping == "chunks")
    assert ("unit='thread'" in text) == (mapping == "lanes")
    assert "alloca ['accumulator']" in text
    (update,) = [line for line in text.splitlines() if "atomic_max" in line]
    if mapping == "lanes":
        assert text.index("block_sync") < text.index(update), "it follows the loop"
        return
    assert update.startswith("    <i64>"), "it is not in the loop over the elements of a chunk"


def test_the_kernel_of_doctor(lowered):
    """Its device is of the kind that the options of a user's program would find there."""
    assert self_test("opencl") == ""
    config = CompileConfig(arch="opencl", opencl_device=of_environment("opencl_device"))
    chunks = BACKEND.pipeline(config) is PipelineKind.CPU
    assert ("unit='chunk'" in lowered["self_test"]) == chunks
