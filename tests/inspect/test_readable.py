"""The readable form of IR loses no op, keeps the order of evaluation, and uses the user's names."""

import itertools
import operator
import textwrap

import pytest
from qd_studio.engine import inspect, ir
from qd_studio.engine.errors import IRParseError
from qd_studio.engine.inspect.readable import readable_ir
from qd_studio.engine.inspect.readable_uses import operands, users
from qd_studio.engine.inspect.record import CompileRecord, FileRecord, LocRecord, Snapshot
from qd_studio.engine.ir import codes as C
from qd_studio.engine.types import f32, i32, u1

from tests.passes.qdir import all_cases
from tests.passes.random_ir import random_func
from tests.samples.sample_files import KERNELS, kernel_of


def snapshot(func, locs=()):
    """locs: by op, the number of its location."""
    printed = ir.listing(func)
    numbers = tuple([dict(locs).get(id, -1) for id in printed.ids])
    return Snapshot(lines=tuple(printed.lines), ids=tuple(printed.ids), locs=numbers)


def shown(func):
    """A function in the readable form."""
    shot = snapshot(func)
    return readable_ir(CompileRecord(snapshots=(shot,)), shot)


def parsed(text):
    return ir.parse(textwrap.dedent(text).strip())


def lines_of(text):
    return [line.strip() for line in shown(parsed(text)).lines][1:-1]


def in_order(func):
    """All ops, in the order of the listing."""
    return [op for body in func.bodies() for op in ir.walk(body)]


def memory(op):
    """The variable that an op accesses, None for all other memory."""
    return op.args[0] if op.args[0].code == C.ALLOCA else None


def is_between(op, read):
    """True if ``op`` may change what ``read`` returns."""
    if C.FENCE[op.code] or C.END[op.code] or op.code == C.WHILE_CONTROL:
        return op.code != C.BOUNDS
    return (C.WRITE[op.code] or C.ATOMIC[op.code]) and memory(op) is memory(read)


def check(ids, found, func):
    """The promises of the form, for one listing."""
    place = {id: i for i, id in enumerate([id for id in ids if id >= 0])}
    # Each op is on exactly one line, and each line shows ops, or begins or ends something.
    assert sorted(itertools.chain(*found.ops)) == sorted(place)
    assert found.line_of == {id: i for i, ops in enumerate(found.ops) for id in ops}
    for line, id, ops in zip(found.lines, found.ids, found.ops, strict=True):
        assert id in ops if ops else line.startswith(("kernel", "function")) or "}" in line
        # The op that the line is about comes last: it uses the others.
        assert list(ops) == sorted(ops, key=place.__getitem__)
        assert not ops or ops[-1] == id
    roots = [place[id] for id in found.ids if id >= 0]
    assert roots == sorted(roots)
    if func is None:
        return
    ops = in_order(func)
    at = {op.id: i for i, op in enumerate(ops)}
    for root, parts in zip(found.ids, found.ops, strict=True):
        for part in parts[:-1]:
            op = ops[at[part]]
            assert C.PURE[op.code] or C.READ[op.code]
            if C.READ[op.code]:
                assert op.block is ops[at[root]].block
                assert not any(is_between(x, op) for x in ops[at[part] + 1 : at[root]])


@pytest.mark.parametrize("folder", sorted({case.file.stem for case in all_cases()}))
def test_ir_of_every_pass_is_shown_whole(folder):
    for case in all_cases():
        if case.file.stem != folder:
            continue
        for text in (case.source, case.expected):
            if not text:
                continue
            try:
                func = ir.parse(text)
            except IRParseError:
                continue
            check(ir.listing(func).ids, shown(func), func)


@pytest.mark.parametrize("seed", range(60))
def test_random_ir_is_shown_whole(seed):
    func = random_func(seed, (f32, i32, u1), 120, fields=seed % 2 == 0, stacks=seed % 3 == 0)
    check(ir.listing(func).ids, shown(func), func)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("sample", sorted({sample for sample, _ in KERNELS}))
def test_every_listing_of_the_samples_is_shown_whole(sample):
    for name in [name for file, name in KERNELS if file == sample][:1]:
        kernel = kernel_of(sample, name)
        record = inspect.capture_kernel(kernel, ("cpu",), launch=False)
        compiled = record.backends[0].compile
        for shot in compiled.snapshots:
            check(shot.ids, readable_ir(compiled, shot), None)


def test_names_are_the_users_and_operations_are_infix():
    file = "a.py"
    text = "def f():\n    for j in x:\n        pass\n"
    func = parsed("""
        kernel k(x: ndarray<f32, 1>, n: i32) stage=ast {
          <*f32> $0 = arg_addr [(0, False)]
          <i32> $1 = const 0
          <i32> $2 = arg_load [1]
          $3 : range_for $1, $2 {block_dim=64} body {
            <i32> $4 = loop_index $3 [0]
            <*f32> $5 = external_ptr $0, $4 ['unsafe']
            <f32> $6 = global_load $5
            <*f32> $7 = alloca ['dx']
            $8 : local_store $7, $6
            <f32> $9 = local_load $7
            <f32> $10 = local_load $7
            <f32> $11 = mul $9, $10
            <f32> $12 = atomic_add $5, $11
          }
        }
    """)
    shot = snapshot(func, {3: 0})
    compiled = CompileRecord(snapshots=(shot,), locs=(LocRecord(file=file, line=2),))
    found = readable_ir(compiled, shot, (FileRecord(path=file, sha256="", text=text),))
    assert [line.strip() for line in found.lines[1:-1]] == [
        "for j in 0..n {block_dim=64} {", "var dx", "dx = x[j]", "atomic x[j] += dx * dx", "}",
    ]  # fmt: skip
    assert found.types[2:5] == ("f32", "f32", "f32")


