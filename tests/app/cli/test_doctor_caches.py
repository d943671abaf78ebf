"""What the doctor says of the caches on disk."""

import os
import shutil
import subprocess
import sys

import pytest
from qd_studio.app import cli, doctor

PROGRAM = """\
import numpy as np
from qd_studio import engine as qd

@qd.kernel
def double(x: qd.types.ndarray(dtype=qd.f32, ndim=1)):
    for i in x:
        x[i] = x[i] * 2.0

qd.init(arch=qd.cpu, log_level="warn", tiered=False)
double(np.ones(4, np.float32))
"""


@pytest.fixture(scope="module")
def left(tmp_path_factory):
    """What a program left in its caches."""
    folder = tmp_path_factory.mktemp("left")
    path = folder / "program.py"
    path.write_text(PROGRAM)
    env = {**os.environ, "XDG_CACHE_HOME": str(folder / "cache")}
    subprocess.run([sys.executable, str(path)], check=True, env=env)
    return folder / "cache"


@pytest.fixture
def root(left):
    """The root of the caches, after a program has filled them."""
    shutil.copytree(left, os.environ["XDG_CACHE_HOME"])
    return os.path.join(os.environ["XDG_CACHE_HOME"], "qd-studio", "qdcache")


def found():
    return [f for f in doctor._caches() if f.area == "cache"]


def named(name):
    return [f for f in found() if f.name == name]


def test_a_folder_that_is_not_there_yet_is_no_trouble():
    (only,) = found()
    assert (only.name, only.state) == ("folder", "note") and "not there yet" in only.detail


def test_folder_size_and_entries_of_each_layer(root):
    assert {f.state for f in found()} == {"ok"}
    assert named("folder")[0].detail == root
    assert named("size")[0].detail.endswith("of 100 MiB; cleaning: lru")
    assert named("offline")[0].detail.startswith("1 entry, ")


def test_a_bad_entry_is_named_with_what_removes_it(root):
    folder = os.path.join(root, "offline")
    (name,) = os.listdir(folder)
    with open(os.path.join(folder, name), "ab") as file:
        file.write(b"more")
    good, bad = named("offline")
    assert good.state == "ok"
    assert bad.state == "broken" and name in bad.detail and "bytes instead of" in bad.detail
    assert "qd-studio cache clean" in bad.hint


def test_many_bad_entries_are_counted(root):
    folder = os.path.join(root, "offline")
    (name,) = os.listdir(folder)
    for digit in "012345":
        with open(os.path.join(folder, digit * 16 + name[16:]), "wb") as file:
            file.write(b"nothing")
        os.chmod(file.name, 0o600)
    states = [f.state for f in named("offline")]
    assert states == ["ok", "broken", "broken", "broken", "broken"]
    assert named("offline")[-1].detail == "3 more entries are of no use"


@pytest.mark.parametrize("layer", ["", "offline"])
def test_a_folder_that_others_may_write_to_has_a_remedy(root, layer):
    path = os.path.join(root, layer).rstrip("/")
    os.chmod(path, 0o777)
    (bad,) = [f for f in found() if f.state == "broken"]
    assert "can be written by other users" in bad.detail
    assert bad.hint == f"chmod go-w {path}"


def test_caches_that_the_environment_switches_off(root, monkeypatch):
    monkeypatch.setenv("QD_OFFLINE_CACHE", "0")
    (note,) = named("in use")
    assert note.state == "note" and "offline_cache=False" in note.detail


def test_looking_leaves_the_folder_as_it_is(root, capsys):
    def state():
        return sorted(
            (path, name, os.stat(os.path.join(path, name)).st_mtime_ns)
            for path, inner, files in os.walk(root)
            for name in (*inner, *files)
        )

    before = state()
    assert cli.main(["doctor"]) == 0
    assert "entry, " in capsys.readouterr().out
    assert state() == before
