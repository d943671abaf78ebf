"""The IR that comes out: its shape, its places, its warnings."""

import importlib
import pkgutil
import sys
from pathlib import Path

import pytest
from qd_studio import engine as qd
from qd_studio.engine import frontend, lang, logs
from qd_studio.engine.config import CompileConfig
from qd_studio.engine.frontend import registry
from qd_studio.engine.ir import parse, to_text, verify, walk
from qd_studio.engine.lang.func import FunctionOfKernels

from .harness import built, load, names_of, ops_of


@qd.kernel
def small(x: qd.types.NDArray[qd.f32, 2], n: qd.i32, a: qd.f32):
    qd.loop_config(block_dim=64, parallelize=3, name="rows")
    for i, j in qd.ndrange(x.shape[0], (1, n), axes=(1, 0)):
        x[i, j] += a * i
    qd.loop_config(serialize=True)
    for k in range(n):
        x[k, 0] = 0.0


TEXT = """\
kernel small(x: ndarray<f32, 2>, n: i32, a: f32) stage=ast {
  <i32> $0 = arg_load [1]
  <f32> $1 = arg_load [2]
  <*f32> $9 = arg_addr [(0, False)]
  <i32> $2 = external_tensor_shape_along_axis [(0, 0)]
  <i32> $3 = const 0
  <i32> $4 = const 1
  $5 : range_for $3, $2, $4, $0 {axes=(1, 0) block_dim=64 num_cpu_threads=3 loop_name='rows'} \
body {
    <i32> $6 = loop_index $5 [0]
    <i32> $7 = loop_index $5 [1]
    <*f32> $8 = external_ptr $9, $6, $7 ['unsafe']
    <f32> $10 = mul $1, $6
    <f32> $11 = atomic_add $8, $10
  }
  <i32> $12 = const 0
  $13 : range_for $12, $0 {num_cpu_threads=1 strictly_serialized=True} body {
    <i32> $14 = loop_index $13 [0]
    <i32> $15 = const 0
    <*f32> $16 = external_ptr $9, $14, $15 ['unsafe']
    <f32> $17 = const 0.0
    $18 : global_store $16, $17
  }
}
"""


def canonical(text):
    """The text with values numbered in the order of their definitions."""
    func = parse(text)
    numbers = {}
    for op in walk(func.body):
        numbers[op.id] = len(numbers)
        op.id = numbers[op.id]
    return to_text(func)


def test_shape_of_a_kernel():
    assert canonical(to_text(built(small).func)) == canonical(TEXT)


def test_locations_have_columns():
    lines = Path(__file__).read_text().splitlines()
    spans = set()
    for op in ops_of(small):
        loc = op.loc
        assert loc.file == __file__ and loc.func == "small" and loc.parent is None
        assert loc.end_line == loc.line
        spans.add((op.name, lines[loc.line - 1].encode()[loc.col : loc.end_col].decode()))
    assert ("atomic_add", "x[i, j] += a * i") in spans
    assert ("mul", "a * i") in spans
    assert ("external_ptr", "x[i, j]") in spans
    assert ("range_for", "for k in range(n)") in spans
    assert ("external_tensor_shape_along_axis", "x.shape[0]") in spans


def test_built_ir_is_verified():
    assert verify(built(small).func) == []


def test_top_level_looks_through_functions_and_static_loops(tmp_path):
    text = (
        "@qd.func\ndef f(x):\n    for i in range(3):\n        break\n"
        "@qd.kernel\ndef k():\n    for j in qd.static(range(1)):\n        f(1)\n"
    )
    with pytest.raises(qd.QuadrantsSyntaxError, match="Cannot break in the outermost loop"):
        built(load(text, tmp_path)["k"])


def test_a_loop_under_a_runtime_if_is_serial(tmp_path):
    text = (
        "@qd.kernel\ndef k(n: qd.i32):\n    if n > 0:\n        for i in range(3):\n"
        "            break\n"
    )
    assert "break" in names_of(load(text, tmp_path)["k"])


def test_a_dead_static_branch_is_not_looked_at(tmp_path):
    text = (
        "@qd.kernel\ndef k():\n    if qd.static(False):\n        nope()\n    else:\n        a = 1\n"
    )
    assert names_of(load(text, tmp_path)["k"]) == ["const", "alloca", "local_store"]


def test_a_constant_condition_is_left_to_the_passes(tmp_path):
    text = "FLAG = False\n@qd.kernel\ndef k():\n    if FLAG:\n        a = 1\n"
    assert "if" in names_of(load(text, tmp_path)["k"])


