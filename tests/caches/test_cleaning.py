"""What is removed when the folder is full, in which order, and what never is."""

import os
import shutil
import threading
import time

import pytest
from qd_studio.engine.cache import cleaning, folder, store
from qd_studio.engine.cache.cleaning import Rules
from qd_studio.engine.config import CompileConfig

from tests.caches import shelf

NOW = 1_800_000_000.0


@pytest.fixture
def clock(monkeypatch):
    """A clock that the test sets: new files get its time, too."""
    now = [NOW]
    real = os.replace

    def replace(source, target):
        os.utime(source, (now[0], now[0]))
        real(source, target)

    monkeypatch.setattr(store.time, "time", lambda: now[0])
    monkeypatch.setattr(folder.os, "replace", replace)
    return now


def total(root) -> int:
    return sum(file.size for file in cleaning.files(root))


def numbers(s) -> list[int]:
    """Which entries are there."""
    return [n for n in range(200) if os.path.exists(shelf.path(s, n))]


SIZE = 1_000_000
"""Entries of about this size differ in length by less than counts."""


def fill(s, clock, count: int = 8, **more) -> None:
    """Entries 0, 1, ... a minute apart."""
    for number in range(count):
        clock[0] += 60
        s.write(shelf.entry(number, SIZE, **more))


def full(policy: str, entries: float = 10.5, factor: float = 0.25) -> Rules:
    """Rules under which this many entries reach the limit."""
    return Rules(policy, int(entries * SIZE), factor)


def test_nothing_is_removed_below_the_limit(root, clock):
    s = shelf.store(root, rules=full("lru"))
    fill(s, clock, 10)
    assert numbers(s) == list(range(10))
    clock[0] += 60
    s.write(shelf.entry(10, SIZE))
    # 11 have reached 10.5, and three quarters of that hold 7.
    assert numbers(s) == list(range(4, 11))


def test_the_factor_says_how_much_is_freed_in_bytes(root, clock):
    for factor, left in ((0.0, 10), (0.5, 5), (0.9, 1), (1.0, 0), (7.0, 0)):
        shutil.rmtree(root, ignore_errors=True)
        cleaning._roots.clear()
        s = shelf.store(root, rules=full("lru", factor=factor))
        fill(s, clock, 11)
        assert len(numbers(s)) == left, factor


def test_it_is_bytes_that_count_and_not_entries(root, clock):
    """Many small old entries and a few large new ones: the small ones alone would not do."""
    s = shelf.store(root, rules=full("lru"))
    for number in range(100, 150):
        clock[0] += 1
        s.write(shelf.entry(number, 1000))
    fill(s, clock, 11)
    assert numbers(s) == list(range(4, 11))


@pytest.mark.parametrize(
    ("policy", "left"), [("lru", [0, 2, 6, 7, 8, 9, 10]), ("fifo", [4, 5, 6, 7, 8, 9, 10])]
)
def test_lru_removes_by_last_use_and_fifo_by_age_whatever_is_used(root, clock, policy, left):
    s = shelf.store(root, rules=full(policy))
    fill(s, clock, 10)
    for number in (0, 2):
        assert shelf.is_right(s, number, SIZE)
        if policy == "lru":
            os.utime(shelf.path(s, number), (clock[0] + 30, clock[0] + 30))
    clock[0] += 60
    s.write(shelf.entry(10, SIZE))
    assert numbers(s) == left


def test_never_removes_nothing(root, clock):
    s = shelf.store(root, rules=full("never"))
    fill(s, clock, 20)
    assert numbers(s) == list(range(20))


def test_version_removes_other_versions_and_nothing_else(root, clock):
    s = shelf.store(root, rules=full("version"))
    fill(s, clock, 4, engine="0.0.9+old")
    for number in range(4, 10):
        s.write(shelf.entry(number, SIZE))
    assert numbers(s) == list(range(10)), "the limit is not reached yet"
    s.write(shelf.entry(10, SIZE))
    assert numbers(s) == list(range(4, 11))
    for number in range(11, 20):
        s.write(shelf.entry(number, SIZE))
    assert numbers(s) == list(range(4, 20)), "those of this version stay, whatever the total"


@pytest.mark.parametrize("policy", ["lru", "fifo"])
def test_other_versions_go_first(root, clock, policy):
    s = shelf.store(root, rules=full(policy))
    fill(s, clock, 8)
    for number in (8, 9):
        clock[0] += 60
        s.write(shelf.entry(number, SIZE, engine="0.0.9+old"))
    clock[0] += 60
    s.write(shelf.entry(10, SIZE))
    assert numbers(s) == [2, 3, 4, 5, 6, 7, 10]


def test_no_more_of_other_versions_go_than_must(root, clock):
    """Two versions share a folder: neither empties it of the other's."""
    s = shelf.store(root, rules=full("lru"))
    fill(s, clock, 10, engine="0.0.9+old")
    clock[0] += 60
    s.write(shelf.entry(10, SIZE))
    assert numbers(s) == list(range(4, 11))