def test_a_value_keeps_the_name_of_the_variable_that_passes_removed():
    record = inspect.capture_kernel(kernel_of("nbody", "accelerations"), ("cpu",), launch=False)
    compiled = record.backends[0].compile
    found = readable_ir(compiled, compiled.snapshots[-1])
    text = "\n".join(line.strip() for line in found.lines)
    assert "dx = x[j] - " in text and "var dx" not in text


def test_a_read_stays_before_a_write_that_may_change_it():
    text = """
        kernel k(x: ndarray<f32, 1>) stage=typed {
          <*f32> $0 = arg_addr [(0, False)]
          <i32> $1 = const 0
          <i32> $2 = const 1
          <*f32> $3 = external_ptr $0, $1 ['unsafe']
          <*f32> $4 = external_ptr $0, $2 ['unsafe']
          <f32> $5 = global_load $3
          %s
          $7 : global_store $3, $5
        }
    """
    assert lines_of(text % "$6 : global_store $4, $5") == ["$5 = x[0]", "x[1] = $5", "x[0] = $5"]
    moved = text.replace("$7 : global_store $3", "$7 : global_store $4")
    assert lines_of(moved % "<*f32> $6 = alloca ['v']") == ["var v", "x[1] = x[0]"]
    stored = "<f32> $6 = const 0.0\n  $8 : global_store $3, $6"
    assert lines_of(moved % stored) == ["$5 = x[0]", "x[0] = 0.0", "x[1] = $5"]


def test_a_value_is_not_moved_into_a_loop():
    lines = lines_of("""
        kernel k(x: ndarray<f32, 1>, a: f32) stage=typed {
          <*f32> $0 = arg_addr [(0, False)]
          <f32> $1 = arg_load [1]
          <f32> $2 = mul $1, $1
          <i32> $3 = const 0
          <i32> $4 = const 8
          $5 : range_for $3, $4 body {
            <i32> $6 = loop_index $5 [0]
            <*f32> $7 = external_ptr $0, $6 ['unsafe']
            $8 : global_store $7, $2
          }
        }
    """)
    assert lines == ["$2 = a * a", "for i in 0..8 {", "x[i] = $2", "}"]


_OPERATORS = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "floordiv": operator.floordiv,
    "floormod": operator.mod, "bit_and": operator.and_, "bit_or": operator.or_,
    "bit_xor": operator.xor, "cmp_lt": operator.lt, "cmp_eq": operator.eq, "pow": operator.pow,
}  # fmt: skip


@pytest.mark.parametrize("outer", _OPERATORS)
@pytest.mark.parametrize("inner", _OPERATORS)
def test_brackets_are_those_that_python_needs(outer, inner):
    for left in (True, False):
        operands = "$4, $3" if left else "$3, $4"
        (line,) = lines_of(f"""
            kernel k(x: ndarray<i32, 1>, a: i32, b: i32, c: i32) stage=ast {{
              <i32> $1 = arg_load [1]
              <i32> $2 = arg_load [2]
              <i32> $3 = arg_load [3]
              <i32> $4 = {inner} $1, $2
              <i32> $5 = {outer} {operands}
              <*i32> $6 = arg_addr [(0, False)]
              <i32> $7 = const 0
              <*i32> $8 = external_ptr $6, $7 ['unsafe']
              $9 : global_store $8, $5
            }}
        """)
        formula = line.removeprefix("x[0] = ")
        for a, b, c in itertools.product((1, 2, 3), (2, 5), (1, 3, 7)):
            part = _OPERATORS[inner](a, b)
            pair = (part, c) if left else (c, part)
            if pair[1] == 0 and outer in ("floordiv", "floormod"):
                continue
            assert eval(formula, {"a": a, "b": b, "c": c}) == _OPERATORS[outer](*pair)


def test_a_line_that_is_not_understood_is_shown_as_it_is():
    shot = Snapshot(lines=("kernel k() {", "  $0 ?? later", "}"), ids=(-1, 0, -1), locs=(-1,) * 3)
    assert readable_ir(CompileRecord(snapshots=(shot,)), shot).lines == shot.lines


def test_operands_and_uses_are_found_through_expressions():
    func = parsed("""
        kernel k(x: ndarray<f32, 1>) stage=typed {
          <*f32> $0 = arg_addr [(0, False)]
          <i32> $1 = const 4
          $2 : range_for $1, $1 body {
            <i32> $3 = loop_index $2 [0]
            <*f32> $4 = external_ptr $0, $3 ['unsafe']
            <f32> $5 = global_load $4
            <f32> $6 = mul $5, $5
            <f32> $7 = add $6, $5
            $8 : global_store $4, $7
          }
        }
    """)
    found, shot = shown(func), snapshot(func)
    assert [line.strip() for line in found.lines[2:4]] == ["$5 = x[i]", "x[i] = $5 * $5 + $5"]
    assert operands(found, shot, 8) == operands(found, shot, 6) == [2, 5]
    assert operands(found, shot, 5) == [2]
    assert users(found, shot, 5) == [8]
    assert users(found, shot, 2) == [5, 8]
