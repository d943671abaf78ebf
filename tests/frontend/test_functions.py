"""Functions that kernels inline, and template arguments."""

from pathlib import Path

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.engine.frontend import trees

from .harness import HEAD, built, carets_in, check_error, load, ops_of

pytestmark = pytest.mark.usefixtures("interp")


@qd.func
def by_value(a, b):
    a += 1
    return a, b * 2


@qd.func
def typed(a: qd.i32, b: float) -> qd.i32:
    a += 1
    return a + b


@qd.func
def by_reference(x: qd.template(), step=3):
    x += step


@qd.func
def forwards(x):
    by_reference(x)
    return x


@qd.func
def nothing(x):
    x + 1


@qd.func
def first(x: qd.types.NDArray[qd.f32, 1]):
    return x[0]


@qd.func
def second(x):
    return x[1]


@qd.func
def only_keywords(a, *, b=2, c):
    return a * 100 + b * 10 + c


@qd.kernel
def values() -> (qd.i32, qd.i32, qd.i32):
    a = 3
    p, q = by_value(a, 4)
    return a, p, q


@qd.kernel
def types() -> qd.i32:
    x = 2.9
    return typed(x, 1) * 10 + typed(b=1.75, a=2)


@qd.kernel
def references(x: qd.types.NDArray[qd.i32, 1]) -> (qd.i32, qd.i32, qd.i32):
    a = 5
    by_reference(a)
    by_reference(x[1], 10)
    pair = [1, 2]
    by_reference(pair[0], step=a)
    b = 1
    return a, pair[0], forwards(b) * 10 + b


@qd.kernel
def arrays(x: qd.types.NDArray[qd.f32, 1]) -> qd.f32:
    return first(x) + second(x)


@qd.kernel
def keywords() -> qd.i32:
    return only_keywords(1, c=3) + only_keywords(c=1, a=2, b=4)


def test_arguments_go_by_value():
    assert values() == (3, 4, 8)


def test_template_arguments_go_by_reference():
    x = np.array([1, 2], np.int32)
    assert references(x) == (8, 9, 41)
    assert x.tolist() == [1, 12]


def test_keyword_only_arguments():
    assert keywords() == 123 + 241


def test_a_name_that_is_never_assigned_needs_no_copy():
    assert "alloca" not in [op.name for op in ops_of(arrays)]


def plain(x):
    return x * x + 1


@qd.kernel
def calls_plain() -> qd.i32:
    a = 3
    return plain(a) + plain(2)


def test_plain_functions_are_inlined_with_a_warning():
    result = built(calls_plain)
    assert [(n.category, "plain" in n.text) for n in result.warnings] == [(SyntaxWarning, True)]
    assert [decl.qualname for decl in result.decls[1:]] == ["plain"]
    with pytest.warns(SyntaxWarning, match="Decorate it with @qd.func"):
        assert calls_plain() == 15


def test_the_functions_that_were_inlined_are_reported():
    _, one = built(values).decls
    name, file, line, end_line = one.qualname, one.file, one.line, one.end_line
    assert (name, file) == ("by_value", __file__)
    text = Path(__file__).read_text().splitlines()[line - 1 : end_line]
    assert text[0] == "@qd.func" and text[-1].strip().startswith("return")


def test_ops_know_the_calls_they_were_inlined_through():
    chains = {tuple(loc.func for loc in op.loc.chain()) for op in ops_of(references)}
    assert ("by_reference", "forwards", "references") in chains
    assert all(op.loc.root.func == "references" for op in ops_of(references))


def test_calling_a_function_from_python():
    with pytest.raises(qd.QuadrantsAssertionError, match="can only be called from a kernel"):
        by_value(1, 2)
    with pytest.raises(AssertionError):
        by_value(1, 2)


