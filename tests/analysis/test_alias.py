"""Which addresses are the same, differ, or may be the same."""

import pytest
from qd_studio.engine.analysis import DIFFERENT, MAYBE, SAME, MemoryLocations
from qd_studio.engine.ir import parse, walk

HEAD = "kernel k(x: ndarray<f32, 1>, y: ndarray<f32, 1>, z: ndarray<f32, 2>, n: i32, m: i32)"
BODY = """
  <i32> $0 = arg_load [3]
  <i32> $1 = arg_load [4]
  <i32> $2 = const 1
  <i32> $3 = const 2
  <*f32> $4 = arg_addr [(0, False)]
  <*f32> $5 = arg_addr [(1, False)]
  <*f32> $6 = arg_addr [(2, False)]
  <i32> $7 = add $0, $2
  <i32> $8 = add $2, $0
  <i32> $9 = sub $7, $2
  <i32> $10 = mul $0, $1
  <i32> $11 = mul $0, $1
  <i32> $12 = arg_load [3]
"""
NAMES = {"n": 0, "m": 1, "1": 2, "2": 3, "n+1": 7, "1+n": 8, "n+1-1": 9, "n*m": 10, "n*m'": 11,
         "n'": 12}  # fmt: skip


def relation(one, other, noalias=True, mode="unsafe"):
    """one, other: "x[n]" and the like, in the names above."""
    tail = "" if noalias else " may_alias"
    lines = [HEAD + " stage=typed" + tail + " {" + BODY.rstrip()]
    for number, text in ((20, one), (21, other)):
        array, indices = text.rstrip("]").split("[")
        args = [f"${ {'x': 4, 'y': 5, 'z': 6}[array] }".replace(" ", "")]
        args += [f"${NAMES[i.strip()]}" for i in indices.split(",")]
        lines.append(f"  <*f32> ${number} = external_ptr {', '.join(args)} ['{mode}']")
    func = parse("\n".join([*lines, "}"]) + "\n")
    ops = {op.id: op for op in walk(func.body)}
    memory = MemoryLocations(func)
    a, b = memory.location(ops[20]), memory.location(ops[21])
    found = memory.relation(a, b)
    assert found == memory.relation(b, a)
    assert (memory.may_alias(a) >> b.number & 1) == (found == MAYBE)
    assert (memory.may_alias(b) >> a.number & 1) == (found == MAYBE)
    return found


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("x[n]", "x[n]", SAME),
        ("x[n]", "x[n']", SAME),
        ("x[n+1]", "x[1+n]", SAME),
        ("x[n]", "x[n+1-1]", SAME),
        ("x[n*m]", "x[n*m']", SAME),
        ("x[1]", "x[1]", SAME),
        ("x[1]", "x[2]", DIFFERENT),
        ("x[n]", "x[n+1]", DIFFERENT),
        ("x[n]", "x[m]", MAYBE),
        ("x[n]", "x[1]", MAYBE),
        ("x[n*m]", "x[n]", MAYBE),
        ("x[n]", "y[n]", DIFFERENT),
        ("z[n, m]", "z[n, m]", SAME),
        ("z[n, m]", "z[n+1, 2]", DIFFERENT),
        ("z[n, 1]", "z[m, 2]", DIFFERENT),
        ("z[n, 1]", "z[m, 1]", MAYBE),
        ("z[n, m]", "z[m, n]", MAYBE),
    ],
)
def test_elements(one, other, expected):
    assert relation(one, other) == expected


def test_arrays_may_overlap_unless_the_launch_has_checked():
    assert relation("x[n]", "y[n]", noalias=False) == MAYBE
    assert relation("x[n]", "x[n+1]", noalias=False) == DIFFERENT


def test_clamped_indices_are_compared_whole():
    assert relation("x[n]", "x[n+1]", mode="clamp") == MAYBE
    assert relation("x[n]", "x[n]", mode="clamp") == SAME