def test_static_print_happens_once(tmp_path, capsys):
    text = (
        "@qd.kernel\ndef k(x: qd.types.NDArray[qd.f32, 1], n: qd.i32):\n"
        "    qd.static_print('hello', 3, n, x, x.shape, [n, 1])\n"
    )
    built(load(text, tmp_path)["k"])
    assert capsys.readouterr().out == (
        "hello 3 <i32> <ndarray x: f32, 1d> <shape of x> ['<i32>', 1]\n"
    )


def test_python_code_on_constants_runs_once(tmp_path):
    text = (
        "seen = []\ndef note(x):\n    seen.append(x)\n    return x * 2\n"
        "@qd.kernel\ndef k() -> qd.i32:\n    return note(4) + math.floor(2.5)\n"
    )
    names = load(text, tmp_path)
    values = [op.attr for op in ops_of(names["k"]) if op.name == "const"]
    assert (values, names["seen"]) == ([10], [4])


WARNINGS = {
    "lossy assignment": ("    a = 1\n    a = 2.5\n", "Assigning f32 to i32", None),
    "lossy augmented assignment": ("    a = 1\n    a += 2.5\n", "Adding f32 to i32", None),
    "wide bound": (
        "    for i in range(qd.i64(3)):\n        pass\n",
        "Casting range_for boundary values from i64 to i32", None,
    ),
    "much unrolling": (
        "    for i in qd.static(range(40)):\n        pass\n", "to 40 iterations", SyntaxWarning,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WARNINGS)
def test_warnings(name, tmp_path, capsys):
    body, text, category = WARNINGS[name]
    result = built(load(f"@qd.kernel\ndef k():\n{body}", tmp_path)["k"])
    (notice,) = result.warnings
    assert text in notice.text
    assert notice.category is category
    if category is None:
        logs.set_level("warn")
        result.issue_warnings()
        assert text in capsys.readouterr().err
    else:
        with pytest.warns(category, match=text):
            result.issue_warnings()


def test_unrolling_limit_can_be_set(tmp_path):
    kernel = load(
        "@qd.kernel\ndef k():\n    for i in qd.static(range(40)):\n        pass\n", tmp_path
    )["k"]
    assert not built(kernel, CompileConfig(unrolling_limit=50)).warnings
    assert not built(kernel, CompileConfig(unrolling_limit=0)).warnings
    assert built(kernel, CompileConfig(unrolling_limit=39)).warnings


def test_long_sums_need_no_deep_recursion(tmp_path):
    terms = " + ".join(["a"] * 800)
    kernel = load(f"@qd.kernel\ndef k(a: qd.i32) -> qd.i32:\n    return {terms}\n", tmp_path)["k"]
    assert names_of(kernel).count("add") == 799


def test_code_nested_too_deeply_is_an_error(tmp_path):
    text = "a" + " ** a" * 90
    kernel = load(f"@qd.kernel\ndef k(a: qd.i32) -> qd.i32:\n    return {text}\n", tmp_path)["k"]
    limit = sys.getrecursionlimit()
    try:
        sys.setrecursionlimit(150)
        with pytest.raises(qd.QuadrantsCompilationError, match="nested too deeply"):
            built(kernel)
    finally:
        sys.setrecursionlimit(limit)
    assert names_of(kernel).count("pow") == 90


def test_every_registered_meaning_has_a_handler():
    """And every handler a name that users can call."""
    for package in (lang, frontend):
        for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
            importlib.import_module(module.name)  # what it registers is there then
    assert set(registry.INTRINSICS.values()) == set(registry.HANDLERS)


def test_every_public_function_means_something_in_a_kernel():
    from qd_studio.engine.lang import atomics, functions, loops, math

    for module in (atomics, functions, loops, math):
        for name in module.__all__:
            value = getattr(module, name)
            inlined = isinstance(value, FunctionOfKernels)
            typed = type(value) in registry.CALLS
            known = value in registry.INTRINSICS
            assert inlined or typed or isinstance(value, float) or known, name


def test_internal_faults_are_called_that(monkeypatch):
    def broken(walk, node):
        raise ZeroDivisionError("inside")

    import ast

    monkeypatch.setitem(registry.STMT, ast.For, broken)
    with pytest.raises(qd.QuadrantsInternalError, match="ZeroDivisionError in the frontend"):
        built(small)


def test_captured_floats_can_be_rejected(tmp_path):
    kernel = load("G = 1.5\n@qd.kernel\ndef k() -> qd.f32:\n    return G\n", tmp_path)["k"]
    assert names_of(kernel) == ["const", "return"]
    with pytest.raises(qd.QuadrantsCompilationError, match='The float "G" is captured'):
        built(kernel, CompileConfig(raise_on_templated_floats=True))
