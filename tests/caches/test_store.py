"""What a store gives, keeps and reports when nothing is wrong."""

import os
import stat
import time

import pytest
from qd_studio.engine.cache import cleaning, folder, orders, running
from qd_studio.engine.cache.observe import BYPASS, DAMAGED, HIT, MISS
from qd_studio.engine.cache.store import Store, open_store
from qd_studio.engine.config import CompileConfig

from tests.caches import shelf


def paths_below(root) -> list[str]:
    return sorted(
        os.path.normpath(os.path.join(at, name))
        for at, _, names in os.walk(root)
        for name in [".", *names]
    )


def snapshot(paths):
    """All that the system keeps of some paths, times of access too; lists no folder itself."""
    found = {}
    for path in paths:
        status = os.lstat(path)
        times = (status.st_atime_ns, status.st_mtime_ns, status.st_ctime_ns)
        found[path] = (status.st_size, status.st_mode, times)
    return found


def aged(root, seconds: float = 5e6) -> list[str]:
    """All paths, their times set back, of access before those of change: any access would show."""
    then = time.time() - seconds
    paths = paths_below(root)
    for path in paths:
        os.utime(path, (then - 1e6, then))
    return paths


def test_what_is_written_is_read(root):
    s = shelf.store(root)
    assert shelf.read(s, 1) is None
    assert s.write(shelf.entry(1))
    assert shelf.is_right(s, 1)
    assert shelf.is_right(shelf.store(root), 1)
    assert shelf.read(s, 2) is None


