"""The bundle of byte code: what it brings, and what it must notice."""

import gc
import json
import os
import shutil
import subprocess
import sys
import weakref

import pytest
from qd_studio.engine.imports import Bundle, settle

MODULES = [*(f"m{k}" for k in range(20)), "sub", "sub.deep"]

USE = """
import importlib, json, sys
sys.path.insert(0, {folder!r})
import pack
from qd_studio.engine.imports import use_bundle
use_bundle(pack.__spec__)
found = {{}}
for name in {names!r}:
    m = importlib.import_module("pack." + name)
    loader = type(m.__loader__).__name__
    found[name] = [m.VALUE, m.function.__code__.co_filename, loader, m.__file__, m.__cached__]
print(json.dumps(found))
"""


@pytest.fixture
def pack(tmp_path):
    """A package of some modules, without byte code."""
    folder = tmp_path / "there" / "pack"
    (folder / "sub").mkdir(parents=True)
    (folder / "__init__.py").write_text("")
    for name in MODULES:
        file = "sub/__init__" if name == "sub" else name.replace(".", "/")
        (folder / f"{file}.py").write_text(f"VALUE = {name!r}\n\n\ndef function():\n    pass\n")
    return folder


def run(pack, names=MODULES, code=USE, **environment):
    """What a program finds that imports the modules; environment: None removes a variable."""
    variables = {n: v for n, v in os.environ.items() if n != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(
        [sys.executable, "-c", code.format(folder=str(pack.parent), names=list(names))],
        capture_output=True, text=True, env=variables | environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return json.loads(done.stdout)


def loaders(found):
    return {row[2] for row in found.values()}


def bundle_of(pack):
    return next((pack / "__pycache__").glob("bundle.*.code"), None)


def test_the_second_program_imports_from_the_bundle_and_nothing_looks_different(pack):
    first, second = run(pack), run(pack)
    assert loaders(first) == {"SourceFileLoader"}
    assert loaders(second) == {"_Loader"}
    for name in MODULES:
        assert second[name][:2] == first[name][:2]
        assert second[name][3:] == first[name][3:]
        assert os.path.exists(second[name][4])


def test_an_edited_source_counts_at_once(pack):
    run(pack)
    edited = pack / "m3.py"
    edited.write_text(edited.read_text().replace("'m3'", "'another'"))
    found = run(pack)
    assert found["m3"][0] == "another"
    assert found["m3"][2] == "SourceFileLoader"
    assert found["m4"][2] == "_Loader"


def test_a_source_written_again_in_the_same_size_counts(pack):
    run(pack)
    edited = pack / "m3.py"
    edited.write_text(edited.read_text().replace("'m3'", "'M3'"))
    os.utime(edited, (1e9, 1e9))
    assert run(pack)["m3"][0] == "M3"


def test_a_module_that_is_gone_is_gone(pack):
    run(pack)
    (pack / "m3.py").unlink()
    gone = USE.replace(
        "json.dumps(found)", "json.dumps(importlib.util.find_spec('pack.m3') is None)"
    )
    assert run(pack, ["m4"], "import importlib.util\n" + gone) is True


def test_few_modules_are_no_reason_to_write(pack):
    run(pack, MODULES[:10])
    assert bundle_of(pack) is None
    run(pack, MODULES[:16])
    written = bundle_of(pack).stat().st_mtime_ns
    assert loaders(run(pack, MODULES[:16])) == {"_Loader"}
    run(pack)  # imports six more
    assert bundle_of(pack).stat().st_mtime_ns == written


def test_where_python_writes_no_byte_code_there_is_no_bundle(pack):
    run(pack, PYTHONDONTWRITEBYTECODE="1")
    assert bundle_of(pack) is None
    run(pack, PYTHONPYCACHEPREFIX=str(pack.parent / "elsewhere"))
    assert bundle_of(pack) is None


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write all")
def test_a_folder_that_cannot_be_written_is_no_error(pack):
    run(pack, MODULES[:1])
    (pack / "__pycache__").chmod(0o500)
    assert loaders(run(pack)) == {"SourceFileLoader"}


def test_where_the_bundle_cannot_take_its_place_nothing_is_left(pack):
    run(pack, MODULES[:1])
    (pack / "__pycache__" / f"bundle.{sys.implementation.cache_tag}.code").mkdir()
    assert loaders(run(pack)) == {"SourceFileLoader"}
    assert len([*(pack / "__pycache__").glob("bundle*")]) == 1


def test_optimised_byte_code_has_a_bundle_of_its_own(pack):
    run(pack)
    assert loaders(run(pack, PYTHONOPTIMIZE="2")) == {"SourceFileLoader"}
    assert loaders(run(pack, PYTHONOPTIMIZE="2")) == {"_Loader"}
    assert len([*(pack / "__pycache__").glob("bundle.*.code")]) == 2


@pytest.mark.parametrize("size", [0, 5, 60, 200, -100])
def test_a_damaged_bundle_is_not_used(pack, size):
    right = run(pack)
    bundle = bundle_of(pack)
    data = bundle.read_bytes()
    bundle.write_bytes(data[:size])
    found = run(pack)
    assert {name: row[0] for name, row in found.items()} == {n: r[0] for n, r in right.items()}


def test_a_bundle_of_another_python_is_not_used(pack):
    run(pack)
    bundle = bundle_of(pack)
    data = bundle.read_bytes()
    bundle.write_bytes(data.replace(sys.version.encode()[:6], b"2.7.18"[:6]))
    assert loaders(run(pack)) == {"SourceFileLoader"}
    assert loaders(run(pack)) == {"_Loader"}


def test_a_package_that_was_moved_names_its_new_files(pack, tmp_path):
    run(pack)
    moved = tmp_path / "moved" / "pack"
    shutil.copytree(pack, moved)  # keeps the times
    for _ in range(3):
        found = run(moved)
        assert {row[1].rpartition(os.sep)[0] for row in found.values()} == {
            str(moved), str(moved / "sub")
        }  # fmt: skip
    assert loaders(found) == {"_Loader"}


def test_two_that_write_at_once_leave_a_whole_file(pack):
    run(pack)
    variables = {n: v for n, v in os.environ.items() if n != "PYTHONDONTWRITEBYTECODE"}
    bundle_of(pack).unlink()
    code = USE.format(folder=str(pack.parent), names=MODULES)
    several = [
        subprocess.Popen([sys.executable, "-c", code], env=variables, stdout=subprocess.DEVNULL)
        for _ in range(4)
    ]
    assert [child.wait() for child in several] == [0] * 4
    assert loaders(run(pack)) == {"_Loader"}
    assert len([*(pack / "__pycache__").glob("bundle*")]) == 1


def test_the_engine_is_imported_from_its_bundle():
    (bundle,) = [finder for finder in sys.meta_path if isinstance(finder, Bundle)]
    assert bundle.find_spec("json") is None
    assert bundle.find_spec("qd_studio.engine.no_such_module") is None


class Cycle:
    def __init__(self):
        self.me = self


@pytest.fixture
def unfrozen():
    """Without what the tests' configuration has frozen."""
    gc.unfreeze()
    gc.disable()
    yield
    gc.enable()
    gc.freeze()


def test_garbage_from_before_an_import_of_many_modules_is_still_collected(unfrozen):
    gone = weakref.ref(Cycle())
    settle(len(sys.modules) - 16)
    assert not gc.get_freeze_count()
    gc.collect()
    assert gone() is None


def test_what_a_program_has_frozen_stays_frozen():
    gc.freeze()
    frozen = gc.get_freeze_count()
    settle(0)
    assert gc.get_freeze_count() == frozen


def test_the_objects_of_many_new_modules_are_not_looked_through_again(unfrozen):
    gc.collect()
    made = [[k] for k in range(2000)]
    assert gc.get_count()[0] >= 1000
    settle(len(sys.modules) - 15)
    assert gc.get_count()[0] >= 1000
    settle(len(sys.modules) - 16)
    assert gc.get_count()[0] < 1000
    assert gc.is_tracked(made[0])


def test_very_many_new_objects_are_not_looked_through_again(unfrozen):
    gc.collect()
    made = [[k] for k in range(5000)]
    settle(len(sys.modules))
    assert gc.get_count()[0] >= 5000
    made += [[k] for k in range(2000)]
    gone = weakref.ref(Cycle())
    settle(len(sys.modules))
    assert gc.get_count()[0] < 1000
    assert not gc.get_freeze_count()
    assert gc.is_tracked(made[0])
    gc.collect()
    assert gone() is None
