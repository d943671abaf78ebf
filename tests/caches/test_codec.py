"""Artifacts as plain data: nothing is lost, nothing is made up, places follow their functions."""

import copy
import json

import pytest
from qd_studio.engine.backends.base import (
    Artifact,
    AssertSite,
    Flow,
    KernelMeta,
    PrintSite,
    StackMeta,
    Target,
    TaskMeta,
    find,
)
from qd_studio.engine.backends.cuda.facts import CudaLoop, CudaTask
from qd_studio.engine.backends.kernarg.abi import ArgumentLayout
from qd_studio.engine.backends.kernarg.grids import arithmetic, evaluate
from qd_studio.engine.backends.opencl.facts import OpenclTask
from qd_studio.engine.cache.codec import decode, encode, moved
from qd_studio.engine.cache.locations import Function, RelativeLocations
from qd_studio.engine.cache.offline import UNREADABLE
from qd_studio.engine.ir import UNKNOWN, Param, get_loc
from qd_studio.engine.runtime.compile import compile_kernel
from qd_studio.engine.types import PRIMITIVE_TYPES, ElementLayout, f32, f64, i32, u1

from tests.caches.offline_kit import compiled, module, numbers, start

HERE = (Function("k", "/a/k.py", 10, 30), Function("Box.get", "/a/lib.py", 5, 9))
THERE = (Function("k", "/b/k.py", 110, 130), Function("Box.get", "/b/lib.py", 1, 5))

IN_KERNEL = get_loc("/a/k.py", 12, 4, 13, 9, "k")
INLINED = get_loc("/a/lib.py", 7, 8, 7, 20, "get", IN_KERNEL)
OUTSIDE = get_loc("/elsewhere.py", 3, 0, 3, 5, "f")

PARAMS = (
    Param("n", "scalar", i32),
    Param("x[0, 1]", "ndarray", f64, 2, True, "clamp", (3, 2), (1, 0)),
    Param("my 'field'", "field", f32, 1, element_shape=(2,),
          layout=ElementLayout((8, 2), (-4, 0), ((0, 4, 0, 8), (0, 1, 4, 2), (1, 1, 0, 1)))),
)  # fmt: skip
STACK = StackMeta("v", f64, True, "(add (shape 1 0) 1)", 3, "the loop at line 12", IN_KERNEL)
META = KernelMeta(
    name="k",
    params=PARAMS,
    results=(f64, u1),
    global_tmp_size=24,
    written=(1, 2),
    noalias=False,
    seeded=True,
    tasks=(
        TaskMeta(
            "k_kernel_0_range_for",
            "range_for",
            "chunk",
            "loop",
            2,
            IN_KERNEL,
            17,
            (STACK,),
            "(shape 0 0)",
            "predicate",
        ),
    ),
    asserts=(
        AssertSite("user", "x is %d\n\ud800", (i32, f32), INLINED),
        AssertSite("check", "", (), OUTSIDE),
        AssertSite("bound", "no place", (), UNKNOWN),
    ),
    prints=(PrintSite(("a ", (".2f",), (None,), "\n"), (f32, i32)), PrintSite((), ())),
    reports=(AssertSite("overflow", "%d + %d", (i32, i32), IN_KERNEL),),
    timed=True,
    graph=True,
    flow=(0, Flow("do_while", (Flow("checkpoint", (0,), 1, 0), 0), 2)),
    labels=(7,),
)
FRAME = ArgumentLayout((64, 72), 120, 128, 136, 144, 168, 176, 192, 256)
ARTIFACT = Artifact(
    backend="cpu",
    target=Target("cpu", "x86_64", "zen", "+a,-b"),
    meta=META,
    code=b"\0\xffcode",
    languages={"asm": "asm"},
    facts={
        "symbol": "k",
        "layout": FRAME,
        "threads": 3,
        "of": (1, [2.5, None], {"a": (True,)}),
        "tasks": (CudaTask("k_0", (64, 72), 128, "cover", "v0", (64,), "", 8, 9),),
        "groups": (OpenclTask("k_0", (("m", 64), ("i", 72)), 8, "one", "v0", (64,), "h", True, 9),),
        "loops": (CudaLoop(0, "k_loop", 256, "v0 < 3", (72,)),),
    },
    locations=(INLINED, OUTSIDE, IN_KERNEL),
)


def through(artifact: Artifact, before=HERE, after=HERE) -> Artifact:
    """An artifact as it comes back from the disk."""
    load, code = encode(artifact, before)
    return decode(json.loads(json.dumps(load)), code, after)


