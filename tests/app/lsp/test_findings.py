"""Errors of records as an editor shows them, and the changes that their hints suggest."""

import pytest
from qd_studio.app.lsp.findings import Finding, findings, fixes
from qd_studio.app.lsp.looking import has_language
from qd_studio.app.lsp.positions import Region, Text
from qd_studio.engine.inspect import record as rec

TEXT = """\
import quadrants as qd
qd.init(arch=qd.cpu)


@qd.kernel
def k(x, n: qd.i32):
    y = len(x)
"""


def applied(hint, code, message=""):
    """The lines that the fixes of an error at the first ``code`` would leave, by title."""
    line = next(n for n, x in enumerate(TEXT.splitlines(), 1) if code in x)
    col = TEXT.splitlines()[line - 1].index(code)
    found = Finding(Region("k.py", line, col, line, col + len(code)), message, "error", "E", hint)
    out = {}
    for fix in fixes(found, Text(TEXT)):
        of = TEXT.splitlines()[fix.region.line - 1]
        out[fix.title] = of[: fix.region.col] + fix.text + of[fix.region.end_col :]
    return out


@pytest.mark.parametrize(
    ("hint", "code", "message", "title", "line"),
    [
        ('did you mean "y"?', "x", "", 'change to "y"', "def k(y, n: qd.i32):"),
        (
            'did you mean "f32"?', "qd.i32", "module has no attribute 'i32'", 'change to "f32"',
            "def k(x, n: qd.f32):",
        ),
        (
            "write, for example, `x: qd.f32` or `x: qd.types.NDArray`", "x", "",
            "annotate as qd.types.NDArray", "def k(x: qd.types.NDArray, n: qd.i32):",
        ),
        ("annotate it: x: qd.BufferView", "x", "", "annotate as qd.BufferView",
         "def k(x: qd.BufferView, n: qd.i32):"),
        ("use x.shape[0]", "len(x)", "", "change to x.shape[0]", "    y = x.shape[0]"),
        ("count from the end with x.shape[0] - 1", "len(x)", "", "change to x.shape[0] - 1",
         "    y = x.shape[0] - 1"),
        ("qd.static(x) makes another name for it", "x", "", "change to qd.static(x)",
         "def k(qd.static(x), n: qd.i32):"),
        ("set it with qd.init(debug=True); or not", "x", "", "set debug=True in qd.init",
         "qd.init(arch=qd.cpu, debug=True)"),
        ("use qd.init(arch=gpu)", "x", "", "set arch=gpu in qd.init", "qd.init(arch=gpu)"),
    ],
)  # fmt: skip
def test_hints_become_changes(hint, code, message, title, line):
    assert applied(hint, code, message)[title] == line


@pytest.mark.parametrize(
    "hint", ["", "use smaller arrays", "use `dense`", "use another", 'did you mean "z"?']
)
def test_a_hint_that_names_no_code_changes_nothing(hint):
    assert applied(hint, "len(x)") == {}


def test_errors_are_at_their_kernel_and_gradients_only_warn():
    kernel = rec.KernelRecord(id="k.py:k", name="k", file="k.py", line=5)
    frontend = rec.ErrorRecord(kind="E", message="f", kernel="k_reverse_grad", file="k.py", line=6)
    grad = rec.KernelRecord(
        id="k.py:k.grad", name="k.grad", file="k.py", line=5, primal="k.py:k",
        backends=(rec.BackendRecord(backend="cpu", status="error", errors=(frontend,)),),
    )  # fmt: skip
    record = rec.Record(
        files=(rec.FileRecord(path="k.py", sha256="", text=TEXT),),
        kernels=(kernel, grad),
        errors=(
            rec.ErrorRecord(kind="E", message="m", kernel="k"),
            rec.ErrorRecord(kind="E", message="m", kernel="k"),
            rec.ErrorRecord(kind="E", message="g", kernel="k.grad", file="k.py", line=7),
            rec.ErrorRecord(kind="UnsavedError", message="u", file="k.py", line=2, col=0,
                            end_line=2, end_col=3),
            rec.ErrorRecord(kind="NoKernels", message="none", file="k.py", line=1),
            rec.ErrorRecord(kind="E", message="c", file="k.py", line=7, hint="h",
                            chain=("a.py:3 in f",)),
        ),
    )  # fmt: skip
    found = findings(record)
    assert [(f.severity, f.message, f.region[1:]) for f in found] == [
        ("error", "m", (5, 0, 5, 10)),
        ("warning", "k.grad: g", (7, 4, 7, 14)),
        ("hint", "u", (2, 0, 2, 3)),
        ("error", "c\nhint: h", (7, 4, 7, 14)),
        ("warning", "k.grad: f", (6, 0, 6, 20)),
    ]
    assert [(r.file, r.line, text) for r, text in found[-2].related] == [("a.py", 3, "called in f")]


def test_files_that_do_not_import_the_language_are_left_alone(tmp_path):
    path = str(tmp_path / "a.py")
    assert has_language(path, "from qd_studio import engine as qd")
    assert has_language(path, "import numpy, taichi as ti")
    assert not has_language(path, "import numpy as np")
    assert not has_language(path, "# import taichi")
    assert not has_language(str(tmp_path / "a.txt"), "import taichi")
    assert not has_language("/usr/lib/python3/site-packages/taichi/a.py", "import taichi")
