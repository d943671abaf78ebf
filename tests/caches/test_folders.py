"""Folders that may not, or cannot, be used: a miss, nothing kept, one warning, no harm."""

import errno
import os
import shutil
import subprocess
import sys
import textwrap

import pytest
from qd_studio.engine.cache import folder
from qd_studio.engine.cache.observe import DAMAGED
from qd_studio.engine.config import CompileConfig

from tests.caches import shelf
from tests.hygiene.tree import ROOT

ROOT_USER = os.geteuid() == 0
only_root = pytest.mark.skipif(not ROOT_USER, reason="only root can do that")


def expect_unused(s, warnings, at: str, *words: str) -> None:
    """Nothing is read and nothing is written, and one warning in all names the folder."""
    before = shelf.file_names(at) if os.path.isdir(at) else None
    for number in (1, 1, 2):
        assert shelf.read(s, number) is None
        assert not s.write(shelf.entry(number))
        assert s.peek(shelf.key(number), shelf.kernel(number)) is None
    (line,) = warnings()
    assert line.startswith("[qd-studio] warning: ")
    assert at in line
    assert all(word in line for word in words), line
    assert s.statistics.failed == 3
    assert s.statistics.hits == s.statistics.stored == 0
    if before is not None:
        assert shelf.file_names(at) == before


def filled(root):
    s = shelf.store(root)
    s.write(shelf.entry(1))
    return shelf.store(root)


# ---- whose folder


@pytest.mark.parametrize("which", ["root", "layer"])
@pytest.mark.parametrize("mode", [0o777, 0o770, 0o720, 0o702, 0o1777])
def test_a_folder_that_others_can_write(root, s, warnings, which, mode):
    at = s.root if which == "root" else s.folder
    os.chmod(at, mode)
    expect_unused(s, warnings, at, "can be written by other users", f"chmod go-w {at}")
    assert s.answer(shelf.key(1), shelf.kernel(1)).state == DAMAGED
    assert [info.problem for info in s.of_kernel(shelf.kernel(1))] == [
        "can be written by other users"
    ]
    os.chmod(at, 0o700)
    assert shelf.is_right(s, 1)


@pytest.mark.parametrize("mode", [0o755, 0o750, 0o500])
def test_a_folder_that_others_can_only_read_is_used(root, s, warnings, mode):
    os.chmod(s.root, mode)
    assert shelf.is_right(s, 1)
    assert warnings() == []


@only_root
@pytest.mark.parametrize("which", ["root", "layer"])
def test_a_folder_of_another_user(root, s, warnings, which):
    at = s.root if which == "root" else s.folder
    os.chown(at, 65534, 65534)
    expect_unused(s, warnings, at, "belongs to another user", "offline_cache_file_path")


def test_a_folder_of_another_user_as_the_system_states_it(root, s, warnings, monkeypatch):
    user = os.geteuid()
    monkeypatch.setattr(folder.os, "geteuid", lambda: user + 1)
    expect_unused(s, warnings, root, "belongs to another user")


@pytest.mark.parametrize("which", ["root", "layer"])
def test_a_symbolic_link_in_the_place_of_a_folder(root, s, tmp_path, warnings, which):
    at = s.root if which == "root" else s.folder
    os.rename(at, tmp_path / "moved")
    os.symlink(tmp_path / "moved", at)
    before = shelf.file_names(tmp_path / "moved")
    expect_unused(s, warnings, at, "is a symbolic link")
    assert shelf.file_names(tmp_path / "moved") == before


@pytest.mark.parametrize("which", ["root", "layer"])
def test_a_file_in_the_place_of_a_folder(root, s, tmp_path, warnings, which):
    at = s.root if which == "root" else s.folder
    shutil.rmtree(at)
    with open(at, "w") as file:
        file.write("mine")
    assert shelf.read(s, 1) is None
    assert not s.write(shelf.entry(1))
    (line,) = warnings()
    assert at in line
    with open(at) as file:
        assert file.read() == "mine"


