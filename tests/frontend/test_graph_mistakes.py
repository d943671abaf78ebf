"""What a kernel says wrongly about graphs: the message, and the caret under the user's own text."""

# ruff: noqa: E501 (bodies of kernels are in one line each)

import enum

import numpy as np
import pytest
from qd_studio import engine as qd

A1, A0 = qd.types.NDArray[qd.i32, 1], qd.types.NDArray[qd.i32, 0]
SIGNATURE = "x: A1, f: A0, g: A0"
field = None


class Stage(enum.IntEnum):
    A = 1
    B = 5


@qd.func
def looping(x, f):
    while qd.graph.do_while(f):
        for i in range(4):
            x[i] += 1


@qd.func
def stopping(x, f):
    with qd.checkpoint(1, yield_on=f):
        for i in range(4):
            x[i] += 1


pytestmark = pytest.mark.usefixtures("arch")


def kernel_of(tmp_path, body, options, signature=SIGNATURE, **names):
    """A kernel with this body, in a file of its own."""
    lines = "\n".join("    " + line for line in body.strip("\n").split("\n"))
    text = f"@qd.kernel({options})\ndef k({signature}):\n{lines}\n"
    path = tmp_path / "user.py"
    path.write_text(text)
    scope = {**globals(), **names}
    exec(compile(text, str(path), "exec"), scope)
    return scope["k"]


def call(kernel, *more):
    x, f, g = qd.ndarray(qd.i32, 4), qd.ndarray(qd.i32, ()), qd.ndarray(qd.i32, ())
    return kernel(x, f, g, *more)


def wrong(tmp_path, body, options, text, at, **names):
    """Check the error of a kernel: what it says, and the source under the caret."""
    with pytest.raises(qd.QuadrantsSyntaxError) as caught:
        call(kernel_of(tmp_path, body, options, **names))
    error = caught.value
    assert text in error.message
    span = error.span
    assert span is not None
    assert span.file == str(tmp_path / "user.py")
    line = (tmp_path / "user.py").read_text().splitlines()[span.line - 1]
    end = span.end_col if span.end_line == span.line else len(line)
    assert line[span.col : end].startswith(at), line[span.col : end]


