"""300 kernels with a fault by construction, and the same kernels without it.

    for one in pairs():             # 300, always the same ones
        one.name, one.check         # such as "halo 7", "bounds"
        one.faulty, one.right       # source of two files, each with a kernel ``k`` and a workload

A family makes the text of a kernel in which one place is a hole, and what fills the hole wrongly
and rightly. Its parameters (types, extents, strides, offsets, expressions) are drawn from a
generator with the number of the pair as its seed. Each faulty kernel has its fault in the launch
that its workload declares; `test_checking` asks the judge of `fault_seeds` about a sample.
"""

import random
from collections.abc import Callable, Iterator
from typing import NamedTuple

__all__ = ["COUNT", "FAMILIES", "Pair", "pair", "pairs"]

COUNT = 300


class Pair(NamedTuple):
    """See the module docstring. check: the fault, as verdicts name it."""

    name: str
    check: str
    faulty: str
    right: str


class Made(NamedTuple):
    """Of a family: params, lines of the kernel with HOLE, what fills it, arguments of the
    workload, and lines before the kernel. T is the element type."""

    params: str
    body: str
    wrong: str
    right: str
    args: str
    before: str = ""


FAMILIES: dict[str, tuple[str, Callable[[random.Random], Made]]] = {}

_FILE = """\
import numpy as np
from qd_studio import engine as qd

A1 = qd.types.ndarray(qd.{t}, 1)
A2 = qd.types.ndarray(qd.{t}, 2)
A3 = qd.types.ndarray(qd.{t}, 3)
I1 = qd.types.ndarray(qd.i32, 1)
T = np.{np}
{before}

@qd.kernel
def k({params}):
{body}

@k.workload(n=[{n}])
def make(n):
    return ({args},)
"""


def family(check: str):
    """Register a family of pairs with this fault."""

    def note(make):
        FAMILIES[make.__name__] = check, make
        return make

    return note


def pairs() -> Iterator[Pair]:
    """The pairs, families by turns."""
    names = list(FAMILIES)
    for number in range(COUNT):
        yield pair(names[number % len(names)], number)


def pair(name: str, number: int) -> Pair:
    """The pair of a family with the seed ``number``."""
    check, make = FAMILIES[name]
    rng = random.Random(number)
    t, np_type = rng.choice([("f32", "float32"), ("f64", "float64"), ("i32", "int32")])
    n = rng.randrange(6, 17)
    made = make(rng)
    both: list[str] = []
    for hole in (made.wrong, made.right):
        lines = made.body.strip().replace("HOLE", hole).splitlines()
        text = "\n".join(f"    {line}" for line in lines)
        both.append(
            _FILE.format(t=t, np=np_type, before=made.before, params=made.params, body=text,
                         n=n, args=made.args)
        )  # fmt: skip
    return Pair(f"{name} {number}", check, *both)


_ONE = "np.ones(n, T)"
_TWO = "np.ones(n, T), np.ones(n, T)"
_EQUAL = "assert x.shape[0] == y.shape[0]\n"


def _of(rng: random.Random, text: str) -> str:
    """An expression of a value."""
    return rng.choice([f"{text} + 1", f"{text} * 2", f"3 - {text}", f"{text} * {text}", f"-{text}"])


# ---- indices outside of their array


@family("bounds")
def off_by_one(rng):
    d, op = rng.randrange(1, 5), rng.choice(["=", "+=", "-="])
    body = f"for i in range(x.shape[0]HOLE):\n    x[i] {op} i"
    return Made("x: A1", body, f" + {d}", rng.choice(["", f" - {d}"]), _ONE)


@family("bounds")
def before_the_start(rng):
    d = rng.randrange(1, 5)
    value = _of(rng, f"x[i - {d}]")
    body = f"{_EQUAL}for i in range(HOLE, x.shape[0]):\n    y[i] = {value}"
    return Made("x: A1, y: A1", body, str(d - 1), str(d), _TWO)


@family("bounds")
def transposed(rng):
    d, value = rng.randrange(1, 5), _of(rng, "x[i, j]")
    body = (
        "assert y.shape[0] == x.shape[1] and y.shape[1] == x.shape[0]\n"
        f"for i, j in x:\n    y[HOLE] = {value}"
    )
    shapes = f"np.ones((n, n + {d}), T), np.ones((n + {d}, n), T)"
    return Made("x: A2, y: A2", body, "i, j", "j, i", shapes)


@family("bounds")
def missing_guard(rng):
    d = rng.randrange(1, 5)
    wrong = rng.choice(["i >= 0", f"i + {d - 1} < x.shape[0]", f"i < x.shape[0] + {d}"])
    body = f"{_EQUAL}for i in x:\n    if HOLE:\n        y[i] = {_of(rng, f'x[i + {d}]')}"
    return Made("x: A1, y: A1", body, wrong, f"i + {d} < x.shape[0]", _TWO)


