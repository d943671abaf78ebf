"""Calls of a function that are copies of an earlier one are what a walk would have made."""

import warnings

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.engine.frontend import copies
from qd_studio.engine.ir import to_text, walk

from .harness import built, load

WAYS = """
@qd.func
def mix(a, b, n: qd.template()):
    r = a
    for k in qd.static(range(n)):
        if r > b:
            r -= b * k
        else:
            r += inner(r, k) + qd.sin(qd.cast(b, qd.f32))
    return r

@qd.func
def inner(a, k):
    s = qd.Vector([a, k * 1.0, 2.0])
    while s[0] > 3.0:
        s[0] *= 0.5
    return s.norm() + s[1]

@qd.func
def add(x: qd.template(), y: qd.template()):
    x += 1.0
    y += x

@qd.func
def turned(v: qd.template(), w):
    v = qd.Vector([w[1], -w[0]]) + v
    return v, w * 2.0
"""

KERNELS = """
@qd.kernel
def k(x: qd.types.NDArray[qd.f32, 1], y: qd.types.NDArray[qd.f32, 1], c: qd.i32):
    for i in x:
        BODY
"""

BODIES = {
    "alike": "x[i] = mix(x[i], y[i], 3) + mix(y[i], x[i], 3) + mix(x[i], x[i], 3)",
    "other constants": "x[i] = mix(x[i], 2.0, 2) + mix(y[i], 3.0, 2) + mix(x[i], 2.0, 2)",
    "signs of zero": "x[i] = mix(x[i], 0.0, 2) + mix(x[i], -0.0, 2)",
    "other types": "x[i] = mix(x[i], y[i], 1) + mix(c, c, 1) + mix(c, x[i], 1) + mix(c, y[i], 1)",
    "other statics": "x[i] = mix(x[i], y[i], 1) + mix(x[i], y[i], 2) + mix(x[i], y[i], 1)",
    "references": """a = x[i]
        b = y[i]
        add(a, b)
        add(b, a)
        add(a, a)
        add(x[i], y[i])
        add(y[i], x[i])
        x[i] = a + b""",
    "vectors": """v = qd.Vector([x[i], y[i]])
        w = qd.Vector([y[i], 1.0])
        for j in range(c):
            v, w = turned(v, w)
            w, v = turned(w, v)
        x[i] = v[0] + w[1]""",
    "unrolled": """for j in qd.static(range(3)):
            x[i] = mix(x[i], y[i], 2)
        x[i] += mix(y[i], x[i], 2)""",
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_a_copy_is_what_a_walk_makes(tmp_path, monkeypatch, body) -> None:
    kernel = load(WAYS + KERNELS.replace("BODY", body), tmp_path)["k"]
    copied = []
    copy = copies.copy
    monkeypatch.setattr(copies, "copy", lambda *a: copied.append(1) or copy(*a))
    found = built(kernel)
    monkeypatch.setattr(copies, "kind_of", lambda *_: None)
    walked = built(kernel)
    assert bool(copied) == (body != BODIES["other types"])
    assert to_text(found.func, locs=True) == to_text(walked.func, locs=True)
    assert [op.loc for op in walk(found.func.body)] == [op.loc for op in walk(walked.func.body)]
    assert found.func.next_id == walked.func.next_id
    assert [(loc, list(v)) for loc, v in found.passed.items()] == [
        (loc, list(v)) for loc, v in walked.passed.items()
    ]
    assert (found.bindings, found.used) == (walked.bindings, walked.used)


def test_values_of_copied_calls_are_their_own(tmp_path) -> None:
    kernel = load(WAYS + KERNELS.replace("BODY", BODIES["references"]), tmp_path)["k"]
    found = built(kernel)
    ops = set(walk(found.func.body))
    scopes = [scope for scope in found.passed.values() if "y" in scope]
    assert len(scopes) == 5
    assert {scope["x"] for scope in scopes} | {scope["y"] for scope in scopes} <= ops


class Counted:
    def __init__(self) -> None:
        self.reads = 0

    @property
    def next(self) -> int:
        self.reads += 1
        return self.reads


counted = Counted()


@qd.func
def read_again(x):
    return x + counted.next


@qd.func
def shown(x):
    qd.static_print("shown")
    return x


@qd.func
def narrowed(x):
    n = 0
    n = x
    return n


@qd.kernel
def of_effects(x: qd.types.NDArray[qd.f32, 1]):
    for i in x:
        x[i] = read_again(x[i]) + read_again(x[i])
        x[i] += shown(x[i]) + shown(x[i])


@qd.kernel
def of_warnings(x: qd.types.NDArray[qd.f32, 1]):
    for i in x:
        x[i] = narrowed(x[i])
        x[i] += narrowed(x[i])


def test_what_has_an_effect_at_compile_time_has_it_for_each_call(capsys) -> None:
    found = built(of_effects)
    constants = [op.attr for op in walk(found.func.body) if op.name == "const"]
    assert constants[-2:] == [counted.reads - 1, counted.reads]
    assert capsys.readouterr().out == "shown\nshown\n"
    assert len(built(of_warnings).warnings) == 2


def test_copies_compute_what_the_function_does(tmp_path) -> None:
    names = load(WAYS + KERNELS.replace("BODY", BODIES["alike"]), tmp_path)
    results = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for arch in (qd.cpu, qd.interp):
            qd.init(arch=arch, offline_cache=False)
            x, y = np.linspace(-2, 9, 12, dtype="f4"), np.linspace(1, 2, 12, dtype="f4")
            names["k"](x, y, 3)
            results.append(x)
    assert np.allclose(*results, rtol=1e-5)