GRAPH = "graph=True"
POINTS = "graph=True, checkpoints=True"
LOOP = "for i in range(4): x[i] += 1"
DO_WHILE = [
    ("", f"while qd.graph.do_while(f):\n    {LOOP}", "requires @qd.kernel(graph=True)", "qd.graph"),
    (
        GRAPH, "for j in range(2):\n    while qd.graph.do_while(f):\n        x[0] = j",
        "must be at the kernel top level or directly nested inside another qd.graph.do_while(); it "
        "cannot appear inside a for-loop.", "qd.graph.do_while(f)",
    ),
    (
        GRAPH, "if x[0] > 0:\n    while qd.graph.do_while(f):\n        x[0] = 1",
        "must be at the kernel top level", "qd.graph.do_while(f)",
    ),
    (
        GRAPH, f"while qd.graph.do_while(field):\n    {LOOP}",
        "qd.graph.do_while(...) got 'field' which does not resolve to an ndarray kernel parameter "
        "of 'k'", "field",
    ),
    (GRAPH, f"while qd.graph.do_while(zzz):\n    {LOOP}", "got 'zzz' which does not", "zzz"),
    (GRAPH, f"while qd.graph.do_while(f[()]):\n    {LOOP}", "which does not resolve", "f[()]"),
    (GRAPH, f"while qd.graph.do_while(x):\n    {LOOP}", "must be a scalar i32 ndarray", "x"),
    (GRAPH, f"while qd.graph.do_while():\n    {LOOP}", "takes one argument", "qd.graph"),
    (GRAPH, f"while qd.graph.do_while(f, g):\n    {LOOP}", "takes one argument", "qd.graph"),
    (
        GRAPH, "while qd.graph.do_while(f):\n    while x[0] < 3:\n        x[0] += 1",
        "When a kernel uses qd.graph.do_while(), a qd.graph.do_while() body may not contain a "
        "While statement. Allowed: for-loops, ", "while x[0] < 3:",
    ),
    (GRAPH, f"while qd.graph.do_while(f):\n    {LOOP}\n    break", "a Break statement", "break"),
    (GRAPH, "while qd.graph.do_while(f):\n    return", "a Return statement", "return"),
    (GRAPH, f"while not qd.graph.do_while(f):\n    {LOOP}", "the whole condition", "qd.graph"),
    (GRAPH, "qd.graph.do_while(f)", "the whole condition of a `while`", "qd.graph"),
    (
        GRAPH, f"while qd.graph.do_while(f):\n    {LOOP}\nelse:\n    x[0] = 1",
        "'else' clause for 'while' not supported", "x[0] = 1",
    ),
    (GRAPH, "looping(x, f)", "can only be used in a @qd.kernel", None),
    (
        POINTS, f"with qd.checkpoint(1, yield_on=f):\n    while qd.graph.do_while(g):\n        {LOOP}",
        "cannot appear inside a qd.checkpoint() block", "qd.graph.do_while(g)",
    ),
    ("graph_while='missing'", LOOP, "graph_while='missing' does not", "def"),
    ("graph_while='x'", LOOP, "must be a scalar i32 ndarray", "def"),
]  # fmt: skip
CHECKPOINTS = [
    (GRAPH, f"with qd.checkpoint(1, yield_on=f):\n    {LOOP}", "`checkpoints=True`", "qd.check"),
    (
        POINTS,
        f"with qd.checkpoint(1, yield_on=f):\n    with qd.checkpoint(2, yield_on=f):\n        {LOOP}",
        "cannot be nested inside another qd.checkpoint()", "qd.checkpoint(2",
    ),
    (
        POINTS, f"with qd.checkpoint(1, yield_on=f):\n    {LOOP}\n"
        f"with qd.checkpoint(1, yield_on=g):\n    {LOOP}",
        "declares a cp_id that is already used by another checkpoint in kernel 'k'", "1",
    ),
    (
        POINTS, f"with qd.checkpoint(Stage.A, yield_on=f):\n    {LOOP}\n"
        f"with qd.checkpoint(1, yield_on=g):\n    {LOOP}", "already used", "1",
    ),
    (POINTS, f"with qd.checkpoint(x[0], yield_on=f):\n    {LOOP}", "int literal or", "x[0]"),
    (POINTS, f"with qd.checkpoint('a', yield_on=f):\n    {LOOP}", "int literal or", "'a'"),
    (POINTS, f"with qd.checkpoint(True, yield_on=f):\n    {LOOP}", "int literal or", "True"),
    (POINTS, f"with qd.checkpoint(-1, yield_on=f):\n    {LOOP}", "int literal or", "-1"),
    (POINTS, f"with qd.checkpoint():\n    {LOOP}", "takes two arguments", "qd.checkpoint"),
    (POINTS, f"with qd.checkpoint(1):\n    {LOOP}", "required argument `yield_on`", "qd.check"),
    (POINTS, f"with qd.checkpoint(yield_on=f):\n    {LOOP}", "argument `cp_id`", "qd.check"),
    (POINTS, f"with qd.checkpoint(1, f, g):\n    {LOOP}", "at most 2 positional", "qd.check"),
    (POINTS, f"with qd.checkpoint(1, foo=f):\n    {LOOP}", "unexpected keyword argument 'foo'", "f"),
    (POINTS, f"with qd.checkpoint(1, f, yield_on=f):\n    {LOOP}", "multiple values", "f"),
    (POINTS, f"with qd.checkpoint(1, yield_on=3):\n    {LOOP}", "must reference a kernel nd", "3"),
    (POINTS, f"with qd.checkpoint(1, yield_on=field):\n    {LOOP}", "must reference", "field"),
    (POINTS, f"with qd.checkpoint(1, yield_on=x):\n    {LOOP}", "must be a scalar i32", "x"),
    (POINTS, "with qd.checkpoint(1, yield_on=f):\n    x[0] += 1", "a bare top-level AugAssign", "x[0]"),
    (POINTS, "with qd.checkpoint(1, yield_on=f):\n    a = x[0]", "a bare top-level Assign", "a = "),
    (POINTS, "with qd.checkpoint(1, yield_on=f):\n    print(x[0])", "top-level Expr", "print"),
    (
        POINTS, f"for j in range(2):\n    with qd.checkpoint(1, yield_on=f):\n        {LOOP}",
        "qd.checkpoint() cannot be nested inside another|at the kernel top level", "qd.check",
    ),
    (
        POINTS, f"if x[0] > 0:\n    with qd.checkpoint(1, yield_on=f):\n        {LOOP}",
        "must be at the kernel top level", "qd.check",
    ),
    (POINTS, "stopping(x, f)", "can only be used in a @qd.kernel", None),
    (POINTS, "a = qd.checkpoint(1, yield_on=f)", "must be used in a `with` statement", "qd.check"),
]  # fmt: skip
SECTION = "with qd.graph.parallel():"
SECTIONS = f"with qd.graph.parallel_context():\n    {SECTION}\n        x[0] = 1"
PARALLEL = [
    ("", SECTIONS, "qd.graph.parallel_context() requires @qd.kernel(graph=True)", "qd.graph"),
    ("", f"{SECTION}\n    x[0] = 1", "qd.graph.parallel() requires", "qd.graph.parallel()"),
    (GRAPH, SECTIONS.replace("context()", "context(3)"), "takes no arguments", "qd.graph"),
    (GRAPH, SECTIONS.replace("parallel()", "parallel(1)"), "takes no arguments", "qd.graph"),
    (
        GRAPH, f"with qd.graph.parallel_context():\n    x[0] = 1\n    {SECTION}\n        x[0] = 1",
        "may contain only 'with qd.graph.parallel():' blocks", "x[0] = 1",
    ),
    (GRAPH, f"{SECTION}\n    x[0] = 1", "only be used directly inside a qd.graph", "qd"),
    (
        GRAPH, f"with qd.graph.parallel_context():\n    {SECTION}\n        {SECTION}\n"
        "            x[0] = 1",
        "sections cannot be nested", "qd.graph",
    ),
    (
        GRAPH, "with qd.graph.parallel_context():\n    with qd.graph.parallel():\n        "
        "with qd.graph.parallel_context():\n            pass",
        "cannot appear inside a qd.graph.parallel() section", "qd.graph",
    ),
    (
        GRAPH, "with qd.graph.parallel_context():\n    with qd.graph.parallel_context():\n"
        "        pass",
        "cannot be nested", "qd.graph",
    ),
    (
        GRAPH, "with qd.graph.parallel_context():\n    with qd.graph.parallel():\n        "
        "while qd.graph.do_while(f):\n            x[0] = 1",
        "cannot appear inside a qd.graph.parallel() section", "qd.graph.do_while",
    ),
    (POINTS, SECTIONS, "is not supported in a @qd.kernel(graph=True, checkpoints=True)", "qd.graph"),
    (
        GRAPH, f"for i in range(2):\n    with qd.graph.parallel_context():\n        {SECTION}\n"
        "            x[i] = 1", "cannot appear inside a for-loop", "qd.graph",
    ),
    ("", "with qd.stream_parallel():\n    x[0] = 1\nx[1] = 2", "all top-level statements", "x[1]"),
    (GRAPH, "with qd.stream_parallel():\n    x[0] = 1", "not compatible with graph=True", "qd.stream"),
    (
        "", "with qd.stream_parallel():\n    with qd.stream_parallel():\n        x[0] = 1",
        "Nested stream_parallel", "qd.stream",
    ),
    ("", "with qd.stream_parallel(3):\n    x[0] = 1", "takes no arguments", "qd.stream"),
    (
        GRAPH, "with qd.graph.parallel_context(), qd.graph.parallel():\n    x[0] = 1",
        "only supports a single context manager", "qd.graph.parallel()",
    ),
    (GRAPH, "with qd.graph.parallel_context() as c:\n    pass", "'with ... as ...'", "c"),
    ("", "with open('a'):\n    x[0] = 1", "'with' in Quadrants kernels only supports", "open"),
]  # fmt: skip


