"""The list of the last run, and what is fetched ahead with it."""

import contextlib
import json
import os
import subprocess
import sys
import threading
import time

import pytest
from qd_studio.engine.cache import folder, last_run
from qd_studio.engine.cache.last_run import Used
from qd_studio.engine.cache.observe import HIT, MISS
from qd_studio.engine.cache.remote import ahead

from .cache_server import CacheServer
from .remote_kit import KERNEL, SECRET, Host, entry_of
from .remote_warm import Starts
from .shelf import ENGINE

pytestmark = pytest.mark.usefixtures("known_engine")

SCRIPT = "project/main.py"


def listed(*numbers: int, engine: str = ENGINE, **more) -> bytes:
    entries = [Used("offline", entry_of(n, **more).key, KERNEL) for n in numbers]
    return json.dumps({"engine": engine, "entries": entries}).encode()


def begun(host: Host, kept: bytes | None = None) -> None:
    """Fetch ahead, with a list of this machine, or with the shared one; the list is there."""
    store = host.store()
    host.remote.fetch_ahead(SCRIPT, lambda: kept, lambda used: store.path_of(used.key, used.kernel))


def settled(host: Host) -> None:
    """Wait until nothing is under way."""
    found, end = host.remote._ahead, time.monotonic() + 20
    while time.monotonic() < end and (not found._found or found._running or found._waiting):
        time.sleep(0.005)


@pytest.mark.parametrize("shared", [False, True])
def test_look_ups_use_what_was_fetched_and_count_it_as_before(shared, hosts, server):
    a, b = hosts
    for number in range(20):
        a.write(number)
    kept = listed(*range(20))
    if shared:
        a.remote.offer_list(SCRIPT, kept)
        assert a.remote.flush(5)
        assert a.counts["sent"] == 20
    server.asked.clear()
    begun(b, None if shared else kept)
    settled(b)
    assert len(server.asked) == 20 + shared
    found = [b.read(number) for number in range(20)]
    assert {(one.state, one.source, one.reason) for one in found} == {
        (HIT, "remote", "made on host-a for znver4")
    }
    assert [one.load["number"] for one in found] == list(range(20))
    assert len(server.asked) == 20 + shared
    assert (b.counts["hits"], b.counts["misses"], b.remote._ahead._held) == (20, 0, 0)
    assert b.read(99).state == MISS


def test_only_what_the_folder_lacks_is_fetched_and_a_list_of_another_engine_is_not(hosts, server):
    a, b = hosts
    for number in range(4):
        a.write(number)
    b.read(1)
    assert b.remote.flush(5)
    server.asked.clear()
    begun(a, listed(*range(4)))
    begun(b, listed(*range(4), engine="other"))
    time.sleep(0.2)
    assert not server.asked
    host = Host(b.config.offline_cache_file_path, server.url)
    server.asked.clear()
    begun(host, listed(*range(4)))
    settled(host)
    assert len(server.asked) == 3


@pytest.mark.parametrize("fault", ["delay", "error", "signature", "garbage"])
def test_faults_are_those_of_look_ups_and_an_end_never_waits(fault, tmp_path, server):
    a = Host(tmp_path / "a", server.url)
    for number in range(8):
        a.write(number)
    b = Host(tmp_path / "b", server.url, remote_cache_deadline=50)
    server.fault, server.delay = fault, 3.0
    begun(b, listed(*range(8)))
    time.sleep(0.1)
    began = time.monotonic()
    assert all(b.read(number).state == MISS for number in range(8))
    b.remote.close()
    assert time.monotonic() - began < 1.0
    assert b.counts["hits"] == 0
    counted = {"delay": b.counts["late"], "error": b.counts["failed"]}
    assert b.counts["late"] == (fault == "delay")  # all others waited for nothing
    assert counted.get(fault, sum(b.counts.refused.values())) > 0


def test_what_no_one_asks_for_is_released(hosts, monkeypatch):
    a, b = hosts
    a.write(1)
    monkeypatch.setattr(ahead, "KEPT_S", 0.3)
    begun(b, listed(1))
    settled(b)
    found = b.remote._ahead
    assert found._held > 3000
    end = time.monotonic() + 20
    while found._found and time.monotonic() < end:
        time.sleep(0.01)
    assert (found._found, found._held) == ({}, 0)
    assert b.read(1).source == "remote"


def test_the_bytes_that_wait_are_bounded(hosts, monkeypatch):
    a, b = hosts
    for number in range(12):
        a.write(number)
    monkeypatch.setattr(ahead, "CONNECTIONS", 1)
    monkeypatch.setattr(ahead, "LARGEST", 8000)
    begun(b, listed(*range(12)))
    end = time.monotonic() + 20
    while b.remote._ahead._held < 8000 and time.monotonic() < end:
        time.sleep(0.01)
    time.sleep(0.05)
    assert len(b.remote._ahead._found) < 4
    assert all(b.read(number).source == "remote" for number in range(12))


