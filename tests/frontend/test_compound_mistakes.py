"""Mistakes with vectors, matrices and structs: class, text, place and advice of each error."""

import pytest
from qd_studio import engine as qd

from .harness import check_error

S, T, X, C = (
    qd.QuadrantsSyntaxError, qd.QuadrantsTypeError, qd.QuadrantsIndexError,
    qd.QuadrantsCompilationError,
)  # fmt: skip

TYPES = """\
vec2 = qd.types.vector(2, qd.f32)
mat23 = qd.types.matrix(2, 3, qd.f32)
P = qd.types.struct(a=qd.i32, v=vec2)
"""


def kernel(body, params="n: qd.i32"):
    head = "    v = qd.Vector([1.0, 2.0])\n    m = mat23(1)\n    p = P(1)\n"
    return f"{TYPES}@qd.kernel\ndef k({params}):\n{head}" + body


CASES = {
    # elements
    "past the end": (
        kernel("    y = v[2]\n    #     ^\n"), X, "Index 2 is out of range for a vector", None,
    ),
    "row past the end": (
        kernel("    y = m[2, 0]\n    #     ^\n"), X, "Index 2 is out of range for a matrix", None,
    ),
    "past the end in a function": (
        "@qd.func\ndef f(v, i):\n    return v[i]\n    #        ^\n" + kernel("    y = f(v, 5)\n"),
        X, "Index 5 is out of range", None,
    ),
    "negative": (
        kernel("    y = v[-1]\n    #     ^^\n"),
        S, "Negative indices are not supported in Quadrants kernels.", "v.n",
    ),
    "negative slice": (
        kernel("    y = v[-2:]\n    #     ^^^\n"), S, "Negative indices", None,
    ),
    "one index of two": (
        kernel("    y = m[1]\n    #     ^\n"), X, "Expected 2 indices, got 1.", "m[i, :]",
    ),
    "two indices of one": (
        kernel("    y = v[0, 1]\n    #     ^^^^\n"), X, "Expected 1 indices, got 2.", None,
    ),
    "real index": (
        kernel("    y = v[0.5]\n    #     ^^^\n"),
        T, "indices must be integers, however 'f32' is provided as index 0", "qd.cast",
    ),
    "real index of run time": (
        kernel("    y = m[0, v.x]\n    #        ^^^\n"),
        T, "indices must be integers, however 'f32' is provided as index 1", "qd.cast",
    ),
    "slice of run time": (
        kernel("    y = v[n:]\n    #     ^^\n"), T, "Slices need constant bounds", None,
    ),
    "empty slice": (
        kernel("    y = v[1:1]\n    #     ^^^\n"), X, "A slice without elements", None,
    ),
    # attributes
    "no such component": (
        kernel("    y = v.z\n    #   ^^^\n"),
        S, "vec2 only has attributes=('x', 'y'), got=('z',)", None,
    ),
    "no such component in a swizzle": (
        kernel("    v.rgb = 1\n   #^^^^^\n"),
        S, "vec2 only has attributes=('r', 'g'), got=('r', 'g', 'b')", None,
    ),
    "mixed letters": (
        kernel("    y = v.xg\n    #   ^^^^\n"), C, "has no attribute 'xg'", "methods are",
    ),
    "components of a matrix": (
        kernel("    y = m.x\n    #   ^^^\n"), C, "has no attribute 'x'", None,
    ),
    "no such method": (
        kernel("    y = v.length()\n    #   ^^^^^^^^\n"), C, "has no attribute 'length'", "norm",
    ),
    # shapes
    "sum of lengths": (
        kernel("    y = v + qd.Vector([1, 2, 3])\n    #   ^^^^^^^^^^^^^^^^^^^^^^^^\n"),
        T, "unsupported operand type(s) for '+': '[Tensor (2) f32]' and '[Tensor (3) i32]'",
        "shape",
    ),
    "sum of vector and matrix": (
        kernel("    y = m - v\n    #   ^^^^^\n"),
        T, "unsupported operand type(s) for '-': '[Tensor (2, 3) f32]' and '[Tensor (2) f32]'",
        None,
    ),
    "comparison of lengths": (
        kernel("    y = v < [1, 2, 3]\n    #   ^^^^^^^^^^^^^\n"),
        T, "unsupported operand type(s) for '<': '[Tensor (2) f32]' and '[Tensor (3) i32]'", None,
    ),
    "augmented": (
        kernel("    v += [1, 2, 3]\n"),
        T, "unsupported operand type(s) for '+=': '[Tensor (2) f32]' and '[Tensor (3) i32]'", None,
    ),
    "shift of floats": (
        kernel("    y = v << 1\n    #   ^^^^^^\n"),
        T, "unsupported operand type(s) for '<<': '[Tensor (2) f32]' and '[Tensor (2) i32]'",
        "integers",
    ),
    "matrix product": (
        kernel("    y = m @ v\n    #   ^^^^^\n"),
        C, "dimension mismatch between (2, 3) and (2,) for matrix multiplication", None,
    ),
    "matrix product with a number": (
        kernel("    y = m @ 2\n    #   ^^^^^\n"),
        T, "unsupported operand type(s) for '@': '[Tensor (2, 3) f32]' and 'i32'", "*",
    ),
    "other length assigned": (
        kernel("    v = [1, 2, 3]\n"),
        T, "cannot assign '[Tensor (3) i32]' to '[Tensor (2) f32]'", "first assignment",
    ),
    "vector assigned to an element": (
        kernel("    v[0] = v\n"), T, "cannot assign '[Tensor (2) f32]' to 'f32'", None,
    ),
    "branches": (
        kernel("    y = v if n > 0 else [1, 2, 3]\n    #   ^^^^^^^^^^^^^^^^^^^^^^^^^\n"),
        T, "Both branches need the same shape", None,
    ),
    # methods
    "transpose of a vector": (
        kernel("    y = v.transpose()\n    #   ^^^^^^^^^^^^^\n"),
        C, "`transpose()` cannot apply to a vector", None,
    ),
    "determinant of no square": (
        kernel("    y = m.determinant()\n    #   ^^^^^^^^^^^^^^^\n"),
        C, "expected a square matrix, got shape (2, 3)", None,
    ),
    "inverse of a vector": (
        kernel("    y = v.inverse()\n"), C, "expected a square matrix, got shape (2,)", None,
    ),
    "determinant of a large matrix": (
        kernel("    y = qd.Matrix.identity(qd.f32, 5).determinant()\n"),
        C, "only dimension < 5 is supported, got shape (5, 5)", None,
    ),
    "dot of a matrix": (kernel("    y = m.dot(m)\n"), C, "lhs for dot is not a vector", None),
    "dot with a matrix": (kernel("    y = v.dot(m)\n"), C, "rhs for dot is not a vector", None),
    "cross in four dimensions": (
        kernel("    y = qd.Vector([1, 2, 3, 4]).cross([1, 2, 3, 4])\n"),
        C, "Cross product is only supported between pairs of 2D/3D vectors", None,
    ),
    "fill of a value": (
        kernel("    (v + 1).fill(2)\n"), S, "fill() needs a variable", None,
    ),
    "too many arguments of a method": (
        kernel("    y = v.norm(1, 2)\n"), T, "norm() takes 1 argument, got 2", None,
    ),
    # conditions and floats only
    "condition": (
        kernel("    if v > 0:\n    #  ^^^^^\n        pass\n"),
        T, "`if` conditions must be an integer; found [Tensor (2) u1].", ".all()",
    ),
    "loop condition": (
        kernel("    while v > 0:\n    #     ^^^^^\n        pass\n"),
        T, "`while` conditions must be an integer; found [Tensor (2) u1].", None,
    ),
    "asserted": (
        kernel("    assert v > 0\n"), T, "`assert` conditions must be an integer; found", None,
    ),
    "integers to floor": (
        kernel("    y = qd.floor(qd.Vector([1, 2]))\n"),
        T, "'floor' takes real inputs only, however 'i32' is provided", None,
    ),
    "and of floats": (
        kernel("    y = v and v\n"), T, "unsupported operand type(s) for '&&': 'f32'", None,
    ),
    # constructors
    "vector of a number": (
        kernel("    y = qd.Vector(3)\n    #             ^\n"),
        T, "An Matrix/Vector can only be initialized with an array-like object", "qd.types.vector",
    ),
    "no elements": (kernel("    y = qd.Vector([])\n"), T, "at least one element", None),
    "rows of unequal length": (
        kernel("    y = qd.Matrix([[1, 2], [3]])\n"), T, "equal length", None,
    ),
    "too few elements": (
        kernel("    y = vec2([1])\n    #   ^^^^^^^^^\n"),
        C, "vector(2, f32) needs 2 elements, got 1", "fills every",
    ),
    "extent of run time": (
        kernel("    y = qd.Matrix.zero(qd.f32, n)\n"),
        T, "The shape of a vector or matrix is known at compile time", None,
    ),
    "loop over a vector": (
        kernel("    for x in v:\n    #        ^\n        pass\n"),
        C, "TypeError: Cannot loop over the object a vector of shape (2,)", None,
    ),
    # structs
    "no such member": (
        kernel("    y = p.b\n    #   ^^^\n"), T, 'has no member "b"', "its members are a, v",
    ),
    "too many members": (kernel("    q = P(1, v, 2)\n"), T, "has 2 members, got 3 values", None),
    "unknown member": (kernel("    q = P(z=1)\n"), T, "has no member 'z'", "a, v"),
    "member given twice": (kernel("    q = P(1, a=2)\n"), T, "'a' is given twice", None),
    "member of another shape": (
        kernel("    q = P(1, [1, 2, 3])\n"),
        T, "cannot assign '[Tensor (3) i32]' to '[Tensor (2) f32]'", None,
    ),
    "number to a struct": (
        kernel("    p = 3\n    #   ^\n"), T, "Only dict or Struct can be assigned to a Struct",
        None,
    ),
    "struct to a number": (kernel("    y = 1\n    y = p\n"), T, "Invalid constant scalar", None),
    "augmented struct": (kernel("    p += 1\n"), T, "unsupported operand", None),
    "comparison of structs": (kernel("    y = p == p\n"), T, "unsupported operand", None),
    "annotated again": (
        kernel("    v: qd.types.vector(3, qd.f32) = [1, 2, 3]\n"),
        S, "Static assign cannot have type overloading", "vector(2, f32)",
    ),
    # captured values
    "captured vector assigned": (
        "G = qd.Vector([1, 2])\n" + kernel("    G[0] = 3\n   #^^^^\n"),
        S, "cannot be assigned", None,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_mistake(name, tmp_path):
    text, kind, message, hint = CASES[name]
    check_error(text, kind, message, tmp_path, hint)


HOST = {
    "to_numpy": "    a = X.to_numpy()\n    #   ^^^^^^^^^^\n",
    "copy_from": "    X.copy_from(X)\n",
    "field": "    a = qd.field(qd.f32, shape=3)\n    #   ^^^^^^^^^^^^^^^^^^^^^^^^^\n",
    "Vector.ndarray": "    qd.Vector.ndarray(2, qd.f32, 3)\n",
    "reset": "    qd.reset()\n",
}


@pytest.mark.parametrize("name", HOST)
def test_work_of_python_scope(name, tmp_path, interp):
    text = f"X = qd.field(qd.f32, shape=3)\n@qd.kernel\ndef k():\n{HOST[name]}"
    check_error(text, C, f"{name} cannot be called in Quadrants-scope", tmp_path, "from Python")


ODD = {
    "select of a tuple": (kernel("    y = qd.select(v > 0, (1, v), v)\n"), T, "Invalid constant"),
    "unpacked struct": (kernel("    a, b = p\n    #      ^\n"), S, "Cannot unpack type: a struct"),
    "length of a struct": (kernel("    y = len(p)\n"), T, "has no len()"),
    "range of a vector": (kernel("    y = range(v)\n"), T, "cannot be interpreted as an integer"),
    "method as a value": (kernel("    y = v.norm\n"), T, "the method norm"),
    "shape of nothing": (kernel("    y = qd.Matrix.zero(qd.f32, None)\n"), T, "needs a shape"),
    "call of a vector": (kernel("    y = v(a=1)\n"), T, "a vector of shape (2,) is not callable"),
    "sum of a struct": (kernel("    y = sum(p)\n"), S, "Cannot unpack type: a struct"),
    "vector in a text": (kernel("    y = f'{v}' * v\n"), T, "a text with run-time values"),
}


@pytest.mark.parametrize("name", ODD)
def test_odd_operands(name, tmp_path):
    check_error(*ODD[name], tmp_path)
