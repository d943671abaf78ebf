"""IR in the user's editor: run next to the unedited kernel, edited again, kept in a conflict."""

import pytest
from qd_studio.engine import inspect

from tests.app.tui import pilot
from tests.app.tui.test_terminal import opened

pytestmark = pytest.mark.slow

EDITOR = """\
#!/bin/sh
for word; do file="$word"; done
sed -i '{edit}' "$file"
"""


@pytest.fixture
def session(tmp_path):
    """A saved session whose source file exists, and an editor that edits by a file with a line."""
    found = pilot.record.__wrapped__(str(tmp_path))
    path = tmp_path / "saved.qds"
    inspect.save(found, path)

    def editor(edit: str) -> str:
        program = tmp_path / "vim"
        program.write_text(EDITOR.format(edit=edit))
        program.chmod(0o755)
        return str(program)

    return path, editor


def test_the_edit_is_run_and_can_be_edited_again(session, tmp_path, monkeypatch):
    path, editor = session
    monkeypatch.chdir(tmp_path)
    program = editor("s/const 3.25/const 5.25/")
    with opened(path, tmp_path, EDITOR=program, VISUAL="") as t:
        t.shows("scale", "quit")
        t.press("\r2i")
        t.shows("edited IR of", "other results than the unedited kernel")
        made = next(tmp_path.glob("scale-*.qdir"))
        editor("s/const 5.25/const 3.25/")
        t.press("i")
        t.shows("the results are those of the unedited kernel")
        assert "const 3.25" in made.read_text()
        source = tmp_path / "scale.py"
        source.write_text(source.read_text().replace("3.25", "7.25"))
        editor("s/const 3.25/const 1.25/")
        t.press("i")
        t.shows("the source has changed", "the IR as it is now is in")
        assert "const 1.25" in made.read_text()
        assert "const 7.25" in next(tmp_path.glob("scale-*.now.qdir")).read_text()
        t.press("\x1b")
        t.shows("passes")


def test_a_file_that_was_not_edited_is_removed(session, tmp_path, monkeypatch):
    path, editor = session
    monkeypatch.chdir(tmp_path)
    with opened(path, tmp_path, EDITOR=editor("s/nothing//"), VISUAL="") as t:
        t.shows("scale", "quit")
        t.press("\r2i")
        t.shows("The IR was not edited")
        assert not list(tmp_path.glob("*.qdir"))