C, S, T = qd.QuadrantsCompilationError, qd.QuadrantsSyntaxError, qd.QuadrantsTypeError
COMPOUND = """\
vec3 = qd.types.vector(3, qd.f32)
@qd.func
def vector(v: vec3):
    return v
@qd.func
def struct(s: qd.types.struct(n=qd.i32, v=vec3)):
    return s.n
@qd.func
def tensor(x: qd.Tensor | None):
    return 1
@qd.kernel
def k():
"""
CASES = {
    "recursion": (
        "@qd.func\ndef f(x):\n    return g(x)\n\n@qd.func\ndef g(x):\n    return f(x)\n"
        "    #      ^^^^\n@qd.kernel\ndef k():\n    y = f(1)\n",
        C, "Recursion in inlined functions: f -> g -> f", "loop",
    ),
    "recursion with the same template argument": (
        "@qd.func\ndef f(n: qd.template()):\n    return f(n)\n@qd.kernel\ndef k():\n    y = f(1)\n",
        C, "Recursion in inlined functions: f -> f", None,
    ),
    "recursion that does not end": (
        "@qd.func\ndef f(n: qd.template()):\n    return f(n + 1)\n@qd.kernel\ndef k():\n"
        "    y = f(1)\n",
        C, "more than 64 calls deep", None,
    ),
    "return in a runtime if": (
        "@qd.func\ndef f(x):\n    if x > 0:\n        return 1\n    #   ^^^^^^^^\n    return 2\n"
        "@qd.kernel\ndef k():\n    y = f(1)\n",
        S, "Return inside non-static if/for is not supported", None,
    ),
    "missing result": (
        "@qd.func\ndef f(x) -> qd.i32:\n    pass\n@qd.kernel\ndef k():\n    y = f(1)\n",
        S, "Function has a return type but does not have a return statement", None,
    ),
    "missing argument": (
        "@qd.func\ndef f(x, y):\n    return x\n@qd.kernel\ndef k():\n    y = f(1)\n    #   ^^^^\n",
        S, "Missing argument 'y'.", None,
    ),
    "too many arguments": (
        "@qd.func\ndef f(x: qd.f32):\n    return x\n@qd.kernel\ndef k():\n    y = f(1, 2)\n",
        S, "Too many arguments. Expected (x : f32)", None,
    ),
    "unexpected argument": (
        "@qd.func\ndef f(x):\n    return x\n@qd.kernel\ndef k():\n    y = f(z=1)\n    #       ^\n",
        S, "Unexpected argument 'z'.", None,
    ),
    "argument twice": (
        "@qd.func\ndef f(x):\n    return x\n@qd.kernel\ndef k():\n    y = f(1, x=1)\n",
        S, "Multiple values for argument 'x'.", None,
    ),
    "not at the top level": (
        "@qd.func(requires_top_level=True)\ndef f(x):\n    return x\n@qd.func\ndef g(x):\n"
        "    return f(x)\n    #      ^^^^\n@qd.kernel\ndef k(n: qd.i32):\n    y = f(n) + g(n)\n"
        "    if n > 0:\n        y = g(1)\n",
        S, 'Function "f" requires the top level of a kernel', "outside",
    ),
    "a number for an array": (
        "@qd.func\ndef f(x: qd.types.NDArray[qd.f32, 1]):\n    return x[0]\n@qd.kernel\ndef k():\n"
        "    y = f(1)\n    #     ^\n",
        S, "Argument 'x' must be an ndarray", None,
    ),
    "an array of another type": (
        "@qd.func\ndef f(x: qd.types.NDArray[qd.i32, 1]):\n    return x[0]\n@qd.kernel\n"
        "def k(x: qd.types.NDArray[qd.f32, 1]):\n    y = f(x)\n",
        T, "Expect element type i32 for argument x, but get f32", None,
    ),
    "an array of another rank": (
        "@qd.func\ndef f(x: qd.types.NDArray[qd.f32, 2]):\n    return x[0, 0]\n@qd.kernel\n"
        "def k(x: qd.types.NDArray[qd.f32, 1]):\n    y = f(x)\n",
        T, "required ndim=2, but 1d ndarray", None,
    ),
    "a vector of another length": (
        COMPOUND + "    y = vector(qd.Vector([1.0, 2.0]))\n    #          ^^^^^^^^^^^^^^^^^^^^^\n",
        S, "'v' of vector must be a vector(3, f32), got a vector of shape (2,)", None,
    ),
    "a number for a vector": (
        COMPOUND + "    y = vector(3)\n    #          ^\n",
        S, "'v' of vector must be a vector(3, f32)", None,
    ),
    "a vector for a struct": (
        COMPOUND + "    y = struct(qd.Vector([1.0, 2.0]))\n    #          ^^^^^^^^^^^^^^^^^^^^^\n",
        S, "'s' of struct must be a struct", None,
    ),
    "a number for a tensor": (
        COMPOUND + "    y = tensor(3)\n    #          ^\n",
        S, "'x' of tensor must be a Tensor", None,
    ),
    "assigning through a template to a value": (
        "@qd.func\ndef f(x: qd.template()):\n    x += 1\n@qd.kernel\ndef k():\n    f(3)\n",
        S, 'Argument "x" is immutable', None,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_mistake(name, tmp_path):
    text, kind, message, hint = CASES[name]
    check_error(text, kind, message, tmp_path, hint)


def test_an_error_shows_the_chain_of_calls(tmp_path):
    text = (
        "@qd.func\ndef g(x):\n    return x + nope\n    #          ^^^^\n"
        "@qd.func\ndef f(x):\n    return g(x)\n@qd.kernel\ndef k():\n    y = f(1)\n"
    )
    error = check_error(text, qd.QuadrantsNameError, 'Name "nope"', tmp_path)
    assert (error.line, error.col, error.end_col) == carets_in(HEAD + text)
    assert [span.function for span in error.chain] == ["f", "k"]
    shown = str(error)
    assert shown.index("in k:") < shown.index("in f:") < shown.index("in g:")
    assert "y = f(1)\n        ^^^^" in shown


def test_functions_of_a_file_are_found_when_it_is_loaded(tmp_path):
    names = load("@qd.func\ndef f(x):\n    return x\n", tmp_path)
    assert names["f"].decl.end_line == names["f"].decl.line + 2
    assert names["f"].__name__ == "f"


@pytest.mark.parametrize("kept", [0, 6, 1000])
def test_syntax_trees_of_the_last_functions_are_kept(kept, monkeypatch):
    """Python's collector would visit the nodes of others, whose text is parsed again."""
    monkeypatch.setattr(trees, "_KEPT", kept)
    with trees.trees:
        pass  # forgets those of earlier tests
    qd.init(arch=qd.cpu, offline_cache=False)

    @qd.func
    def twice(v, n: qd.template()):
        parts = qd.Vector([v, v, v])
        for k in qd.static(range(n)):
            parts[k] += v
        return parts.sum() / 3

    @qd.kernel
    def first(x: float) -> float:
        return twice(x, 3)

    @qd.kernel
    def second(x: qd.template()) -> float:
        return twice(x, 3) + 1

    assert first(2) == 4
    assert second(2.0) == 5
    assert second(3.0) == 7
    known = [fn.decl.src._tree is not None for fn in (first, second, twice)]
    assert known == {0: [False] * 3, 6: [False, False, True], 1000: [True] * 3}[kept]
    if not kept:
        assert all(fn.decl.indexing is None for fn in (first, second, twice))
