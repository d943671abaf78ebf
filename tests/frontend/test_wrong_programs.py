"""Kernels thrown together at random: most are wrong, and each says so as a user's mistake."""

import linecache
import random
import warnings

import pytest
from qd_studio import engine as qd
from qd_studio.engine.config import CompileConfig
from qd_studio.engine.frontend.build import build
from qd_studio.engine.frontend.specialization import NdarrayKey
from qd_studio.engine.ir import verify


def words(text):
    return text.split()


HEAD = """\
@qd.kernel
def k(n: qd.i32, x: qd.types.ndarray(qd.f32, ndim=1)):
    v = vec2(1)
    m = mat(1)
    p = P(1, 2)
    l = [1, v]
"""
ATOMS = words(
    "v m p n x l X V B G L D S Z 1 2.5 0 -1 True None 'a' qd qd.f32 vec2 mat P fn qd.Vector v.norm "
    "p.v V[1] X[0,1] B[0] B[0].v Z[None] V[n] v[n] m[n,:] m[0,:] [1,2] [v,v] (1,v) v.xy v[0:1] "
    "X.shape V.shape[0] x.shape int float"
)
ATTRIBUTES = words(
    "x xy zz a v n m shape dtype norm() norm(1) sum() fill(0) dot(v) cross(v) transpose() "
    "inverse() determinant() all() cast(qd.i32) outer_product(v) keys T max() "
    "normalized() trace() grad b"
)
CALLEES = words(
    "qd.Vector qd.Matrix vec2 mat P fn by_reference writes qd.sqrt abs min max len sum int qd.cast "
    "qd.select qd.atomic_add qd.static qd.Matrix.rows qd.Matrix.zero qd.Matrix.diag qd.Struct "
    "qd.math.mix qd.bit_cast qd.volatile_load print range qd.grouped qd.ndrange"
)
TARGETS = words(
    "v m p n y l X G v[0] v[n] v.x v.xy m[0,1] m[n,0] m[:,n] p.a p.v p.v[n] X[0,1] V[1] V[n].x "
    "B[1] B[1].v l[0] S.a x[0] D['a'] Z[None]"
)
INDICES = words("0 1 n 0,1 n,0 : 0:2 :,0 None")
BINARY = words("+ - * / // % ** @ << & == < and or")
AUGMENTED = words("+ - * / @ << & **")


class Author:
    """Writes kernels."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def expr(self, depth=0):
        pick, chance = self.random.choice, self.random.random()
        if depth > 2 or chance < 0.35:
            return pick(ATOMS)
        inner = lambda: self.expr(depth + 1)  # noqa: E731
        if chance < 0.5:
            return f"({inner()} {pick(BINARY)} {inner()})"
        if chance < 0.62:
            return f"{inner()}.{pick(ATTRIBUTES)}"
        if chance < 0.74:
            return f"{inner()}[{pick([*INDICES, inner()])}]"
        if chance < 0.84:
            return f"{pick(CALLEES)}({', '.join(inner() for _ in range(pick([1, 1, 2, 3])))})"
        if chance < 0.9:
            return f"({inner()} if {inner()} else {inner()})"
        return pick(["-", "not ", "~"]) + inner()

    def stmt(self, depth=1):
        pick, chance, pad = self.random.choice, self.random.random(), "    " * depth
        if chance < 0.5:
            return f"{pad}{pick([*TARGETS, 'a, b', 'v, p'])} = {self.expr()}\n"
        if chance < 0.7:
            return f"{pad}{pick(TARGETS)} {pick(AUGMENTED)}= {self.expr()}\n"
        if chance < 0.8:
            return f"{pad}print({self.expr()})\n"
        if chance < 0.85:
            return f"{pad}if {self.expr()}:\n{self.stmt(depth + 1)}"
        if chance < 0.9:
            over = pick(["qd.static({})", "{}", "range({})", "qd.grouped({})"])
            return f"{pad}for i{depth} in {over.format(self.expr())}:\n{self.stmt(depth + 1)}"
        if chance < 0.95:
            return f"{pad}assert {self.expr()}\n"
        return f"{pad}y: {self.expr()} = {self.expr()}\n"


@qd.func
def fn(a):
    return a


@qd.func
def by_reference(a: qd.template()):
    return a


@qd.func
def writes(a):
    a[0] = 1
    return a


def names():
    vec2 = qd.types.vector(2, qd.f32)
    P = qd.types.struct(a=qd.i32, v=vec2)
    return {
        "qd": qd, "vec2": vec2, "mat": qd.types.matrix(2, 3, qd.f32), "P": P, "fn": fn,
        "by_reference": by_reference, "writes": writes, "X": qd.field(qd.f32, shape=(3, 2)),
        "V": qd.Vector.field(2, qd.f32, shape=3), "B": P.field(shape=2), "G": qd.Vector([1.0, 2]),
        "L": [1, 2], "D": {"a": 1}, "S": qd.Struct(a=1, b=qd.Vector([1, 2])),
        "Z": qd.field(qd.i32, shape=()),
    }  # fmt: skip


@pytest.mark.parametrize("seed", range(4))
def test_errors_are_the_users(seed, interp):
    author, scope = Author(seed), names()
    spec_keys = (qd.i32, NdarrayKey(qd.f32, 1, False))
    outcomes = {"built": 0, "wrong": 0}
    for number in range(150):
        text = HEAD + author.stmt() + author.stmt()
        file = f"<wrong program {seed} {number}>"
        linecache.cache[file] = (len(text), None, text.splitlines(True), file)
        space = dict(scope)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                exec(compile(text, file, "exec"), space)
                func = build(space["k"].decl, spec_keys, CompileConfig()).func
        except SyntaxError as error:
            # Python's own, or ours: both are the user's.
            assert isinstance(error, qd.QuadrantsSyntaxError) or error.filename == file, text
        except qd.QuadrantsCompilationError as error:
            assert not isinstance(error, qd.QuadrantsInternalError), text
            assert error.span is not None, text
            assert "engine/frontend" not in str(error), text
            outcomes["wrong"] += 1
        else:
            assert verify(func) == [], text
            outcomes["built"] += 1
    assert outcomes["wrong"] > 100 and outcomes["built"] > 0, outcomes