def test_other_formats_and_what_is_no_entry_go_first(root, clock):
    s = shelf.store(root, rules=full("lru"))
    fill(s, clock, 10)
    newer = shelf.path(s, 9)[: -len(folder.SUFFIX)] + ".qd2"
    os.rename(shelf.path(s, 9), newer)
    with open(newer, "r+b") as file:
        file.seek(4)
        file.write(b"\2")
    with open(shelf.path(s, 8), "r+b") as file:
        file.write(b"NONE")
    s.write(shelf.entry(10, SIZE))
    assert not os.path.exists(newer)
    assert numbers(s) == [2, 3, 4, 5, 6, 7, 10]


def test_the_limit_is_for_all_layers_together(root, clock):
    rules = full("lru")
    layers = [shelf.store(root, name, rules) for name in ("offline", "fastcache", "ptx_sm_90")]
    for number in range(11):
        clock[0] += 60
        layers[number % 3].write(shelf.entry(number, SIZE))
    left = sorted(n for s in layers for n in numbers(s))
    assert left == list(range(4, 11))
    assert total(root) <= rules.target


def test_a_limit_of_nothing_keeps_nothing(root):
    s = shelf.store(root, rules=Rules("lru", 0, 0.25))
    for number in range(3):
        assert s.write(shelf.entry(number))
        assert numbers(s) == []


def test_an_entry_larger_than_the_limit_does_not_stay(root, clock):
    s = shelf.store(root, rules=Rules("lru", 50_000, 0.25))
    s.write(shelf.entry(1))
    clock[0] += 60
    s.write(shelf.entry(2, 100_000))
    assert total(root) <= 50_000


def test_the_options_are_the_rules(root):
    config = CompileConfig()
    assert Rules.of(config) == ("lru", 104857600, 0.25)
    config.offline_cache_file_path = root
    config.offline_cache_cleaning_policy = "fifo"
    config.offline_cache_max_size_of_files = 20_000
    config.offline_cache_cleaning_factor = 0.5
    s = store.open_store(config, "offline")
    assert s.rules == ("fifo", 20_000, 0.5)
    for number in range(20):
        s.write(shelf.entry(number))
    assert 0 < total(root) < 20_000


def test_a_limit_that_is_lowered_counts_from_the_next_write(root, clock):
    config = CompileConfig()
    config.offline_cache_file_path = root
    s = store.open_store(config, "offline")
    fill(s, clock, 10)
    config.offline_cache_max_size_of_files = 5 * SIZE
    s = store.open_store(config, "offline")
    s.write(shelf.entry(10, SIZE))
    assert total(root) < 5 * SIZE


def test_what_others_write_is_seen(root, clock):
    """Another process fills the folder: this one notices after a sixteenth of what was free."""
    rules = full("lru", 16)
    s = shelf.store(root, rules=rules)
    s.write(shelf.entry(0, SIZE))
    other = shelf.store(root, rules=Rules("never", 1 << 40, 0.25))
    mine = dict(cleaning._roots)
    for number in range(1, 20):
        clock[0] += 1
        other.write(shelf.entry(number, SIZE))
    cleaning._roots.update(mine)
    clock[0] += 60
    s.write(shelf.entry(20, SIZE))
    assert total(root) <= rules.target


@pytest.mark.parametrize(
    ("rules", "most"),
    [
        (Rules("lru", 1 << 30, 0.25), 1),
        (Rules("never", 1 << 30, 0.25), 1),
        (Rules("never", 20_000, 0.25), 1),
        (Rules("version", 20_000, 0.25), 50),
    ],
)
def test_the_folders_are_seldom_listed(root, monkeypatch, rules, most):
    """Also when they are full and nothing may be removed."""
    s = shelf.store(root, rules=rules)
    real, listings = cleaning.files, []

    def files(at, **named):
        listings.append(at)
        return real(at, **named)

    monkeypatch.setattr(cleaning, "files", files)
    for number in range(100):
        s.write(shelf.entry(number, 10))
    assert 1 <= len(listings) <= most


# ---- clocks


def test_a_clock_that_goes_backwards_changes_only_the_order(root, clock, warnings):
    s = shelf.store(root, rules=full("lru"))
    for number in range(30):
        clock[0] -= 3600 * 24
        assert s.write(shelf.entry(number, SIZE))
        assert total(root) < 10.5 * SIZE
    left = numbers(s)
    assert left
    assert all(shelf.is_right(s, number, SIZE) for number in left)
    assert warnings() == []


@pytest.mark.parametrize("now", [0.0, -1e9, 1e6, 4e9, 1e11])
def test_times_that_cannot_be(root, monkeypatch, now):
    s = shelf.store(root, rules=Rules("fifo", 20_000, 0.5))
    monkeypatch.setattr(store.time, "time", lambda: now)
    for number in range(20):
        assert s.write(shelf.entry(number))
    assert 0 < total(root) < 20_000
    for info in s.all():
        assert info.created == now
        assert info.problem == ""


