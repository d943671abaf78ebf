"""Tests parametrised by backend: each test that runs programs on the CPU has variants elsewhere.

In a variant ``qd.cpu`` means CUDA or OpenCL: `_cpu_means` redirects `runtime.arch`, however a
program asks for the CPU. `backends` describes both.

On a machine with a CUDA device its variants run there, else on the simulator of `cuda_sim`, where
every launch waits (``CUDA_LAUNCH_BLOCKING=1``), so that errors are raised where tests expect them:

    --cuda-sim=some     the default: one variant in eight runs on the simulator
    --cuda-sim=all      all variants run, also on the simulator
    --cuda-sim=none     no variant runs
    --cuda-only         run variants and tests marked ``cuda``, nothing else

Variants for OpenCL run on the embedded PoCL, or on any device that the options name:

    --opencl=some       the default: one variant in sixteen (`none`, `all`)
    --opencl-only       run variants and tests marked ``opencl``, nothing else
    --opencl-mapping=   ``chunks`` or ``lanes`` (see `engine.backends.opencl`), ``auto``: the
                        device's own, ``mixed``, the default: half of the variants each
    --opencl-device=    as ``QD_OPENCL_DEVICE``, such as ``nvidia:0``
    --opencl-il         compile to SPIR-V where the device takes it; skip what SPIR-V lacks
    --variants-part=K/N run part K (from 0) of N parts of all variants

Of the variants that ``some`` chooses every second one is slow: ``-m "not slow"`` is the default.

If a test also runs with memory that the host cannot see (its parameter is ``device``, see
`tests.lang.opaque`), only that one has a variant: it expects no views of such memory.

A variant is named after its test, with ``cuda`` for ``cpu``: ``test_sum[cpu]`` has
``test_sum[cuda]``, ``test_wrap`` has ``test_wrap[cuda]``. `reasons` lists tests without variants;
such a variant skips with the reason. The summary counts variants, and gives reasons for skips.

On a machine with a device, in the root of the tree::

    python -m pytest -q -n 14 -m "" --cuda-only -p no:cacheprovider tests
    OCL_ICD_VENDORS=/folder python -m pytest -m "" --opencl=all --opencl-only \\
        --opencl-device=nvidia:0 --opencl-mapping=auto tests

Workers share nothing: folders are a process's own, and a program needs little of the memory.
PoCL's own cache is off, which is the engine's default, so each variant compiles what it runs.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.cuda_sim import on_device

from .backends import BACKENDS, CUDA, MAPPINGS, OPENCL, VariantBackend, mapping_of
from .reasons import NOT_IN_SPIRV

_FOLDERS = ("adstack", "autodiff", "backends", "caches", "inspect", "kernels", "lang",
          "runtime", "samples")  # fmt: skip
"""Folders of tests that run programs."""
_FILES = ("tests/fuzz/test_blocks.py", "tests/fuzz/test_calls.py")
"""Files in other folders that do."""
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
    add("--variants-part", default="0/1", metavar="K/N", help="only part K of N of all variants")


def pytest_configure(config: pytest.Config) -> None:
    for backend in BACKENDS:
        config.addinivalue_line(
            "markers",
            f"{backend.name}: runs programs with {backend.title}; share=True: a sample of them",
        )
    config.addinivalue_line("markers", "not_on_device(reason): has no variant on any device")


def _is_cpu(value: Any) -> bool:
    if isinstance(value, tuple | list):
        return any(map(_is_cpu, value))
    return isinstance(value, str) and value == "cpu"


def _is_other(value: Any) -> bool:
    """Whether a parameter names another backend."""
    if isinstance(value, tuple | list):
        return any(map(_is_other, value))
    return isinstance(value, str) and value in _OTHERS


def _folder(item: pytest.Item) -> str:
    path = item.nodeid.split("/")
    return path[1] if path[0] == "tests" and len(path) > 2 else ""


def _name(item: pytest.Function, backend: VariantBackend) -> str:
    name = item.name
    if "[" not in name:
        return f"{name}[{backend.name}]"
    start, _, rest = name.partition("[")
    parts = rest[:-1].split("-")
    for word in ("device", "cpu"):
        if word in parts:
            return f"{start}[{'-'.join(backend.name if p == word else p for p in parts)}]"
    return f"{start}[{backend.name}-{rest}"


DeviceParameters = set[tuple[str, str]]


def _device_parameters(items: list[pytest.Item]) -> DeviceParameters:
    """Parameters that are ``device`` in some test of a file: (file, name of the parameter)."""
    return {
        (item.nodeid.partition("::")[0], name)
        for item in items
        if getattr(item, "callspec", None) is not None
        for name, value in item.callspec.params.items()
        if isinstance(value, str) and value == "device"
    }


def _is_host_version(item: pytest.Function, device_parameters: DeviceParameters) -> bool:
    """Whether a test counts on memory that the host sees, or has one beside it that does not."""
    callspec = getattr(item, "callspec", None)
    params = callspec.params if callspec is not None else {}
    file = item.nodeid.partition("::")[0]
    return any(
        (file, name) in device_parameters and value != "device" for name, value in params.items()
    )


def why_not(item: pytest.Item, backend: VariantBackend) -> str:
    """Why a test has nothing to do with a backend; empty if it has."""
    path = item.nodeid.partition("::")[0]
    test = item.nodeid.partition("[")[0]
    marker = item.get_closest_marker("not_on_device")
    if marker is not None:
        return str(marker.args[0])
    folder = f"{path.rpartition('/')[0]}/"
    reasons = backend.reasons
    return reasons.get(test, "") or reasons.get(path, "") or reasons.get(folder, "")


class Variant(pytest.Function):
    """A test once more, under another name. number: chooses which variants run."""

    backend: VariantBackend
    number: int

    def begin(self, test: pytest.Function, backend: VariantBackend) -> None:
        """Have the name of a variant in all that would be named like the test."""
        nodeid = f"{test.nodeid.removesuffix(test.name)}{self.name}"
        known = getattr(self, "_id", None)  # of newer versions of pytest
        if known is not None:
            self._id = type(known).parse(nodeid)
        self._nodeid = nodeid
        self.backend, self.number = backend, _number(nodeid)
        self.add_marker(getattr(pytest.mark, backend.name))


def _number(nodeid: str) -> int:
    return zlib.crc32(nodeid.encode())


def _variant(
    item: pytest.Function, device_parameters: DeviceParameters, backend: VariantBackend
) -> Variant | None:
    runs = _folder(item) in _FOLDERS or item.nodeid.startswith(_FILES)
    if (
        not runs
        or _is_host_version(item, device_parameters)
        or any(map(item.get_closest_marker, ("cuda", "opencl")))
    ):
        return None
    callspec = getattr(item, "callspec", None)
    values = list(callspec.params.values()) if callspec else []
    if any(map(_is_other, values)) and not any(map(_is_cpu, values)):
        return None
    more = {"callspec": callspec} if callspec is not None else {}
    variant = Variant.from_parent(
        item.parent, name=_name(item, backend), callobj=item.obj, fixtureinfo=item._fixtureinfo,
        originalname=item.originalname, **more,
    )  # fmt: skip
    variant.begin(item, backend)
    reason = why_not(item, backend)
    if reason:
        variant.add_marker(pytest.mark.skip(reason=f"not on {backend.title}: {reason}"))
    return variant


def _which(config: pytest.Config, backend: VariantBackend) -> str:
    """Which tests run on this backend: ``none``, ``some``, ``all``."""
    chosen = config.getoption("--opencl" if backend is OPENCL else "--cuda-sim")
    if backend is CUDA and on_device():
        chosen = "all"
    others = [other for other in BACKENDS if other is not backend]
    if any(config.getoption(f"--{other.name}-only") for other in others):
        chosen = "none"
    return chosen if chosen != "none" and backend.possible() else "none"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    device_parameters = _device_parameters(items)
    part, parts = map(int, config.getoption("--variants-part").split("/"))
    which = {backend: _which(config, backend) for backend in BACKENDS}
    gone = [
        item
        for item in items
        for backend in BACKENDS
        if (mark := item.get_closest_marker(backend.name)) is not None
        and not _runs(item, which[backend], backend, bool(mark.kwargs.get("share")))
    ]
    if gone:
        config.hook.pytest_deselected(items=gone)
        items[:] = [item for item in items if item not in set(gone)]
    found: list[pytest.Item] = []
    for item in items:
        found.append(item)
        for backend in BACKENDS:
            if which[backend] == "none" or type(item) is not pytest.Function:
                continue
            variant = _variant(item, device_parameters, backend)
            if (
                variant is not None
                and variant.number // 32 % parts == part
                and _runs(variant, which[backend], backend, True)
            ):
                if which[backend] == "some" and variant.number // backend.share // 2 % 2:
                    variant.add_marker("slow")
                found.append(variant)
    items[:] = found
    for backend in BACKENDS:
        if config.getoption(f"--{backend.name}-only"):
            kept = [item for item in items if item.get_closest_marker(backend.name)]
            config.hook.pytest_deselected(items=[i for i in items if i not in set(kept)])
            items[:] = kept


def _runs(item: pytest.Item, which: str, backend: VariantBackend, shares: bool) -> bool:
    """True if a test of this backend is chosen; one that is no sample always is."""
    if which == "all" or not shares:
        return True
    skipped = any(mark.name == "skip" for mark in item.iter_markers())
    return which == "some" and not skipped and _number(item.nodeid) % backend.share == 0


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


@contextmanager
def _program_on(name: str, **options: Any) -> Generator[str, None, None]:
    from qd_studio import engine as qd

    qd.init(arch=getattr(qd, name), log_level="error", **options)
    yield name
    qd.reset()


@pytest.fixture(params=("cpu", "interp"))
def arch(request):
    """A program on the CPU and in the interpreter; the name of its arch."""
    with _program_on(request.param) as name:
        yield name


@pytest.fixture
def program():
    """A program on the CPU that finds nothing in the offline cache."""
    with _program_on("cpu", offline_cache=False):
        yield


@pytest.fixture
def interp():
    """A program in the interpreter."""
    with _program_on("interp", offline_cache=False):
        yield


@pytest.fixture(autouse=True)
def _opencl_of_choice(request, _no_options_from_outside, monkeypatch):
    """Tests that run programs with OpenCL have the device and mapping that were asked for."""
    if request.node.get_closest_marker("opencl") is None:
        return
    option = request.config.getoption
    nodeid, il = request.node.nodeid, option("--opencl-il")
    mapping = mapping_of(option("--opencl-mapping"), _number(nodeid), nodeid)
    file = nodeid.partition("::")[0]
    why = NOT_IN_SPIRV.get(f"{file}::{request.node.originalname}")
    if il and why:
        pytest.skip(f"not in SPIR-V: {why}")
    for name, value in (
        ("QD_OPENCL_MAPPING", "" if il else mapping),
        ("QD_OPENCL_DEVICE", option("--opencl-device")),
        ("QD_OPENCL_IL", "1" if il else ""),
        ("QD_OPENCL_BLOCKING", "1"),  # errors come where tests expect them
    ):
        if value:
            monkeypatch.setenv(name, value)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: Any) -> Generator[None, Any, Any]:
    if not isinstance(item, Variant) or any(m.name == "skip" for m in item.iter_markers()):
        return (yield)
    with item.backend.within(), _cpu_means(item.backend.name):
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
    """How many tests ran on each backend, and what kept others from it."""
    for backend in BACKENDS:
        _summary(terminalreporter, backend)


def _summary(terminalreporter: Any, backend: VariantBackend) -> None:
    ran, failed, reasons = 0, [], Counter[str]()
    for outcome in ("passed", "failed", "error", "skipped"):
        for report in terminalreporter.getreports(outcome):
            if backend.name not in getattr(report, "keywords", {}):
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
    where = backend.where(terminalreporter.config.getoption)
    text = f"{backend.title}: {ran} tests ran on {where}, {len(failed)} failed"
    terminalreporter.write_sep("-", text)
    for reason, count in reasons.most_common():
        terminalreporter.write_line(f"  {count} skipped: {reason}")
