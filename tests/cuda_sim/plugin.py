"""Every test that runs programs on the CPU runs them with CUDA as well: a twin of the test.

In a twin ``qd.cpu`` means CUDA: `runtime.arch` is told so, for whatever way a program asks for the
CPU. On a machine with a CUDA device twins run there, else on the simulated one of `cuda_sim`. Every
launch waits (``CUDA_LAUNCH_BLOCKING=1``), so that errors come where tests expect them.

    --cuda-sim=some     the default: on the simulator a choice of twins, `_SHARE`
    --cuda-sim=all      all of them, also on the simulator
    --cuda-sim=none     none
    --cuda-only         twins and the tests marked ``cuda``, nothing else

Where a test runs with memory that the host does not see, too (its parameter is ``device``, see
`tests.lang.opaque`), that one has the twin: it knows that nobody gets a view of such memory.

A twin is named after its test, with ``cuda`` for ``cpu``: ``test_sum[cpu]`` has ``test_sum[cuda]``,
``test_wrap`` has ``test_wrap[cuda]``. Which tests have none, and why, stand in `NOT`; a twin skips
with the reason. The summary says how many ran, on what, and how many of them used the device.

On a machine with a device, in the root of the tree::

    python -m pytest -q -n 14 --cuda-only -p no:cacheprovider tests

Workers share nothing: folders are a process's own, and a program takes little of the memory.
"""

from __future__ import annotations

import importlib.util
import zlib
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import pytest

from . import cuda, on_device
from .not_on_cuda import NOT

__all__ = ["NOT"]

_ROOMS = ("adstack", "autodiff", "backends", "caches", "inspect", "kernels", "lang",
          "runtime", "samples")  # fmt: skip
"""Rooms of tests that run programs."""
_FILES = ("tests/fuzz/test_blocks.py", "tests/fuzz/test_calls.py")
"""Files of other rooms that do."""
_OTHERS = ("interp", "x64", "arm64", "cuda", "device")
"""Parameters of tests that mean another backend; "device" is that of `tests.lang.opaque`."""
_SHARE = 8
"""On the simulator, one in so many twins runs if not all do."""


def possible() -> bool:
    """Whether twins can run: the bindings are there."""
    try:
        return importlib.util.find_spec("cuda.bindings.driver") is not None
    except ModuleNotFoundError:
        return False


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--cuda-sim",
        choices=("none", "some", "all"),
        default="some",
        help="which tests run on the simulated CUDA device, where there is no real one",
    )
    parser.addoption(
        "--cuda-only", action="store_true", help="only tests that run programs with CUDA"
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "cuda: runs programs with CUDA; with share=True only as twins do"
    )
    config.addinivalue_line("markers", "not_on_cuda(reason): has nothing to do with CUDA")


def _is_cpu(value: Any) -> bool:
    if isinstance(value, tuple | list):
        return any(map(_is_cpu, value))
    return isinstance(value, str) and value == "cpu"


def _is_other(value: Any) -> bool:
    """Whether a parameter names another backend."""
    if isinstance(value, tuple | list):
        return any(map(_is_other, value))
    return isinstance(value, str) and value in _OTHERS


def _room(item: pytest.Item) -> str:
    path = item.nodeid.split("/")
    return path[1] if path[0] == "tests" and len(path) > 2 else ""


def _name(item: pytest.Function) -> str:
    name = item.name
    if "[" not in name:
        return f"{name}[cuda]"
    start, _, rest = name.partition("[")
    parts = rest[:-1].split("-")
    for word in ("device", "cpu"):
        if word in parts:
            return f"{start}[{'-'.join('cuda' if p == word else p for p in parts)}]"
    return f"{start}[cuda-{rest}"


Far = set[tuple[str, str]]


def _far(items: list[pytest.Item]) -> Far:
    """Parameters that are ``device`` in some test of a file: (file, name of the parameter)."""
    return {
        (item.nodeid.partition("::")[0], name)
        for item in items
        if getattr(item, "callspec", None) is not None
        for name, value in item.callspec.params.items()
        if isinstance(value, str) and value == "device"
    }


def _is_near(item: pytest.Function, far: Far) -> bool:
    """Whether a test counts on memory that the host sees, or has one beside it that does not."""
    callspec = getattr(item, "callspec", None)
    params = callspec.params if callspec is not None else {}
    file = item.nodeid.partition("::")[0]
    return any((file, name) in far and value != "device" for name, value in params.items())


