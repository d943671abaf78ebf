"""A folder of its own for each test, and warnings that are given again in each."""

import pytest
from qd_studio.engine import logs
from qd_studio.engine.cache import cleaning, engine_id, folder, running, store
from qd_studio.engine.cache.store import Store

from tests.caches import shelf
from tests.caches.cache_server import CacheServer
from tests.caches.lab import Lab
from tests.caches.remote_kit import SECRET, Host, made_here
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


# ---- the shared cache


@pytest.fixture
def known_engine(monkeypatch):
    """The engine of the entries of `remote_kit`, whose hosts are closed at the end."""
    monkeypatch.setattr(running, "_known", shelf.ENGINE)
    monkeypatch.setattr(engine_id, "_known", shelf.ENGINE)
    monkeypatch.setenv("QD_REMOTE_CACHE_KEY", SECRET)
    monkeypatch.setenv("QD_REMOTE_CACHE_DEADLINE", "5000")
    yield
    for host in made_here:
        host.remote.close()
    made_here.clear()


@pytest.fixture
def server():
    with CacheServer() as found:
        yield found


@pytest.fixture
def hosts(tmp_path, server):
    return Host(tmp_path / "a", server.url), Host(tmp_path / "b", server.url, "host-b")