def test_a_fork_while_entries_are_fetched(hosts, server):
    a, b = hosts
    for number in range(8):
        a.write(number)
    server.fault, server.delay = "delay", 0.05
    begun(b, listed(*range(8)))
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            good = b.read(7).source == "remote" and b.remote._ahead is None
            os._exit(0 if good else 1)
        os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    assert all(b.read(number).source == "remote" for number in range(8))


# ---- lists


@pytest.mark.parametrize(
    "data",
    [
        b"", b"{", b"[1]", b'{"engine": 1}', b'{"engine": "e", "entries": 3}', b"[" * 100000,
        b'{"engine": "e", "entries": [["offline", "../x", "k"], ["../up", "' + b"a" * 40
        + b'", "k"], ["ptx_/../x", "' + b"a" * 40 + b'", "k"], [1, 2], 7]}',
        b'{"engine": "e", "entries": [["../up", "' + b"a" * 40 + b'", "k"]]}',
    ],
)  # fmt: skip
def test_a_damaged_list_is_none(data):
    assert last_run.read(data)[1] == []


@pytest.fixture
def run(tmp_path, monkeypatch) -> last_run._Run:
    made = last_run._Run(str(tmp_path / "root"), "/a/main.py\n/a")
    folder.create(made.root, f"{made.root}/offline")
    monkeypatch.setattr(last_run, "_runs", {made.root: made})
    return made


def test_a_list_is_bounded_and_kept_in_order(run, monkeypatch):
    monkeypatch.setattr(last_run, "MOST", 5)
    for number in (3, 1, 2, 1, 5, 4, 6, 7):
        last_run.note(run.root, "offline", entry_of(number).key, KERNEL)
    last_run._keep(run)
    engine, entries = last_run.read(last_run._kept(run.path))
    assert engine == ENGINE
    assert [used.key for used in entries] == [entry_of(n).key for n in (3, 1, 2, 5, 4)]
    assert last_run.compiled_last_time() == 5


def test_writers_at_once_leave_a_whole_list_and_few_files(run, monkeypatch):
    monkeypatch.setattr(last_run, "_MOST_LISTS", 6)
    last_run.note(run.root, "offline", entry_of(1).key, KERNEL)

    def write(number: int) -> None:
        for k in range(10):
            other = last_run._Run(run.root, f"/a/{k % 2 and k * 20 + number}.py\n/a")
            other.used = dict(run.used)
            with contextlib.suppress(OSError):
                last_run._keep(other)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    last_run._keep(run)
    names = os.listdir(f"{run.root}/{last_run.FOLDER}")
    assert len(names) <= 6 + 4
    assert all(last_run.read(last_run._kept(f"{run.root}/last_run/{name}"))[1] for name in names)


# ---- programs

CHILD = """
import os, sys
from qd_studio import engine as qd
qd.init(arch=qd.cpu)
@qd.kernel
def f(x: qd.types.NDArray[qd.f32, 1]):
    for i in x:
        x[i] = 1.0
f(qd.ndarray(qd.f32, 4))
if "fork" in sys.argv and os.fork() == 0:
    qd.reset()
    qd.init(arch=qd.cpu)
    sys.exit()
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "options", "lists"),
    [
        (["program.py"], {}, 1),
        (["program.py", "fork"], {}, 1),
        (["-c", CHILD], {}, 0),
        (["program.py"], {"QD_OFFLINE_CACHE": "0"}, 0),
    ],
)
def test_a_program_keeps_one_list(words, options, lists, tmp_path):
    (tmp_path / "program.py").write_text(CHILD)
    root = tmp_path / "root"
    environment = {**os.environ, "QD_OFFLINE_CACHE_FILE_PATH": str(root), **options}
    for _ in range(2):
        subprocess.run([sys.executable, *words], env=environment, cwd=tmp_path, check=True)
        assert len(list(root.glob("last_run/*"))) == lists


@pytest.mark.slow
def test_a_start_from_a_cache_5_ms_away_hides_the_round_trips(tmp_path):
    with CacheServer() as server:
        starts = Starts(tmp_path, server.url, "(fastcache=True)")
        starts.run("local", True)
        server.fault, server.delay = "delay", 0.02
        with_list = starts.run("fresh", True)
        lists = [name for name, data in server.blobs.items() if b'"kind":"list"' in data]
        assert len(lists) == 1
        assert SECRET.encode() not in server.blobs.pop(lists[0])
        without = starts.run("other", True)
    assert with_list["states"] == without["states"]
    assert [state[1:] for state in without["states"]] == [["hit", "remote"]] * 100
    assert with_list["wall"] < without["wall"] / 2