def test_a_file_of_the_future_is_used_and_removed_like_others(root, clock):
    s = shelf.store(root, rules=full("lru"))
    fill(s, clock, 10)
    os.utime(shelf.path(s, 0), (NOW * 2, NOW * 2))
    assert shelf.store(root).info(shelf.key(0), shelf.kernel(0)).used == NOW * 2
    clock[0] += 60
    s.write(shelf.entry(10, SIZE))
    assert numbers(s) == [0, 5, 6, 7, 8, 9, 10]


# ---- what is never removed


def test_files_that_are_not_ours_are_never_removed(root, clock):
    s = shelf.store(root, rules=Rules("lru", 0, 1.0))
    s.write(shelf.entry(1))
    name = folder.entry_name(shelf.key(2), shelf.kernel(2))
    strangers = [
        "notes.txt", "offline/README", "offline/.gitignore", f"offline/{name}.bak",
        "offline/.0123.tmp", "offline/data.qd1", f"photos/{name}", f"offline/deeper/{name}", name,
        ".0123456789abcdef.tmp",
    ]  # fmt: skip
    for stranger in strangers:
        path = os.path.join(root, stranger)
        os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
        with open(path, "w") as file:
            file.write("precious")
        os.utime(path, (1e9, 1e9))
    os.symlink(os.path.join(root, "notes.txt"), shelf.path(s, 3))
    os.mkdir(shelf.path(s, 4))
    cleaning._roots.clear()
    s.write(shelf.entry(5))
    assert not os.path.exists(shelf.path(s, 5))
    assert os.path.islink(shelf.path(s, 3))
    assert os.path.isdir(shelf.path(s, 4))
    assert set(strangers) <= set(shelf.file_names(root))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_files_of_other_users_are_never_removed(root):
    s = shelf.store(root, rules=Rules("lru", 0, 1.0))
    generous = shelf.store(root)
    generous.write(shelf.entry(1))
    os.chown(shelf.path(s, 1), 65534, 65534)
    cleaning._roots.clear()
    s.write(shelf.entry(2))
    assert numbers(s) == [1]


def test_an_entry_that_was_used_or_replaced_meanwhile_stays(root, clock, monkeypatch):
    s = shelf.store(root, rules=full("lru"))
    fill(s, clock, 10)
    real = cleaning.remove

    def remove(at, chosen, *more):
        os.utime(shelf.path(s, 0))
        shelf.store(root, rules=Rules("never", 1 << 40, 0.0)).write(shelf.entry(1, SIZE))
        return real(at, chosen, *more)

    monkeypatch.setattr(cleaning, "remove", remove)
    clock[0] += 60
    s.write(shelf.entry(10, SIZE))
    assert numbers(s) == [0, 1, 6, 7, 8, 9, 10]
    assert shelf.is_right(s, 1, SIZE)


def test_an_entry_that_another_process_removed_counts_as_removed(root, clock, monkeypatch):
    s = shelf.store(root, rules=full("lru"))
    fill(s, clock, 10)
    real = cleaning.remove

    def remove(at, chosen, *more):
        for number in range(4):
            os.unlink(shelf.path(s, number))
        return real(at, chosen, *more)

    monkeypatch.setattr(cleaning, "remove", remove)
    s.write(shelf.entry(10, SIZE))
    assert numbers(s) == list(range(4, 11))


def test_a_folder_that_cannot_be_cleaned_warns_once(root, clock, monkeypatch, warnings):
    s = shelf.store(root, rules=full("lru"))
    real = os.unlink

    def unlink(path):
        if str(path).endswith(folder.SUFFIX):
            raise PermissionError(1, "Operation not permitted", path)
        real(path)

    monkeypatch.setattr(cleaning.os, "unlink", unlink)
    for number in range(20):
        assert s.write(shelf.entry(number, SIZE))
    (line,) = warnings()
    assert "cannot be cleaned: Operation not permitted" in line
    assert len(numbers(s)) == 20


@pytest.mark.slow
def test_reading_while_another_thread_cleans(root):
    """A read gives the right thing or nothing at any moment."""
    s = shelf.store(root, rules=Rules("lru", 60_000, 0.5))
    wrong, stop = [], threading.Event()

    def reads() -> None:
        while not stop.is_set():
            for number in range(40):
                if shelf.read(s, number) not in (None, (shelf.load(number), shelf.code(number))):
                    wrong.append(number)

    threads = [threading.Thread(target=reads) for _ in range(3)]
    for thread in threads:
        thread.start()
    started = time.monotonic()
    number = 0
    while number < 300 and time.monotonic() - started < 20:
        s.write(shelf.entry(number % 40))
        number += 1
    stop.set()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert s.statistics.damaged == 0


def test_an_empty_file_may_be_one_whose_writer_has_not_locked_it_yet(tmp_path):
    """What else writers leave, dead or alive, is in `test_processes`."""
    os.chmod(tmp_path, 0o700)
    path = tmp_path / "offline" / f".{'ab' * 8}.tmp"
    path.parent.mkdir(mode=0o700)
    path.touch(0o600)
    cleaning.files(str(tmp_path), sweep=True)
    assert path.exists()
    old = time.time() - 100
    os.utime(path, (old, old))
    cleaning.files(str(tmp_path), sweep=True)
    assert not path.exists()