@pytest.mark.parametrize(("options", "body", "text", "at"), [*DO_WHILE, *CHECKPOINTS, *PARALLEL])
def test_mistakes(tmp_path, options, body, text, at):
    field = qd.field(qd.i32, shape=())
    if at is None:  # in a function of this file
        with pytest.raises(qd.QuadrantsSyntaxError) as caught:
            call(kernel_of(tmp_path, body, options))
        assert text in caught.value.message
        assert caught.value.span is not None
        assert caught.value.span.file == __file__
        return
    for one in text.split("|"):
        try:
            wrong(tmp_path, body, options, one, at, field=field)
            return
        except AssertionError:
            if one == text.split("|")[-1]:
                raise


def test_checkpoints_need_a_graph(tmp_path):
    text = r"@qd.kernel\('k', checkpoints=True\) requires graph=True"
    with pytest.raises(qd.QuadrantsSyntaxError, match=text) as caught:
        kernel_of(tmp_path, "x[0] = 1", "checkpoints=True")
    assert caught.value.span is not None
    assert caught.value.span.line == 2


def test_a_graph_returns_nothing(tmp_path):
    text = "graph=True is not supported for kernels with struct return values; remove graph=True"
    for options in ("graph=True", "cuda_graph=True", "graph_while='f'"):
        with pytest.raises(qd.QuadrantsSyntaxError, match=text) as caught:
            kernel_of(tmp_path, "return x[0]", options, SIGNATURE + ") -> (qd.i32")
        span = caught.value.span
        assert span is not None
        assert span.source_line[span.col : span.end_col] == "(qd.i32)"[1:-1]