@family("bounds")
def stride(rng):
    s = rng.randrange(2, 6)
    body = f"for i in range(x.shape[0] // HOLE):\n    x[i * {s}] = i"
    return Made("x: A1", body, str(s - 1), str(s), "np.ones(5 * n, T)")


@family("bounds")
def halo(rng):
    d, sign = rng.randrange(1, 4), rng.choice("+-")
    body = (
        "assert x.shape[0] == y.shape[0] and x.shape[1] == y.shape[1]\n"
        f"for i, j in qd.ndrange(x.shape[0], ({d}, x.shape[1] - {d})):\n"
        f"    s = x[i, j] * 0\n    for e in range({d} + HOLE):\n"
        f"        s += x[i, j {sign} e]\n    y[i, j] = s"
    )
    shapes = f"np.ones((n, n + {2 * d}), T), np.ones((n, n + {2 * d}), T)"
    return Made("x: A2, y: A2", body, str(rng.randrange(2, 4)), "1", shapes)


@family("bounds")
def modulus(rng):
    d = rng.randrange(1, 4)
    body = f"{_EQUAL}for i in x:\n    y[i] = {_of(rng, f'x[(i + {d}) % HOLE]')}"
    wrong = f"(x.shape[0] + {rng.randrange(1, d + 1)})"
    return Made("x: A1, y: A1", body, wrong, "x.shape[0]", _TWO)


@family("bounds")
def mirrored(rng):
    body = f"{_EQUAL}for i in x:\n    y[i] = {_of(rng, 'x[x.shape[0] - i - HOLE]')}"
    return Made("x: A1, y: A1", body, "0", "1", _TWO)


@family("bounds")
def indirect(rng):
    wrong = rng.choice(["p[i] >= 0", "p[i] <= x.shape[0]", "p[i] != 3"])
    d, op = rng.randrange(1, 4), rng.choice(["+=", "-="])
    body = f"for i in p:\n    if HOLE:\n        x[p[i]] {op} 1"
    args = f"np.ones(n, T), np.arange({d}, n + {d}, dtype=np.int32)"
    return Made("x: A1, p: I1", body, wrong, "p[i] >= 0 and p[i] < x.shape[0]", args)


@family("bounds")
def limit_in_memory(rng):
    wrong = rng.choice(["m[i]", "qd.max(m[i], x.shape[1])", "m[i] + 1"])
    body = (
        "assert m.shape[0] == x.shape[0]\nfor i in m:\n    for j in range(HOLE):\n"
        f"        x[i, j] = {rng.randrange(1, 9)}"
    )
    args = "np.ones((n, n), T), np.arange(2, n + 2, dtype=np.int32)"
    return Made("x: A2, m: I1", body, wrong, "qd.min(m[i], x.shape[1])", args)


@family("bounds")
def past_the_end(rng):
    s = rng.randrange(1, 4)
    body = (
        "for i in range(x.shape[0]):\n    j = 0\n    while j HOLE x.shape[1]:\n"
        f"        x[i, j] += 1\n        j += {s}"
    )
    return Made("x: A2", body, "<=", "<", f"np.ones((n, {6 * s}), T)")


@family("bounds")
def flattened(rng):
    d = rng.randrange(2, 5)
    body = (
        "assert y.shape[0] == x.shape[0] * x.shape[1]\n"
        f"for i, j in x:\n    y[i * HOLE + j] = {_of(rng, 'x[i, j]')}"
    )
    wrong = rng.choice([f"(x.shape[1] + {d})", f"x.shape[1] * {d}"])
    args = "np.ones((n, n + 2), T), np.ones(n * (n + 2), T)"
    return Made("x: A2, y: A1", body, wrong, "x.shape[1]", args)


@family("bounds")
def component(rng):
    c = rng.randrange(2, 5)
    body = (
        f"assert x.shape[2] == {c}\nfor i, j in qd.ndrange(x.shape[0], x.shape[1]):\n"
        "    for c in range(HOLE):\n        x[i, j, c] = c"
    )
    return Made("x: A3", body, str(c + rng.randrange(1, 3)), str(c), f"np.ones((n, 3, {c}), T)")


# ---- races


_BINS = "x: I1, h: I1"
_BIN_ARGS = "np.arange(n, dtype=np.int32), np.zeros(8, np.int32)"


@family("race")
def missing_atomic(rng):
    b, value = rng.randrange(2, 5), rng.randrange(1, 9)
    body = "assert h.shape[0] >= 8\nfor i in x:\n    HOLE"
    cell = rng.choice([f"h[i % {b}]", f"h[(i * {b}) % {b + 1}]"])
    right = rng.choice([f"{cell} += {value}", f"qd.atomic_add({cell}, {value})"])
    return Made(_BINS, body, f"{cell} = {cell} + {value}", right, _BIN_ARGS)