def test_locals_temporaries_and_lowered_addresses():
    func = parse(
        """kernel k(x: ndarray<f32, 2>, n: i32) stage=accesses global_tmp=8 {
  $0 : offloaded header {
    $1 : bounds
  } body {
    <*f32> $2 = alloca ['a']
    <*f32> $3 = alloca ['a']
    <*f32> $4 = global_tmp [0]
    <*f32> $5 = global_tmp [0]
    <*f32> $6 = global_tmp [4]
    <i32> $7 = arg_load [1]
    <i32> $8 = const 1
    <i32> $9 = add $7, $8
    <i32> $10 = external_tensor_shape_along_axis [(1, 0)]
    <*f32> $11 = arg_addr [(0, False)]
    <i64> $12 = linearize $7, $8, $10 [2]
    <*f32> $13 = shift_ptr $11, $12
    <i64> $14 = linearize $9, $8, $10 [2]
    <*f32> $15 = shift_ptr $11, $14
    <i64> $16 = linearize $8, $7, $10 [2]
    <*f32> $17 = shift_ptr $11, $16
    <i64> $18 = linearize $7, $8, $10 [2]
    <*f32> $19 = shift_ptr $11, $18
  }
}
"""
    )
    ops = {op.id: op for op in walk(func.body)}
    memory = MemoryLocations(func)

    def check(a, b, expected):
        assert memory.relation(memory.location(ops[a]), memory.location(ops[b])) == expected

    check(2, 2, SAME)
    check(2, 3, DIFFERENT)
    check(2, 4, DIFFERENT)
    check(4, 5, SAME)
    check(4, 6, DIFFERENT)
    check(6, 13, DIFFERENT)
    check(13, 15, DIFFERENT)
    check(13, 17, MAYBE)
    check(13, 19, SAME)


def test_long_chains_of_operations_are_no_trouble():
    lines = ["kernel k(x: ndarray<f32, 1>, n: i32) stage=typed {", "  <i32> $0 = arg_load [1]"]
    lines += [f"  <i32> ${i} = mul ${i - 1}, ${i - 1}" for i in range(1, 3000)]
    lines += ["  <*f32> $3000 = arg_addr [(0, False)]"]
    lines += ["  <*f32> $3001 = external_ptr $3000, $2999 ['unsafe']", "}"]
    func = parse("\n".join(lines) + "\n")
    ptr = walk(func.body)[-1]
    memory = MemoryLocations(func)
    assert memory.location(ptr) is memory.location(ptr)


FIELDS = """\
kernel k(field u: f32[8; 2], field v: f32[8], x: ndarray<f32, 1; 2, clamp>, n: i32) stage=typed {
  <i32> $0 = arg_load [3]
  <i32> $1 = const 0
  <i32> $2 = const 1
  <*f32> $3 = arg_addr [(0, False)]
  <*f32> $4 = arg_addr [(1, False)]
  <*f32> $5 = arg_addr [(2, False)]
  <*f32> $6 = external_ptr $3, $0, $1 ['unsafe']
  <*f32> $7 = external_ptr $3, $0, $2 ['unsafe']
  <*f32> $8 = external_ptr $3, $2, $1 ['unsafe']
  <*f32> $9 = external_ptr $4, $0 ['unsafe']
  <*f32> $10 = external_ptr $5, $0, $1 ['clamp']
  <*f32> $11 = external_ptr $5, $2, $1 ['clamp']
  <*f32> $12 = external_ptr $5, $2, $2 ['clamp']
}
"""


@pytest.mark.parametrize(
    ("one", "other", "apart", "overlapping"),
    [
        (6, 7, DIFFERENT, DIFFERENT),  # two components
        (6, 8, MAYBE, MAYBE),
        (7, 8, DIFFERENT, DIFFERENT),
        (6, 9, DIFFERENT, DIFFERENT),  # two fields
        (6, 10, DIFFERENT, MAYBE),  # a field and an array
        (10, 11, MAYBE, MAYBE),  # clamped
        (10, 12, DIFFERENT, DIFFERENT),  # components are not clamped
    ],
)
def test_fields_and_elements(one, other, apart, overlapping):
    for noalias, expected in ((True, apart), (False, overlapping)):
        func = parse(FIELDS)
        func.noalias = noalias
        ops = {op.id: op for op in func.body.ops}
        memory = MemoryLocations(func)
        a, b = memory.location(ops[one]), memory.location(ops[other])
        assert memory.relation(a, b) == memory.relation(b, a) == expected
        assert bool(memory.may_alias(a) & b.bit) == (expected == MAYBE)
        assert bool(memory.may_alias(b) & a.bit) == (expected == MAYBE)