def test_a_file_where_a_parent_should_be(tmp_path, warnings):
    (tmp_path / "file").write_text("mine")
    s = shelf.store(tmp_path / "file" / "cache")
    for _ in range(2):
        assert shelf.read(s, 1) is None
        assert not s.write(shelf.entry(1))
    (line,) = warnings()
    assert "Not a directory" in line


def test_no_home_directory(monkeypatch, warnings, tmp_path):
    """Where the user has none, the folder is looked for where the system's message says."""
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "missing" / "home"))
    real = os.mkdir

    def refused(path, *mode):
        if str(path).startswith(str(tmp_path)):
            raise PermissionError(errno.EACCES, "Permission denied", path)
        real(path, *mode)

    monkeypatch.setattr(folder.os, "mkdir", refused)
    s = shelf.store(folder.root_of(CompileConfig()))
    for number in (1, 2):
        assert not s.write(shelf.entry(number))
    (line,) = warnings()
    assert "Permission denied" in line
    assert str(tmp_path) in line


def test_no_write_waits_for_the_disk(root, monkeypatch):
    """A first call would wait for it, and a cut file is detected."""
    monkeypatch.setattr(folder.os, "fsync", None)
    s = shelf.store(root)
    assert s.write(shelf.entry(1))
    assert shelf.is_right(s, 1)


# ---- no room, no right to write

CALLS = ("mkdir", "open", "write", "replace")


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS, errno.EACCES])
def test_a_call_that_fails(root, warnings, monkeypatch, call, code):
    """A full disk, a read-only one, and worse, at each step of writing."""
    s = filled(root) if call != "mkdir" else shelf.store(root)
    real = getattr(os, call)

    def fails(path, *more):
        writes = call != "open" or more[0] & os.O_CREAT
        if writes:
            raise OSError(code, os.strerror(code), path if isinstance(path, str) else None)
        return real(path, *more)

    monkeypatch.setattr(folder.os, call, fails)
    for number in (1, 2, 3, 3):
        assert not s.write(shelf.entry(number)._replace(code=b"new"))
    (line,) = warnings()
    assert os.strerror(code) in line
    assert root in line
    assert s.statistics.failed == 4
    if call != "mkdir":
        assert shelf.is_right(s, 1), "the old entry is as good as it was"
        assert shelf.file_names(root) == [f"offline/{os.path.basename(shelf.path(s, 1))}"]
    monkeypatch.undo()
    for number in (1, 2):
        assert s.write(shelf.entry(number))
        assert shelf.is_right(s, number)


@pytest.mark.parametrize("room", [0, 1, 99, 100, 2999])
def test_a_disk_that_fills_up_in_the_middle_of_an_entry(root, s, warnings, monkeypatch, room):
    left, real = [room], os.write

    def write(fd, data):
        part = bytes(data[: min(left[0], 700)])
        if not part:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        left[0] -= len(part)
        return real(fd, part)

    monkeypatch.setattr(folder.os, "write", write)
    assert not s.write(shelf.entry(1)._replace(code=b"new" * 2000))
    assert not s.write(shelf.entry(2))
    (line,) = warnings()
    assert "No space left" in line
    assert shelf.is_right(s, 1)
    assert len(shelf.file_names(root)) == 1


def test_writes_that_take_only_a_part_at_a_time(root, monkeypatch):
    s = shelf.store(root)
    real = os.write
    monkeypatch.setattr(folder.os, "write", lambda fd, data: real(fd, bytes(data[:333])))
    assert s.write(shelf.entry(1, 10_000))
    assert shelf.is_right(s, 1, 10_000)


def test_reads_that_give_only_a_part_at_a_time(root, monkeypatch):
    s = shelf.store(root)
    s.write(shelf.entry(1, 10_000))
    real = os.read
    monkeypatch.setattr(folder.os, "read", lambda fd, size: real(fd, min(size, 777)))
    assert shelf.is_right(s, 1, 10_000)


