"""What all tests share: a clean environment, one hypothesis profile, and `--bless`.

No test sees the caches of the user who runs it, nor what another test left in its own: each has an
empty cache directory, which the processes that it starts inherit. It is made at the first write.
"""

import collections
import contextlib
import gc
import importlib.util
import itertools
import math
import os
import shutil
import tempfile
import zlib
from pathlib import Path

import pytest
from hypothesis import settings

# Timing never decides a test, and two runs of the same tree test the same examples.
settings.register_profile("tests", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("tests")


pytest_plugins = ["tests.backend_variants.plugin"]


def pytest_addoption(parser):
    parser.addoption(
        "--bless",
        action="store_true",
        help="rewrite the expected output of file tests with what comes out now",
    )
    parser.addoption(
        "--tiered", default="mixed", metavar="mixed|auto|exact|off",
        help="QD_TIERED of all tests that choose no tiers themselves; mixed: full code alone in "
        "three quarters of them, as few of their kernels are launched often enough to get it",
    )  # fmt: skip
    parser.addoption(
        "--thorough",
        action="store_true",
        help="every case of the tests marked sampled(n); else half of them, most in slow runs",
    )


_cache_root = ""
_test_numbers = itertools.count(1)


def pytest_configure(config):
    # Before any fixture: what is started by fixtures of wider scope is isolated, too.
    global _cache_root
    _cache_root = tempfile.mkdtemp(prefix="qd-studio-tests-")
    os.environ["XDG_CACHE_HOME"] = os.path.join(_cache_root, "shared")
    os.environ["XDG_STATE_HOME"] = state = os.path.join(_cache_root, "state")
    os.makedirs(os.path.join(state, "qd-studio"))
    with open(os.path.join(state, "qd-studio", "studio.json"), "w") as kept:
        # As if the studio had been started before: no tour is offered, and IR has its exact form.
        kept.write('{"tour": true, "readable": false}')
    # Compiling the engine's modules again takes most of the time of a short process.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    config.addinivalue_line("markers", "slow: left out by default; `-m slow` runs it")
    config.addinivalue_line("markers", "sampled(n): one case in n runs by default")
    about = "extra(*modules): needs them, which `pip install -e '.[clients]'` installs"
    config.addinivalue_line("markers", about)


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session):
    """In a run of everything each worker imports its own share of the modules of tests first.

    To rewrite their assertions takes most of the time before the first test. The result is a file,
    so that workers use what the others have written for the rest.
    """
    here = Path(__file__).parent
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    if workers == 1 or [Path(arg).resolve() for arg in session.config.args] != [here]:
        return
    number = int(os.environ["PYTEST_XDIST_WORKER"].removeprefix("gw"))
    modules = sorted(here.rglob("test_*.py"))
    first, last = (len(modules) * n // workers for n in (number, number + 1))
    for path in modules[first:last]:
        name = path.relative_to(here.parent).with_suffix("")
        # Collection reports what cannot be imported.
        with contextlib.suppress(Exception, pytest.skip.Exception):
            importlib.import_module(".".join(name.parts))


def _skip_without_extras(items):
    """Skip tests marked ``extra(*modules)`` where one of these is not installed."""
    for item in items:
        needed = {name for mark in item.iter_markers("extra") for name in mark.args}
        missing = [name for name in sorted(needed) if importlib.util.find_spec(name) is None]
        if missing:
            item.add_marker(pytest.mark.skip(reason=f"not installed: {', '.join(missing)}"))


def pytest_collection_modifyitems(config, items):
    """Of the cases of a test marked ``sampled(n)`` one in n, and at least one, is not slow; others
    up to a half are slow, and ``--thorough`` adds the rest.

    A digest of the name chooses, so that no parameter is left out throughout. The variants that run
    elsewhere count by themselves.
    """
    _skip_without_extras(items)
    cases = collections.defaultdict(list)
    for item in items:
        if item.get_closest_marker("sampled") is not None:
            elsewhere = any(map(item.get_closest_marker, ("cuda", "opencl")))
            cases[item.nodeid.partition("[")[0], elsewhere].append(item)
    rest = set()
    for found in cases.values():
        one_in = found[0].get_closest_marker("sampled").args[0]
        found.sort(key=lambda item: zlib.crc32(item.nodeid.encode()))
        for item in found[math.ceil(len(found) / one_in) :]:
            item.add_marker("slow")
        rest.update(found[math.ceil(len(found) / min(one_in, 2)) :])
    if rest and not config.getoption("--thorough"):
        config.hook.pytest_deselected(items=[item for item in items if item in rest])
        items[:] = [item for item in items if item not in rest]


@pytest.hookimpl(trylast=True)
def pytest_collection_finish():
    # The garbage collector would look at all of the collected tests again and again.
    gc.collect()
    gc.freeze()


def pytest_unconfigure(config):
    shutil.rmtree(_cache_root, ignore_errors=True)


@pytest.fixture(autouse=True)
def _caches_of_its_own(monkeypatch):
    """Each test starts with an empty cache directory."""
    folder = os.path.join(_cache_root, str(next(_test_numbers)))
    monkeypatch.setenv("XDG_CACHE_HOME", folder)


@pytest.fixture
def bless(request) -> bool:
    """Whether file tests should accept what they see and write it down."""
    return request.config.getoption("--bless")


@pytest.fixture(autouse=True)
def _no_options_from_outside(monkeypatch, request):
    """The options of the user who runs the tests must not steer them."""
    for name in list(os.environ):
        if name.startswith("QD_"):
            monkeypatch.delenv(name)
    tiered = request.config.getoption("--tiered")
    if tiered == "mixed":
        tiered = "off" if zlib.crc32(request.node.nodeid.encode()) % 4 else "auto"
    monkeypatch.setenv("QD_TIERED", tiered)
