"""The language server over its protocol, with the client of pygls as the editor."""

import os
import re
import time
from pathlib import Path
from urllib.parse import unquote, urlparse

import pytest

pytest.importorskip("pygls")
from tests.app.lsp.kit import Editor
from tests.app.worker.live import HEAD

pytestmark = pytest.mark.extra("pygls")

FUNCTIONS = """\
from qd_studio import engine as qd


@qd.func
def twice(v):
    return v + v
"""
KERNELS = (
    HEAD
    + """\
from functions import twice


@qd.kernel
def scale(x: qd.types.ndarray(dtype=qd.f32, ndim=1), a: qd.f32):
    for i in range(x.shape[0]):
        x[i] = twice(x[i]) * (a + 1.0)


@scale.workload(n=[64])
def ones(n):
    return np.ones(n, np.float32), 3.0
"""
)
LOOP, BODY = 8, 9


@pytest.fixture
def files(tmp_path):
    (tmp_path / "functions.py").write_text(FUNCTIONS)
    (tmp_path / "kernels.py").write_text(KERNELS)
    return tmp_path / "kernels.py", tmp_path / "functions.py"


async def test_an_editor_sees_errors_types_ir_and_fixes_of_texts_that_are_not_saved(files):
    path, helper = files
    async with Editor(path.parent, "--no-launch") as editor:
        editor.open(path)
        await editor.until(lambda: path.as_uri() in editor.diagnostics)
        assert editor.errors(path) == []

        # Columns are those of the editor: UTF-16, where the line has a character of two units.
        broken = KERNELS.replace("x[i] = twice", "'\U0001f600'; x[ii] = twice")
        editor.change(path, broken)
        assert await editor.until(lambda: editor.errors(path)) == [
            (BODY, 16, 18, 'Name "ii" is not defined\nhint: did you mean "i"?')
        ]
        assert await editor.hover(path, BODY, 30) == ""  # a changed line has no IR yet
        (edit,) = (await editor.actions(path, BODY))['change to "i"']
        assert (edit.range.start.character, edit.range.end.character) == (16, 18)

        editor.change(path, KERNELS)
        await editor.until(lambda: not editor.errors(path))
        text = await editor.hover(path, BODY, KERNELS.splitlines()[BODY].index("a + 1"))
        assert text.startswith("`a + 1.0`: `f32`")
        before, after = text.split("IR after the passes, for cpu")
        assert "* (a + 1.0)" in before and re.search(r"^\$\d+ = a \+ 1.0$", after, re.MULTILINE)
        places = await editor.definition(path, BODY, KERNELS.splitlines()[BODY].index("a + 1"))
        first = unquote(urlparse(places[0].uri).path)
        lines = Path(first).read_text().splitlines()
        assert "a + 1.0" in lines[places[0].range.start.line]
        (back,) = await editor.definition(Path(first), places[0].range.start.line, 0)
        assert (back.uri, back.range.start.line) == (path.as_uri(), BODY)
        assert (await editor.hints(path))[6] == "cache miss"
        editor.change(path, KERNELS + "\n\n@qd.kernel\ndef of(t: qd.template()):\n    t[0] = 1\n")

        async def says_so() -> bool:
            return "no arguments" in (await editor.hints(path)).values()

        await editor.until(says_so)

        # A module of functions: its error is in its own text, with the call that led to it.
        editor.open(helper)
        editor.change(helper, FUNCTIONS.replace("v + v", "v + w"))
        await editor.until(lambda: editor.errors(helper))
        (error,) = editor.diagnostics[helper.as_uri()]
        assert (error.range.start.line, error.code) == (5, "QuadrantsNameError")
        assert error.related_information[0].location.range.start.line == BODY
        editor.change(helper, FUNCTIONS)
        await editor.until(lambda: not editor.errors(helper))
        # The errors of a file that is closed go with it.
        editor.change(path, broken)
        await editor.until(lambda: editor.errors(path))
        editor.close(path)
        await editor.until(lambda: not editor.errors(path))
        assert await editor.hints(path) == {}
        assert editor.complaints == []
    assert not os.path.exists(first)