def bare(artifact: Artifact) -> dict:
    """What must come back: all but generated texts and where tasks are."""
    kept = {name: getattr(artifact, name) for name in Artifact.__slots__}
    for name in ("texts", "lines", "lazy"):
        del kept[name]
    tasks = tuple(task._replace(loc=UNKNOWN) for task in artifact.meta.tasks)
    return {**kept, "meta": artifact.meta._replace(tasks=tasks)}


def test_the_example_says_something_in_every_field():
    for record in (META, META.tasks[0], META.asserts[0], META.prints[0], *PARAMS[1:2]):
        defaults = record._field_defaults
        same = [f for f in record._fields if f in defaults and getattr(record, f) == defaults[f]]
        assert same == (["layout", "grad"] if isinstance(record, Param) else [])
    empty = [name for name in Artifact.__slots__ if not getattr(ARTIFACT, name)]
    assert set(empty) == {"texts", "lines", "lazy", "remarks", "later", "first"}  # not kept


def test_every_field_comes_back():
    again = through(ARTIFACT)
    assert bare(again) == bare(ARTIFACT)
    assert (again.texts, again.lines, again.lazy) == ({}, {}, {})
    # Types are compared with `is`, and rows of a table must be what launches index and hash.
    assert again.meta.results[0] is f64
    assert hash(again.meta) == hash(bare(ARTIFACT)["meta"])


@pytest.mark.parametrize("dtype", PRIMITIVE_TYPES, ids=str)
def test_every_type_comes_back(dtype):
    meta = KernelMeta("k", (Param("x", "scalar", dtype),), (dtype,))
    again = through(ARTIFACT.replaced(meta=meta))
    assert again.meta.params[0].dtype is dtype
    assert again.meta.results == (dtype,)


def test_places_move_with_their_functions():
    meta = through(ARTIFACT, HERE, THERE).meta
    loc = meta.asserts[0].loc
    kernel = get_loc("/b/k.py", 112, 4, 113, 9, "k")
    assert loc is get_loc("/b/lib.py", 3, 8, 3, 20, "get", kernel)
    assert meta.reports[0].loc is kernel
    assert meta.asserts[1].loc is OUTSIDE
    assert meta.asserts[2].loc is UNKNOWN


def test_an_artifact_in_memory_moves_alike():
    tasks = tuple(task._replace(loc=UNKNOWN) for task in ARTIFACT.meta.tasks)
    here = ARTIFACT.replaced(meta=ARTIFACT.meta._replace(tasks=tasks))
    assert moved(here, HERE, HERE) is here
    assert bare(moved(here, HERE, THERE)) == bare(through(ARTIFACT, HERE, THERE))
    assert here.meta.asserts[0].loc is INLINED  # the one in memory is not touched
    assert bare(moved(moved(here, HERE, THERE), THERE, HERE)) == bare(here)


def test_a_chain_through_the_same_line_twice_is_two_places():
    other = get_loc("/a/lib.py", 7, 8, 7, 20, "get", get_loc("/a/k.py", 20, 0, 20, 1, "k"))
    locations = RelativeLocations(HERE)
    assert locations.number(INLINED) != locations.number(other)
    assert locations.number(INLINED) == locations.number(INLINED)


@pytest.mark.parametrize("fact", [b"bytes", object(), {1, 2}, ArgumentLayout])
def test_what_cannot_be_kept_is_said_when_it_is_kept(fact):
    with pytest.raises(TypeError, match="cannot be kept"):
        encode(ARTIFACT.replaced(facts={"x": fact}), HERE)


def test_other_data_is_an_error_that_the_cache_knows():
    """Every value of the data replaced, in turn, by ones that do not belong there."""
    load, code = encode(ARTIFACT, HERE)
    load = json.loads(json.dumps(load))
    tried = 0
    for path in paths_in(load):
        for wrong in (None, -7, 1 << 40, "x", [], {}, {"what": [1]}):
            changed = replaced(load, path, wrong)
            tried += 1
            try:
                decode(changed, code, HERE)
            except UNREADABLE:
                continue
    assert tried > 500
    for wrong in (None, [], {}, 3, "x", *[without(load, name) for name in load]):
        with pytest.raises(UNREADABLE):
            decode(wrong, code, HERE)


def paths_in(value, path=()):
    yield path
    if not isinstance(value, dict | list):
        return
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
        yield from paths_in(inner, (*path, key))


def replaced(value, path, wrong):
    if not path:
        return wrong
    value = copy.deepcopy(value)
    at = value
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = wrong
    return value


