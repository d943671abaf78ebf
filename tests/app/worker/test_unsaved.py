"""Unsaved texts of an editor: which may be executed, and that they count in place of files."""

import pytest
from qd_studio.app.worker.unsaved import UnsavedError, UnsavedTexts

from tests.app.worker.live import SCALE, Live


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("x[i] * a", "x[i] + a"),
        ("def scale(", "def scale(y: qd.i32, "),
        ("@qd.kernel", "@qd.func\ndef f(v):\n    return v\n\n\n@qd.kernel"),
        ("@qd.kernel", "'a string'\n\n\n# a comment\n@qd.kernel(fastcache=True)"),
    ],
)
def test_changes_of_kernels_may_be_executed(tmp_path, old, new):
    path = tmp_path / "kernels.py"
    path.write_text(SCALE)
    text = SCALE.replace(old, new, 1)
    assert text != SCALE
    UnsavedTexts({str(path): text}).check(str(path))


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("import numpy as np", "import numpy as np\nimport os", 2),
        ("return np.ones", "return np.zeros", 12),
        ("assert (", "open('x', 'w')\n    assert (", 17),
        ("@qd.kernel\n", "", 5),
        ("import numpy as np\n", "", 1),
    ],
)
def test_changes_outside_of_kernels_may_not(tmp_path, old, new, line):
    path = tmp_path / "kernels.py"
    path.write_text(SCALE)
    texts = {str(path): SCALE.replace(old, new, 1)}
    with pytest.raises(UnsavedError) as caught:
        UnsavedTexts(texts).check(str(path))
    assert caught.value.line == line
    UnsavedTexts(texts, careful=False).check(str(path))


def test_a_text_without_a_file_and_one_that_no_parser_can_nest(tmp_path):
    path = tmp_path / "kernels.py"
    with pytest.raises(UnsavedError):
        UnsavedTexts({str(path): SCALE}).check(str(path))
    path.write_text(SCALE)
    with pytest.raises(UnsavedError):
        UnsavedTexts({str(path): SCALE + "x = " + "-" * 5000 + "1\n"}).check(str(path))
    link = tmp_path / "link.py"
    link.symlink_to(path)
    assert UnsavedTexts({str(link): "text"}).read(str(path)) == b"text"


@pytest.mark.slow
def test_a_client_looks_at_texts_in_place_of_files_and_at_files_as_they_come_and_go(tmp_path):
    path, other = tmp_path / "kernels.py", tmp_path / "other.py"
    path.write_text(SCALE)
    other.write_text(SCALE)
    with Live(str(path), backends=("cpu",), launch=False, brief=True) as live:
        live.complete()
        text = SCALE.replace("x[i] * a", "x[i] * b")
        live.client.set_texts({str(path): text}, [str(path)], launch=False)
        record = live.complete()
        assert record.files[0].text == text
        (error,) = record.kernels[0].backends[0].errors
        assert (error.line, error.source) == (8, "        x[i] = x[i] * b")
        live.client.set_texts({str(path): SCALE}, [str(path)], launch=False)
        (text,) = live.complete().kernels[0].backends[0].compile.artefacts
        assert text.name == "llvm_ir"  # no assembly, which takes time to make
        live.client.set_texts({}, [str(path)])
        record = live.complete()
        assert not record.kernels[0].backends[0].errors and record.kernels[0].backends[0].launches
        live.client.set_files([str(other)])
        record = live.complete()
        assert [k.file for k in record.kernels] == [str(other)]
