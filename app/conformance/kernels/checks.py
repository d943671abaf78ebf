"""Errors that kernels raise, where a backend has checks; errors of compiling."""

from .... import engine as qd
from ..feature import Group
from .kit import I32, error_of, of, zeros

feature = Group("checks", "Checks", ("checks",))


def _raised(run):
    """The class and a word of the error of a launch."""
    try:
        run()
        qd.sync()
    except qd.QuadrantsAssertionError as error:
        return [type(error).__name__, error.message.split(":")[-1].strip()]
    return ["nothing"]


@feature("indices out of range", [True, True, [1, 1, 1]], check_out_of_bound=True)
def bounds():
    @qd.kernel
    def k(x: I32, at: qd.i32):
        for i in range(3):
            x[i + at] = 1

    x = zeros(qd.i32, 3)
    k(x, 0)
    kind, text = _raised(lambda: k(x, 1))
    return [kind == "QuadrantsAssertionError", "3" in text, x]


@feature("indices of fields out of range", [True, [1, 1]], check_out_of_bound=True)
def field_bounds():
    x = qd.field(qd.i32, shape=2)

    @qd.kernel
    def k(at: qd.i32):
        x[at] = 1

    k(0)
    k(1)
    return [_raised(lambda: k(2))[0] == "QuadrantsAssertionError", x.to_numpy()]


@feature("assert with a message and its values", [True, True], debug=True)
def asserted():
    @qd.kernel
    def k(a: qd.i32):
        assert a == 0, f"a is {a}"

    k(0)
    found = _raised(lambda: k(3))
    return [found[0] == "QuadrantsAssertionError", "a is 3" in found[1]]


@feature("integer division by zero under debug", [True], debug=True)
def divided():
    @qd.kernel
    def k(x: I32, n: qd.i32):
        x[0] = x[0] // n

    return [_raised(lambda: k(of(qd.i32, 1), 0))[0] == "QuadrantsAssertionError"]


@feature("a failure ends a launch between its tasks", [True, [1, 1, 1, 1]], debug=True)
def between_tasks():
    @qd.kernel
    def k(x: I32, n: qd.i32):
        for i in range(n):
            x[i] += 1
        assert n < 3, "too many"
        for i in range(n):
            x[i] += 10

    x = zeros(qd.i32, 4)
    return [_raised(lambda: k(x, 4))[0] == "QuadrantsAssertionError", x]


compiling = Group("errors", "Errors of compiling")


@compiling("a name that is not there, with its line", ["QuadrantsNameError", True])
def missing_name():
    @qd.kernel
    def k(a: qd.i32) -> qd.i32:
        return a + missing  # noqa: F821

    try:
        k(1)
    except qd.QuadrantsCompilationError as error:
        return [type(error).__name__, "a + missing" in str(error)]
    return ["nothing"]


@compiling("a wrong type of an argument", ["QuadrantsRuntimeTypeError"])
def wrong_argument():
    @qd.kernel
    def k(a: qd.i32):
        pass

    return [error_of(qd.QuadrantsRuntimeTypeError, lambda: k("x"))]


@compiling(
    "what the language lacks is refused", ["QuadrantsSyntaxError", "QuadrantsUnsupportedError"]
)
def lacking():
    @qd.kernel
    def k():
        try:
            x = 1
        finally:
            x = 2

    runs = (k, lambda: qd.root.pointer(qd.i, 4))
    return [error_of(qd.QuadrantsCompilationError, run) for run in runs]


@compiling("a plain loop that is left at the top level is refused", ["QuadrantsSyntaxError"])
def left():
    @qd.kernel
    def k(x: I32):
        for i in x:
            if x[i] > 0:
                break

    return [error_of(qd.QuadrantsCompilationError, lambda: k(zeros(qd.i32, 1)))]
