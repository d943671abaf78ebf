"""Every test that runs programs on the CPU runs them on other backends as well: twins of the test.

In a twin ``qd.cpu`` means CUDA, or OpenCL: `runtime.arch` is told so, for whatever way a program
asks for the CPU. What these backends are, is said in `sides`.

On a machine with a CUDA device twins run there, else on the simulated one of `cuda_sim`, where
every launch waits (``CUDA_LAUNCH_BLOCKING=1``), so that errors come where tests expect them:

    --cuda-sim=some     the default: on the simulator a choice of twins, one in eight
    --cuda-sim=all      all of them, also on the simulator
    --cuda-sim=none     none
    --cuda-only         twins and the tests marked ``cuda``, nothing else

Twins of OpenCL run on the embedded PoCL, or on any device that the options name:

    --opencl=some       the default: one twin in sixteen (`none`, `all`)
    --opencl-only       twins and the tests marked ``opencl``, nothing else
    --opencl-mapping=   ``chunks`` or ``lanes`` (see `engine.backends.opencl`), ``auto``: as the
                        device has it, ``mixed``, the default: half of the twins each
    --opencl-device=    as ``QD_OPENCL_DEVICE``, such as ``nvidia:0``
    --opencl-il         programs give it SPIR-V, where it takes that; what SPIR-V lacks is skipped
    --twins-part=K/N    of all twins those of one of N parts, K from 0

Where a test runs with memory that the host does not see, too (its parameter is ``device``, see
`tests.lang.opaque`), that one has the twin: it knows that nobody gets a view of such memory.

A twin is named after its test, with ``cuda`` for ``cpu``: ``test_sum[cpu]`` has ``test_sum[cuda]``,
``test_wrap`` has ``test_wrap[cuda]``. Which tests have none, and why, stand in `reasons`; a twin
skips with the reason. The summary says how many ran, on what, and why others did not.

On a machine with a device, in the root of the tree::

    python -m pytest -q -n 14 --cuda-only -p no:cacheprovider tests
    OCL_ICD_VENDORS=/folder python -m pytest --opencl=all --opencl-only \\
        --opencl-device=nvidia:0 --opencl-mapping=auto tests

Workers share nothing: folders are a process's own, and a program takes little of the memory.
PoCL's own cache is off, as the engine leaves it, so that each twin compiles what it runs.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.cuda_sim import on_device

from .reasons import NOT_IN_SPIRV
from .sides import CUDA, MAPPINGS, OPENCL, SIDES, Side, mapping_of

_ROOMS = ("adstack", "autodiff", "backends", "caches", "inspect", "kernels", "lang",
          "runtime", "samples")  # fmt: skip
"""Rooms of tests that run programs."""
_FILES = ("tests/fuzz/test_blocks.py", "tests/fuzz/test_calls.py")
"""Files of other rooms that do."""
_OTHERS = ("interp", "x64", "arm64", "cuda", "opencl", "device")
"""Parameters of tests that mean another backend; "device" is that of `tests.lang.opaque`."""


def pytest_addoption(parser: pytest.Parser) -> None:
    add, which = parser.addoption, ("none", "some", "all")
    add("--cuda-sim", choices=which, default="some",
        help="which tests run on the simulated CUDA device, where no real one is")  # fmt: skip
    add("--cuda-only", action="store_true", help="only tests that run programs with CUDA")
    add("--opencl", choices=which, default="some", help="which tests run with OpenCL")
    add("--opencl-only", action="store_true", help="only tests that run programs with OpenCL")
    add("--opencl-mapping", choices=("mixed", "auto", *MAPPINGS), default="mixed",
        help="how loops are mapped in tests that run with OpenCL")  # fmt: skip
    add("--opencl-device", default="", help="which device they run on, as QD_OPENCL_DEVICE")
    add("--opencl-il", action="store_true", help="they give it SPIR-V, as QD_OPENCL_IL")
    add("--twins-part", default="0/1", metavar="K/N", help="only this one of N parts of all twins")


def pytest_configure(config: pytest.Config) -> None:
    for side in SIDES:
        config.addinivalue_line(
            "markers",
            f"{side.name}: runs programs with {side.title}; with share=True only as twins do",
        )
    config.addinivalue_line("markers", "not_on_device(reason): has no twin on any device")


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


def _name(item: pytest.Function, side: Side) -> str:
    name = item.name
    if "[" not in name:
        return f"{name}[{side.name}]"
    start, _, rest = name.partition("[")
    parts = rest[:-1].split("-")
    for word in ("device", "cpu"):
        if word in parts:
            return f"{start}[{'-'.join(side.name if p == word else p for p in parts)}]"
    return f"{start}[{side.name}-{rest}"


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


def why_not(item: pytest.Item, side: Side) -> str:
    """Why a test has nothing to do with a backend; empty if it has."""
    path = item.nodeid.partition("::")[0]
    test = item.nodeid.partition("[")[0]
    marker = item.get_closest_marker("not_on_device")
    if marker is not None:
        return str(marker.args[0])
    folder = f"{path.rpartition('/')[0]}/"
    reasons = side.reasons
    return reasons.get(test, "") or reasons.get(path, "") or reasons.get(folder, "")


class Twin(pytest.Function):
    """A test once more, under another name. number: chooses which twins run."""

    side: Side
    number: int

    def begin(self, test: pytest.Function, side: Side) -> None:
        """Have the name of a twin in all that would be named like the test."""
        nodeid = f"{test.nodeid.removesuffix(test.name)}{self.name}"
        known = getattr(self, "_id", None)  # of newer versions of pytest
        if known is not None:
            self._id = type(known).parse(nodeid)
        self._nodeid = nodeid
        self.side, self.number = side, _number(nodeid)
        self.add_marker(getattr(pytest.mark, side.name))


def _number(nodeid: str) -> int:
    return zlib.crc32(nodeid.encode())


def _twin(item: pytest.Function, far: Far, side: Side) -> Twin | None:
    runs = _room(item) in _ROOMS or item.nodeid.startswith(_FILES)
    if not runs or _is_near(item, far) or any(map(item.get_closest_marker, ("cuda", "opencl"))):
        return None
    callspec = getattr(item, "callspec", None)
    values = list(callspec.params.values()) if callspec else []
    if any(map(_is_other, values)) and not any(map(_is_cpu, values)):
        return None
    more = {"callspec": callspec} if callspec is not None else {}
    twin = Twin.from_parent(
        item.parent, name=_name(item, side), callobj=item.obj, fixtureinfo=item._fixtureinfo,
        originalname=item.originalname, **more,
    )  # fmt: skip
    twin.begin(item, side)
    reason = why_not(item, side)
    if reason:
        twin.add_marker(pytest.mark.skip(reason=f"not on {side.title}: {reason}"))
    return twin


def _which(config: pytest.Config, side: Side) -> str:
    """Which tests run on this side: ``none``, ``some``, ``all``."""
    chosen = config.getoption("--opencl" if side is OPENCL else "--cuda-sim")
    if side is CUDA and on_device():
        chosen = "all"
    others = [other for other in SIDES if other is not side]
    if any(config.getoption(f"--{other.name}-only") for other in others):
        chosen = "none"
    return chosen if chosen != "none" and side.possible() else "none"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    far = _far(items)
    part, parts = map(int, config.getoption("--twins-part").split("/"))
    which = {side: _which(config, side) for side in SIDES}
    gone = [
        item
        for item in items
        for side in SIDES
        if (mark := item.get_closest_marker(side.name)) is not None
        and not _runs(item, which[side], side, bool(mark.kwargs.get("share")))
    ]
    if gone:
        config.hook.pytest_deselected(items=gone)
        items[:] = [item for item in items if item not in set(gone)]
    found: list[pytest.Item] = []
    for item in items:
        found.append(item)
        for side in SIDES:
            if which[side] == "none" or type(item) is not pytest.Function:
                continue
            twin = _twin(item, far, side)
            if (
                twin is not None
                and twin.number // 32 % parts == part
                and _runs(twin, which[side], side, True)
            ):
                found.append(twin)
    items[:] = found
    for side in SIDES:
        if config.getoption(f"--{side.name}-only"):
            kept = [item for item in items if item.get_closest_marker(side.name)]
            config.hook.pytest_deselected(items=[i for i in items if i not in set(kept)])
            items[:] = kept


def _runs(item: pytest.Item, which: str, side: Side, shares: bool) -> bool:
    """Whether a test of this side is among those that run; those that do not share always are."""
    if which == "all" or not shares:
        return True
    skipped = any(mark.name == "skip" for mark in item.iter_markers())
    return which == "some" and not skipped and _number(item.nodeid) % side.share == 0


@contextmanager
def _cpu_means(name: str) -> Generator[None]:
    """Programs that ask for the CPU get another backend."""
    from qd_studio.engine.runtime import arch

    support = arch.support

    def redirected(wanted: str) -> tuple[str, str]:
        return support(name if wanted in ("cpu", "x64", "arm64") else wanted)

    arch.support = redirected
    try:
        yield
    finally:
        arch.support = support


@pytest.fixture(autouse=True)
def _opencl_of_choice(request, _no_options_from_outside, monkeypatch):
    """Tests that run programs with OpenCL have the device and mapping that were asked for."""
    if request.node.get_closest_marker("opencl") is None:
        return
    option = request.config.getoption
    number, il = _number(request.node.nodeid), option("--opencl-il")
    file = request.node.nodeid.partition("::")[0]
    why = NOT_IN_SPIRV.get(f"{file}::{request.node.originalname}")
    if il and why:
        pytest.skip(f"not in SPIR-V: {why}")
    for name, value in (
        ("QD_OPENCL_MAPPING", "" if il else mapping_of(option("--opencl-mapping"), number)),
        ("QD_OPENCL_DEVICE", option("--opencl-device")),
        ("QD_OPENCL_IL", "1" if il else ""),
        ("QD_OPENCL_BLOCKING", "1"),  # errors come where tests expect them
    ):
        if value:
            monkeypatch.setenv(name, value)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: Any) -> Generator[None, Any, Any]:
    if not isinstance(item, Twin) or any(m.name == "skip" for m in item.iter_markers()):
        return (yield)
    with item.side.within(), _cpu_means(item.side.name):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, Any, Any]:
    """A kernel that SPIR-V is refused for is no failure of a test that is given SPIR-V."""
    given = pyfuncitem.get_closest_marker("opencl") is not None
    if not given or not pyfuncitem.config.getoption("--opencl-il"):
        return (yield)
    from qd_studio.engine.errors import QuadrantsUnsupportedError

    try:
        return (yield)
    except QuadrantsUnsupportedError as error:
        if error.backend != "spirv":
            raise
        pytest.skip(f"not in SPIR-V: {error.feature}")


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """How many tests ran on each side, and what kept others from it."""
    for side in SIDES:
        _summary(terminalreporter, side)


def _summary(terminalreporter: Any, side: Side) -> None:
    ran, failed, reasons = 0, [], Counter[str]()
    for outcome in ("passed", "failed", "error", "skipped"):
        for report in terminalreporter.getreports(outcome):
            if side.name not in getattr(report, "keywords", {}):
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
    where = side.where(terminalreporter.config.getoption)
    text = f"{side.title}: {ran} tests ran on {where}, {len(failed)} failed"
    terminalreporter.write_sep("-", text)
    for reason, count in reasons.most_common():
        terminalreporter.write_line(f"  {count} skipped: {reason}")
