"""Mistakes in kernels: the class, the text, the place and the advice of each error."""

import pytest
from qd_studio import engine as qd

from .harness import check_error

S, T, N, X, C = (
    qd.QuadrantsSyntaxError, qd.QuadrantsTypeError, qd.QuadrantsNameError, qd.QuadrantsIndexError,
    qd.QuadrantsCompilationError,
)  # fmt: skip
U = qd.QuadrantsUnsupportedError


def kernel(body, params="", returns=""):
    return f"@qd.kernel\ndef k({params}){returns}:\n" + body


X1 = "x: qd.types.NDArray[qd.f32, 1]"
N1 = "n: qd.types.NDArray[qd.i32, 1]"
REFERENCE = "@qd.real_func\ndef f(x: qd.ref(qd.i32), d: qd.i32):\n    x += d\n"
SCRATCH = f"{X1}, s: qd.types.NDArray[qd.u32, 1], n: qd.i32"

CASES = {
    # names and scopes
    "undefined name": (kernel("    y = z\n    #   ^\n"), N, 'Name "z" is not defined', None),
    "a near name is offered": (
        kernel("    total = 1\n    y = totl\n    #   ^^^^\n"), N, 'Name "totl"', 'mean "total"',
    ),
    "used outside of its if": (
        kernel("    if n > 0:\n        y = 1\n    z = y\n    #   ^\n", "n: qd.i32"),
        N, 'Name "y" is not defined', "`if` at line 6",
    ),
    "used outside of its loop": (
        kernel("    for i in range(3):\n        y = 1\n    z = i\n    #   ^\n"),
        N, 'Name "i" is not defined', "`for`",
    ),
    "used outside of a static if": (
        kernel("    if qd.static(True):\n        y = 1\n    z = y\n    #   ^\n"),
        N, 'Name "y" is not defined', "static",
    ),
    "argument assigned": (
        kernel("    a = 3\n    #^\n".replace("    #^", "   #^"), "a: qd.i32"),
        S, 'Kernel argument "a" is immutable in the kernel', "a_ = a",
    ),
    "loop variable assigned": (
        kernel("    for i in range(3):\n        i = 5\n"), S, 'Loop variable "i"', "copy",
    ),
    "static value assigned": (
        kernel("    a = qd.static(3)\n    if n > 0:\n        a = 4\n", "n: qd.i32"),
        S, "Variable 'a' cannot be assigned", "compile-time" and "new name",
    ),
    "global augmented": (
        "G = 1\n" + kernel("    G += 3\n"), S, 'Global "G" cannot be assigned', None,
    ),
    "loop variable shadows": (
        kernel("    i = 1\n    for i in range(3):\n    #   ^\n        pass\n"),
        S, "Variable 'i' is already declared in the outer scope and cannot be used as loop", None,
    ),
    # loops
    "break in a parallel loop": (
        kernel("    for i in range(3):\n        break\n        #^^^^\n".replace(
            "        #^^^^", "#       ^^^^^")),
        S, "Cannot break in the outermost loop", "serialize=True",
    ),
    "break in a static loop under if": (
        kernel("    for i in qd.static(range(3)):\n        if n > i:\n            break\n",
               "n: qd.i32"),
        S, "You are trying to `break` a static `for` loop, but the `break` statement is inside a "
        "non-static `if`", None,
    ),
    "range with a step": (
        kernel("    for i in range(0, 9, 2):\n    #        ^^^^^^^^^^^^^^\n        pass\n"),
        S, "Range should have 1 or 2 arguments, found 3", None,
    ),
    "ndrange with too few variables": (
        kernel("    for i in qd.ndrange(3, 4):\n    #   ^\n        pass\n"),
        S, "Ndrange for loop with number of the loop variables not equal to the dimension",
        "qd.grouped(qd.ndrange(3, 4))",
    ),
    "ndrange of a real": (
        kernel("    for i, j in qd.ndrange(3, 4.5):\n    #                         ^^^\n"
               "        pass\n"),
        T, "Every argument of ndrange should be an integer scalar or a tuple/list", None,
    ),
    "loop over a list": (
        kernel("    for i in [1, 2]:\n    #        ^^^^^^\n        pass\n"),
        C, "TypeError: Cannot loop over the object <class 'list'>", "qd.static",
    ),
    "loop over an array with too few variables": (
        kernel("    for i in x:\n    #   ^\n        pass\n", "x: qd.types.NDArray[qd.f32, 2]"),
        C, "IndexError: Number of struct-for indices does not match loop variable dimensionality "
        "(1 != 2)", None,
    ),
    "for-else": (
        kernel("    for i in range(3):\n        pass\n    else:\n        pass\n"),
        S, "'else' clause for 'for' not supported", None,
    ),
    "wrong keyword of loop_config": (
        kernel("    qd.loop_config(speed=3)\n    for i in range(3):\n        pass\n"),
        T, "loop_config() got an unexpected keyword argument 'speed'", "serialize",
    ),
    "block_dim no power of two": (
        kernel("    qd.loop_config(block_dim=33)\n"), C, "power of two", None,
    ),
    # conditions
    "real if": (
        kernel("    if x[0]:\n    #  ^^^^\n        pass\n", X1),
        T, "`if` conditions must be an integer; found f32. Consider using `if x != 0` instead of "
        "`if x` for float values.", None,
    ),
    "real while": (
        kernel("    while x[0]:\n    #     ^^^^\n        pass\n", X1),
        T, "conditions must be an integer; found f32", None,
    ),
    "real ternary": (
        kernel("    y = 1 if x[0] else 2\n    #        ^^^^\n", X1),
        T, "'logic_not' takes integral inputs only, however 'f32' is provided", None,
    ),
    "real and": (
        kernel("    y = x[0] and x[1]\n    #   ^^^^\n", X1),
        T, "unsupported operand type(s) for '&&'", "x != 0",
    ),
    "not of a real": (
        kernel("    y = not x[0]\n    #   ^^^^^^^^\n", X1),
        T, "'logic_not' takes integral inputs only, however 'f32' is provided", None,
    ),
    # results
    "return in a runtime if": (
        kernel("    if a > 0:\n        return 1\n#       ^^^^^^^^\n    return 2\n", "a: qd.i32",
               " -> qd.i32"),
        S, "Return inside non-static if/for is not supported", None,
    ),
    "return without annotation": (
        kernel("    return 1\n#   ^^^^^^^^\n"),
        S, "A kernel with a return value must be annotated with a return type, e.g. def func() -> "
        "qd.f32", None,
    ),
    "wrong number of results": (
        kernel("    return 1, 2\n#   ^^^^^^^^^^^\n", "", " -> qd.i32"),
        C, "Return (type=(1, 2)) cannot be converted into required type i32", "1 value",
    ),
    # statements and expressions that the language lacks
    "raise": (kernel("    raise ValueError\n"), S, 'Unsupported node "Raise"', "assert"),
    "lambda": (kernel("    f = lambda: 3\n    #   ^^^^^^^^^\n"), S, 'Unsupported node "Lambda"',
               None),
    "yield": (kernel("    yield 3\n"), S, 'Unsupported node "Yield"', None),
    "class": (kernel("    class A:\n        pass\n"), S, 'Unsupported node "ClassDef"', None),
    "set": (kernel("    b = {a, 2}\n", "a: qd.i32"), T, "The elements of a set must be", "list"),
    "match": (kernel("    match a:\n        case 1:\n            pass\n", "a: qd.i32"), S,
              'Unsupported node "Match"', "elif"),
    "key of an assigned entry": (
        kernel("    d = {1: 2}\n    d[a] = 3\n", "a: qd.i32"), T, "must be static", None,
    ),
    "key of a dict of texts": (
        kernel("    d = {'x': 2}\n    b = d[a]\n", "a: qd.i32"), T, "not all numbers", "constant",
    ),
    "append in a loop of run time": (
        kernel("    l = [a]\n    while a > 3:\n        l.append(3)\n", "a: qd.i32"), S,
        "list.append() cannot be used in a loop or `if` of run time", "qd.static",
    ),
    "loop chosen at run time": (
        kernel("    for i in range(2) if a > 1 else range(3):\n        pass\n", "a: qd.i32"), T,
        "must be chosen at compile time", "qd.static",
    ),
    "format with too few values": (
        kernel("    print('{} {}'.format(a))\n", "a: qd.i32"), S, "Too few arguments", None,
    ),
    "format of an attribute": (
        kernel("    print('{0.real}'.format(a))\n", "a: qd.i32"), S, "Unsupported field", None,
    ),
    "percent with too few values": (
        kernel("    print('%d %d' % a)\n", "a: qd.i32"), T, "Not enough values", None,
    ),
    "percent with too many values": (
        kernel("    print('%d' % (a, a))\n", "a: qd.i32"), T, "Not all values are used", None,
    ),
    "percent with an unknown kind": (
        kernel("    print('%q' % a)\n", "a: qd.i32"), S, "Unsupported format character", "%%",
    ),
    "number of a text": (
        kernel("    b = f'{a}' + 1\n", "a: qd.i32"), T, "a text with run-time values", "printed",
    ),
    "generator in an ndrange": (
        kernel("    for i in qd.ndrange((j for j in range(2))):\n        pass\n"), S,
        'Unsupported node "GeneratorExp"', "(begin, end)",
    ),
    "volatile_load of a local": (
        kernel("    v = qd.Vector([a, a])\n    b = qd.volatile_load(v)\n", "a: qd.i32"), T,
        "needs an element of a field or array", "itself",
    ),
    "with": (kernel("    with open('f') as f:\n        pass\n"), S,
             "'with' in Quadrants kernels only supports", None),
    "nested def": (
        kernel("    def f():\n        pass\n"), S,
        "Function definition is not allowed in 'qd.kernel'.", "@qd.func",
    ),
    # values
    "string value": (
        kernel("    a = 'text'\n    #   ^^^^^^\n"), T,
        "Invalid constant scalar data type: <class 'str'>", None,
    ),
    "array assigned to a local": (
        kernel("    y = x\n    #   ^\n", X1), T, "Invalid constant scalar data type: ndarray x",
        None,
    ),
    "NumPy array as a value": (
        "A = np.zeros(3)\n" + kernel("    y = A + x[0]\n    #   ^\n", X1), T,
        "Invalid constant scalar data type: <class 'numpy.ndarray'>", "argument",
    ),
    "integer literal too big": (
        kernel("    y = 0x7fffffff + 1\n    #   ^^^^^^^^^^^^^^\n"), T,
        "Integer literal 2147483648 exceeded the range of default_ip: i32", None,
    ),
    "typed literal too big": (
        kernel("    y = qd.u8(300)\n    #   ^^^^^^^^^^\n"), T,
        "Integer literal 300 exceeded the range of specified dtype: u8", None,
    ),
    "real literal of an integer type": (
        kernel("    y = qd.i32(2.5)\n"), T,
        "Floating-point literals must be annotated with a floating-point type. For type casting, "
        "use `qd.cast`.", None,
    ),
    "integer literal of a real type": (
        kernel("    y = qd.f32(1)\n"), T,
        "Integer literals must be annotated with a integer type.", "qd.f32(1.0)",
    ),
    "second annotation": (
        kernel("    y: qd.f32 = 1\n    y: qd.i32 = 2\n"), S,
        "Static assign cannot have type overloading", "f32",
    ),
    # indices
    "too few indices": (
        kernel("    y = x[0]\n    #   ^^^^\n", "x: qd.types.NDArray[qd.f32, 2]"), X,
        "Array with dim 2 accessed with indices of dim 1", "2 indices",
    ),
    "too many indices": (
        kernel("    x[0, 1] = 2.0\n#   ^^^^^^^\n", X1), X,
        "Array with dim 1 accessed with indices of dim 2", None,
    ),
    "negative index": (
        kernel("    y = x[-1]\n    #     ^^\n", X1), S,
        "Negative indices are not supported in Quadrants kernels.", "x.shape[0] - 1",
    ),
    "negative typed index": (
        kernel("    y = x[qd.i32(-1)] + x[np.int64(0)]\n", X1), S, "Negative indices", None,
    ),
    "loop over nothing": (
        kernel("    for i in x:\n        pass\n", "x: qd.types.NDArray[qd.f32, 0]"),
        qd.QuadrantsCompilationError, "does not match loop variable dimensionality (1 != 0)", None,
    ),
    "real index": (
        kernel("    y = x[x[0]]\n    #     ^^^^\n", X1), T,
        "indices must be integers, however 'f32' is provided as index 0", None,
    ),
    "real literal index": (
        kernel("    y = x[1.0]\n", X1), T, "indices must be integers, however 'f32'", None,
    ),
    "slice of an array": (kernel("    y = x[0:2]\n", X1), S, "slice type", None),
    "axis of a shape": (kernel("    y = x.shape[2]\n", X1), X, "Axis 2 of the shape", None),
    "runtime index of a list": (
        kernel("    l = [1, 2]\n    y = l[a]\n    #     ^\n", "a: qd.i32"), T,
        "cannot be indexed with a run-time value", None,
    ),
    "attribute of a value": (
        kernel("    y = a.b\n    #   ^^^\n", "a: qd.i32"), T, 'has no attribute "b"', None,
    ),
    "gradient of an array": (
        kernel("    y = x.grad[0]\n", X1), T, 'An ndarray has no attribute "grad"', "needs_grad",
    ),
    # operators
    "shift of a real": (
        kernel("    y = x[0] << 1\n    #   ^^^^^^^^^\n", X1), T,
        "unsupported operand type(s) for '<<': 'f32' and 'i32'", None,
    ),
    "invert of a real": (
        kernel("    y = ~x[0]\n    #   ^^^^^\n", X1), T,
        "'bit_not' takes integral inputs only, however 'f32' is provided", None,
    ),
    "augmented bit operation on a real": (
        kernel("    x[0] |= 1\n", X1), T, "unsupported operand type(s) for '|='", None,
    ),
    "floor of an integer": (
        kernel("    y = qd.floor(a)\n    #   ^^^^^^^^^^^\n", "a: qd.i32"), T,
        "'floor' takes real inputs only, however 'i32' is provided", "qd.cast",
    ),
    "popcnt of a real": (
        kernel("    y = qd.popcnt(x[0])\n", X1), T, "'popcnt' takes integral inputs only", None,
    ),
    "division by the constant 0": (
        kernel("    y = a // 0\n    #        ^\n", "a: qd.i32"), C, "Integer division by zero",
        None,
    ),
    "modulo by the constant 0": (
        kernel("    y = a % 0\n", "a: qd.i32"), C, "Integer division by zero", None,
    ),
    "Python division by zero": (
        kernel("    y = 1 // 0\n    #   ^^^^^^\n"), C, "ZeroDivisionError", None,
    ),
    "negative constant exponent": (
        kernel("    y = a ** -2\n", "a: qd.i32"), C, "Negative exponent in pow(int, int)", None,
    ),
    "bit_cast of another size": (
        kernel("    y = qd.bit_cast(a, qd.i64)\n", "a: qd.i32"), T, "same size", None,
    ),
    "matrix product": (
        kernel("    y = a @ a\n", "a: qd.i32"), T,
        "unsupported operand type(s) for '@': 'i32' and 'i32'", None,
    ),
    # atomics
    "atomic on a value": (
        kernel("    qd.atomic_add(a + 1, 2)\n    #             ^^^^^\n", "a: qd.i32"), S,
        "cannot use a non-writable target as the first operand of 'atomic_add'", None,
    ),
    "atomic on an argument": (
        kernel("    qd.atomic_max(a, 2)\n", "a: qd.i32"), S, "non-writable target", None,
    ),
    "bitwise atomic on a real": (
        kernel("    qd.atomic_and(x[0], 1)\n", X1), T,
        "'atomic_bit_and' requires integer operands", None,
    ),
    # static
    "runtime value in static": (
        kernel("    y = qd.static(a)\n    #             ^\n", "a: qd.i32"), C,
        "ValueError: Input to qd.static must be compile-time constants or global pointers", None,
    ),
    "static range of a runtime value": (
        kernel("    for i in qd.static(range(a)):\n    #                        ^\n"
               "        pass\n", "a: qd.i32"), T, "range", None,
    ),
    "static_assert": (
        kernel("    qd.static_assert(1 > 2, 'no good')\n#   " + "^" * 34 + "\n"), C,
        "AssertionError: no good", None,
    ),
    "compile-time code that raises": (
        "def f():\n    raise KeyError('oops')\n" + kernel("    y = f()\n    #   ^^^\n"), C,
        "KeyError: 'oops'", None,
    ),
    "missing attribute of a module": (
        kernel("    y = math.nope\n    #   ^^^^^^^^^\n"), C, "AttributeError", None,
    ),
    # calls
    "kernel in a kernel": (
        "@qd.kernel\ndef other():\n    pass\n" + kernel("    other()\n#   ^^^^^^^\n"), S,
        "Kernels cannot call other kernels. I.e., nested kernels are not allowed.", None,
    ),
    "Python function on runtime values": (
        kernel("    y = math.sin(x[0])\n    #   ^^^^^^^^^^^^^^\n", X1), T,
        'The Python function "sin" cannot be called with run-time values', "qd.sin",
    ),
    "later part of the language": (
        kernel("    v = qd.append([1, 2])\n    #   ^^^^^^^^^^^^^^^^^\n"), T,
        "qd.append only works on dynamic nodes", "sparse data structures are not supported",
    ),
    "print of an array": (kernel("    print(x)\n", X1), T, "Invalid constant scalar", None),
    "unknown keyword of print": (kernel("    print(1, color=3)\n"), T, "print()", None),
    "format that does not fit": (
        kernel("    print(f'{a:.2s}')\n", "a: qd.i32"), T, "Format specifier '.2s'", None,
    ),
    "message of an assert": (
        kernel("    assert a > 0, a\n    #             ^\n", "a: qd.i32"), S,
        "assert info must be constant or formatted string, not i32", "f-string",
    ),
    "Python function without a counterpart": (
        kernel("    y = np.sum(a)\n", "a: qd.i32"), T, 'The Python function "sum"', "@qd.func",
    ),
    "append to a list": (
        kernel("    l = []\n    for i in range(3):\n        l.append(i)\n"), S,
        "list.append() cannot be used", "qd.static",
    ),
    "sort of a list of variables": (
        kernel("    l = [a, 2]\n    l.sort()\n", "a: qd.i32"), S, "list.sort()", "comprehension",
    ),
    "new entry in a loop of run time": (
        kernel("    d = {}\n    for i in range(3):\n        d[3] = i\n"), S,
        "A new entry of a dict cannot be used in a loop", "qd.static",
    ),
    "array element of a tuple": (
        kernel("    x[0] = (1, 2)\n    #      ^^^^^^\n", X1), T,
        "Invalid constant scalar data type: <class 'tuple'>", "a number is needed",
    ),
    "element of a global list": (
        "G = [1]\n" + kernel("    G[0] = 2\n#   ^^^^\n"), S, "`G[0]` cannot be assigned", None,
    ),
    "attribute assigned": (
        kernel("    math.pi = 3\n#   ^^^^^^^\n"), S, "Cannot assign to `math.pi`", None,
    ),
    "star target": (
        kernel("    a, *b = 1, 2, 3\n    #  ^^\n"), S, 'Unsupported node "Starred"', None,
    ),
    # unpacking
    "unpacking a number": (
        kernel("    b, c = a\n    #      ^\n", "a: qd.i32"), S, "Cannot unpack type: i32", None,
    ),
    # real functions
    "reference to a value": (
        REFERENCE + kernel("    a = 5\n    f(a + 1, 3)\n    # ^^^^^\n"), T,
        "is a reference: it needs a variable", None,
    ),
    "reference of another type": (
        REFERENCE + kernel("    a = 5.5\n    f(a, 3)\n    # ^\n"), T,
        "must be a variable of type i32, got f32", None,
    ),
    "too many arguments of a real function": (
        REFERENCE + kernel("    a = 5\n    f(a, 3, 4)\n"), S, "Too many arguments", None,
    ),
    "parameter of a real function assigned": (
        "@qd.real_func\ndef f(n: qd.i32) -> qd.i32:\n    n += 1\n    return n\n"
        + kernel("    a = f(1)\n"), S, '"n" is immutable', None,
    ),
    "real function without a result type": (
        "@qd.real_func\ndef f(n: qd.i32):\n    return n\n" + kernel("    a = f(1)\n"), S,
        "must be annotated with a return type", None,
    ),
    "runtime value for a template of a real function": (
        "@qd.real_func\ndef f(k: qd.template(), n: qd.i32) -> qd.i32:\n    return k * n\n"
        + kernel("    a = f(n, 2)\n    #     ^\n", "n: qd.i32"), T,
        "must be known at compile time", None,
    ),
    "barrier in a real function": (
        "@qd.real_func\ndef f(n: qd.i32):\n    qd.simt.block.sync()\n"
        + kernel("    for i in range(4):\n        f(i)\n"), C, "outside of a parallel loop", None,
    ),
    # blocks, subgroups, algorithms
    "barrier at the top": (
        kernel("    qd.simt.block.sync()\n#   ^^^^^^^^^^^^^^^^^^^^\n"), C,
        "outside of a parallel loop", None,
    ),
    "thread of a serial loop": (
        kernel("    qd.loop_config(serialize=True)\n    for i in range(4):\n"
               "        a = qd.simt.block.thread_idx()\n"),
        C, "outside of a parallel loop", None,
    ),
    "extent of a shared array": (
        kernel("    for i in range(4):\n        s = qd.simt.block.SharedArray(n, qd.i32)\n",
               "n: qd.i32"), T, "positive integers known at compile time", None,
    ),
    "lanes at the top": (
        kernel("    a = qd.simt.subgroup.shuffle(1, 1)\n"), C, "outside of a parallel loop", None,
    ),
    "real lane": (
        kernel("    for i in range(4):\n        a = qd.simt.subgroup.shuffle(i, 1.5)\n"), T,
        "the number of a lane, not f32", None,
    ),
    "xor of floats over lanes": (
        kernel("    for i in range(4):\n        a = qd.simt.subgroup.exclusive_xor(1.5)\n"), T,
        "a bitwise xor takes integers, not f32", None,
    ),
    "algorithm under if": (
        kernel("    if n > 0:\n        qd.algorithms.reduce_add(x, x, s, n, qd.f32, 1)\n", SCRATCH),
        S, "requires the top level", None,
    ),
    "algorithm on bytes": (
        kernel("    qd.algorithms.reduce_add(x, x, s, n, qd.i8, 1)\n", SCRATCH), T,
        "works on i32, u32", None,
    ),
    "sort by an odd number of bits": (
        kernel("    qd.algorithms.sort(s, s, s, s, s, 1, qd.u32, False, 8, 1)\n", SCRATCH), T,
        "multiple of 16", None,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_mistake(name, tmp_path):
    text, kind, message, hint = CASES[name]
    check_error(text, kind, message, tmp_path, hint)
