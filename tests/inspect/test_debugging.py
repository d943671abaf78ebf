"""The debugger: values after steps forward and back, breakpoints, writes; any walk through a run
ends in the state that plain execution has there."""

import copy
import random

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.app.conformance import kernels as _kernels  # noqa: F401
from qd_studio.app.conformance.feature import REGISTRY
from qd_studio.engine import inspect
from qd_studio.engine.backends.interp import InterpretedKernel
from qd_studio.engine.inspect.debugging import shown
from qd_studio.engine.inspect.debugging.machine import Machine

F32 = qd.types.NDArray[qd.f32, 1]
I32 = qd.types.NDArray[qd.i32, 1]
V3 = qd.types.vector(3, qd.f32)


@qd.dataclass
class Ball:
    pos: V3
    mass: qd.f32


@qd.func
def square(a):
    r = a * a
    return r + 1


@qd.kernel
def walk(x: F32, n: qd.i32) -> qd.f32:
    for i in range(n):
        s = 0.0  # FIRST
        b = Ball(V3(1.0, 2.0, i), 2.0)
        j = 0
        while j < 5:  # WHILE
            j += 1  # COUNT
            if j == 3:
                continue
            s += square(x[i])  # CALL
        b.mass += s  # MASS
        x[i] = b.mass  # STORE
    t = 0.0
    for i in range(n):
        t += x[i]  # SUM
    return t


@qd.kernel
def counted(x: I32):
    for i in range(4):
        t = i  # T
        x[0] = t


def line_of(mark):
    with open(__file__) as file:
        lines = file.read().splitlines()
    (found,) = [i for i, line in enumerate(lines, 1) if line.endswith(f"# {mark}")]
    return found


def started(iteration=None, **more):
    return inspect.debug(walk, np.arange(4, dtype=np.float32), 4, iteration=iteration, **more)


@pytest.mark.parametrize(
    ("moves", "mark", "values"),
    [
        ("", "FIRST", {"i": 2}),
        ("nnn", "WHILE", {"i": 2, "s": 0.0, "j": 0, "b": "(pos=[1.0, 2.0, 2.0], mass=2.0)"}),
        ("nnnnnnn", "WHILE", {"j": 1, "s": 5.0}),
        ("nnnnnnnb", "CALL", {"j": 1, "s": 0.0}),
        ("nnnnnns", "r", {"a": 2.0}),
        ("nnnnnnssb", "r", {"a": 2.0}),
        ("nnnnnnsb", "CALL", {"s": 0.0}),
        ("nnnnnnson", "WHILE", {"s": 5.0, "j": 1}),
        ("nnnnnnni", "return", {"a": 2.0, "r": 4.0}),
        ("nnnbbbb", "FIRST", {"i": 2}),
    ],
)
def test_values_after_steps(moves, mark, values):
    d = started(2)
    for move in moves:
        {"n": d.next, "s": d.step, "o": d.out, "b": d.back, "i": d.back_into}[move]()
    inner = {"r": square.decl.line + 2, "return": square.decl.line + 3}
    assert d.line == (inner[mark] if mark in inner else line_of(mark))
    assert {name: shown(d.value(name)) for name in values} == {
        name: str(value) for name, value in values.items()
    }


def test_only_the_chosen_iteration_of_a_loop_runs_and_what_follows_it():
    d = started(2)
    assert d.cont().reason == "end" and d.result == (2.0 + 20.0 + 2.0 - 2.0 + 0.0 + 1.0 + 3.0,)


def test_conditions_hits_logs_and_reverse():
    logged = []
    d = started(log_fn=logged.append)
    d.break_at(line_of("MASS"), "i == 1 and s > 7")
    log = d.break_at(line_of("WHILE"), "j == 5", log="{i}: s={s}, {nothing}")
    assert d.cont() == ("breakpoint", f"line {line_of('MASS')}")
    assert (d.value("i"), d.value("s")) == (1, 8.0)
    assert logged == [f"{i}: s={s}, <no variable 'nothing' has a value here>"
                      for i, s in ((0, "4.0"), (1, "8.0"))]  # fmt: skip
    d.clear(log)
    d.break_at(line_of("SUM"), hits=">=3")
    assert d.cont().reason == "breakpoint" and d.value("i") == 2
    assert d.reverse().text == f"line {line_of('MASS')}" and d.value("s + x[1]") == 9.0
    assert d.reverse().reason == "start" and d.line == line_of("FIRST") - 1


