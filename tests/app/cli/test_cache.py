"""`qd-studio cache ls`, `show` and `verify`: what is shown of the caches on disk, and checked."""

import json
import os
import subprocess
import sys

import pytest
from qd_studio.app.cli import main
from qd_studio.engine.cache import folder
from qd_studio.engine.cache.engine_id import engine_id

from tests.app.cli.kit import damage, snapshot
from tests.caches import shelf

# ---- ls


def test_ls_lists_layer_by_layer_what_was_used_last_first(cache, filled, root):
    before = snapshot(root)
    status, out, err = cache("ls")
    assert (status, err) == (0, "")
    lines = out.splitlines()
    assert lines[0].split() == ["layer", "key", "kernel", "backend", "size", "made", "last", "use"]
    assert [line.split()[0] for line in lines[1:7]] == ["fastcache"] * 3 + ["offline"] * 3
    assert [line.split()[1] for line in lines[1:7]] == [
        shelf.key(n)[:12] for n in (1, 3, 5, 0, 2, 4)
    ]
    assert lines[1].endswith("1 day ago")
    assert lines[4].endswith("just now")
    assert lines[6].endswith("4 days ago")
    assert "module.kernel_4" in lines[6]
    assert lines[7].startswith("6 entries, ")
    assert f"in {root} (limit 100 MiB, policy lru)" in lines[7]
    assert snapshot(root) == before


def test_ls_as_json(cache, filled, root):
    status, out, _ = cache("ls", "--json")
    value = json.loads(out)
    assert status == 0
    assert (value["path"], value["policy"], value["limit"]) == (root, "lru", 104857600)
    first = value["entries"][0]
    assert (first["layer"], first["key"], first["kernel"]) == (
        "fastcache", shelf.key(1), "module.kernel_1",
    )  # fmt: skip
    assert first["size"] == os.path.getsize(first["path"])
    assert first["problem"] == ""
    assert len(value["entries"]) == 6


def test_ls_without_a_cache(cache, root):
    assert cache("ls") == (0, f"0 entries, 0 B in {root} (limit 100 MiB, policy lru)\n", "")
    assert cache("verify")[0] == 0
    assert cache("clean")[:2] == (0, f"nothing to remove; 0 left, 0 B in {root}\n")
    assert not os.path.exists(root)


def test_ls_marks_bad_entries(cache, filled):
    damage(shelf.path(filled[0], 2))
    status, out, _ = cache("ls")
    (line,) = [line for line in out.splitlines() if "BAD" in line]
    assert status == 0
    assert shelf.key(2)[:12] in line
    assert line.endswith("BAD: is damaged: its checksum does not match")


def test_names_that_would_steer_a_terminal_are_escaped(cache, root):
    s = shelf.store(root)
    name = "evil\x1b[2J\n\ud800<locals>.ä"
    s.write(shelf.entry(1)._replace(kernel=name, about={"captures": [{"name": name}]}))
    for words in (["ls"], ["show", shelf.key(1)[:5]], ["clean", "--all"]):
        status, out, _ = cache(*words)
        assert status == 0
        assert "\x1b" not in out
        assert r"evil\x1b[2J\n\ud800<locals>.ä" in out


# ---- show


def test_show_prints_what_an_entry_was_made_from(cache, filled, root):
    before = snapshot(root)
    path = shelf.path(filled[1], 1)
    status, out, err = cache("show", shelf.key(1))
    assert (status, err) == (0, "")
    head = out.split("\n\n")[0].splitlines()
    facts = {line[:9].strip(): line[10:] for line in head}
    assert facts["key"] == shelf.key(1)
    assert facts["layer"] == "fastcache"
    assert facts["kernel"] == "module.kernel_1"
    assert facts["source"] == "/src/module.py:11"
    assert facts["file"] == path
    assert facts["state"] == "good"
    assert facts["engine"] == engine_id()
    assert "code 2.93 KiB" in facts["size"]
    assert facts["made in"] == "frontend 500 us, passes 12.0 ms, codegen 3.25 ms"
    assert facts["made"].endswith(" (just now)")
    assert facts["last use"].endswith(" (1 day ago)")
    assert "\nparts of the key\n  kernel  module.kernel_1\n  ir      1\n" in out
    assert "\nparameters\n  x: ndarray<f32, 1>\n" in out
    assert "\nsource of module.kernel_1  /src/module.py:11  digest d1\n    11  @qd.kernel\n" in out
    assert "\n    12  def kernel_1(x):\n    13          help(x)\n" in out
    assert "\nsource of module.help  /src/other.py:5  digest d2\n     5  def help(x): pass\n" in out
    assert "\ncaptured values\n  N.size = 5 (int) in module.kernel_1\n" in out
    assert snapshot(root) == before