@pytest.mark.slow
async def test_code_outside_of_kernels_runs_only_once_it_is_saved(files, tmp_path):
    path, _ = files
    flag = tmp_path / "flag"
    async with Editor(path.parent, "--no-launch") as editor:
        editor.open(path)
        await editor.until(lambda: path.as_uri() in editor.diagnostics)
        text = KERNELS + f"\nopen({str(flag)!r}, 'w').close()\n"
        editor.change(path, text)
        ((line, *_, message),) = await editor.until(lambda: editor.errors(path))
        assert line == text.count("\n") - 1 and "runs once the file is saved" in message
        assert not flag.exists()
        editor.save(path, text)
        await editor.until(lambda: not editor.errors(path))
        assert flag.exists()
    flag.unlink()
    path.write_text(KERNELS)
    async with Editor(path.parent, "--no-launch", "--unsaved", "all") as editor:
        editor.open(path)
        editor.change(path, text)
        await editor.until(flag.exists)


@pytest.mark.slow
async def test_a_save_launches_and_hints_show_times_adstacks_and_caches(tmp_path):
    path = tmp_path / "power.py"
    text = """\
import numpy as np
import quadrants as qd

qd.init(arch=qd.cpu, ad_stack_experimental_enabled=True)
x = qd.field(qd.f32, shape=64, needs_grad=True)
loss = qd.field(qd.f32, shape=(), needs_grad=True)
n = qd.field(qd.i32, shape=())
n[None] = 5


@qd.kernel
def power():
    for i in x:
        v = x[i]
        for _ in range(n[None]):
            v = v * v + 0.5
        loss[None] += v
"""
    path.write_text(text)
    async with Editor(tmp_path) as editor:
        editor.open(path)

        async def ready():
            found = await editor.hints(path)
            return "1 adstack, " in found.get(10, "") and "us" in found.get(12, "") and found

        found = await editor.until(ready)
        assert "cache miss" in found[10]
        assert "gradient " in found[12]
        # Lines that move take their hints with them, before anything is compiled again.
        moved = text.replace("\n\n\n@qd", "\n\n\n\n@qd")
        editor.change(path, moved)
        assert (await editor.hints(path))[13].startswith(found[12][:3])
        assert editor.complaints == []


@pytest.mark.slow
async def test_the_calls_of_a_script_are_recorded_after_a_save_and_not_before(tmp_path):
    path, flag = tmp_path / "script.py", tmp_path / "flag"
    text = KERNELS.split("@scale")[0].replace("from functions import twice\n", "twice = abs\n")
    text += f"def main():\n    open({str(flag)!r}, 'a').write('x')\n    scale(np.ones(9), 2.0)\n"
    path.write_text(text.replace("f32, ndim", "f64, ndim"))
    text = path.read_text()
    async with Editor(tmp_path, "--run") as editor:
        editor.open(path)

        async def timed():
            return "us" in (await editor.hints(path)).get(LOOP, "")

        await editor.until(timed)
        ran = flag.read_text()
        editor.change(path, text.replace("a + 1.0", "a + b"))
        await editor.until(lambda: editor.errors(path))
        assert flag.read_text() == ran


@pytest.mark.slow
async def test_what_an_editor_sees_after_a_save_is_of_that_save(files):
    """Prints how long it took, with ``-s``: 20 to 80 ms on two cores."""
    path, _ = files
    took = []
    async with Editor(path.parent, "--no-launch") as editor:
        editor.open(path)
        await editor.until(lambda: path.as_uri() in editor.diagnostics)
        for k in range(2, 10):
            text = KERNELS.replace("a + 1.0", f"a + {k}.0")
            editor.change(path, text)
            began = time.monotonic()
            editor.save(path, text)

            async def current(value=f"a + {k}.0"):
                # A line that has changed has no IR before it is compiled.
                column = KERNELS.splitlines()[BODY].index("a + 1")
                return value in await editor.hover(path, BODY, column)

            assert await editor.until(current)
            assert (await editor.hints(path))[BODY - 3]
            took.append(time.monotonic() - began)
    print("seconds after saves:", sorted(took))


