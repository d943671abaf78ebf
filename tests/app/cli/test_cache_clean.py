"""`qd-studio cache clean`: what goes, what is reported of it, and what never goes."""

import json
import os
import time

import pytest
from qd_studio.engine.cache import cleaning, folder

from tests.app.cli.kit import damage, left, snapshot
from tests.caches import shelf


def test_clean_leaves_what_is_good_and_fits(cache, filled, root):
    before = snapshot(root)
    status, out, _ = cache("clean")
    assert status == 0
    assert out.startswith("nothing to remove; 6 left")
    assert snapshot(root) == before


def test_clean_removes_bad_entries_other_versions_and_what_killed_writers_left(cache, filled, root):
    damage(shelf.path(filled[0], 2))
    shelf.store(root).write(shelf.entry(10))
    unfinished = f"{filled[0].folder}/.0123456789abcdef.tmp"
    with open(unfinished, "w"):
        os.utime(unfinished, (1e9, 1e9))
    status, out, _ = cache("clean")
    assert status == 0
    lines = out.splitlines()
    assert len(lines) == 3
    assert shelf.key(2)[:12] in lines[0]
    assert lines[0].endswith("is damaged: its checksum does not match")
    assert shelf.key(10)[:12] in lines[1]
    assert lines[1].endswith(f"made by engine {shelf.ENGINE}")
    assert lines[2].startswith("2 removed, ")
    assert left(filled) == [0, 1, 3, 4, 5]
    assert not os.path.exists(unfinished)
    assert not os.path.exists(shelf.path(filled[0], 10))
    assert cache("verify")[0] == 0


@pytest.mark.parametrize(
    ("policy", "expected"), [("never", 6), ("version", 6), ("lru", 3), ("fifo", 3)]
)
def test_clean_above_the_limit_does_what_the_policy_says(
    cache, filled, monkeypatch, policy, expected
):
    size = os.path.getsize(shelf.path(filled[0], 0))
    monkeypatch.setenv("QD_OFFLINE_CACHE_CLEANING_POLICY", policy)
    monkeypatch.setenv("QD_OFFLINE_CACHE_MAX_SIZE_OF_FILES", str(5 * size))
    status, out, _ = cache("clean")
    assert status == 0
    assert len(left(filled)) == expected
    if policy == "lru":
        assert left(filled) == [0, 1, 2], "the last used"
        assert out.count("oldest by last use") == 3
    if policy == "fifo":
        assert left(filled) == [3, 4, 5], "the last made"
        assert out.count("oldest by when it was made") == 3


def test_the_policy_never_removes_only_what_is_bad(cache, filled, root, monkeypatch):
    monkeypatch.setenv("QD_OFFLINE_CACHE_CLEANING_POLICY", "never")
    shelf.store(root).write(shelf.entry(10))
    damage(shelf.path(filled[0], 2))
    assert cache("clean")[0] == 0
    assert left(filled) == [0, 1, 3, 4, 5]
    assert os.path.exists(shelf.path(filled[0], 10))


CHOICES = [
    (["--all"], []),
    (["--layer", "offline"], [1, 3, 5]),
    (["--layer", "ptx_sm_90"], [0, 1, 2, 3, 4, 5]),
    (["--kernel", "module.kernel_0"], [1, 2, 3, 4]),
    (["--kernel", "kernel_1"], [0, 2, 3, 4, 5]),
    (["--kernel", "ernel_1"], [0, 1, 2, 3, 4, 5]),
    (["--older-than", "3d"], [0, 1, 2]),
    (["--older-than", "36h"], [0, 1]),
    (["--older-than", "2w"], [0, 1, 2, 3, 4, 5]),
    (["--older-than", "0s"], []),
    (["--older-than", "36h", "--layer", "offline"], [0, 1, 3, 5]),
    (["--kernel", "kernel_0", "--layer", "fastcache", "--older-than", "1d"], [0, 1, 2, 3, 4]),
]


@pytest.mark.parametrize(("words", "expected"), CHOICES, ids=lambda x: " ".join(map(str, x)))
def test_clean_removes_exactly_what_is_chosen(cache, filled, words, expected):
    status, out, _ = cache("clean", *words)
    assert status == 0
    assert left(filled) == expected
    gone = [n for n in range(6) if n not in expected]
    assert all(shelf.key(n)[:12] in out for n in gone)
    assert out.splitlines()[-1].startswith(f"{len(gone)} removed" if gone else "nothing to remove")


def test_clean_as_json(cache, filled):
    status, out, _ = cache("clean", "--kernel", "kernel_1", "--json")
    value = json.loads(out)
    assert status == 0
    (removed,) = value["removed"]
    assert (removed["key"], removed["why"]) == (shelf.key(1), "chosen")
    assert value["freed"] == removed["size"]
    assert value["left"] == 5


def test_clean_never_touches_files_that_are_not_ours(cache, filled, root, tmp_path):
    precious = tmp_path / "precious"
    precious.write_text("precious")
    os.unlink(shelf.path(filled[0], 0))
    os.symlink(precious, shelf.path(filled[0], 0))
    for name in ("notes.txt", "offline/notes.txt", "offline/x.qd1", "other/a.qd1"):
        os.makedirs(os.path.dirname(f"{root}/{name}"), exist_ok=True)
        with open(f"{root}/{name}", "w") as file:
            file.write("mine")
    status, _, err = cache("clean")
    assert status == 1
    path = shelf.path(filled[0], 0)
    assert f"{path} is a symbolic link and is not ours to remove: rm {path}" in err
    assert cache("clean", "--all")[0] == 0
    assert shelf.file_names(root) == sorted(
        ["lock", "notes.txt", "offline/notes.txt", "offline/x.qd1", "other/a.qd1",
         f"offline/{os.path.basename(path)}"]
    )  # fmt: skip
    assert precious.read_text() == "precious"


def test_clean_while_another_process_cleans(cache, filled, root, monkeypatch):
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    with folder.locked(f"{root}/lock", make=True) as held:
        assert held
        status, out, err = cache("clean", "--all")
    assert (status, out) == (3, "")
    assert "another process is removing entries" in err
    assert cache("clean", "--all")[0] == 0


def test_clean_of_a_folder_that_lets_no_one_remove(cache, filled, monkeypatch):
    def unlink(path):
        raise PermissionError(1, "Operation not permitted", path)

    monkeypatch.setattr(cleaning.os, "unlink", unlink)
    status, out, err = cache("clean", "--all")
    assert (status, out) == (3, "")
    assert "Operation not permitted" in err
    assert left(filled) == list(range(6))
