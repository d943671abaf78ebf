"""Entries that are not what they should be: each is a miss with one warning, and heals."""

import itertools
import os
import random
import socket

import pytest
from qd_studio.engine.cache import entry, folder
from qd_studio.engine.cache.observe import DAMAGED
from qd_studio.engine.cache.parts import checksum

from tests.caches import shelf


def contents(s, number: int = 1) -> bytes:
    with open(shelf.path(s, number), "rb") as file:
        return file.read()


def replace(s, data: bytes, number: int = 1) -> None:
    with open(shelf.path(s, number), "wb") as file:
        file.write(data)


def expect_one_warning_and_healing(s, warnings, number: int = 1, *words: str) -> None:
    """The entry is a miss that warns once, and can be written again."""
    path = shelf.path(s, number)
    for _ in range(3):
        assert s.answer(shelf.key(number), shelf.kernel(number)).state == DAMAGED
    assert s.peek(shelf.key(number), shelf.kernel(number)) is None
    (line,) = warnings()
    assert line.startswith(f"[qd-studio] warning: cache entry {path} ")
    assert all(word in line for word in words), line
    mine = (
        os.path.isfile(path) and not os.path.islink(path) and os.stat(path).st_uid == os.geteuid()
    )
    assert f"to remove it: {'qd-studio cache clean' if mine else f'rm {path}'}" in line
    assert s.statistics.damaged == s.statistics.misses == 3
    assert s.write(shelf.entry(number))
    assert shelf.is_right(s, number)
    assert warnings() == []


def resummed(data: bytes) -> bytes:
    """The file with a checksum that is right for what is in it now."""
    return data[:68] + checksum(data[:68], data[100:]) + data[100:]


# ---- every byte


@pytest.mark.parametrize("one_in", [10, pytest.param(1, marks=pytest.mark.slow)])
def test_every_byte_of_an_entry_flipped_in_turn(root, capfd, one_in):
    """2,000 flips at least: every byte of a small entry, then places in entries of all sizes."""
    rng = random.Random(4)
    s = shelf.store(root)
    sizes = {1: 0, 2: 700, 3: 5_000, 4: 100_000}
    for number, size in sizes.items():
        s.write(shelf.entry(number, size))
    good = {number: contents(s, number) for number in sizes}
    places = [(1, at) for at in range(len(good[1]))]
    places += [(2, at) for at in range(entry.HEADER)]
    while len(places) < 2_000:
        number = rng.choice((2, 3, 4))
        places.append((number, rng.randrange(len(good[number]))))
    places = places[::one_in]
    for number, at in places:
        bad = bytearray(good[number])
        bad[at] ^= rng.choice((1 << rng.randrange(8), rng.randrange(1, 256)))
        replace(s, bytes(bad), number)
        assert shelf.read(s, number) is None, (number, at)
        assert s.info(shelf.key(number), shelf.kernel(number)).problem, (number, at)
        replace(s, good[number], number)
        if at % 50 == 0:
            assert shelf.is_right(s, number, sizes[number])
    assert s.statistics.damaged == len(places) >= 2_000 // one_in
    assert capfd.readouterr().err.count("warning") == len(sizes)


# ---- length