def test_an_interrupted_write_leaves_nothing(root, s, monkeypatch):

    def interrupted(*names):
        raise KeyboardInterrupt

    monkeypatch.setattr(folder.os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        s.write(shelf.entry(2))
    assert len(shelf.file_names(root)) == 1


PRELUDE = """
import os, resource, sys
from qd_studio.engine.cache import folder
from tests.caches import shelf
root = sys.argv[1]
s = shelf.store(root)
"""


def child(code: str, root, wrapper=()) -> subprocess.CompletedProcess:
    """Run code in a process of its own, with a store ``s`` at ``root``."""
    command = [*wrapper, sys.executable, "-c", PRELUDE + textwrap.dedent(code), str(root)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)


def expect(done: subprocess.CompletedProcess, *, warnings: int, words: str = "") -> None:
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stderr.splitlines() if "warning" in line]
    assert len(lines) == warnings, done.stderr
    assert all(words in line for line in lines)


def test_a_limit_on_the_size_of_files(root):
    """The system stops the write in the middle, as a full disk does."""
    filled(root)
    done = child(
        """
        resource.setrlimit(resource.RLIMIT_FSIZE, (4000, 4000))
        assert not s.write(shelf.entry(2, 50_000))
        assert not s.write(shelf.entry(1, 50_000))
        assert shelf.is_right(s, 1)
        assert s.write(shelf.entry(3, 1000))
        assert shelf.is_right(s, 3, 1000)
        """,
        root,
    )
    expect(done, warnings=1, words="File too large")
    assert len(shelf.file_names(root)) == 2


def mounted(*options: str, at, code: str) -> subprocess.CompletedProcess:
    """Run a child that alone sees a file system mounted; skips where that is not allowed."""
    if not ROOT_USER or not shutil.which("unshare"):
        pytest.skip("mounting needs root and unshare")
    mount = ["unshare", "-m", "sh", "-c", 'mount "$@"', "sh", *options, str(at)]
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("this system does not allow mounting")
    script = f'mount {" ".join(options)} {at} && exec "$@"'
    return child(code, at / "cache", ["unshare", "-m", "sh", "-c", script, "sh"])


def test_a_disk_that_is_really_full(tmp_path):
    done = mounted("-t", "tmpfs", "-o", "size=128k,mode=700", "tmpfs", at=tmp_path, code="""
        kept = [number for number in range(60) if s.write(shelf.entry(number, 5000))]
        assert 5 < len(kept) < 30, kept
        assert all(shelf.is_right(s, number, 5000) for number in kept)
        assert all(shelf.read(s, n) is None for n in set(range(60)) - set(kept))
        assert not s.write(shelf.entry(kept[0], 90_000))
        assert shelf.is_right(s, kept[0], 5000)
        assert len(shelf.file_names(root)) == len(kept)
        os.unlink(shelf.path(s, kept[0]))
        os.unlink(shelf.path(s, kept[1]))
        assert s.write(shelf.entry(100, 5000)) and shelf.is_right(s, 100, 5000)
        """)  # fmt: skip
    expect(done, warnings=1, words="No space left on device")


def test_a_disk_that_is_really_read_only(tmp_path):
    kept = tmp_path / "kept"
    kept.mkdir(mode=0o700)
    filled(kept / "cache")
    at = tmp_path / "at"
    at.mkdir()
    done = mounted("-o", "ro,bind", str(kept), at=at, code="""
        assert shelf.is_right(s, 1)
        for number in (1, 2, 2):
            assert not s.write(shelf.entry(number))
        assert shelf.is_right(s, 1)
        """)  # fmt: skip
    expect(done, warnings=1, words="Read-only file system")