@pytest.mark.slow
async def test_a_worker_that_ends_or_hangs_takes_no_editor_with_it(files):
    path, _ = files
    async with Editor(path.parent, "--no-launch", "--time-limit", "1") as editor:
        editor.open(path)
        await editor.until(lambda: path.as_uri() in editor.diagnostics)
        for end in ("import os; os._exit(3)", "while True: pass"):
            editor.change(path, KERNELS + f"\n{end}\n")
            editor.save(path, KERNELS + f"\n{end}\n")
            await editor.until(lambda: [e for e in editor.errors(path) if "saved" not in e[3]])
            assert await editor.hover(path, BODY, 15)  # of the last text that was compiled
            editor.change(path, KERNELS)
            editor.save(path, KERNELS)
            await editor.until(lambda: not editor.errors(path))


@pytest.mark.slow
async def test_files_outside_of_the_folders_of_the_editor_are_not_executed(tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    flag = tmp_path / "flag"
    elsewhere = tmp_path / "elsewhere.py"
    elsewhere.write_text(f"import quadrants as qd\nopen({str(flag)!r}, 'w').close()\n")
    inside = other / "kernels.py"
    inside.write_text(KERNELS.replace("from functions import twice\n", "twice = qd.func(abs)\n"))
    async with Editor(other, "--no-launch") as editor:
        editor.open(elsewhere)
        editor.open(inside)
        await editor.until(lambda: inside.as_uri() in editor.diagnostics)
        assert not flag.exists()
        ((line, *_, message),) = editor.errors(elsewhere)
        assert line == 0 and message.endswith("hint: open its folder to see its kernels")


@pytest.mark.slow
@pytest.mark.extra("pytest_lsp")
@pytest.mark.parametrize("name", ["visual-studio-code", "neovim", "emacs"])
async def test_editors_with_their_own_capabilities(name, tmp_path):
    """In a folder that a URI has to quote, with a text that breaks in the middle of a name."""
    folder = tmp_path / "prøject 日本 #1%20"
    folder.mkdir()
    path = folder / "kérnels.py"
    text = KERNELS.replace("from functions import twice\n", "twice = abs\n").replace("x[", "ü[")
    text = text.replace("x:", "ü:").replace("x.shape", "ü.shape")
    path.write_text(text)
    before = text.splitlines()[BODY].partition("a + 1")[0]
    async with Editor(folder, name=name) as editor:
        # Columns are in bytes for an editor that prefers that, such as Neovim.
        in_bytes = editor.answer.capabilities.position_encoding == "utf-8"
        at = len(before.encode()) if in_bytes else len(before)
        editor.open(path)
        await editor.until(lambda: path.as_uri() in editor.diagnostics)
        assert editor.errors(path) == []

        async def timed():
            return "us" in (await editor.hints(path)).get(LOOP, "")

        await editor.until(timed)
        editor.change(path, text[: text.index("a + 1.0")])
        await editor.until(lambda: editor.errors(path))
        assert (await editor.hover(path, LOOP, 9)) and await editor.hints(path)
        editor.change(path, text)
        await editor.until(lambda: not editor.errors(path))
        assert (await editor.hover(path, BODY, at)).startswith("`a + 1.0`: `f32`")
        assert editor.complaints == []


@pytest.mark.slow
async def test_thousands_of_broken_edits(tmp_path):
    from tests.app.lsp.broken_edits import run

    report = await run(tmp_path, 3000)
    assert report.looks > 5 and report.requests > 90


def test_a_message_to_an_editor_that_is_gone_is_not_followed_by_others():
    from qd_studio.app.lsp.server import _Server

    class Closed:
        count = 0

        def write(self, data):
            self.count += 1
            raise ValueError("write to closed file")

    server, writer = _Server({}, False, ""), Closed()
    server.lsp.protocol.set_writer(writer)
    server.lsp.workspace_inlay_hint_refresh(None)
    assert writer.count == 1
    server.stop()
    server._changed(errors=True)
    assert writer.count == 1
