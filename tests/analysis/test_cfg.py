"""The shape of control-flow graphs, and what reaches and lives on them."""

from qd_studio.engine.analysis import analyze, build_cfg
from qd_studio.engine.analysis.dataflow import LaterLoads
from qd_studio.engine.ir import parse

BRANCHES = """kernel k(x: ndarray<i32, 1>, n: i32) stage=offloaded {
  $0 : offloaded {kind='range_for'} header {
    <i32> $1 = const 0
    <i32> $2 = arg_load [1]
    $3 : bounds $1, $2
  } body {
    <i32> $4 = loop_index $0 [0]
    <i32> $5 = const 3
    <u1> $6 = cmp_lt $4, $5
    <*i32> $7 = alloca ['a']
    $8 : if $6 then {
      $9 : local_store $7, $4
    } else {
      $10 : if $6 then {
        $11 : local_store $7, $5
        $12 : continue
      } else {
      }
    }
    <i32> $13 = local_load $7
  }
}
"""

LOOPS = """kernel k(x: ndarray<i32, 1>, n: i32) stage=offloaded {
  $0 : offloaded header {
    $1 : bounds
  } body {
    <i32> $2 = const 0
    <i32> $3 = arg_load [1]
    <*i32> $4 = alloca ['a']
    $5 : range_for $2, $3 body {
      <i32> $6 = loop_index $5 [0]
      $7 : local_store $4, $6
    }
    <i32> $8 = local_load $4
    $9 : while body {
      <i32> $10 = local_load $4
      <u1> $11 = cmp_gt $10, $2
      $12 : while_control $11
      <i32> $13 = atomic_add $4, $8
    }
    <i32> $14 = local_load $4
  }
}
"""


def graph_of(text):
    func = parse(text)
    (task,) = func.tasks()
    return func, build_cfg(func, task)


def edges(graph):
    return {(node.id, target.id) for node in graph.nodes for target in node.next}


def node_of(graph, id):
    return next(node for node in graph.nodes for op in node.ops if op.id == id)


def test_branches_and_continue():
    _, graph = graph_of(BRANCHES)
    before, then, inner, after = (node_of(graph, id) for id in (4, 9, 11, 13))
    assert before.label == "body"
    assert then.label == "then $8"
    assert [n.id for n in graph.nodes] == list(range(len(graph.nodes)))
    assert graph.start.ops == [] == graph.final.ops
    assert graph.start.next == [before]
    assert set(before.next) == {then, inner, after}
    assert then.next == [after]
    assert inner.next == [graph.final], "continue of the task ends the iteration"
    assert after.next == [graph.final]
    assert all(node.parallel for node in graph.nodes[1:-1])
    assert {node.depth for node in graph.nodes} == {0}


def test_loops():
    _, graph = graph_of(LOOPS)
    before, body, between, test, rest, after = (node_of(graph, id) for id in (2, 7, 8, 10, 13, 14))
    assert set(before.next) == {body, between}, "a range may be empty"
    assert set(body.next) == {body, between}
    assert between.next == [test]
    assert set(test.next) == {rest, after}
    assert rest.next == [test]
    assert after.next == [graph.final]
    assert (body.depth, after.depth) == (1, 0)
    assert not any(node.parallel for node in graph.nodes)
    assert all(node in target.prev for node in graph.nodes for target in node.next)


def test_a_while_without_a_way_out_leads_nowhere():
    _, graph = graph_of(
        """kernel k() stage=offloaded {
  $0 : offloaded header {
    $1 : bounds
  } body {
    <*i32> $2 = alloca ['a']
    $3 : while body {
      <i32> $4 = local_load $2
    }
    <i32> $5 = local_load $2
  }
}
"""
    )
    assert node_of(graph, 5).prev == []


def test_before_offload_root_loops_are_parallel():
    func = parse(
        """kernel k(n: i32) stage=typed {
  <i32> $0 = const 0
  <i32> $1 = arg_load [0]
  <*i32> $2 = alloca ['a']
  $3 : range_for $0, $1 body {
    <i32> $4 = local_load $2
  }
  $5 : range_for $0, $1 {strictly_serialized=True} body {
    <i32> $6 = local_load $2
  }
}
"""
    )
    graph = build_cfg(func)
    assert node_of(graph, 4).parallel
    assert not node_of(graph, 6).parallel
    assert not node_of(graph, 0).parallel


def test_reaching_definitions():
    func, graph = graph_of(LOOPS)
    flow = analyze(func, graph)

    def reaching(id):
        bits = flow.reach_in[node_of(graph, id).id]
        found = [op for i, op in enumerate(flow.definitions) if bits >> i & 1]
        return {op.id if op is not None else None for op in found}

    assert reaching(7) == {4, 7}, "the first iteration finds the 0 of the alloca"
    assert reaching(8) == {4, 7}
    assert reaching(10) == {4, 7, 13}
    assert reaching(14) == {4, 7, 13}


def test_live_variables():
    func, graph = graph_of(LOOPS)
    analyze(func, graph)

    def live(id):
        return {op.id for op in node_of(graph, id).live_out}

    assert live(7) == {4}
    assert live(13) == {4}
    assert live(14) == set(), "a local is dead at the end"