def why_not(item: pytest.Item) -> str:
    """Why a test has nothing to do with CUDA; empty if it has."""
    path = item.nodeid.partition("::")[0]
    test = item.nodeid.partition("[")[0]
    marker = item.get_closest_marker("not_on_cuda")
    if marker is not None:
        return str(marker.args[0])
    return NOT.get(test, "") or NOT.get(path, "")


class Twin(pytest.Function):
    """A test once more, under another name."""

    def rename(self, nodeid: str) -> None:
        """Have this for `nodeid`, which would be that of the test."""
        known = getattr(self, "_id", None)  # of newer versions of pytest
        if known is not None:
            self._id = type(known).parse(nodeid)
        self._nodeid = nodeid


def _twin(item: pytest.Function, far: Far) -> pytest.Function | None:
    runs = _room(item) in _ROOMS or item.nodeid.startswith(_FILES)
    if not runs or _is_near(item, far) or item.get_closest_marker("cuda"):
        return None
    callspec = getattr(item, "callspec", None)
    values = list(callspec.params.values()) if callspec else []
    if any(map(_is_other, values)) and not any(map(_is_cpu, values)):
        return None
    more = {"callspec": callspec} if callspec is not None else {}
    twin = Twin.from_parent(
        item.parent, name=_name(item), callobj=item.obj, fixtureinfo=item._fixtureinfo,
        originalname=item.originalname, **more,
    )  # fmt: skip
    twin.rename(f"{item.nodeid.removesuffix(item.name)}{twin.name}")
    twin.add_marker(pytest.mark.cuda)
    reason = why_not(item)
    if reason:
        twin.add_marker(pytest.mark.skip(reason=f"not on CUDA: {reason}"))
    return twin


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    which = "all" if on_device() else config.getoption("--cuda-sim")
    which = which if possible() else "none"
    if which != "all":
        gone = [item for item in items if _shares(item) and not (which == "some" and _chosen(item))]
        config.hook.pytest_deselected(items=gone)
        items[:] = [item for item in items if item not in set(gone)]
    if which != "none":
        found: list[pytest.Item] = []
        far = _far(items)
        for item in items:
            found.append(item)
            twin = _twin(item, far) if type(item) is pytest.Function else None
            if twin is not None and (which == "all" or _chosen(twin)):
                found.append(twin)
        items[:] = found
    if config.getoption("--cuda-only"):
        kept = [item for item in items if item.get_closest_marker("cuda")]
        config.hook.pytest_deselected(items=[i for i in items if i not in set(kept)])
        items[:] = kept


def _shares(item: pytest.Item) -> bool:
    """Whether a test is one of those of which a choice runs, without being a twin."""
    mark = item.get_closest_marker("cuda")
    return mark is not None and bool(mark.kwargs.get("share"))


def _chosen(item: pytest.Item) -> bool:
    skipped = any(mark.name == "skip" for mark in item.iter_markers())
    return not skipped and zlib.crc32(item.nodeid.encode()) % _SHARE == 0


@contextmanager
def _cpu_is_cuda() -> Generator[None]:
    """Programs that ask for the CPU get CUDA."""
    from qd_studio.engine.runtime import arch

    support = arch.support

    def redirected(name: str) -> tuple[str, str]:
        return support("cuda" if name in ("cpu", "x64", "arm64") else name)

    arch.support = redirected
    try:
        yield
    finally:
        arch.support = support


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: Any) -> Generator[None, Any, Any]:
    if not isinstance(item, Twin) or any(m.name == "skip" for m in item.iter_markers()):
        return (yield)
    with cuda(), _cpu_is_cuda():
        return (yield)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """How many tests ran with CUDA, and what kept others from it."""
    ran, failed, reasons = 0, [], Counter[str]()
    for outcome in ("passed", "failed", "error", "skipped"):
        for report in terminalreporter.getreports(outcome):
            if "cuda" not in getattr(report, "keywords", {}):
                continue
            if outcome == "skipped":
                text = str(report.longrepr[2] if report.longrepr else "")
                reasons[text.removeprefix("Skipped: ")] += 1
            else:
                ran += 1
                if outcome != "passed":
                    failed.append(report.nodeid)
    if not ran and not reasons:
        return
    where = "the device" if on_device() else "the simulator"
    terminalreporter.write_sep("-", f"CUDA: {ran} tests ran on {where}, {len(failed)} failed")
    for reason, count in reasons.most_common():
        terminalreporter.write_line(f"  {count} skipped: {reason}")
