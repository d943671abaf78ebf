"""What all tests share: a clean environment, one hypothesis profile, and `--bless`."""

import os

import pytest
from hypothesis import settings

# Timing never decides a test, and two runs of the same tree test the same examples.
settings.register_profile("tests", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("tests")


def pytest_addoption(parser):
    parser.addoption(
        "--bless",
        action="store_true",
        help="rewrite the expected output of file tests with what comes out now",
    )


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
