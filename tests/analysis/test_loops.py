"""Uses, loops around ops, invariance, and arrays that a task divides among its iterations."""

from qd_studio.engine.analysis import (
    cell_loop,
    contains,
    enclosing_loops,
    is_invariant,
    uniquely_accessed,
    use_counts,
    users,
)
from qd_studio.engine.ir import parse, walk

NEST = """kernel k(x: ndarray<i32, 2>, y: ndarray<i32, 1>, n: i32) stage=offloaded {
  $0 : offloaded {kind='range_for'} header {
    <i32> $1 = const 0
    <i32> $2 = arg_load [2]
    $3 : bounds $1, $2
  } body {
    <i32> $4 = loop_index $0 [0]
    <i32> $5 = const 3
    <*i32> $6 = arg_addr [(0, False)]
    <*i32> $7 = arg_addr [(1, False)]
    $8 : range_for $5, $5 body {
      <i32> $9 = loop_index $8 [0]
      <i32> $10 = add $4, $5
      <i32> $11 = mul $10, $9
      <*i32> $12 = external_ptr $6, $4, $9 ['unsafe']
      <i32> $13 = global_load $12
      <*i32> $14 = external_ptr $7, $9 ['unsafe']
      $15 : global_store $14, $13
    }
  }
}
"""


def nest():
    func = parse(NEST)
    return func, {op.id: op for op in walk(func.body)}


def test_uses():
    func, ops = nest()
    counts = use_counts(func.body)
    assert counts[ops[4]] == 2
    assert counts[ops[5]] == 3
    assert ops[11] not in counts
    assert [op.id for op in users(func.body)[ops[9]]] == [11, 12, 14]
    assert [op.id for op in users(func.body)[ops[5]]] == [8, 8, 10]


def test_where_ops_are():
    _, ops = nest()
    assert contains(ops[0], ops[11])
    assert contains(ops[8], ops[11])
    assert not contains(ops[8], ops[4])
    assert not contains(ops[8], ops[8])
    assert enclosing_loops(ops[11].block) == [ops[0], ops[8]]
    assert enclosing_loops(ops[0].block) == []


def test_invariance():
    _, ops = nest()
    inner, task = ops[8], ops[0]
    assert is_invariant(ops[4], inner)
    assert is_invariant(ops[10], inner), "computed in the loop from what does not change"
    assert not is_invariant(ops[9], inner)
    assert not is_invariant(ops[11], inner)
    assert not is_invariant(ops[13], inner), "a load may find something else each time"
    assert not is_invariant(ops[4], task)
    assert is_invariant(ops[5], task)


def test_a_deep_expression_takes_no_exponential_time():
    lines = ["kernel k(n: i32) stage=typed {", "  <i32> $0 = arg_load [0]"]
    lines += ["  $1 : while body {", "    <i32> $2 = add $0, $0"]
    lines += [f"    <i32> ${i} = add ${i - 1}, ${i - 1}" for i in range(3, 60)]
    lines += ["  }", "}"]
    ops = {op.id: op for op in walk(parse("\n".join(lines) + "\n").body)}
    assert is_invariant(ops[59], ops[1])


def test_the_loop_of_cells_and_unique_arrays():
    func, ops = nest()
    task = ops[0]
    assert cell_loop(task) is task
    assert uniquely_accessed(func, task) == {(0, False)}
    task.attr = task.attr._replace(unit="chunk")
    assert cell_loop(task) is ops[8]
    assert uniquely_accessed(func, task) == {(0, False), (1, False)}
    func.noalias = False
    assert uniquely_accessed(func, task) == frozenset()
    task.attr = task.attr._replace(kind="serial")
    assert cell_loop(task) is None
