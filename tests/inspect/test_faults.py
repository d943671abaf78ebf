"""Exceptions as error records."""

import os

import pytest
from qd_studio.engine import ir
from qd_studio.engine.errors import (
    IRVerificationError,
    QuadrantsCompilationError,
    QuadrantsRuntimeError,
)
from qd_studio.engine.inspect import error_record, is_user_file


def caught(function, *args):
    try:
        function(*args)
    except BaseException as error:
        return error
    raise AssertionError("nothing was raised")


def user_code(text, tmp_path):
    path = tmp_path / "user.py"
    path.write_text(text)
    return str(path), caught(exec, compile(text, str(path), "exec"), {})


def test_the_innermost_line_of_the_user_counts(tmp_path):
    text = "import json\n\ndef f():\n    json.loads('{')\n\nf()\n"
    path, error = user_code(text, tmp_path)
    found = error_record(error, "import", kernel="k", backend="cpu")
    assert (found.kind, found.stage, found.kernel, found.backend) == (
        "JSONDecodeError", "import", "k", "cpu",
    )  # fmt: skip
    assert (found.file, found.line, found.function) == (path, 4, "f")
    assert found.source[found.col : found.end_col] == "json.loads('{')"
    assert found.rendered.splitlines()[:3] == [
        f'File "{path}", line 4, in f:', "    json.loads('{')", "    " + "^" * 15,
    ]  # fmt: skip
    assert "line 6" in found.traceback
    assert "json/decoder" not in found.traceback


def test_leaving_is_reported_as_such(tmp_path):
    _, error = user_code("import sys\nsys.exit('bye')\n", tmp_path)
    found = error_record(error, "import")
    assert (found.message, found.line) == ("the file called sys.exit('bye')", 2)


def test_a_syntax_error_has_byte_columns(tmp_path):
    error = caught(compile, "é = (1 +* 2)\n", "user.py", "exec")
    found = error_record(error, "import")
    assert (found.line, found.col, found.end_col) == (1, 9, 10)
    assert found.rendered.splitlines()[2] == "    " + " " * 8 + "^"


def test_an_error_without_code_of_the_user_still_says_what_it_is():
    found = error_record(caught(int, "x"), "launch", user=lambda path: False)
    assert (found.file, found.line) == ("", 0)
    assert "invalid literal" in found.rendered


def test_errors_of_the_engine_keep_what_they_know():
    loc = ir.get_loc("lib.py", 3, 4, 3, 9, "f", parent=ir.get_loc("user.py", 7, 8, func="k"))
    error = QuadrantsCompilationError.from_loc(
        "wrong", loc, hint="do this", source_line="    a + b"
    )
    error.pass_name = "die"
    found = error_record(error, "passes")
    assert (found.file, found.line, found.col, found.end_col) == ("lib.py", 3, 4, 9)
    assert (found.hint, found.pass_name, found.function) == ("do this", "die", "f")
    assert found.chain == ("user.py:7 in k",)
    assert found.rendered == error.render()
    broken = error_record(IRVerificationError("bad", op_id=12), "passes")
    assert (broken.kind, broken.op) == ("IRVerificationError", 12)
    assert error_record(QuadrantsRuntimeError("no", kernel="k"), "launch").kernel == "k"


def test_an_error_of_the_engine_without_a_place_gets_the_users(tmp_path):
    text = "from qd_studio import engine as qd\n\nqd.ndarray(qd.f32, (2,))\n"
    path, error = user_code(text, tmp_path)
    found = error_record(error, "import")
    assert (found.file, found.line) == (path, 3)
    assert "qd.init" in found.message


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/somewhere/kernels.py", True),
        (os.__file__, False),
        (pytest.__file__, False),
        (ir.__file__, False),
        ("<string>", False),
        ("/somewhere/lib.so", False),
    ],
)
def test_whose_code_it_is(path, expected):
    assert is_user_file(path) is expected