def test_arrays_live_on_and_temporaries_if_a_later_task_loads_them():
    func = parse(
        """kernel k(x: ndarray<i32, 1>) stage=offloaded global_tmp=8 {
  $0 : offloaded header {
    $1 : bounds
  } body {
    <i32> $2 = const 0
    <*i32> $3 = arg_addr [(0, False)]
    <*i32> $4 = external_ptr $3, $2 ['unsafe']
    <*i32> $5 = global_tmp [0]
    <*i32> $6 = global_tmp [4]
    $7 : global_store $4, $2
    $8 : global_store $5, $2
    $9 : global_store $6, $2
  }
  $10 : offloaded header {
    $11 : bounds
  } body {
    <*i32> $12 = global_tmp [4]
    <i32> $13 = global_load $12
  }
}
"""
    )
    graph = build_cfg(func, func.tasks()[0])
    analyze(func, graph)
    assert {op.id for op in node_of(graph, 7).live_out} == {4, 6}


def test_what_varies_in_a_loop_is_live_there():
    func, graph = graph_of(
        """kernel k(x: ndarray<i32, 1>, n: i32) stage=offloaded {
  $0 : offloaded header {
    $1 : bounds
  } body {
    <i32> $2 = const 1
    <*i32> $3 = arg_addr [(0, False)]
    <*i32> $4 = alloca ['i']
    $5 : while body {
      <i32> $6 = local_load $4
      <*i32> $7 = external_ptr $3, $6 ['unsafe']
      $8 : global_store $7, $2
      <u1> $9 = cmp_lt $6, $2
      $10 : while_control $9
      $11 : global_store $7, $6
    }
  }
}
"""
    )
    analyze(func, graph)
    assert 7 in {op.id for op in node_of(graph, 11).live_out}


def test_lines_show_nodes_as_dump_files_do():
    func, graph = graph_of(BRANCHES)
    analyze(func, graph)
    lines = graph.lines(func)
    assert lines[0] == "Node 0 : empty; prev={}; next={1}"
    assert lines[1] == "Node 1 : $4~$7 (size=4); prev={0}; next={2, 3, 4}; live_out={$7}"
    assert lines[2] == "  <i32> $4 = loop_index $0 [0]"


REGIONS = """kernel k(x: ndarray<i32, 1>, again: ndarray<i32, 0>, stop: ndarray<i32, 0>) stage=typed graph {
  <i32> $0 = const 0
  <*i32> $1 = arg_addr [(0, False)]
  <*i32> $2 = external_ptr $1, $0 ['unsafe']
  $3 : graph_region {kind='do_while' param=1} body {
    $4 : global_store $2, $0
    $5 : graph_region {kind='checkpoint' param=2 label=0 name=1} body {
      $6 : global_store $2, $0
    }
    $7 : global_store $2, $0
  }
  $8 : global_store $2, $0
}
"""  # noqa: E501


def test_a_do_while_goes_round_and_a_checkpoint_is_left_or_passed_over():
    func = parse(REGIONS)
    graph = build_cfg(func)
    at = {op.id: node for node in graph.nodes for op in node.ops}
    edges = {op: {n.id for n in at[op].next} for op in (0, 4, 6, 7, 8)}
    before, first, inside, last, behind = (at[op].id for op in (0, 4, 6, 7, 8))
    final = graph.final.id
    assert edges == {
        0: {first}, 4: {inside, last}, 6: {last, final}, 7: {first, behind}, 8: {final},
    }  # fmt: skip
    assert before == graph.start.next[0].id
    assert at[4].label == "do_while $3"
    assert at[4].depth == 1


def live_of_many(loaded):
    """Of 250 variables those that live after a condition, as the op ids shown and the others."""
    lines = [f"<*i32> ${k} = alloca ['a{k}']" for k in range(10, 260)]
    lines += ["<u1> $300 = const true", "$301 : if $300 then {", "<i32> $302 = const 1"]
    lines += ["} else {", "}", *(f"<i32> ${k + 1000} = local_load ${k}" for k in loaded)]
    head = "kernel k() stage=offloaded {\n$0 : offloaded header {\n$1 : bounds\n} body {\n"
    func, graph = graph_of(head + "\n".join(lines) + "\n}\n}\n")
    analyze(func, graph)
    node = node_of(graph, 302)
    line = next(x for x in graph.lines(func) if x.startswith(f"Node {node.id} "))
    return [op.id for op in node.live_out], node.live_more, line


def test_many_live_locations_are_counted():
    few = [10, 69, 70, 71, 129, 200, 259]
    assert live_of_many(few)[:2] == (few, 0)
    every = list(range(11, 260))
    shown, more, line = live_of_many(every)
    assert (shown, more) == (every[:100], 149)
    assert line.endswith("$110, 149 more}")


def test_temporaries_that_later_tasks_read():
    """In a do_while those before a task may run after it, and so may itself."""

    def task(n, body):
        return f"  ${n} : offloaded header {{\n    ${n + 1} : bounds\n  }} body {{\n{body}  }}\n"

    def load(n, at):
        return f"    <*i32> ${n} = global_tmp [{at}]\n    <i32> ${n + 1} = global_load ${n}\n"

    text = "kernel k(x: ndarray<i32, 0>) stage=offloaded {\n"
    text += task(0, load(10, 0)) + "  $90 : graph_region {kind='do_while' param=0} body {\n"
    text += task(20, load(30, 8) + load(32, 16)) + task(40, load(50, 24)) + "  }\n"
    text += task(60, load(70, 24) + load(72, 32)) + "}\n"
    func = parse(text)
    later = LaterLoads(func)
    assert [later.of(task) for task in func.tasks()] == [
        {8, 16, 24, 32}, {8, 16, 24, 32}, {8, 16, 24, 32}, set(),
    ]  # fmt: skip
    assert later.of(None) == {0, 8, 16, 24, 32}
