"""What all tests share: a clean environment, one hypothesis profile, and `--bless`.

No test sees the caches of whoever runs it, nor what another test left in its own: each has an empty
cache directory, which the processes that it starts inherit. It is made when somebody writes.
"""

import itertools
import os
import shutil
import tempfile

import pytest
from hypothesis import settings

# Timing never decides a test, and two runs of the same tree test the same examples.
settings.register_profile("tests", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("tests")


pytest_plugins = ["tests.twins.plugin"]


def pytest_addoption(parser):
    parser.addoption(
        "--bless",
        action="store_true",
        help="rewrite the expected output of file tests with what comes out now",
    )


_cache_root = ""
_test_numbers = itertools.count(1)


def pytest_configure(config):
    # Before any fixture: what is started by fixtures of wider scope is isolated, too.
    global _cache_root
    _cache_root = tempfile.mkdtemp(prefix="qd-studio-tests-")
    os.environ["XDG_CACHE_HOME"] = os.path.join(_cache_root, "shared")
    # Compiling the engine's modules anew takes most of the time of a short process.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


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
def _no_options_from_outside(monkeypatch):
    """The options of whoever runs the tests must not steer them."""
    for name in list(os.environ):
        if name.startswith("QD_"):
            monkeypatch.delenv(name)
