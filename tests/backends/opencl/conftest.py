"""Where no OpenCL driver is installed, modules that launch are skipped with the reason.

PoCL has wheels for Linux on x86-64 only; elsewhere a driver is what the system has. What needs no
driver (choosing devices, capabilities, errors) runs everywhere.
"""

import sys
from pathlib import Path

import pytest
from qd_studio.engine.backends.opencl import hardware

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

LAUNCH = {
    "test_fused", "test_lacking", "test_per_iteration", "test_opencl_atomics", "test_opencl_debug",
    "test_scalars_of_c", "test_text", "test_variables",
}  # fmt: skip


def pytest_collection_modifyitems(items):
    """The hook sees the items of all folders."""
    mine = [item for item in items if item.path.parent == HERE and item.path.stem in LAUNCH]
    if mine and (why := hardware.unavailable()):
        for item in mine:
            item.add_marker(pytest.mark.skip(reason=f"opencl: {why}"))