@pytest.mark.parametrize(("hits", "stops"), [
    ("2", [2]), ("=2", [2]), (" == 2", [2]), (">1", [2, 3]), (">= 3 ", [3]), ("<2", [1]),
    ("<=2", [1, 2]), ("%2", [2]), ("", [1, 2, 3]), ("9", []),
])  # fmt: skip
def test_hits_count_moments_once(hits, stops):
    d = inspect.debug(counted, np.zeros(4, np.int32))
    d.break_at(line_of("T"), "i > 0", hits=hits)
    for _ in range(2):  # the second time over the same moments, which count once
        seen = []
        while d.cont().reason == "breakpoint":
            seen.append(d.value("i"))
        assert seen == stops
        while d.reverse().reason == "breakpoint":
            assert d.value("i") == seen.pop()
        assert not seen


@pytest.mark.parametrize(("given", "stops"), [
    ({}, [1, 2, 3]), ({"condition": "x[0] != 2"}, [1, 3]), ({"hits": "%2"}, [2]),
    ({"condition": "x[0] > 1", "hits": "2"}, [3]), ({"condition": "x[0] > 9"}, []),
])  # fmt: skip
def test_changes_that_meet_a_condition_or_a_number_of_hits(given, stops):
    d = inspect.debug(counted, np.zeros(4, np.int32))
    d.watch("x[0]", **given)
    for _ in range(2):
        seen = []
        while d.cont().reason == "data":
            seen.append(d.value("x[0]"))
        assert seen == stops
        while d.reverse().reason == "data":
            assert d.value("x[0]") + 1 == seen.pop()
        assert not seen
    # A question for the last change is about all of them.
    d.watches.clear()
    d.cont()
    found = d.when_changed("x[0]")
    assert found and found.new == 3


def test_what_is_no_condition_and_no_number_of_hits_is_refused():
    d = inspect.debug(counted, np.zeros(4, np.int32))
    for hits in ("many", "%0", "% 00", "3 times", "-1", "> =3", "!= 3"):
        with pytest.raises(inspect.DebugError, match="is no number of hits: write 3, >3"):
            d.break_at(1, hits=hits)
    for given in ({"condition": "1 +"}, {"hits": "x"}):
        with pytest.raises(inspect.DebugError):
            d.watch("x[0]", **given)
    assert not d.watches
    d.watch("x[0]", condition="x[7] > 1")
    for _ in range(3):
        assert "the condition failed: x[7] > 1" in d.cont().text
    assert d.cont().reason == "end" and d.reverse().reason == "data"


def test_a_condition_that_fails_stops_and_says_why():
    d = started()
    d.break_at(line_of("MASS"), "x[i, 7] > 2")
    stop = d.cont()
    assert stop.reason == "breakpoint" and "failed: x[i, 7] > 2: too many indices" in stop.text


@pytest.mark.parametrize("text", ["1 +", "nothing", "s.__class__", "x[900]", "().__class__"])
def test_expressions_that_cannot_be_evaluated(text):
    d = started(1)
    d.next()
    with pytest.raises(inspect.DebugError):
        d.value(text)


def test_who_wrote_and_when_it_changed():
    d = started()
    d.cont()
    assert d.line == 0
    wrote = d.who_wrote("x[1]")
    assert (wrote.line, wrote.old, wrote.new) == (line_of("STORE"), 1.0, 10.0)
    d.goto(wrote.time)
    assert d.who_wrote("x[1]") is None and d.who_wrote("b.mass").line == line_of("MASS")
    assert d.who_wrote("b.pos").line == line_of("FIRST") + 1
    assert d.when_changed("s").new == 8.0
    with pytest.raises(inspect.DebugError, match="no variable or array 'y'"):
        d.who_wrote("y[2]")


def test_what_is_watched_stops_in_both_directions():
    d = started()
    d.watch("x[3]")
    assert d.cont() == ("data", "x[3]: 3.0 -> 42.0")
    assert d.cont().reason == "end"
    assert d.reverse().reason == "data" and d.line == line_of("STORE") and d.value("x[3]") == 3.0


def test_a_breakpoint_in_a_kernel_stops_and_is_deleted_by_the_passes():
    @qd.kernel
    def k(x: I32):
        for i in range(4):
            if x[i] == 2:
                breakpoint()
            x[i] += 1

    d = inspect.debug(k, np.arange(4, dtype=np.int32))
    assert d.cont() == ("breakpoint", "breakpoint()") and d.value("i") == 2
    assert d.cont().reason == "end" and d.reverse().reason == "breakpoint"
    x = np.arange(4, dtype=np.int32)
    qd.init(arch=qd.cpu)
    k(x)
    assert x.tolist() == [1, 2, 3, 4]

    @qd.kernel
    def wrong():
        breakpoint(1)

    with pytest.raises(qd.QuadrantsTypeError, match="takes no arguments"):
        wrong()