def test_the_condition_holds_i32(tmp_path):
    kernel = kernel_of(
        tmp_path, f"while qd.graph.do_while(h):\n    {LOOP}", GRAPH,
        SIGNATURE + ", h: qd.types.NDArray[qd.f32, 0]",
    )  # fmt: skip
    text = r"'h' must be a scalar i32 ndarray without axes; it is one of 0 axes that holds f32"
    with pytest.raises(qd.QuadrantsSyntaxError, match=text):
        call(kernel, qd.ndarray(qd.f32, ()))


def test_arrays_with_gradients_are_refused(tmp_path):
    kernel = kernel_of(
        tmp_path, "for i in h:\n    h[i] = 1.0", GRAPH,
        SIGNATURE + ", h: qd.types.ndarray(qd.f32, 1, needs_grad=True)",
    )  # fmt: skip
    text = "graph does not support autograd; ndarray arg 'h' has a gradient"
    with pytest.raises(qd.QuadrantsSyntaxError, match=text) as caught:
        call(kernel, qd.ndarray(qd.f32, 3, needs_grad=True))
    assert caught.value.span is not None
    assert caught.value.span.line == 2


def test_arrays_of_the_host_are_refused_whenever_they_come(tmp_path):
    kernel = kernel_of(tmp_path, "for i in x:\n    x[i] = 1", GRAPH)
    text = "graph requires all ndarrays to be device-resident: argument 'x' is a NumPy array"
    f, g = qd.ndarray(qd.i32, ()), qd.ndarray(qd.i32, ())
    for _ in range(3):
        with pytest.raises(RuntimeError, match=text):
            kernel(np.zeros(4, np.int32), f, g)
        call(kernel)


def test_resume_is_for_kernels_with_checkpoints(tmp_path):
    kernel = kernel_of(tmp_path, "for i in x:\n    x[i] = 1", GRAPH)
    x, f = qd.ndarray(qd.i32, 4), qd.ndarray(qd.i32, ())
    with pytest.raises(qd.QuadrantsSyntaxError, match="Unexpected argument '_qd_from_checkpoint'"):
        kernel.resume(x, f, f, from_checkpoint=1)
    kernel = kernel_of(tmp_path, f"with qd.checkpoint(7, yield_on=f):\n    {LOOP}", POINTS)
    text = (
        r"from_checkpoint=99 does not match any qd.checkpoint\(cp_id=...\) in kernel 'k'. Available"
        r" cp_id labels \(source-declaration order\): \[7\]."
    )
    with pytest.raises(RuntimeError, match=text):
        kernel.resume(x, f, qd.ndarray(qd.i32, ()), from_checkpoint=99)
    with pytest.raises(TypeError, match="from_checkpoint"):
        kernel.resume(x, f, f)


def test_loops_and_checkpoints_are_not_differentiated(tmp_path):
    y = qd.field(qd.f32, shape=2, needs_grad=True)
    body = "while qd.graph.do_while(f):\n    for i in y:\n        y[i] *= 2.0"
    kernel = kernel_of(tmp_path, body, GRAPH, y=y)
    with pytest.raises(qd.QuadrantsSyntaxError, match=r"do_while.* does not support autograd"):
        call(kernel.grad)


def test_what_is_in_kernels_is_nothing_elsewhere():
    for fn in (qd.graph.do_while, qd.graph_do_while):
        with pytest.raises(AssertionError, match="can only be used in a kernel"):
            fn(1)
    blocks = (qd.graph.parallel, qd.graph.parallel_context, qd.stream_parallel, qd.checkpoint)
    for fn in (*blocks, qd.graph_parallel, qd.graph_parallel_context):
        with fn():
            pass
    with qd.checkpoint(1, yield_on=None):
        pass


def test_old_names_warn(tmp_path):
    body = "while qd.graph_do_while(f):\n    for i in x:\n        x[i] += 1"
    with pytest.warns(
        DeprecationWarning, match=r"qd.graph_do_while\(\) is deprecated; use qd.graph"
    ):
        call(kernel_of(tmp_path, body, GRAPH))
    body = "with qd.graph_parallel_context():\n    with qd.graph_parallel():\n        x[0] = 1"
    with pytest.warns(DeprecationWarning, match="deprecated") as caught:
        call(kernel_of(tmp_path, body, GRAPH))
    assert len(caught) == 2
