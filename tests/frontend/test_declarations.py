"""Signatures, annotations, and finding the source of a kernel."""

from __future__ import annotations

import ast
import linecache
import textwrap

import pytest
from qd_studio import engine as qd
from qd_studio.engine.config import CompileConfig
from qd_studio.engine.frontend import source
from qd_studio.engine.frontend.build import build
from qd_studio.engine.frontend.signature import parse_kernel

from .harness import HEAD, built, carets_in, check_error, load

S = qd.QuadrantsSyntaxError


@qd.kernel
def strings(x: qd.types.NDArray[qd.f32, 2], n: int, y: float, b: bool, t: qd.Template) -> float:
    return x[0, 0] + n + y


def test_annotations_may_be_strings():
    config = CompileConfig(default_fp="f64", default_ip="i64")
    params = strings.decl.params
    assert [p.kind for p in params] == ["ndarray", "scalar", "scalar", "scalar", "template"]
    assert (params[0].dtype, params[0].ndim) == (qd.f32, 2)
    assert [p.scalar_type(config) for p in params[1:4]] == [qd.i64, qd.f64, qd.u1]
    assert strings.decl.result_types(config) == (qd.f64,)


def annotated(annotation, tmp_path):
    (param,) = load(f"@qd.kernel\ndef k(x: {annotation}):\n    pass\n", tmp_path)["k"].decl.params
    return param


@pytest.mark.parametrize(
    ("annotation", "kind", "dtype", "ndim", "needs_grad", "boundary"),
    [
        ("qd.types.ndarray", "ndarray", None, None, None, "unsafe"),
        ("qd.types.ndarray()", "ndarray", None, None, None, "unsafe"),
        ("qd.types.NDArray", "ndarray", None, None, None, "unsafe"),
        ("qd.NDArray[qd.i8]", "ndarray", qd.i8, None, None, "unsafe"),
        ("qd.types.NDArray[qd.f16, 3]", "ndarray", qd.f16, 3, None, "unsafe"),
        ("qd.types.ndarray(qd.f64, 1)", "ndarray", qd.f64, 1, None, "unsafe"),
        ("qd.types.ndarray(dtype=bool, ndim=0)", "ndarray", qd.u1, 0, None, "unsafe"),
        ("qd.types.ndarray(needs_grad=True)", "ndarray", None, None, True, "unsafe"),
        ("qd.types.ndarray(boundary='clamp')", "ndarray", None, None, None, "clamp"),
        ("qd.u16", "scalar", qd.u16, None, None, "unsafe"),
        ("qd.float64", "scalar", qd.f64, None, None, "unsafe"),
        ("bool", "scalar", qd.u1, None, None, "unsafe"),
        ("qd.template()", "template", None, None, None, "unsafe"),
        ("qd.template", "template", None, None, None, "unsafe"),
        ("qd.Template", "template", None, None, None, "unsafe"),
        ("qd.types.template()", "template", None, None, None, "unsafe"),
    ],
)
def test_annotation(annotation, kind, dtype, ndim, needs_grad, boundary, tmp_path):
    p = annotated(annotation, tmp_path)
    found = (p.kind, p.dtype, p.ndim, p.needs_grad, p.boundary)
    assert found == (kind, dtype, ndim, needs_grad, boundary)
    assert p.annotation_text


def test_element_types_int_and_float_are_the_configured_ones(tmp_path):
    p = annotated("qd.types.ndarray(dtype=float)", tmp_path)
    assert p.dtype is None
    assert p.element_type(CompileConfig(default_fp="f64")) is qd.f64


@pytest.mark.parametrize(
    "annotation", ["qd.types.ndarray(ndim=-1)", "qd.types.ndarray(boundary='wrap')"]
)
def test_impossible_arrays(annotation, tmp_path):
    with pytest.raises(ValueError, match=r"ndim|boundary"):
        annotated(annotation, tmp_path)


def test_arrays_of_vectors():
    vec3 = qd.types.vector(3, qd.f32)
    for declared in (
        qd.types.ndarray(dtype=vec3, ndim=2),
        qd.types.ndarray(dtype=qd.f32, ndim=2, element_shape=(3,)),
        qd.types.NDArray[vec3, 2],
    ):
        assert (declared.dtype, declared.ndim, declared.element_dim) == (vec3, 2, 1)
    with pytest.raises(ValueError, match="contradicts"):
        qd.types.ndarray(dtype=vec3, element_shape=(2,))
    with pytest.raises(ValueError, match="element_dim"):
        qd.types.ndarray(element_dim=3)


