"""A folder of its own for each test, and warnings that are given again in each."""

import pytest
from qd_studio.engine import logs
from qd_studio.engine.cache import cleaning, folder, store
from qd_studio.engine.cache.store import Store

from tests.caches import shelf
from tests.caches.lab import Lab
from tests.caches.two_runs import Runs


@pytest.fixture(autouse=True)
def _fresh(monkeypatch):
    """What a process remembers of folders is forgotten; no earlier program hides warnings."""
    monkeypatch.setattr(logs, "_threshold", logs.LEVELS.index("info"))
    monkeypatch.setattr(folder, "_warned", set())
    monkeypatch.setattr(folder, "_dry", False)
    monkeypatch.setattr(cleaning, "_roots", {})
    monkeypatch.setattr(store, "_stores", {})
    monkeypatch.setenv("QD_TIERED", "off")  # entries are written at the call


@pytest.fixture
def root(tmp_path) -> str:
    """The root of a cache that is not there yet."""
    return str(tmp_path / "cache")


@pytest.fixture
def s(root) -> Store:
    """A store at this root, which has one entry."""
    shelf.store(root).write(shelf.entry(1))
    return shelf.store(root)


@pytest.fixture
def warnings(capfd):
    """Gives the lines that the engine wrote since the last call."""
    return lambda: [line for line in capfd.readouterr().err.splitlines() if "[qd-studio]" in line]


@pytest.fixture
def lab(tmp_path) -> Lab:
    return Lab(tmp_path)


@pytest.fixture
def runs(tmp_path) -> Runs:
    return Runs(tmp_path)
