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
    """The file with a checksum that is right for what stands in it now."""
    return data[:68] + checksum(data[:68], data[100:]) + data[100:]


# ---- every byte


def test_every_byte_of_an_entry_flipped_in_turn(root, monkeypatch, capfd):
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
    for number, at in places:
        bad = bytearray(good[number])
        bad[at] ^= rng.choice((1 << rng.randrange(8), rng.randrange(1, 256)))
        replace(s, bytes(bad), number)
        assert shelf.read(s, number) is None, (number, at)
        assert s.info(shelf.key(number), shelf.kernel(number)).problem, (number, at)
        replace(s, good[number], number)
        if at % 50 == 0:
            assert shelf.is_right(s, number, sizes[number])
    assert s.statistics.damaged == len(places) >= 2_000
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


def test_truncated_at_every_class_of_length(root):
    s = shelf.store(root)
    s.write(shelf.entry(1))
    data = contents(s)
    lengths = cuts(data)
    assert len(lengths) > 20
    for length in lengths:
        replace(s, data[:length])
        assert shelf.read(s, 1) is None, length
        info = s.info(shelf.key(1), shelf.kernel(1))
        assert info.problem, length
        assert info.size == length


@pytest.mark.parametrize("length", [0, 3, 50, 99, 100, 1000])
def test_a_truncated_entry_warns_once_and_heals(root, warnings, length):
    s = shelf.store(root)
    s.write(shelf.entry(1))
    replace(s, contents(s)[:length])
    expect_one_warning_and_healing(s, warnings)


@pytest.mark.parametrize("more", [b"\0", b"x" * 5000, "itself"])
def test_extended(root, warnings, more):
    s = shelf.store(root)
    s.write(shelf.entry(1))
    data = contents(s)
    replace(s, data + (data if more == "itself" else more))
    expect_one_warning_and_healing(s, warnings, 1, "bytes instead of")


def test_zeros_where_a_crash_of_the_machine_left_no_data(root, warnings):
    s = shelf.store(root)
    s.write(shelf.entry(1))
    replace(s, bytes(len(contents(s))))
    expect_one_warning_and_healing(s, warnings, 1, "is no cache entry")


def test_lengths_that_no_machine_could_hold(root, warnings):
    s = shelf.store(root)
    s.write(shelf.entry(1))
    data = bytearray(contents(s))
    data[8:24] = b"\xff" * 16
    replace(s, resummed(bytes(data)))
    expect_one_warning_and_healing(s, warnings, 1, "bytes instead of")


def test_a_file_that_is_far_too_large_is_not_read(root, warnings):
    s = shelf.store(root)
    s.write(shelf.entry(1))
    os.truncate(shelf.path(s, 1), entry.MAX_SIZE + 1)  # sparse: takes no room
    expect_one_warning_and_healing(s, warnings, 1, "too large")


# ---- of others


def test_an_entry_of_a_newer_format(root, warnings):
    s = shelf.store(root)
    s.write(shelf.entry(1))
    data = contents(s)
    replace(s, resummed(data[:4] + (2).to_bytes(2, "little") + data[6:] + b"new section"))
    expect_one_warning_and_healing(s, warnings, 1, "format 2.0")


def test_an_entry_with_flags_that_mean_nothing_yet(root, warnings):
    s = shelf.store(root)
    s.write(shelf.entry(1))
    data = contents(s)
    replace(s, resummed(data[:6] + b"\1\0" + data[8:]))
    expect_one_warning_and_healing(s, warnings, 1, "format 1.1")


def test_entries_of_a_newer_format_have_other_names_and_are_left_alone(root, warnings):
    s = shelf.store(root)
    s.write(shelf.entry(1))
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


def test_a_file_renamed_to_another_key(root, warnings):
    s = shelf.store(root)
    s.write(shelf.entry(1))
    os.rename(shelf.path(s, 1), shelf.path(s, 2))
    assert shelf.read(s, 1) is None
    expect_problem = s.info(shelf.key(2), shelf.kernel(2)).problem
    assert expect_problem == "holds the entry of another key"
    s.statistics.misses = 0
    expect_one_warning_and_healing(s, warnings, 2, "another key")


def test_a_file_renamed_to_another_key_of_the_same_kernel(root, warnings):
    s = shelf.store(root)
    s.write(shelf.entry(1))
    assert shelf.kernel(1) == shelf.kernel(6)
    os.rename(shelf.path(s, 1), shelf.path(s, 6))
    expect_one_warning_and_healing(s, warnings, 6, "another key")


def test_a_file_renamed_to_another_kernel(root, warnings):
    s = shelf.store(root)
    s.write(shelf.entry(1))
    os.rename(shelf.path(s, 1), s.path_of(shelf.key(1), "module.other"))
    assert s.read(shelf.key(1), "module.other") is None
    (line,) = warnings()
    assert "another key" in line
    assert s.of_kernel("module.other")[0].problem


def test_good_bytes_that_decode_to_nothing(root, warnings):
    s = shelf.store(root)
    s.write(shelf.entry(1))
    data = contents(s)
    head = entry.head_of(data)
    at = 100 + head.about
    replace(s, resummed(data[:at] + b"!" * head.load + data[at + head.load :]))
    expect_one_warning_and_healing(s, warnings, 1, "cannot be decoded")
    data = contents(s)
    about = b"[1]".ljust(entry.head_of(data).about)
    replace(s, resummed(data[:100] + about + data[100 + len(about) :]))
    assert "does not say what it is" in s.info(shelf.key(1), shelf.kernel(1)).problem
    assert shelf.is_right(s, 1)  # `about` is for people, its use does not depend on it


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
def test_something_else_in_the_place_of_an_entry(root, warnings, make):
    s = shelf.store(root)
    s.write(shelf.entry(1))
    make(shelf.path(s, 1))
    (info,) = s.of_kernel(shelf.kernel(1))
    assert info.problem in ("is a symbolic link", "is no regular file")
    expect_one_warning_and_healing(s, warnings, 1, info.problem)


def test_a_symbolic_link_is_replaced_and_what_it_points_to_stays(root, tmp_path):
    s = shelf.store(root)
    s.write(shelf.entry(1))
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
def test_an_entry_that_others_can_write(root, warnings, mode):
    s = shelf.store(root)
    s.write(shelf.entry(1))
    os.chmod(shelf.path(s, 1), mode)
    expect_one_warning_and_healing(s, warnings, 1, "can be written by other users")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_an_entry_that_belongs_to_another_user(root, warnings):
    s = shelf.store(root)
    s.write(shelf.entry(1))
    os.chown(shelf.path(s, 1), 65534, 65534)
    expect_one_warning_and_healing(s, warnings, 1, "belongs to another user")


def test_an_entry_that_belongs_to_another_user_as_the_system_tells_it(root, warnings, monkeypatch):
    s = shelf.store(root)
    s.write(shelf.entry(1))
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


def test_an_entry_that_cannot_be_opened(root, warnings, monkeypatch):
    s = shelf.store(root)
    s.write(shelf.entry(1))
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
