"""A user's program leaves caches; looks at its file say what these would answer, without a trace.

The program runs as a script in a process of its own, and the looks in the studio's worker.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from qd_studio.app import cli, report
from qd_studio.app.core.lines import plain
from qd_studio.app.core.rules import evaluate
from qd_studio.app.panels import caches
from qd_studio.app.show import show
from qd_studio.app.worker.once import collect
from qd_studio.app.worker.protocol import Limits
from qd_studio.engine import inspect

from tests.app.pages import unpacked

SOURCE = """\
from qd_studio import engine as qd

LIMIT = 5


@qd.func
def half(v):
    w = v * 0.5
    return w + 0.5


@qd.kernel(fastcache=True)
def halve(x: qd.types.ndarray(dtype=qd.f32, ndim=1)):
    for i in x:
        x[i] = half(x[i]) + LIMIT


@qd.kernel
def plain(x: qd.types.ndarray(dtype=qd.f32, ndim=1)):
    for i in x:
        x[i] = half(x[i])


if __name__ == "__main__":
    qd.init(arch=qd.cpu, log_level="warn", tiered=False)
    a = qd.ndarray(qd.f32, (8,))
    halve(a)
    plain(a)
"""
RUN = [sys.executable, "-W", "ignore"]


@pytest.fixture(scope="module")
def left(tmp_path_factory):
    """Where the program ran once, and what it left there: the file and the caches."""
    kept, work = tmp_path_factory.mktemp("kept") / "left", tmp_path_factory.mktemp("work")
    (work / "kernels.py").write_text(SOURCE)
    env = {**os.environ, "XDG_CACHE_HOME": str(work / "cache")}
    subprocess.run([*RUN, str(work / "kernels.py")], check=True, cwd=work, env=env)
    return work, shutil.copytree(work, kept)


def restored(left, monkeypatch):
    """The file, after its program ran once: always at one place, which entries name."""
    work, kept = left
    shutil.rmtree(work)
    shutil.copytree(kept, work)
    monkeypatch.setenv("XDG_CACHE_HOME", str(work / "cache"))
    return work / "kernels.py"


@pytest.fixture
def path(left, monkeypatch):
    return restored(left, monkeypatch)


@pytest.fixture(scope="module")
def looked(left):
    """What a look says when nothing has changed since."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        return look(restored(left, monkeypatch))


def run(path, *more):
    subprocess.run([*RUN, str(path), *more], check=True, cwd=path.parent)


def look(path, config=None, **more):
    more = {"backends": ("cpu",), "launch": False, **more}
    return collect([str(path)], config, limits=Limits(measure_s=0.01), **more)


def layers(record, kernel="halve", backend="cpu"):
    found = next(k for k in record.kernels if k.name == kernel)
    return {layer.name: layer for layer in found.backend(backend).caches}


def edit(path, old, new):
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))


def texts(layer):
    return [d.text for d in layer.differences]


def everywhere(record, kernel="halve"):
    """Every form in which a look is shown."""
    found = next(k for k in record.kernels if k.name == kernel)
    head, rows = caches.cache_lines(found)
    chosen = caches.layer_lines(found, caches.chosen_layer(found), 200)
    return {
        "studio": plain([*head, *rows, *chosen]),
        "show": show(record, "caches", kernel),
        "json": show(record, "caches", kernel, as_json=True),
        "markdown": report.render(record, ".md"),
        "html": unpacked(record),
    }


def test_what_a_program_left_is_a_hit_for_every_layer(looked, path):
    record = looked
    for name in ("fastcache", "offline"):
        layer = layers(record)[name]
        assert (layer.state, layer.source, layer.differences) == ("hit", "disk", ())
        assert layer.size_bytes == os.path.getsize(layer.path) > 0
        assert layer.cost_ms > 0 and layer.parts["kernel"] == "halve"
    assert layers(record)["fastcache"].parts["module"] == "__main__ (kernels.py)"
    plain = layers(record, "plain")
    assert (plain["offline"].state, plain["fastcache"].state) == ("hit", "off")
    assert plain["fastcache"].advice == "could be marked fastcache=True: it is pure"


def test_an_edit_that_was_undone_is_a_hit_again(path):
    edit(path, "w + 0.5", "w + 0.75")
    run(path)
    edit(path, "w + 0.75", "w + 0.5")
    seen = layers(look(path))
    assert (seen["fastcache"].state, seen["offline"].state) == ("hit", "hit")
    edit(path, "w + 0.5", "w + 0.25")
    third = layers(look(path))["fastcache"]
    (difference,) = third.differences  # from the version that was compiled last
    assert third.state == "miss"
    assert difference.lines == ("-9     return w + 0.75", "+9     return w + 0.25")