def cuts(data: bytes) -> list[int]:
    """A length of each class: none, in the header, at its parts' ends, in and around sections."""
    head = entry.head_of(data)
    ends = [100, 100 + head.about, 100 + head.about + head.load, len(data)]
    fixed = [0, 1, 3, 4, 5, 8, 16, 24, 44, 67, 68, 69, 99]
    around = [at + d for at in ends for d in (-1, 0, 1)]
    middle = [(a + b) // 2 for a, b in itertools.pairwise(ends)]
    return sorted({at for at in fixed + around + middle if at < len(data)})


def test_truncated_at_every_class_of_length(s):
    data = contents(s)
    lengths = cuts(data)
    assert len(lengths) > 20
    for length in lengths:
        replace(s, data[:length])
        assert shelf.read(s, 1) is None, length
        info = s.info(shelf.key(1), shelf.kernel(1))
        assert info.problem, length
        assert info.size == length


def extended(more: bytes):
    return lambda data: data + (more or data)


def undecodable(data: bytes) -> bytes:
    """Good bytes that decode to nothing."""
    head = entry.head_of(data)
    at = 100 + head.about
    return resummed(data[:at] + b"!" * head.load + data[at + head.load :])


SPOILED = {
    **{f"cut to {n} bytes": (lambda data, n=n: data[:n], "") for n in (0, 3, 50, 99, 100, 1000)},
    "a byte more": (extended(b"\0"), "bytes instead of"),
    "much more": (extended(b"x" * 5000), "bytes instead of"),
    "itself twice": (extended(b""), "bytes instead of"),
    "zeros, where a crash of the machine left no data": (
        lambda data: bytes(len(data)), "is no cache entry",
    ),
    "lengths that no machine could hold": (
        lambda data: resummed(data[:8] + b"\xff" * 16 + data[24:]), "bytes instead of",
    ),
    "a newer format": (
        lambda data: resummed(data[:4] + (2).to_bytes(2, "little") + data[6:] + b"new section"),
        "format 2.0",
    ),
    "flags that mean nothing yet": (
        lambda data: resummed(data[:6] + b"\1\0" + data[8:]), "format 1.1",
    ),
    "what decodes to nothing": (undecodable, "cannot be decoded"),
}  # fmt: skip


@pytest.mark.parametrize("how", SPOILED)
def test_a_spoiled_entry_warns_once_and_heals(s, warnings, how):
    spoil, words = SPOILED[how]
    replace(s, spoil(contents(s)))
    expect_one_warning_and_healing(s, warnings, 1, words)


def test_a_file_that_is_far_too_large_is_not_read(s, warnings):
    os.truncate(shelf.path(s, 1), entry.MAX_SIZE + 1)  # sparse: takes no room
    expect_one_warning_and_healing(s, warnings, 1, "too large")


def test_what_an_entry_says_of_itself_is_for_people_and_its_use_does_not_depend_on_it(s):
    data = contents(s)
    about = b"[1]".ljust(entry.head_of(data).about)
    replace(s, resummed(data[:100] + about + data[100 + len(about) :]))
    assert "does not say what it is" in s.info(shelf.key(1), shelf.kernel(1)).problem
    assert shelf.is_right(s, 1)


# ---- of others


def test_entries_of_a_newer_format_have_other_names_and_are_left_alone(s, warnings):
    newer = shelf.path(s, 1)[: -len(folder.SUFFIX)] + ".qd2"
    os.rename(shelf.path(s, 1), newer)
    with open(newer, "r+b") as file:
        file.seek(4)
        file.write(b"\2")
    assert shelf.read(s, 1) is None
    assert s.statistics.damaged == 0
    s.write(shelf.entry(1))
    found = {os.path.basename(info.path)[-4:]: info for info in s.all()}
    assert found[".qd1"].problem == ""
    assert "format 2.0" in found[".qd2"].problem
    assert found[".qd2"].foreign
    assert warnings() == []


def test_an_entry_of_a_newer_engine_is_never_asked_for(root, warnings):
    """The engine is part of the key, so another engine's entry lies beside ours."""
    s = shelf.store(root)
    s.write(shelf.entry(1, engine="9.0.0+ffff"))
    s.write(shelf.entry(2))
    assert shelf.is_right(s, 2)
    assert {info.about["engine"] for info in s.all()} == {"9.0.0+ffff", shelf.ENGINE}
    assert warnings() == []


@pytest.mark.parametrize("number", [2, 6])
def test_a_file_renamed_to_another_key(s, warnings, number):
    """Of another kernel, and of the same one."""
    assert (shelf.kernel(1) == shelf.kernel(number)) == (number == 6)
    os.rename(shelf.path(s, 1), shelf.path(s, number))
    assert shelf.read(s, 1) is None
    found = s.info(shelf.key(number), shelf.kernel(number))
    assert found.problem == "holds the entry of another key"
    s.statistics.misses = 0
    expect_one_warning_and_healing(s, warnings, number, "another key")


def test_a_file_renamed_to_another_kernel(s, warnings):
    os.rename(shelf.path(s, 1), s.path_of(shelf.key(1), "module.other"))
    assert s.read(shelf.key(1), "module.other") is None
    (line,) = warnings()
    assert "another key" in line
    assert s.of_kernel("module.other")[0].problem


# ---- no files


def make_symlink(path):
    good = path + ".good"
    os.rename(path, good)
    os.symlink(good, path)


def make_dangling(path):
    os.unlink(path)
    os.symlink(path + ".nothing", path)


def make_pipe(path):
    os.unlink(path)
    os.mkfifo(path, 0o600)


def make_socket(path):
    os.unlink(path)
    here = os.getcwd()
    os.chdir(os.path.dirname(path))  # names of sockets are short
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(os.path.basename(path))
    finally:
        os.chdir(here)
    os.chmod(path, 0o600)


@pytest.mark.parametrize("make", [make_symlink, make_dangling, make_pipe, make_socket])
def test_something_else_in_the_place_of_an_entry(s, warnings, make):
    make(shelf.path(s, 1))
    (info,) = s.of_kernel(shelf.kernel(1))
    assert info.problem in ("is a symbolic link", "is no regular file")
    expect_one_warning_and_healing(s, warnings, 1, info.problem)


def test_a_symbolic_link_is_replaced_and_what_it_points_to_stays(s, tmp_path):
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    os.unlink(shelf.path(s, 1))
    os.symlink(victim, shelf.path(s, 1))
    s.write(shelf.entry(1))
    assert victim.read_bytes() == b"precious"
    assert not os.path.islink(shelf.path(s, 1))


def test_a_folder_in_the_place_of_an_entry(root, warnings):
    s = shelf.store(root)
    s.write(shelf.entry(2))
    os.mkdir(shelf.path(s, 1), 0o700)
    for _ in range(3):
        assert shelf.read(s, 1) is None
        assert not s.write(shelf.entry(1))
    lines = warnings()
    assert len(lines) == 2, lines  # it cannot be read, and nothing can be put there
    assert "is no regular file" in lines[0]
    assert shelf.is_right(s, 2)


# ---- whose files


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666, 0o777])
def test_an_entry_that_others_can_write(s, warnings, mode):
    os.chmod(shelf.path(s, 1), mode)
    expect_one_warning_and_healing(s, warnings, 1, "can be written by other users")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_an_entry_that_belongs_to_another_user(s, warnings):
    os.chown(shelf.path(s, 1), 65534, 65534)
    expect_one_warning_and_healing(s, warnings, 1, "belongs to another user")


def test_an_entry_that_belongs_to_another_user_as_the_system_states_it(s, warnings, monkeypatch):
    path, real = shelf.path(s, 1), os.fstat

    def fstat(fd):
        info = list(real(fd))
        info[4] += 1
        return os.stat_result(info)

    monkeypatch.setattr(folder.os, "fstat", fstat)
    assert shelf.read(s, 1) is None
    (line,) = warnings()
    assert path in line
    assert "belongs to another user" in line


def test_an_entry_that_cannot_be_opened(s, warnings, monkeypatch):
    real = os.open

    def refused(path, flags, *more):
        if str(path).endswith(folder.SUFFIX):
            raise PermissionError(13, "Permission denied", path)
        return real(path, flags, *more)

    monkeypatch.setattr(folder.os, "open", refused)
    for number in (1, 1, 2):
        assert shelf.read(s, number) is None
    (line,) = warnings()
    assert "Permission denied" in line
    monkeypatch.undo()
    assert shelf.is_right(s, 1)