@pytest.mark.parametrize("mode", [0o500, 0o555, 0o100, 0o000])
def test_a_folder_without_the_right_to_write_to_it(root, s, tmp_path, mode):
    """As another user than root, whom no mode stops."""
    if ROOT_USER:
        for at in [str(tmp_path), root, s.folder, shelf.path(s, 1)]:
            os.chown(at, 65534, 65534)
        here = tmp_path
        while here != here.parent and not here.stat().st_mode & 0o001:
            os.chmod(here, here.stat().st_mode | 0o001)
            here = here.parent
    os.chmod(s.folder, mode)
    try:
        done = child(
            f"""
            import json  # which the other user may have no right to read
            if os.geteuid() == 0:
                os.setresgid(65534, 65534, 65534)
                os.setresuid(65534, 65534, 65534)
            readable = {mode} & 0o100
            assert shelf.is_right(s, 1) if readable else shelf.read(s, 1) is None
            for number in (1, 2, 2):
                assert not s.write(shelf.entry(number))
            assert shelf.read(s, 2) is None
            list(s.all()), s.of_kernel(shelf.kernel(1))
            """,
            root,
        )
    finally:
        os.chmod(s.folder, 0o700)
    # Where nothing can be read either, there is one warning for that and one for writing.
    expect(done, warnings=1 if mode & 0o100 else 2, words="Permission denied")


# ---- gone


def test_a_folder_that_is_removed_while_in_use(root, s, warnings):
    for gone in (s.folder, root):
        assert shelf.is_right(s, 1)
        shutil.rmtree(gone)
        assert shelf.read(s, 1) is None
        assert s.info(shelf.key(1), shelf.kernel(1)) is None
        assert s.of_kernel(shelf.kernel(1)) == list(s.all()) == []
        assert s.write(shelf.entry(1))
        assert shelf.is_right(s, 1)
    assert warnings() == []
    assert s.statistics.damaged == s.statistics.failed == 0


@pytest.mark.parametrize("call", ["open", "replace"])
def test_a_folder_that_is_removed_in_the_middle_of_a_write(root, s, warnings, monkeypatch, call):
    real, done = getattr(os, call), []

    def removes(path, *more, **named):
        if not done and (call != "open" or more[0] & os.O_CREAT):
            done.append(1)
            shutil.rmtree(root)
        return real(path, *more, **named)

    monkeypatch.setattr(folder.os, call, removes)
    assert s.write(shelf.entry(2))
    assert done
    assert shelf.is_right(s, 2)
    assert shelf.read(s, 1) is None
    assert warnings() == []


def test_a_folder_that_is_removed_again_and_again(root, s, warnings, monkeypatch):
    real = os.replace

    def removes(*paths):
        shutil.rmtree(root)
        return real(*paths)

    monkeypatch.setattr(folder.os, "replace", removes)
    for _ in range(3):
        assert not s.write(shelf.entry(2))
    assert len(warnings()) == 1
    monkeypatch.undo()
    assert s.write(shelf.entry(2))
    assert shelf.is_right(s, 2)


def test_an_entry_that_goes_between_listing_and_reading(s, monkeypatch):
    s.write(shelf.entry(6))
    real = folder.names_in
    monkeypatch.setattr(
        folder, "names_in", lambda at: [*real(at), folder.entry_name(shelf.key(11), "gone")]
    )
    assert len(list(s.all())) == 2


# ---- foreign files


def test_foreign_files_are_neither_read_nor_listed(s, warnings):
    name = os.path.basename(shelf.path(s, 1))
    strangers = [
        "README", ".hidden", "x.qd1", f"{name}.bak", f"A{name[1:]}", name[:-1] + "x", f" {name}",
        "0" * 57 + ".qd1", name.replace("-", "_"),
    ]  # fmt: skip
    for stranger in strangers:
        with open(f"{s.folder}/{stranger}", "w") as file:
            file.write("mine")
    os.mkdir(f"{s.folder}/folder")
    assert [info.key for info in s.all()] == [shelf.key(1)]
    assert [info.key for info in s.of_kernel(shelf.kernel(1))] == [shelf.key(1)]
    assert warnings() == []
