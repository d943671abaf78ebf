"""The exception tree: its shape, what it renders, and that it survives another process."""

import copy
import pickle
import re
import subprocess
import sys
import textwrap
import traceback
from types import SimpleNamespace

import pytest
from qd_studio.engine import errors
from qd_studio.engine.errors import SourceSpan, display_column

ALL = [
    value
    for name in errors.__all__
    if isinstance(value := getattr(errors, name), type) and issubclass(value, Exception)
]
LOCATED = [cls for cls in ALL if cls is not errors.BackendUnavailableError]


@pytest.fixture
def source(tmp_path):
    """A file with a function inlined into a kernel; gives a maker of locations in it."""
    path = tmp_path / "f.py"
    path.write_text("def scale(x):\n    return x * factr\n\ndef k():\n    y = scale(x)\n")

    def loc(line, col, end_col, func, parent=None, end_line=0):
        return SimpleNamespace(
            file=str(path),
            line=line,
            col=col,
            end_line=end_line or line,
            end_col=end_col,
            func=func,
            parent=parent,
        )

    return loc


def test_the_tree_in_the_docstring_is_the_tree():
    drawn = re.findall(r"^( +)(\w+)(?: |$)", errors.__doc__.split("All of them")[0], re.M)
    parents, seen = [], {}
    for indent, name in drawn:
        depth = (len(indent) - 4) // 2
        del parents[depth:]
        seen[name] = parents[-1] if parents else None
        parents.append(name)
    for cls in ALL:
        assert seen[cls.__name__] in {c.__name__ for c in cls.__bases__ + cls.__base__.__bases__}
    assert {cls.__name__ for cls in ALL} | {"Exception", "RuntimeError"} == set(seen)


@pytest.mark.parametrize(
    ("name", "builtin"),
    [
        ("QuadrantsSyntaxError", SyntaxError),
        ("QuadrantsNameError", NameError),
        ("QuadrantsIndexError", IndexError),
        ("QuadrantsTypeError", TypeError),
        ("QuadrantsAssertionError", AssertionError),
        ("QuadrantsAssertionError", RuntimeError),
        ("QuadrantsRuntimeTypeError", TypeError),
    ],
)
def test_errors_are_also_the_builtin_kind(name, builtin):
    with pytest.raises(builtin, match="text"):
        raise getattr(errors, name)("text")


def test_compile_and_run_time_errors_are_apart():
    assert not issubclass(errors.QuadrantsCompilationError, RuntimeError)
    assert not issubclass(errors.QuadrantsRuntimeError, errors.QuadrantsCompilationError)


def test_banner_is_nested_once_per_inlined_call(source):
    error = errors.QuadrantsNameError.from_loc(
        'Name "factr" is not defined',
        source(2, 15, 20, "scale", parent=source(5, 8, 16, "k")),
        hint='did you mean "factor"?',
    )
    file = error.file
    assert str(error) == textwrap.dedent(f"""\
        File "{file}", line 5, in k:
            y = scale(x)
                ^^^^^^^^
        File "{file}", line 2, in scale:
            return x * factr
                       ^^^^^
        Name "factr" is not defined
        hint: did you mean "factor"?""")
    assert (error.line, error.col, error.end_line, error.end_col) == (2, 15, 2, 20)
    assert (error.function, error.source_line) == ("scale", "    return x * factr")
    assert [span.function for span in error.chain] == ["k"]


def test_message_alone_without_a_position():
    assert str(errors.QuadrantsTypeError("wrong")) == "wrong"
    assert str(errors.QuadrantsTypeError("wrong", hint="cast it")) == "wrong\nhint: cast it"


def test_locate_fills_a_gap_and_keeps_what_is_there(source):
    error = errors.QuadrantsTypeError("wrong").locate(None)
    assert error.span is None
    assert error.locate(source(0, 0, 0, "")).span is None
    assert error.locate(source(5, 8, 16, "k")) is error
    assert error.line == 5
    assert error.locate(source(2, 15, 20, "scale")).line == 5


@pytest.mark.parametrize("cls", LOCATED, ids=lambda cls: cls.__name__)
def test_pickle_and_copy_keep_everything(cls, source):
    error = cls.from_loc("text", source(2, 15, 20, "scale", parent=source(5, 8, 16, "k")), hint="h")
    error.add_note("noted")
    for copied in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(copied) is cls
        assert copied.__dict__ == error.__dict__
        assert str(copied) == str(error)
        assert copied.args == error.args