def without(value, name):
    return {key: inner for key, inner in value.items() if key != name}


KERNEL = """
@qd.func
def checked(x, k):
    assert k < 100, "too far"
    return x * k

@qd.kernel
def work(a: qd.types.NDArray[qd.f32, 1], n: qd.i32) -> qd.f32:
    s = 0.0
    for i in range(n):
        a[i] = checked(a[i], i) + qd.random()
    for i in range(n):
        s += a[i]
    print("sum", s)
    return s
"""


@pytest.mark.parametrize("arch", ["cpu", "interp"])
@pytest.mark.parametrize("debug", [False, True])
def test_what_backends_make_comes_back(tmp_path, arch, debug):
    start(arch=arch, debug=debug)
    kernel = module(tmp_path / "kernels.py", KERNEL).work
    kernel(numbers(), 4)
    (variant,) = kernel.launchers.variants.values()
    found = compile_kernel(variant._request)
    functions = [Function(d.qualname, d.file, d.line, d.end_line) for d in found.build.decls]
    again = through(found.artifact, functions, functions)
    assert bare(again) == bare(found.artifact)
    assert debug == bool(again.meta.asserts) or arch == "interp"
    assert set(found.artifact.languages) == set(again.languages)


def test_the_interpreter_makes_its_texts_of_its_code(tmp_path):
    start(arch="interp")
    kernel = module(tmp_path / "kernels.py", KERNEL).work
    kernel(numbers(), 4)
    found = compiled(kernel)
    again = through(found.artifact)
    find("interp").load(again)
    for name in ("ir", "python"):
        assert again.text(name) == found.artifact.text(name)


def first_record(plain):
    """The parts of the first task or loop for a GPU among plain data."""
    if isinstance(plain, dict):
        for name, parts in plain.items():
            if name in ("cuda_task", "cuda_loop", "opencl_task"):
                return parts
            found = first_record(parts)
            if found is not None:
                return found
    if isinstance(plain, list):
        return next((found for part in plain if (found := first_record(part)) is not None), None)
    return None


CODE = "__import__('os').abort()"
TASK = CudaTask("k_0", (64,), 128, "cover", "v0", (64,))
GROUPS = OpenclTask("k_0", (("m", 64),), 8, "one", "v0", (64,), positions=(1,))
LOOP = CudaLoop(0, "k_loop", 256, "v0 <= 3", (72,))


@pytest.mark.parametrize(("record", "member"), [
    (record, member) for record in (TASK, GROUPS, LOOP) for member in record._fields
    if member not in ("symbol", "grid", "header")
])  # fmt: skip
def test_texts_that_are_no_arithmetic_are_never_evaluated(record, member):
    """What launches a kernel is Python code: a fact that would be more than a number is refused."""
    load, code = encode(ARTIFACT.replaced(facts={"task": record}), HERE)
    load = json.loads(json.dumps(load))
    assert decode(load, code, HERE).facts == {"task": record}
    parts, at = first_record(load["facts"]), record._fields.index(member)
    parts[at] = {"tuple": [CODE]} if isinstance(getattr(record, member), tuple) else CODE
    with pytest.raises(ValueError, match=r"arithmetic|there is no"):
        decode(load, code, HERE)


@pytest.mark.parametrize("place", [3, 4])
def test_parameters_are_of_the_types_that_launchers_are_made_of(place):
    load, code = encode(ARTIFACT, HERE)
    load["params"][1][place] = CODE
    with pytest.raises(ValueError, match="axes"):
        decode(load, code, HERE)


@pytest.mark.parametrize("text", [
    CODE, "v0.real", "(v0, v1)", "[v0]", "lambda: v0", "v0 ** v1", "9 << v0", "x", "v", "vars",
    "max(v0, key=v1)", "v0()", "'v0'", "1.5", "v0 for v0 in v1", "(v0 := 3)", "v0; v1", "",
    "(" * 999,
])  # fmt: skip
def test_only_arithmetic_is_evaluated(text):
    with pytest.raises(ValueError, match="is no arithmetic on whole numbers"):
        evaluate(text, (1, 2))


def test_the_arithmetic_of_launches():
    assert evaluate("((v0*max(0,v1-(-2))+2147483648&4294967295)-2147483648)", (3, 4)) == 18
    assert evaluate("(v0//3 if v0>=0 else -(-v0//3))", (-7,)) == -2
    assert evaluate("max(0,v0-0)*max(0,v1>>1) <= 6 and min(v0,v1) <= 9", (3, 4)) == 1
    assert arithmetic("v0") is arithmetic("v0")
