"""The modules that a thread imports after the first compile, and what it parses, for the kernels
that follow."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest
from qd_studio.engine.runtime import preload
from qd_studio.engine.runtime.compile import collector_pause

PROGRAM = """
import gc, json, sys, threading, time
import numpy as np
from qd_studio import engine as qd
from qd_studio.engine.runtime import preload

{before}

@qd.kernel
def scale(x: qd.types.ndarray()):
    for i in x:
        x[i] *= 2.0


qd.init(arch=qd.cpu, offline_cache=False)
x = np.ones(8, np.float32)
scale(x)
assert x[0] == 2.0
{after}
"""


def ran(tmp_path, before="", after=""):
    """What a program says as JSON, or None if it says nothing."""
    (tmp_path / "program.py").write_text(PROGRAM.format(before=before, after=after))
    command = [sys.executable, "-W", "error", str(tmp_path / "program.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout) if done.stdout else None


JOIN = "[t.join() for t in threading.enumerate() if t.name == 'qd-imports']\n"
PATIENT = "preload._LAST_PAUSE = float('inf')\n"


def test_a_program_that_waits_has_the_modules_of_other_kernels(tmp_path):
    after = f"{JOIN}json.dump(sorted(sys.modules), sys.stdout)"
    loaded = set(ran(tmp_path, PATIENT, after))
    assert {f"qd_studio.engine.{name}" for name in preload.OTHERS} <= loaded


DECLARED = r"""
from qd_studio.engine.frontend import trees


@qd.func
def twice(x):
    return x * 2


@qd.kernel
def never_called(x: qd.types.ndarray()):
    for i in x:
        x[i] = twice(x[i])


@qd.func
def with_backslash(x):
    "Python warns of some (\\n) where it reads them."
    return x
"""


@pytest.mark.parametrize(("room", "parsed"), [("", True), ("trees._KEPT = 8", False)])
def test_a_program_that_waits_has_parsed_what_it_may_call(room, parsed, tmp_path):
    functions = "(never_called, twice, with_backslash)"
    sources = f"[*[one.decl.src.is_parsed for one in {functions}], gc.get_count()[1]]"
    found = ran(tmp_path, f"{PATIENT}{DECLARED}\n{room}", f"{JOIN}json.dump({sources}, sys.stdout)")
    assert found == [parsed, parsed, False, 0]  # what is new is known to the collector


def test_a_thread_that_never_gives_the_lock_back_is_left_alone(tmp_path):
    before = "preload._idle = lambda pause: False"
    after = f"{JOIN}json.dump('qd_studio.engine.runtime.stub' in sys.modules, sys.stdout)"
    assert ran(tmp_path, before, after) is False


def test_a_module_that_fails_to_import_is_reported_by_the_kernel_that_needs_it(tmp_path):
    ran(tmp_path, "preload.OTHERS = ('no_such_module',)\n" + PATIENT, JOIN)


def test_a_process_that_can_have_no_more_threads_compiles_without(tmp_path):
    before = """
class Thread(threading.Thread):
    def start(self):
        if self.name == "qd-imports":
            raise RuntimeError("can't start new thread")
        super().start()


threading.Thread = Thread
"""
    assert ran(tmp_path, before, "json.dump(preload._importing.ident, sys.stdout)") is None


@pytest.mark.skipif(sys.platform == "win32", reason="a system with fork()")
def test_the_imports_end_before_a_fork_and_at_the_end(tmp_path):
    after = """
import os
child = os.fork()
if child == 0:
    y = np.ones(8)
    scale(y)
    os._exit(0 if y[0] == 2.0 else 1)
assert os.waitpid(child, 0)[1] == 0
json.dump([t.name for t in threading.enumerate()], sys.stdout)
"""
    assert "qd-imports" not in ran(tmp_path, "preload._FIRST_PAUSE = 1e9\n", after)
    assert ran(tmp_path, "preload._FIRST_PAUSE = 1e9\n") is None


def test_no_module_is_imported_during_a_compile():
    done = []
    assert collector_pause.between(lambda: done.append(1))
    with collector_pause:
        assert not collector_pause.between(lambda: done.append(2))
    assert done == [1]


def test_no_package_that_the_thread_imports_imports_its_own_modules(tmp_path):
    """See the docstring of `preload`: only packages that the first compile has imported may."""
    before = "preload.OTHERS, others = (), preload.OTHERS"
    after = """
import importlib
loaded = set(sys.modules)
for name in others:
    importlib.import_module(f"qd_studio.engine.{name}")
new = [sys.modules[name] for name in set(sys.modules) - loaded]
json.dump([module.__file__ for module in new if hasattr(module, "__path__")], sys.stdout)
"""
    for file in ran(tmp_path, before, after):
        tree = ast.parse(Path(file).read_text(encoding="utf-8"))
        imports = [n for n in ast.walk(tree) if isinstance(n, ast.Import | ast.ImportFrom)]
        assert not imports, file