def test_an_error_is_where_it_is_raised_and_can_be_left_backwards():
    @qd.kernel
    def k(x: F32):
        for i in range(3):
            assert x[i] < 2, f"x[{i}] is {x[i]}"
            x[i] = 7.0

    d = inspect.debug(k, np.arange(3, dtype=np.float32))
    assert d.cont() == ("error", "(kernel=k) x[2] is 2.0") or "x[2] is 2" in d.stop.text
    assert d.line == k.decl.line + 3 and d.value("x[1]") == 7.0
    d.back()
    assert d.line == k.decl.line + 2 and d.value("x[1]") == 7.0
    assert d.cont().reason == "error"


def test_other_stages_and_their_ops():
    d = started(stage="lower_ast")
    while d.step_op().reason == "step":
        pass
    assert d.result == (50.0,) or d.result == started_result()
    d.back_op()
    assert d.op is not None
    with pytest.raises(inspect.DebugError, match="no pass 'nothing' has run"):
        started(stage="nothing")
    with pytest.raises(inspect.DebugError, match="no parallel loop has the iteration 9"):
        started(9)


def started_result():
    d = started()
    d.cont()
    return d.result


def test_vectors_of_locals_count_as_in_kernels():
    d = started(2)
    for _ in range(3):
        d.next()
    assert d.value("b.pos * 2 + b.pos") == [3.0, 6.0, 6.0] and d.value("1 - b.pos") == [0, -1, -1]
    assert d.value("b.pos.dot(b.pos)") == 9.0 and d.value("b.pos.norm()") == 3.0
    with pytest.raises(inspect.DebugError, match="zip"):
        d.value("b.pos + [1]")


@pytest.mark.parametrize(
    ("text", "frame", "message"),
    [
        ("a", 0, "'a' is a loop index or a parameter: nothing writes it"),
        ("i", 1, "'i' is a loop index or a parameter"),
        ("r", 1, "no variable or array 'r' has a value here"),
        ("s", 0, "no variable or array 's' has a value here"),
        ("s", 7, "there is no function 7: 2 run"),
        ("x[9]", 0, "x.9.: index 9 is out of bounds"),
        ("x[-1]", 0, "the index is negative"),
        ("x[1.5]", 0, "1.5 is no index"),
        ("x.mass", 0, "'x' has no member 'mass'"),
        ("x + 1", 0, "names no variable"),
    ],
)
def test_what_has_no_writes_says_why(text, frame, message):
    d = started(2)
    d.break_at(square.decl.line + 2)
    d.cont()
    with pytest.raises(inspect.DebugError, match=message):
        d.who_wrote(text, frame)


def test_what_callers_hold_is_seen_and_watched():
    d = started(2)
    d.break_at(square.decl.line + 3)
    d.cont()
    assert d.locals(1)["s"] == 0.0 and d.value("b.pos.z", 1) == 2.0
    # `i` means 2 now, also where another iteration or no loop runs.
    assert (d.watch("x[i]", 1).text, d.watch("s", 1).text, d.watch("r").text) == ("x[2]", "s", "r")
    # A variable of a function is 0 at each call, until it is set.
    assert [d.cont().text for _ in range(4)] == [
        "s: 0.0 -> 5.0", "r: 0.0 -> 4.0", "s: 5.0 -> 10.0", "r: 0.0 -> 4.0"
    ]  # fmt: skip
    d.watches[:] = d.watches[:1]
    assert d.reverse().reason == "breakpoint"
    while d.cont().reason == "breakpoint":
        pass
    assert d.stop.text == "x[2]: 2.0 -> 22.0"


def test_a_breakpoint_after_a_write_of_the_same_value_is_reached():
    @qd.kernel
    def same(x: F32):
        for _ in range(2):
            x[0] = 1.0
            x[1] = 2.0

    d = inspect.debug(same, np.ones(2, np.float32))
    d.watch("x[0]")
    d.break_at(same.decl.line + 4)
    assert [d.cont().reason for _ in range(3)] == ["breakpoint", "breakpoint", "end"]


@qd.kernel
def long_run(x: I32):
    for i in range(4):
        k = 0
        while k < 30_000:
            k += 1
            x[i] = k % 5