def test_another_process_writes_an_order(root, monkeypatch):
    monkeypatch.setattr(running, "_known", "")
    monkeypatch.setattr(orders, "_held", {})
    wanted = shelf.entry(1)
    text = orders.order(
        CompileConfig(offline_cache_file_path=root, remote_cache_key_file="key"),
        wanted.key, wanted.kernel, wanted.about, wanted.load,
    )  # fmt: skip
    assert os.path.abspath("key") in text
    assert not orders.accepts(text)  # there is no root
    orders.write(text, wanted.code)
    assert not os.path.lexists(root)
    os.mkdir(root, 0o700)
    with folder.locked(f"{root}/background", make=True):
        orders._held.clear()
        assert not orders.accepts(text)  # another process does it
    orders._held.clear()
    try:
        assert orders.accepts(text)
        with folder.locked(f"{root}/background") as held:
            assert not held  # until this process ends
        orders.write(text, wanted.code)
        path = shelf.store(root).path_of(wanted.key, wanted.kernel)
        os.truncate(path, os.path.getsize(path) // 2)
        assert orders.accepts(text)  # no other process would mend it
        orders.write(text, wanted.code)
    finally:
        orders._locks.close()
    assert shelf.is_right(shelf.store(root), 1)
    assert running.known() == shelf.ENGINE
    assert not orders.accepts(text)  # it is there


def test_an_empty_entry_and_a_large_one(root):
    s = shelf.store(root)
    for number, size in ((1, 0), (2, 3 << 20)):
        assert s.write(shelf.entry(number, size))
        assert shelf.is_right(s, number, size)


def test_the_same_key_is_written_again(s):
    assert s.write(shelf.entry(1)._replace(code=b"new"))
    assert s.read(shelf.key(1), shelf.kernel(1)) == (shelf.load(1), b"new")
    assert len(list(s.all())) == 1


def test_statistics(root):
    s = shelf.store(root)
    shelf.read(s, 1)
    s.write(shelf.entry(1))
    shelf.read(s, 1)
    shelf.read(s, 1)
    counts = s.statistics
    assert (counts.hits, counts.misses, counts.stored) == (2, 1, 1)
    assert (counts.damaged, counts.failed) == (0, 0)


def test_folders_and_files_are_for_the_user_alone(root):
    old = os.umask(0)
    try:
        shelf.store(root).write(shelf.entry(1))
    finally:
        os.umask(old)
    modes = {name: stat.S_IMODE(info[1]) for name, info in snapshot(paths_below(root)).items()}
    assert {oct(mode) for name, mode in modes.items() if not name.endswith(folder.SUFFIX)} <= {
        oct(0o700),
        oct(0o600),
    }
    assert {mode & 0o077 for mode in modes.values()} == {0}


def test_missing_parents_are_made_for_the_user_alone(tmp_path):
    root = tmp_path / "a" / "b" / "cache"
    old = os.umask(0o002)
    try:
        assert shelf.store(root).write(shelf.entry(1))
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o700


def test_last_use_is_when_it_was_read(s):
    os.utime(shelf.path(s, 1), (1e9, 1e9))
    assert shelf.infos(s)[shelf.key(1)].used == 1e9
    assert shelf.is_right(s, 1)
    assert abs(shelf.infos(s)[shelf.key(1)].used - time.time()) < 60


def test_answers_say_which_it_was(root):
    s = shelf.store(root)
    assert s.answer(shelf.key(1), shelf.kernel(1)).state == MISS
    s.write(shelf.entry(1))
    hit = s.answer(shelf.key(1), shelf.kernel(1))
    assert (hit.state, hit.reason, hit.load, hit.code) == (
        HIT, "", shelf.load(1), shelf.code(1),
    )  # fmt: skip
    with open(shelf.path(s, 1), "ab") as file:
        file.write(b"x")
    damaged = s.answer(shelf.key(1), shelf.kernel(1))
    assert (damaged.state, damaged.load, damaged.code) == (DAMAGED, None, b"")
    assert "bytes instead of" in damaged.reason


def test_a_caller_can_say_that_an_entry_is_spoiled(s, warnings):
    reason = s.spoiled(shelf.key(1), shelf.kernel(1), "names no task")
    s.spoiled(shelf.key(1), shelf.kernel(1), "names no task")
    (line,) = warnings()
    assert shelf.path(s, 1) in line
    assert reason == "the entry names no task"
    assert s.statistics.damaged == 2


# ---- looking


def test_looking_changes_no_byte_and_no_timestamp(root):
    s = shelf.store(root)
    for number in range(10):
        s.write(shelf.entry(number))
    with open(shelf.path(s, 3), "r+b") as file:
        file.truncate(500)
    paths = aged(root)
    before = snapshot(paths)
    assert s.info(shelf.key(1), shelf.kernel(1)).problem == ""
    assert s.info(shelf.key(3), shelf.kernel(3)).problem != ""
    assert s.info(shelf.key(99), shelf.kernel(99)) is None
    assert s.peek(shelf.key(1), shelf.kernel(1)) == (shelf.load(1), shelf.code(1))
    assert s.peek(shelf.key(3), shelf.kernel(3)) is None
    assert len(s.of_kernel(shelf.kernel(1))) == 2
    assert len(list(s.all())) == 10
    assert snapshot(paths) == before
    assert paths_below(root) == paths
    assert s.statistics.hits == s.statistics.misses == 0


def test_the_comparison_of_times_bites(root, s):
    paths = aged(root)
    before = snapshot(paths)
    assert shelf.is_right(s, 1)
    assert snapshot(paths) != before


def test_what_is_known_of_an_entry(root):
    s = shelf.store(root)
    s.write(shelf.entry(7))
    (info,) = s.all()
    assert info == s.info(shelf.key(7), shelf.kernel(7))
    assert (info.layer, info.key, info.kernel) == ("offline", shelf.key(7), "module.kernel_2")
    assert (info.path, info.problem, info.foreign) == (shelf.path(s, 7), "", False)
    assert info.size == os.path.getsize(info.path) == 100 + sum(info.sections)
    assert abs(info.created - time.time()) < 60
    assert info.about == {"kernel": "module.kernel_2", **shelf.about(7), "created": info.created}
    assert list(info.about["parts"]) == ["kernel", "ir"]


def test_entries_of_a_kernel_come_by_last_use(root):
    s = shelf.store(root)
    for number in (0, 5, 10, 1, 2):
        s.write(shelf.entry(number))
    for number, used in ((0, 2e9), (5, 1e9), (10, 3e9)):
        os.utime(shelf.path(s, number), (used, used))
    keys = [info.key for info in s.of_kernel("module.kernel_0")]
    assert keys == [shelf.key(10), shelf.key(0), shelf.key(5)]
    assert s.of_kernel("module.nothing") == []


def test_two_kernels_of_one_digest_are_distinguished(root, monkeypatch):
    from qd_studio.engine.cache import entry

    monkeypatch.setattr(entry, "kernel_tag", lambda name: "0" * 16)
    monkeypatch.setattr(folder, "kernel_tag", lambda name: "0" * 16)
    s = shelf.store(root)
    s.write(shelf.entry(1))
    s.write(shelf.entry(2))
    assert [info.key for info in s.of_kernel(shelf.kernel(1))] == [shelf.key(1)]


# ---- a process that only looks


def test_a_process_that_only_looks_uses_and_writes_nothing(root, s, warnings):
    paths = aged(root)
    before = snapshot(paths)
    folder.set_dry(True)
    assert shelf.read(s, 1) is None
    assert not s.write(shelf.entry(2))
    answer = s.answer(shelf.key(1), shelf.kernel(1))
    assert answer.state == BYPASS
    assert "only looks" in answer.reason
    assert s.info(shelf.key(1), shelf.kernel(1)) is not None
    assert len(s.of_kernel(shelf.kernel(1))) == len(list(s.all())) == 1
    assert snapshot(paths) == before
    assert paths_below(root) == paths
    assert warnings() == []
    folder.set_dry(False)
    assert shelf.is_right(s, 1)


def test_looking_makes_no_folder(root):
    s = shelf.store(root)
    assert s.info(shelf.key(1), shelf.kernel(1)) is None
    assert s.of_kernel("k") == list(s.all()) == []
    shelf.read(s, 1)
    assert not os.path.exists(root)


# ---- where


def test_the_default_root_is_in_the_users_cache_directory(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert folder.root_of(CompileConfig()) == str(tmp_path / "qd-studio" / "qdcache")


@pytest.mark.parametrize("value", [None, "", "relative/path"])
def test_without_a_usable_variable_it_is_in_the_home_directory(monkeypatch, tmp_path, value):
    if value is None:
        monkeypatch.delenv("XDG_CACHE_HOME")
    else:
        monkeypatch.setenv("XDG_CACHE_HOME", value)
    monkeypatch.setenv("HOME", str(tmp_path))
    for platform, below in (("linux", ".cache"), ("darwin", "Library/Caches")):
        monkeypatch.setattr(folder.sys, "platform", platform)
        assert folder.default_root() == f"{tmp_path}/{below}/qd-studio/qdcache"


def test_the_option_names_the_root(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    named = {"/a/b": "/a/b", "mine": str(tmp_path / "mine"), "~/c": str(tmp_path / "home" / "c")}
    for given, wanted in named.items():
        config = CompileConfig()
        config.offline_cache_file_path = given
        assert folder.root_of(config) == wanted


def test_a_store_is_one_a_root_and_layer_and_touches_nothing(root):
    config = CompileConfig()
    config.offline_cache_file_path = root
    first = open_store(config, "offline")
    assert first is open_store(config, "offline")
    assert first is not open_store(config, "fastcache")
    config.offline_cache_cleaning_policy = "fifo"
    assert open_store(config, "offline").rules.policy == "fifo"
    assert not os.path.exists(root)
    assert isinstance(first, Store)


def test_a_relative_root_stays_where_it_was(monkeypatch, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    config = CompileConfig()
    config.offline_cache_file_path = "mine"
    s = open_store(config, "offline")
    monkeypatch.chdir(tmp_path / "elsewhere")
    s.write(shelf.entry(1))
    assert os.listdir(tmp_path / "mine") == ["offline"]


def test_layers_share_a_root_and_do_not_mix(root):
    one, other = shelf.store(root), shelf.store(root, "fastcache")
    one.write(shelf.entry(1))
    assert shelf.read(other, 1) is None
    assert cleaning.layers(root) == ["offline"]
    other.write(shelf.entry(1))
    assert cleaning.layers(root) == ["fastcache", "offline"]