@pytest.mark.slow
def test_an_edit_that_was_undone_is_not_reported_again(path):
    """What is compared with is the version of an entry that is nearest, not the latest."""
    for old, new in (("LIMIT = 5", "LIMIT = 6"), ("LIMIT = 6", "LIMIT = 7")):
        edit(path, old, new)
        run(path)
    edit(path, "LIMIT = 7", "LIMIT = 5")
    assert layers(look(path))["fastcache"].state == "hit"
    toggled = layers(look(path, {"fast_math": False}))["fastcache"]
    assert texts(toggled) == ["config.fast_math: True -> False"]
    edit(path, "w + 0.5", "w + 0.75")
    edited = layers(look(path))["fastcache"]
    assert texts(edited) == ["source of helper `half` changed, line 9"]
    assert edited.differences[0].lines == ("-9     return w + 0.5", "+9     return w + 0.75")


def traces(root):
    """Names, contents, and times of all that is in a folder."""
    out = []
    for path in sorted([Path(root), *Path(root).rglob("*")]):
        status = path.stat()
        data = path.read_bytes() if path.is_file() else b""
        out.append((path, hashlib.sha256(data).hexdigest(), status.st_mode, status.st_mtime_ns,
                    status.st_ino))  # fmt: skip
    return out


def accesses(root):
    return {path: path.stat().st_atime_ns for path in [Path(root), *Path(root).rglob("*")]}


def test_two_looks_with_every_layer_warm_give_the_same_passes_and_leave_no_trace(path):
    root = os.environ["XDG_CACHE_HOME"]
    before = traces(root)
    # An access older than the last change is what a mount with relatime would renew.
    for file in accesses(root):
        status = file.stat()
        os.utime(file, ns=(status.st_mtime_ns - 10**9, status.st_mtime_ns))
    accessed = accesses(root)
    first, second = look(path, launch=True), look(path, launch=True)
    assert inspect.canonical(first).kernels == inspect.canonical(second).kernels
    assert accesses(root) == accessed
    assert traces(root) == before and len(before) > 4
    for name in ("halve", "plain"):
        runs = [
            [(r.stage, r.round, r.task, r.name, r.state, r.added, r.removed, r.rewritten)
             for r in next(k for k in record.kernels if k.name == name).backend("cpu").compile.runs]
            for record in (first, second)
        ]  # fmt: skip
        assert runs[0] == runs[1] and len(runs[0]) > 20
        states = [{k: v.state for k, v in layers(r, name).items()} for r in (first, second)]
        assert states[0] == states[1]
    assert layers(second)["fastcache"].state == layers(second)["offline"].state == "hit"


def test_user_code_that_launches_in_the_worker_leaves_no_trace_either(path):
    root = os.environ["XDG_CACHE_HOME"]
    edit(path, "w = v * 0.5", "w = v * 0.125")
    before = traces(root)
    look(path, run=True, launch=True)
    assert traces(root) == before