SIGNATURES = {
    "no annotation": (
        "@qd.kernel\ndef k(a, b: qd.f32):\n#     ^\n    pass\n",
        "Quadrants kernels parameters must be type annotated",
    ),
    "default": (
        "@qd.kernel\ndef k(a: qd.i32 = 3):\n#     ^^^^^^^^^\n    pass\n",
        "Quadrants kernels do not support default values for arguments",
    ),
    "*args": (
        "@qd.kernel\ndef k(*a):\n#      ^\n    pass\n",
        "Quadrants kernels do not support variable positional parameters (i.e., *args)",
    ),
    "**kwargs": (
        "@qd.kernel\ndef k(**a):\n#       ^\n    pass\n",
        "Quadrants kernels do not support variable keyword parameters (i.e., **kwargs)",
    ),
    "keyword-only": (
        "@qd.kernel\ndef k(*, a: qd.i32):\n#        ^^^^^^^^^\n    pass\n",
        "Quadrants kernels do not support keyword parameters",
    ),
    "bad annotation": (
        "@qd.kernel\ndef k(b: qd.i32, a: 'str'):\n#                ^^^^^^^^\n    pass\n",
        "Invalid type annotation (argument 1) of Quadrants kernel: <class 'str'>",
    ),
    "annotation that is no type": (
        "@qd.kernel\ndef k(a: 3):\n#     ^^^^\n    pass\n",
        "Invalid type annotation (argument 0) of Quadrants kernel: <class 'int'>",
    ),
    "annotation that raises": (
        "@qd.kernel\ndef k(a: 'nope.x'):\n#     ^^^^^^^^^^^\n    pass\n",
        "Invalid type annotation 'nope.x': NameError",
    ),
    "bad result": (
        "@qd.kernel\ndef k() -> str:\n#          ^^^\n    pass\n",
        "Invalid type annotation of the return value: str",
    ),
    "bad annotation of a function": (
        "@qd.func\ndef f(a: str):\n#     ^^^^^^\n    pass\n",
        "Invalid type annotation (argument 0) of Quadrants function: <class 'str'>",
    ),
}


@pytest.mark.parametrize("name", SIGNATURES)
def test_signatures_are_checked_when_they_are_decorated(name, tmp_path):
    text, message = SIGNATURES[name]
    with pytest.raises(S) as caught:
        load(text, tmp_path)
    error = caught.value
    assert message in error.message
    assert (error.line, error.col, error.end_col) == carets_in(HEAD + text)


def test_a_kernel_in_a_class_is_a_method(tmp_path):
    text = "class A:\n    @qd.kernel\n    def k(self, n: qd.i32):\n        pass\n"
    cls = load(text, tmp_path)["A"]
    assert [p.kind for p in cls.k.decl.params] == ["self", "scalar"]
    with pytest.raises(qd.QuadrantsSyntaxError, match=r"Please decorate class A with @qd.data_or"):
        cls().k(3)


def test_only_functions_can_be_kernels(tmp_path):
    for what in ("lambda x: x", "print", "3"):
        with pytest.raises(S, match="needs a function defined with `def`"):
            load(f"k = qd.kernel({what})\n", tmp_path)


# Source


def test_a_kernel_without_a_file():
    names = {}
    exec("from qd_studio import engine as qd\n@qd.kernel\ndef k():\n    pass\n", names)
    with pytest.raises(S, match="Cannot read the source of 'k'") as caught:
        built(names["k"])
    assert "file" in caught.value.hint
    assert "@qd.kernel(source=TEXT)" in caught.value.hint


def test_a_kernel_that_claims_another_file():
    names = {}
    text = "from qd_studio import engine as qd\n@qd.kernel\ndef k(zzz: qd.f32):\n    pass\n"
    exec(compile(text, __file__, "exec"), names)
    with pytest.raises(S, match="Cannot read the source of 'k'"):
        built(names["k"])


def test_a_kernel_in_a_notebook_cell():
    text = "from qd_studio import engine as qd\n@qd.kernel\ndef k() -> qd.i32:\n    return 3\n"
    name = "<cell 7>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    names = {}
    exec(compile(text, name, "exec"), names)
    assert [op.name for op in built(names["k"]).func.body.ops] == ["const", "return"]


def test_edits_after_the_import_change_nothing(tmp_path):
    names = load("@qd.kernel\ndef k() -> qd.i32:\n    return 3\n", tmp_path)
    path = names["k"].decl.file
    with open(path, "w") as out:
        out.write("# another file\n" * 30)
    assert names["k"].decl.source.startswith("@qd.kernel\ndef k()")
    assert [op.attr for op in built(names["k"]).func.body.ops][:1] == [3]


def test_indented_kernels_keep_lines_and_columns(tmp_path):
    text = textwrap.dedent(
        '''
        def make():
            if True:
                @qd.kernel
                def k():
                    """A text
        with less indentation."""
                    y = zz
                    #   ^^
            return k
        k = make()
        '''
    )
    error = check_error(text, qd.QuadrantsNameError, 'Name "zz"', tmp_path)
    assert error.source_line.strip() == "y = zz"


def test_functions_are_parsed_once_while_their_trees_are_kept(monkeypatch, tmp_path):
    names = load("@qd.func\ndef f(x):\n    return x\n@qd.kernel\ndef k():\n    y = f(1) + f(2)\n",
                 tmp_path)  # fmt: skip
    count = []
    parse = ast.parse
    monkeypatch.setattr(source.ast, "parse", lambda *a: count.append(1) or parse(*a))
    built(names["k"])
    assert len(count) == 2
    built(names["k"])
    assert len(count) == 2


def test_source_covers_the_decorators_and_nothing_else(tmp_path):
    text = "@qd.kernel\ndef k(\n    a: qd.i32,\n):\n    # one\n    pass\n\nx = 3\n"
    decl = load(text, tmp_path)["k"].decl
    first = HEAD.count("\n") + 1
    assert (decl.line, decl.end_line) == (first, first + 5)
    assert decl.source == text[: text.index("\nx = 3")]


def test_features_must_fit():
    def k(a: qd.i32):
        pass

    with pytest.raises(ValueError, match="has 1 parameters, got 0"):
        build(parse_kernel(k), (), CompileConfig())
