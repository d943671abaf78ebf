"""A folder of its own for each test, and warnings that are given anew in each."""

import pytest
from qd_studio.engine import logs
from qd_studio.engine.cache import cleaning, folder, store


@pytest.fixture(autouse=True)
def _fresh(monkeypatch):
    """What a process remembers of folders is forgotten; no earlier program hides warnings."""
    monkeypatch.setattr(logs, "_threshold", logs.LEVELS.index("info"))
    monkeypatch.setattr(folder, "_warned", set())
    monkeypatch.setattr(folder, "_dry", False)
    monkeypatch.setattr(cleaning, "_roots", {})
    monkeypatch.setattr(store, "_stores", {})


@pytest.fixture
def root(tmp_path) -> str:
    """The root of a cache that is not there yet."""
    return str(tmp_path / "cache")


@pytest.fixture
def warnings(capfd):
    """Gives the lines that the engine wrote since the last call."""
    return lambda: [line for line in capfd.readouterr().err.splitlines() if "[qd-studio]" in line]