@family("race")
def largest_without_atomic(rng):
    name = rng.choice(["max", "min"])
    body = "assert h.shape[0] >= 8\nfor i in x:\n    HOLE"
    c, d = rng.randrange(8), rng.randrange(2, 9)
    wrong = f"h[{c}] = qd.{name}(h[{c}], x[i] * {d} - 7)"
    return Made(_BINS, body, wrong, f"qd.atomic_{name}(h[{c}], x[i] * {d} - 7)", _BIN_ARGS)


@family("race")
def shared_scalar_field(rng):
    value = _of(rng, "x[i]")
    before = "qd.init(arch=qd.cpu)\nf = qd.field(qd.f32, shape=())"
    wrong = rng.choice(
        [f"f[None] = f[None] + {value}", f"f[None] = {value} + i\n    x[i] = f[None]"]
    )
    body = "for i in x:\n    HOLE"
    return Made("x: A1", body, wrong, f"f[None] += {value}", _ONE, before)


@family("race")
def flag_of_the_last(rng):
    body = f"assert y.shape[0] > 0\nfor i in x:\n    y[HOLE] = {_of(rng, 'i')}"
    wrong = rng.choice(["0", "i * 0", "y.shape[0] - 1"])
    body = _EQUAL + body
    return Made("x: A1, y: A1", body, wrong, "i", _TWO)


@family("race")
def in_place(rng):
    d = rng.randrange(1, 5)
    value = _of(rng, f"HOLE[i + {d}]")
    body = f"{_EQUAL}for i in range(x.shape[0] - {d}):\n    x[i] = {value}"
    return Made("x: A1, y: A1", body, "x", "y", _TWO)


@family("race")
def smoothing_in_place(rng):
    d = rng.randrange(1, 3)
    body = (
        "assert x.shape[0] == y.shape[0] and x.shape[1] == y.shape[1]\n"
        f"for i, j in qd.ndrange(({d}, x.shape[0] - {d}), x.shape[1]):\n"
        f"    HOLE[i, j] = x[i - {d}, j] + x[i + {d}, j] * 2"
    )
    return Made("x: A2, y: A2", body, "x", "y", "np.ones((n, 4), T), np.ones((n, 4), T)")


@family("race")
def order_dropped(rng):
    d, value = rng.randrange(1, 5), _of(rng, "1")
    body = (
        f"qd.loop_config(serialize=HOLE)\nfor i in range({d}, x.shape[0]):\n"
        f"    x[i] = x[i - {d}] + i + {value}"
    )
    return Made("x: A1", body, "False", "True", _ONE)


@family("race")
def too_few_cells(rng):
    d, m = rng.randrange(2, 5), rng.randrange(1, 4)
    body = f"assert x.shape[0] > 0\nfor i in range(x.shape[0]):\n    x[i HOLE {d}] = i * {m} + 1"
    right = "% x.shape[0] + 0 *"
    return Made("x: A1", body, "//", right, _ONE)


@family("race")
def spread_too_thin(rng):
    s = rng.randrange(2, 5)
    body = (
        f"for i in range(x.shape[0] // {2 * s}):\n    for e in range(HOLE):\n"
        f"        x[i * {s} + e] = i + e"
    )
    return Made("x: A1", body, str(s + rng.randrange(1, s)), str(s), "np.ones(6 * n, T)")


# ---- values that are not set

_UNSET = "np.ones(n, T), np.empty(n, T)"


@family("uninitialised")
def adds_to_nothing(rng):
    value = _of(rng, "x[i]")
    body = f"{_EQUAL}for i in x:\n    y[i] HOLE {value}"
    return Made("x: A1, y: A1", body, rng.choice(["+=", "-="]), "=", _UNSET)


@family("uninitialised")
def set_under_a_condition(rng):
    wrong = rng.choice([f"i > {rng.randrange(1, 4)}", "i % 2 == 0", "x[i] > 1"])
    body = f"{_EQUAL}for i in x:\n    if HOLE:\n        y[i] = x[i]\n    x[i] = {_of(rng, 'y[i]')}"
    return Made("x: A1, y: A1", body, wrong, rng.choice(["i >= 0", "True"]), _UNSET)


@family("uninitialised")
def first_pass_too_short(rng):
    d = rng.randrange(1, 4)
    body = (
        f"{_EQUAL}for i in range(x.shape[0]HOLE):\n    y[i] = x[i]\n"
        f"for i in x:\n    x[i] = {_of(rng, 'y[i]')}"
    )
    return Made("x: A1, y: A1", body, f" - {d}", "", _UNSET)


@family("uninitialised")
def passes_swapped(rng):
    value, fill = _of(rng, "y[i]"), rng.randrange(9)
    first, then = f"    y[i] = {fill}", f"    x[i] = {value}"
    body = f"{_EQUAL}for i in x:\nHOLE"
    join = "\nfor i in x:\n"
    return Made("x: A1, y: A1", body, f"{then}{join}{first}", f"{first}{join}{then}", _UNSET)