def test_an_interrupt_ends_one_motion_only():
    d = inspect.debug(long_run, np.zeros(4, np.int32), budget=20_000)
    d.interrupt()  # nothing runs: it must not end what is done later
    assert d.cont().reason == "end"
    end = d.time
    d.interrupt()
    assert d.goto(end // 3 + 7).reason == "step" and d.time == end // 3 + 7
    d.goto(end)
    checked = []

    def give_up(found):
        checked.append(found)
        d.interrupt()

    d.break_at(long_run.decl.line + 4, "x[0] == 9")
    names, d.names.evaluate = d.names.evaluate, lambda *args: give_up(args) or names(*args)
    with pytest.raises(inspect.DebugError, match="given up"):
        d.reverse()
    assert d.time == end and len(checked) < 100_000


def test_a_condition_that_is_no_expression_is_refused_at_once():
    with pytest.raises(inspect.DebugError, match="'i ==' is no expression"):
        started().break_at(line_of("MASS"), "i ==")


# --- any walk ends in the state of plain execution ------------------------------------------------


def state(machine, values):
    variables = {n: machine.env[n] for n in machine.flat.variables if n in machine.env}
    rest = machine.pc, machine.cx.results, machine.cx.state, len(machine.frames)
    return copy.deepcopy((variables, rest)), [
        v.tobytes() if isinstance(v, np.ndarray) else v for v in values
    ]


def copies(values):
    """Copies of arguments; arrays that share memory have copies that do."""
    memo = {}

    def one(value):
        if isinstance(value, tuple):
            return tuple(map(one, value))
        if not isinstance(value, np.ndarray):
            return value
        root = value
        while isinstance(root.base, np.ndarray):
            root = root.base
        if id(root) not in memo:
            memo[id(root)] = root, root.copy()
        mine = memo[id(root)][1]
        at = value.ctypes.data - root.ctypes.data
        return np.ndarray(value.shape, value.dtype, mine, at)

    return [one(value) for value in values]


def parts(value):
    return value if isinstance(value, tuple) else (value,)


def check_walks(func, values, debug, seed, rng):
    """Compare random walks with plain execution; returns the results of a whole run."""
    mine, plain = copies(values), copies(values)
    machine = Machine(func, mine, debug=debug, seed=seed, interval=rng.choice([40, 300]),
                      budget=rng.choice([20_000, 1 << 28]))  # fmt: skip
    machine.run(20_000)
    whole, last = machine.at_end, machine.time
    straight = Machine(func, plain, debug=debug, seed=seed, interval=1 << 60)
    known = []
    for time in sorted(rng.sample(range(last + 1), min(6, last + 1))):
        straight.run(time)
        known.append((time, state(straight, plain)))
    rng.shuffle(known)
    for time, wanted in known * 2:
        machine.go(time)
        assert repr(state(machine, mine)) == repr(wanted), time
    machine.go(last)
    return (machine, mine) if whole else None


@pytest.mark.parametrize("part", range(3))
def test_walks_through_small_programs_end_where_plain_execution_is(part, monkeypatch):
    rng = random.Random(part)
    walked = []
    launch = InterpretedKernel.launch

    def checked(self, args, **more):
        before = copies(args)
        results = launch(self, args, **more)
        if not self.resumable and more.get("stacks") is None:
            found = check_walks(self.func, before, True, more.get("seed", 0), rng)
            if found is not None:
                machine, mine = found
                assert repr(machine.cx.results) == repr(results)
                for a, b in zip(mine, args, strict=True):
                    for x, y in zip(*map(parts, (a, b)), strict=True):
                        assert x.tobytes() == y.tobytes() if isinstance(x, np.ndarray) else x == y
                walked.append(self.func.name)
        return results

    monkeypatch.setattr(InterpretedKernel, "launch", checked)
    for feature in REGISTRY[part::12]:
        if "checks" in feature.needs or "prints" in feature.needs or "graphs" in feature.needs:
            continue
        qd.reset()
        qd.init(arch="interp", **feature.options)
        feature.run()
    qd.reset()
    assert len(walked) > 10


@qd.kernel
def over_grid(x: qd.types.NDArray[qd.f32, 2]):
    for i, j in qd.ndrange((2, 4), (3, 5)):
        x[i, j] = 1.0


@qd.kernel
def without_loop(a: qd.i32) -> qd.i32:
    b = a + 1
    return b


def test_the_first_iteration_is_that_of_the_first_loop():
    d = inspect.debug(over_grid, np.zeros((8, 8), np.float32), iteration="first")
    assert d.iteration == (2, 3) and d.locals() == {"i": 2, "j": 3}
    d.cont()
    assert d.arguments()["x"].sum() == 1.0
    d = inspect.debug(without_loop, 3, iteration="first")
    assert d.iteration is None and d.next().reason == "step" and d.locals() == {"b": 4}


def test_an_access_outside_of_an_array_names_it():
    d = inspect.debug(over_grid, np.zeros((3, 4), np.float32))
    assert d.cont() == ("error", "x[2, 4] is outside of x, which has the shape (3, 4)")
    assert d.back().reason == "step"