def test_a_toggled_option_is_named_exactly_and_everywhere(path, tmp_path, capsys):
    """And the record of such a look is saved, opened and canonical."""
    record = look(path, {"fast_math": False})
    for name in ("fastcache", "offline"):
        layer = layers(record)[name]
        assert layer.state == "miss" and layer.against == "entry"
        assert texts(layer) == ["config.fast_math: True -> False"] == [layer.reason]
        assert layer.before == {"config.fast_math": "True"}
    for where, text in everywhere(record).items():
        assert "config.fast_math: True -> False" in text.replace("-&gt;", "->"), where
    saved = str(tmp_path / "r.qds")
    inspect.save(record, saved)
    assert inspect.load(saved) == record
    words = ["show", str(path), "--panel", "caches", "--kernel", "halve", "--backend", "cpu"]
    assert cli.main([*words, "--config", "fast_math=0"]) == 0
    out = capsys.readouterr().out
    assert "config.fast_math: True -> False" in out and "was True" in out
    assert cli.main(["show", saved, *words[2:], "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    layer = next(x for x in found["caches"] if x["name"] == "offline")
    assert [d["text"] for d in layer["differences"]] == ["config.fast_math: True -> False"]


def test_an_edited_helper_is_named_with_its_lines_everywhere(path):
    edit(path, "w = v * 0.5\n    return w + 0.5", "w = v * 0.25\n    return w + 0.75")
    record = look(path)
    for name in ("fastcache", "offline"):
        layer = layers(record)[name]
        assert layer.state == "miss"
        assert texts(layer) == ["source of helper `half` changed, lines 8-9"]
        assert layer.differences[0].lines == (
            "-8     w = v * 0.5", "-9     return w + 0.5",
            "+8     w = v * 0.25", "+9     return w + 0.75",
        )  # fmt: skip
    for where, text in everywhere(record).items():
        assert "source of helper `half` changed, lines 8-9" in text, where
        assert "w = v * 0.25" in text and "w = v * 0.5" in text, where
    assert re.search(r"class=d-removed><td>8<td>-<td> *w = v \* 0\.5", unpacked(record))


def test_an_edit_elsewhere_in_the_file_is_a_hit(path):
    edit(path, "LIMIT = 5\n", "LIMIT = 5\n# a comment\nOTHER = 6\n")
    record = look(path)
    assert [layers(record)[n].state for n in ("fastcache", "offline")] == ["hit", "hit"]


def test_a_changed_constant_is_named_with_both_values(path):
    edit(path, "LIMIT = 5", "LIMIT = 6")
    record = look(path)
    assert texts(layers(record)["offline"]) == ["capture LIMIT in `halve`: 5 -> 6"]
    (difference,) = layers(record)["fastcache"].differences
    assert difference.text == "capture LIMIT in `halve`: 5 -> 6"
    assert (difference.before, difference.after) == ("int=5", "int=6")
    edit(path, "LIMIT = 6", "LIMIT = 6.0")
    (difference,) = layers(look(path))["fastcache"].differences
    assert difference.text == "capture LIMIT in `halve`: int=5 -> float=6.0"


def test_an_edited_kernel_marked_fastcache_is_explained_by_its_own_lines(path):
    edit(path, "half(x[i]) + LIMIT", "half(x[i]) - LIMIT")
    layer = layers(look(path))["fastcache"]
    assert texts(layer) == ["source of kernel `halve` changed, line 15"]
    assert list(layer.before) == ["source"]


def test_an_impure_kernel_marked_fastcache_names_the_capture_everywhere(path):
    edit(path, "LIMIT", "limit")
    record = look(path)
    layer = layers(record)["fastcache"]
    assert layer.state == "bypass"
    assert layer.reason == "not pure: reads limit (int) at line 15"
    assert layers(record)["offline"].state == "bypass"
    for where, text in everywhere(record).items():
        assert "not pure: reads limit (int) at line 15" in text, where


def test_the_capture_of_a_helper_is_named_with_the_helper(path):
    edit(path, "return w + 0.5", "return w + offset")
    edit(path, "LIMIT = 5", "LIMIT = 5\noffset = 0.25")
    record = look(path)
    wanted = "not pure: reads offset (float) at line 10 in half"
    assert layers(record)["fastcache"].reason == wanted
    assert layers(record, "plain")["fastcache"].advice == wanted


def test_arrays_of_numpy_in_the_look_and_of_the_engine_in_the_program_are_no_difference(
    looked, path
):
    layer = layers(looked)["fastcache"]
    assert layer.parts["arg.x"] == "[nd-f32-1]"
    other = path.with_name("other.py")
    other.write_text(SOURCE.replace("qd.ndarray(qd.f32, (8,))", "np.ones(8, np.float32)")
                     .replace("LIMIT = 5", "import numpy as np\nLIMIT = 5"))  # fmt: skip
    run(other)
    layer = layers(look(other))["fastcache"]
    assert (layer.state, layer.parts["arg.x"]) == ("hit", "[np-float32-1]")


def test_a_file_that_another_program_imports_is_known_by_that_name(path):
    main = path.with_name("main.py")
    body = SOURCE.partition("if __name__")[2].partition("\n")[2]
    main.write_text("from kernels import *\n" + "\n".join(x[4:] for x in body.splitlines()) + "\n")
    edit(path, "w + 0.5", "w + 1.5")
    run(main)
    layer = layers(look(path))["fastcache"]
    assert (layer.state, layer.parts["module"]) == ("hit", "kernels (kernels.py)")


def test_code_that_is_gone_from_the_offline_cache_is_reported(looked, path):
    os.unlink(layers(looked)["offline"].path)
    record = look(path)
    assert layers(record)["offline"].reason == "no entry of this kernel"
    layer = layers(record)["fastcache"]
    assert layer.state == "miss" and "no longer in the offline cache" in layer.reason


def test_a_damaged_entry_is_reported_and_left_alone(looked, path):
    entry = layers(looked)["offline"].path
    with open(entry, "r+b") as file:
        file.seek(200)
        file.write(b"\0\1\2")
    layer = layers(look(path))["offline"]
    assert layer.state == "damaged" and "checksum" in layer.reason
    assert os.path.exists(entry)


def test_a_folder_of_others_is_reported(looked, path):
    folder = os.path.dirname(layers(looked)["offline"].path)
    os.chmod(folder, 0o777)
    layer = layers(look(path))["offline"]
    assert layer.state == "damaged" and "can be written by other users" in layer.reason


@pytest.mark.parametrize(
    ("config", "fast", "offline"),
    [
        ({"offline_cache": False}, ("off", "offline_cache=False"), ("off", "offline_cache=False")),
        ({"src_ll_cache": False}, ("off", "src_ll_cache=False"), ("hit", "")),
        ({"print_ir": True}, ("bypass", "print_ir=True"), ("bypass", "print_ir=True")),
    ],
)
def test_options_that_keep_a_program_from_the_caches(path, config, fast, offline):
    found = layers(look(path, config))
    for name, (state, reason) in (("fastcache", fast), ("offline", offline)):
        assert found[name].state == state and found[name].reason.startswith(reason)


def test_a_folder_that_the_file_chooses_is_the_one_that_is_looked_at(path, tmp_path):
    chosen = str(tmp_path / "mine")
    edit(path, 'log_level="warn"', f'log_level="warn", offline_cache_file_path={chosen!r}')
    edit(path, 'if __name__ == "__main__":\n    qd.init', "qd.init")
    edit(path, "    a = qd", 'if __name__ == "__main__":\n    a = qd')
    run(path)
    layer = layers(look(path))["offline"]
    assert layer.state == "hit" and layer.path.startswith(chosen)


def test_rules_know_the_states_and_the_word_loaded(looked):
    rules = ["cache.fastcache!=loaded", "cache.offline!=hit", "cache.ptx!=hit"]
    found = evaluate(looked, rules)
    states = {(f.rule, f.kernel): f.state for f in found}
    assert [f.message for f in found if f.state == "failed"] == [
        "cache.fastcache is off: not marked fastcache=True"
    ]
    assert states["cache.fastcache!=loaded", "kernels.py:halve"] == "passed"
    assert states["cache.fastcache!=loaded", "kernels.py:plain"] == "failed"
    assert states["cache.offline!=hit", "kernels.py:plain"] == "passed"
    assert states["cache.ptx!=hit", "kernels.py:plain"] == "skipped"


def test_records_from_before_looks_still_open():
    old = inspect.dumps(inspect.record.Record(kernels=(inspect.record.KernelRecord(
        id="a:k", name="k", file="a", line=1,
        backends=(inspect.record.BackendRecord(backend="cpu", status="ok"),),
    ),)))  # fmt: skip
    data = json.loads(old)
    data["kernels"][0]["backends"][0]["caches"] = [
        {"name": "offline", "state": "off", "reason": "comes later"}
    ]
    record = inspect.loads(json.dumps(data).encode())
    assert layers(record, "k")["offline"].differences == ()
    assert "comes later" in everywhere(record, "k")["studio"]


ODD = """\
from qd_studio import engine as qd

qd.init(arch=qd.cpu, log_level="warn", tiered=False)
field = qd.field(qd.f32, shape=(8,))


def count(n):
    return int(str(n)) + 1


@qd.kernel{mark}
def fill(x: qd.template(), a: qd.f32):
    for i in x:
        x[i] = a


@fill.workload()
def some():
    return field, 2.0


@qd.kernel{mark}
def ran(x: qd.types.ndarray(dtype=qd.f32, ndim=1)):
    for i in x:
        x[i] = qd.static(count(3)) * 1.0
"""


@pytest.mark.parametrize(
    ("mark", "state", "before"),
    [("(fastcache=True)", "bypass", ""), ("", "off", "could not be kept: ")],
)
def test_a_bypass_names_the_parameter_or_the_capture(tmp_path, mark, state, before):
    path = tmp_path / "odd.py"
    path.write_text(ODD.format(mark=mark))
    record = look(path)
    for kernel, reason in (
        ("fill", "the parameter x is a field"),
        ("ran", "the Python function count ran"),
    ):
        found = layers(record, kernel)
        layer = found["fastcache"]
        assert layer.state == state and before + reason in layer.reason + layer.advice
        assert found["offline"].state == "miss"