@pytest.mark.parametrize("digits", [1, 4, 12, 40])
def test_any_unambiguous_beginning_of_a_key_will_do(cache, root, digits):
    shelf.store(root).write(shelf.entry(1))
    for written in (shelf.key(1)[:digits], shelf.key(1)[:digits].upper()):
        status, out, _ = cache("show", written)
        assert status == 0
        assert shelf.key(1) in out


def test_an_ambiguous_beginning_lists_what_it_could_mean(cache, root):
    s = shelf.store(root)
    numbers = range(40)  # 40 keys begin with 16 digits
    for number in numbers:
        s.write(shelf.entry(number))
    digits = [shelf.key(n)[0] for n in numbers]
    common = max(digits, key=digits.count)
    status, out, err = cache("show", common)
    assert (status, out) == (2, "")
    assert f"{digits.count(common)} entries have keys that begin with '{common}'" in err
    assert all(shelf.key(n) in err for n in numbers if digits[n] == common)


def test_a_key_that_is_not_there(cache, filled):
    status, out, err = cache("show", "zz")
    assert (status, out) == (2, "")
    assert "no entry in" in err


def test_show_as_json_has_everything(cache, filled):
    status, out, _ = cache("show", shelf.key(1), "--json")
    value = json.loads(out)
    assert status == 0
    assert value["about"]["parts"] == {"kernel": "module.kernel_1", "ir": "1"}
    assert value["load"] == shelf.load(1)
    assert value["sections"]["code"] == 3000


def test_show_of_a_bad_entry_says_so_and_exits_1(cache, filled):
    damage(shelf.path(filled[0], 2))
    for more in ([], ["--json"]):
        status, out, _ = cache("show", shelf.key(2), *more)
        assert status == 1
        assert "is damaged: its checksum does not match" in out


@pytest.mark.parametrize("now", [-1e18, 1e18, 0.0])
def test_show_of_times_that_cannot_be(cache, root, now):
    shelf.store(root).write(shelf.entry(1, created=now))
    assert cache("show", shelf.key(1))[0] == 0
    assert cache("ls")[0] == 0


def test_show_of_an_entry_that_says_other_things_of_itself(cache, root):
    entry = shelf.entry(1)._replace(
        about={"sources": "none", "parts": [1], "ms": None, "params": {}, "captures": 3}
    )
    shelf.store(root).write(entry)
    status, out, _ = cache("show", shelf.key(1))
    assert status == 0
    assert "parts of the key" not in out


# ---- verify


def test_verify_of_good_entries(cache, filled, root):
    before = snapshot(root)
    status, out, err = cache("verify")
    assert (status, err) == (0, "")
    assert out.startswith("6 checked, ")
    assert out.endswith(f"in {root}: all good\n")
    assert snapshot(root) == before


def test_verify_names_bad_entries_and_what_helps(cache, filled):
    damage(shelf.path(filled[0], 2))
    os.chmod(shelf.path(filled[1], 3), 0o666)
    os.unlink(shelf.path(filled[1], 5))
    os.symlink("/etc/hostname", shelf.path(filled[1], 5))
    status, out, _ = cache("verify")
    assert status == 1
    lines = out.splitlines()
    bad = {lines[at][5:]: lines[at + 1] for at, x in enumerate(lines) if x.startswith("BAD ")}
    clean = "     remedy: qd-studio cache clean"
    link = shelf.path(filled[1], 5)
    assert bad == {
        f"{shelf.path(filled[1], 3)} can be written by other users": clean,
        f"{link} is a symbolic link": f"     remedy: rm {link}",
        f"{shelf.path(filled[0], 2)} is damaged: its checksum does not match": clean,
    }
    assert lines[-1].endswith(": 3 bad")
    status, out, _ = cache("verify", "--json")
    assert status == 1
    assert {fault["path"] for fault in json.loads(out)["faults"]} == {
        x.partition(" ")[0] for x in bad
    }


