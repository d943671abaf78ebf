"""What a capture shows of real functions, and of loops that run in blocks."""

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.engine import inspect
from qd_studio.engine.inspect.graphs import live_graphs

Ints = qd.types.ndarray(dtype=qd.i32, ndim=1)


@qd.real_func
def fact(n: qd.i32) -> qd.i32:
    if n <= 1:
        return 1
    return n * fact(n - 1)


@qd.kernel
def mirrored(x: Ints):
    qd.loop_config(block_dim=8)
    for i in x:
        part = qd.simt.block.SharedArray(8, qd.i32)
        part[i % 8] = fact(i % 5)
        qd.simt.block.sync()
        x[i] = part[7 - i % 8]


@mirrored.workload(n=[16])
def some(n):
    return (np.zeros(n, np.int32),)


@pytest.fixture(scope="module")
def record():
    return inspect.capture_kernel(mirrored, ("cpu", "interp"), budget_s=0.001)


def test_nothing_fails(record):
    assert not record.errors
    for backend in record.backends:
        assert not backend.errors
        assert backend.compile is not None


def test_every_snapshot_shows_the_functions_too(record):
    compiled = record.backend("cpu").compile
    for shot in compiled.snapshots:
        starts = [
            k for k, line in enumerate(shot.lines) if line.startswith(("kernel ", "function "))
        ]
        assert [shot.lines[k].split("(")[0] for k in starts] == ["kernel mirrored", "function fact"]
        ids = [number for number in shot.ids if number >= 0]
        assert len(ids) == len(set(ids)) == shot.ops


def test_lines_of_functions_lead_to_their_source(record):
    compiled = record.backend("cpu").compile
    shot = compiled.snapshots[-1]
    (multiply,) = [k for k, line in enumerate(shot.lines) if " mul " in line and "fact" not in line
                   and compiled.locs[shot.locs[k]].func == "fact"]  # fmt: skip
    assert compiled.locs[shot.locs[multiply]].line > 0


def test_graphs_are_those_of_the_kernel(record):
    compiled = record.backend("cpu").compile
    found = [pair for run in compiled.runs for pair in live_graphs(compiled, run)]
    assert found and all(graph.nodes for pair in found for graph in pair)
    last = compiled.snapshots[-1]
    assert last.lines[0].startswith("kernel mirrored")


def test_the_passes_that_take_barriers_apart_are_seen(record):
    runs = record.backend("cpu").compile.runs
    changed = {run.name for run in runs if run.state == "changed"}
    assert {"offload", "demote_block_sync", "make_cpu_multithreaded_range_for"} <= changed
    assert "demote_block_sync" not in {run.name for run in record.backend("interp").compile.runs}