def test_arguments_have_the_text_with_the_location(source):
    error = errors.QuadrantsTypeError.from_loc("text", source(2, 15, 20, "scale"), hint="h")
    assert error.args == (str(error),)
    assert error.args[0].startswith('File "') and error.args[0].endswith("text\nhint: h")
    error.args = ("other",)
    assert (str(error), error.args) == ("other", ("other",))


def test_pickle_keeps_details():
    for error in (
        errors.BackendUnavailableError("cuda", "no driver found"),
        errors.IRVerificationError("bad", op_id=3, op_text="$3 = add", stage="typed"),
        errors.QuadrantsAssertionError("no", kernel="k"),
        errors.QuadrantsUnsupportedError(feature="f64 atomics", backend="opencl"),
    ):
        copied = pickle.loads(pickle.dumps(error))
        assert (str(copied), copied.__dict__) == (str(error), error.__dict__)


def test_python_prints_a_syntax_error_with_our_banner(source):
    error = errors.QuadrantsSyntaxError.from_loc("no lambda", source(5, 8, 16, "k"))
    printed = "".join(traceback.format_exception_only(error))
    assert printed.startswith(f'qd_studio.engine.errors.QuadrantsSyntaxError: File "{error.file}"')
    assert printed.rstrip().endswith("no lambda")


def test_an_uncaught_error_shows_the_banner():
    code = "from qd_studio.engine import errors as e\nraise e.QuadrantsSyntaxError('no lambda')"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.returncode == 1
    assert result.stderr.splitlines()[-1].endswith("QuadrantsSyntaxError: no lambda")


def test_foreign_errors_are_wrapped_with_their_traceback(source):
    try:
        {}["missing"]
    except KeyError as inner:
        error = errors.QuadrantsCompilationError.from_foreign(inner, source(5, 8, 16, "k"))
    assert error.message == "KeyError: 'missing'"
    assert error.line == 5
    assert '{}["missing"]' in error.foreign_traceback
    assert "Traceback" not in str(error)


def test_details_render():
    broken = errors.IRVerificationError(
        "operand $2 is not visible",
        op_id=3,
        op_text="<i32> $3 = add $2 $2",
        stage="typed",
        pass_name="die",
    )
    assert str(broken) == (
        "IR broken in stage typed after die at $3: operand $2 is not visible\n"
        "    <i32> $3 = add $2 $2"
    )
    assert str(errors.BackendUnavailableError("cuda", "no driver found")) == "cuda: no driver found"
    assert str(errors.QuadrantsAssertionError("index 5", kernel="k")) == "(kernel=k) index 5"
    named = "[kernel=k] Out of bound access"
    assert str(errors.QuadrantsAssertionError(named, kernel="k")) == named
    unsupported = errors.QuadrantsUnsupportedError(feature="bit_cast to f16", backend="cpu")
    assert str(unsupported) == "bit_cast to f16 is not supported on the cpu backend"


@pytest.mark.parametrize(
    ("text", "col", "end_col", "end_line", "carets"),
    [
        ("    y = x", 8, 9, 7, "    ^"),
        ("    y = x", 4, 4, 7, None),
        ("    y = (x +", 8, 3, 9, "    ^^^^"),
        ("\ty =\tx", 5, 6, 7, "   \t^"),
        ("    é = x", 9, 10, 7, "    ^"),
        ('    "漢字" + x', 4, 12, 7, "^^^^^^"),
        ('    "漢字" + x', 15, 16, 7, " " * 9 + "^"),
        ("    y = x", 0, 9, 7, "^^^^^"),
        ("    y", 50, 60, 7, None),
    ],
)
def test_carets_are_under_the_span(text, col, end_col, end_line, carets):
    span = SourceSpan("f.py", 7, col, end_line, end_col, "k", text)
    shown = span.render().splitlines()
    assert shown[:2] == ['File "f.py", line 7, in k:', "    " + text.lstrip()]
    assert shown[2:] == ([] if carets is None else ["    " + carets])


def test_a_file_that_is_gone_gives_a_banner_without_source(source, tmp_path):
    loc = source(2, 0, 5, "k")
    (tmp_path / "f.py").unlink()
    error = errors.QuadrantsTypeError.from_loc("wrong", loc)
    assert str(error) == f'File "{loc.file}", line 2, in k:\nwrong'


def test_a_given_source_line_wins_over_the_file(source):
    error = errors.QuadrantsTypeError.from_loc(
        "wrong", source(5, 0, 3, "k"), source_line="abc = old"
    )
    assert error.source_line == "abc = old"
    assert "    ^^^\n" in str(error)


def test_display_column_counts_cells():
    assert display_column("héllo", 3) == 2
    assert display_column("漢字", 3) == 2
    assert display_column("e\u0301x", 3) == 1
    assert display_column("abc", 99) == 3