@pytest.mark.parametrize("which", ["root", "layer"])
def test_verify_names_a_bad_folder_and_what_helps(cache, filled, root, which):
    at = root if which == "root" else filled[0].folder
    os.chmod(at, 0o777)
    status, out, _ = cache("verify")
    assert status == 1
    assert f"BAD  {at} can be written by other users\n     remedy: chmod go-w {at}\n" in out
    status, out, err = cache("ls")
    assert at in err
    assert status == (3 if which == "root" else 0)


def test_verify_states_of_other_formats_and_of_unfinished_files(cache, filled):
    path = shelf.path(filled[0], 2)
    other = path[: -len(folder.SUFFIX)] + ".qd2"
    with open(path, "r+b") as file:
        file.seek(4)
        file.write(b"\2")
    os.rename(path, other)
    unfinished = f"{filled[0].folder}/.0123456789abcdef.tmp"
    with open(unfinished, "w"):
        pass
    status, out, _ = cache("verify")
    assert status == 0
    assert f"note {unfinished} " in out
    assert "note 1 in formats of other versions were not checked" in out


# ---- the program


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "required"),
        (["what"], "what"),
        (["show"], "KEY"),
        (["clean", "--older-than", "soon"], "not an age"),
        (["clean", "--older-than", "30"], "not an age"),
        (["clean", "--all", "--layer", "offline"], "--all goes with no other"),
    ],
)
def test_usage(capsys, words, message):
    assert main(["cache", *words]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err


def test_a_bad_variable_of_the_environment(capsys, monkeypatch):
    monkeypatch.setenv("QD_OFFLINE_CACHE_CLEANING_POLICY", "sometimes")
    assert main(["cache", "ls"]) == 2
    assert "QD_OFFLINE_CACHE_CLEANING_POLICY=sometimes" in capsys.readouterr().err


def test_without_a_path_it_is_the_users_cache(capsys, monkeypatch, tmp_path):
    assert main(["cache", "ls"]) == 0
    assert f"{os.environ['XDG_CACHE_HOME']}/qd-studio/qdcache" in capsys.readouterr().out
    monkeypatch.setenv("QD_OFFLINE_CACHE_FILE_PATH", str(tmp_path / "mine"))
    assert main(["cache", "ls"]) == 0
    assert f" in {tmp_path}/mine (" in capsys.readouterr().out


KERNEL = """
import numpy as np
from qd_studio import engine as qd

@qd.kernel
def doubled(x: qd.types.NDArray[qd.f32, 1]):
    for i in range(x.shape[0]):
        x[i] = x[i] * 2

qd.init(arch=qd.cpu)
x = np.ones(8, np.float32)
doubled(x)
print(x)
"""


def test_what_a_program_compiled_is_shown_verified_and_removed(tmp_path, capsys):
    path = tmp_path / "program.py"
    path.write_text(KERNEL)

    def run() -> str:
        # Full code is in the caches when the program ends.
        env = os.environ | {"QD_TIERED": "off"}
        done = subprocess.run([sys.executable, str(path)], env=env, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    def cache(*words) -> str:
        assert main(["cache", *words]) == 0
        return capsys.readouterr().out

    values = run()
    entries = json.loads(cache("ls", "--json"))["entries"]
    (key,) = [e["key"] for e in entries if e["layer"] == "offline" and "doubled" in e["kernel"]]
    shown = cache("show", key[:10])
    assert "x[i] = x[i] * 2" in shown
    assert "config.fast_math" in shown
    assert "all good" in cache("verify")
    assert key[:12] in cache("clean", "--kernel", "doubled")
    assert run() == values
