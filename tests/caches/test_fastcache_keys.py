"""The page on fastcache, statement by statement: what keys are made of, and diagnostics.

Each docstring names the statement. Where the documented system does something else than its page,
or worse, it says so.
"""

import pytest
from qd_studio.engine.runtime.fastcache import VERSIONS

from tests.caches.programs import NEW, SCALE, WARM, cases, letters, program, values
from tests.caches.two_runs import Run, Runs


@pytest.fixture
def runs(tmp_path) -> Runs:
    return Runs(tmp_path)


def part_of(run: Run, kernel: str, name: str) -> str:
    """The value of one part of the fast key of a kernel's last call."""
    return run.of(kernel).layers["fastcache"]["parts"][name]


# ---- Cache keying


def test_the_version_is_in_the_key(runs):
    """The version of the engine; better: also the content of its source."""
    runs.write(program(SCALE))
    engine = part_of(runs.run(), "scale", "engine")
    version, content = engine.split("+")
    assert version.count(".") == 2 and len(content) >= 8


def test_the_source_of_the_kernel_is_in_the_key(runs):
    """The source code of the kernel function."""
    runs.write(program(SCALE))
    assert letters(runs.run()) == [NEW]
    runs.edit("a[i] * 2.0", "a[i] * 3.0")
    run = runs.run()
    assert values(run) == [[3.0] * 4] and letters(run) == [NEW]


def test_the_last_line_of_a_kernel_counts_and_the_line_after_it_does_not(runs):
    """Better: exactly its own lines; the documented system takes the line after it for its last."""
    body = SCALE.replace("* 2.0\n\n\ndef main", "* 2.0\nNEXT = 1\n\n\ndef main")
    runs.write(program(body))
    runs.run()
    runs.edit("NEXT = 1", "NEXT = 2")
    assert letters(runs.run()) == [WARM]
    runs.edit("        a[i] = a[i] * 2.0\n", "        a[i] = a[i] * 2.0\n        a[i] += 1.0\n")
    run = runs.run()
    assert values(run) == [[3.0] * 4] and letters(run) == [NEW]


def test_the_decorators_of_a_kernel_count(runs):
    """Better: decorator lines are part of the source; the documented system leaves them out."""
    runs.write(program(SCALE))
    runs.run()
    runs.edit("@qd.kernel(fastcache=True)", "@qd.kernel(fastcache=bool(1))")
    assert letters(runs.run()) == [NEW]


def test_moving_a_kernel_changes_nothing(runs):
    """Better: lines above the kernel, and other kernels, are none of its source."""
    runs.write(program(SCALE))
    runs.run()
    runs.edit("F32 = ", "\n\n# moved down\nF32 = ")
    assert letters(runs.run()) == [WARM]


FUNCS = """
@qd.func
def inner(x):
    return x + 1.0


@qd.func
def outer(x):
    return inner(x) * 2.0


@qd.kernel(fastcache=True)
def both(a: F32) -> None:
    for i in range(a.shape[0]):
        a[i] = outer(a[i])


def main():
    return calls(both, lambda: (ones(2),))
"""


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("old", "new", "value"),
    [("x + 1.0", "x + 2.0", 6.0), ("inner(x) * 2.0", "inner(x) * 5.0", 10.0)],
)
def test_the_source_of_functions_is_checked(runs, old, new, value):
    """... or of any @qd.func that it calls, also through another one."""
    runs.write(program(FUNCS))
    assert letters(runs.run()) == [NEW]
    runs.edit(old, new)
    run = runs.run()
    assert values(run) == [[value] * 2] and not run.of("both").loaded and run.of("both").stored
    assert letters(runs.run()) == [WARM]


def test_functions_of_other_files_are_checked(runs):
    """The same for functions that are imported."""
    helper = "import quadrants as qd\n\n\n@qd.func\ndef outer(x):\n    return x * 3.0\n"
    runs.write(helper, "helper")
    body = FUNCS.partition("@qd.kernel")
    runs.write(program("from helper import outer\n\n\n" + body[1] + body[2]))
    assert values(runs.run()) == [[3.0] * 2]
    assert letters(runs.run()) == [WARM]
    runs.edit("x * 3.0", "x * 4.0", "helper")
    assert values(runs.run()) == [[4.0] * 2]


def test_the_types_of_arguments_are_in_the_key(runs):
    """The argument types: f32 to f64, another number of dimensions."""
    body = SCALE.replace("a: F32", "a: qd.types.ndarray()").replace(
        "lambda: (ones(),)",
        "lambda: (ones(2),), lambda: (array([3.0], qd.f64),), lambda: (np.ones(1, np.float32),)",
    )
    assert cases(runs, body, "nnn") == [[2.0] * 2, [6.0], [2.0]]


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("debug", "True"),
        ("opt_level", "0"),
        ("fast_math", "False"),
        ("check_out_of_bound", "True"),
        ("default_fp", "qd.f64"),
        ("default_ip", "qd.i64"),
        ("cache_loop_invariant_global_vars", "False"),
    ],
)
def test_the_compiler_configuration_is_in_the_key(runs, option, value):
    """The compiler configuration: debug, opt_level, fast_math and whatever changes code.

    Better: the documented system forgets cache_loop_invariant_global_vars in its IR key.
    """
    runs.write(program(SCALE))
    before = runs.run()
    runs.edit("(ones(),))", f"(ones(),), {option}={value})")
    changed = runs.run()
    assert letters(changed) == [NEW] and values(changed) == values(before)
    old, new = (run.of("scale").layers["fastcache"]["parts"] for run in (before, changed))
    differ = {name for name in old if old[name] != new.get(name)}
    also = {"config.check_out_of_bound"} if option == "debug" else set()
    assert differ == {f"config.{option}"} | also
    assert letters(runs.run()) == [WARM]


def test_the_arch_is_in_the_key(runs):
    """... the arch."""
    runs.write(program(SCALE.replace("main():\n", "main():\n    os.environ.pop('X', None)\n")))
    assert letters(runs.run()) == [NEW]
    other = runs.run(QD_ARCH="interp")
    assert values(other) == [[2.0] * 4] and letters(other) == [NEW]
    assert letters(runs.run()) == letters(runs.run(QD_ARCH="interp")) == [WARM]


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    "change",
    ["log_level='error'", "offline_cache_cleaning_policy='fifo'", "print_non_pure=True"],
)
def test_options_that_change_no_code_are_not_in_the_key(runs, change):
    """Facts: options about printing and about the caches themselves are left out."""
    runs.write(program(SCALE))
    runs.run()
    runs.edit("(ones(),))", f"(ones(),), {change})")
    assert letters(runs.run()) == [WARM]


def test_values_of_templates_are_in_the_key(runs):
    """Template parameter values, since they are baked into the kernel."""
    body = """
@qd.kernel(fastcache=True)
def fill(a: F32, n: qd.template()) -> None:
    for i in qd.static(range(n)):
        a[i] = 5.0


def main():
    return calls(fill, lambda: (ones(3), 1), lambda: (ones(3), 2))
"""
    assert cases(runs, body, "nn") == [[5.0, 1.0, 1.0], [5.0, 5.0, 1.0]]


def test_a_change_makes_a_new_entry_and_earlier_ones_stay(runs):
    """When any of these change a new entry is stored; previous ones remain, versions coexist."""
    runs.write(program(SCALE))
    runs.run()
    one = runs.files("fastcache")
    runs.edit("* 2.0", "* 3.0")
    runs.run()
    two = runs.files("fastcache")
    assert len(two) == 2 and set(one) < set(two)
    assert letters(runs.run()) == [WARM]
    runs.edit("* 3.0", "* 2.0")
    back = runs.run()
    assert letters(back) == [WARM] and values(back) == [[2.0] * 4]


def test_an_edit_of_a_function_keeps_what_was_there_before(runs):
    """... also when a function changes that the kernel calls: versions coexist.

    Better: the documented system writes over the entry.
    """
    runs.write(program(FUNCS))
    runs.run()
    runs.edit("x + 1.0", "x + 2.0")
    assert letters(runs.run()) == [NEW]
    for old, new, value in (("2.0\n\n", "1.0\n\n", 4.0), ("1.0\n\n", "2.0\n\n", 6.0)):
        runs.edit(f"x + {old}", f"x + {new}")
        run = runs.run()
        assert letters(run) == [WARM] and values(run) == [[value] * 2]
    assert len(runs.files("fastcache")) == 1


@pytest.mark.slow
def test_a_kernel_has_a_bounded_number_of_versions(runs):
    """... a few of them: the version that is not found again is the oldest."""
    runs.write(program(FUNCS))
    for number in range(VERSIONS + 1):
        runs.write(program(FUNCS.replace("x + 1.0", f"x + {number}.0")))
        assert letters(runs.run()) == [NEW]
    for number in range(VERSIONS, -1, -1):
        runs.write(program(FUNCS.replace("x + 1.0", f"x + {number}.0")))
        run = runs.run()
        assert values(run) == [[2.0 + 2 * number] * 2]
        assert letters(run) == [WARM if number else NEW]


@pytest.mark.slow
def test_there_is_no_need_to_clear_the_cache(runs):
    """Code changes recompile transparently."""
    runs.write(program(SCALE))
    for number in (2.0, 3.0, 2.0, 4.0, 3.0):
        runs.path.write_text(program(SCALE.replace("* 2.0", f"* {number}")), encoding="utf-8")
        assert values(runs.run()) == [[number] * 4]


# ---- Diagnostics


def test_the_page_s_example_of_diagnostics(runs):
    """src_ll_cache_observations of the primal: what they are in the first and the second run."""
    body = """
@qd.kernel(fastcache=True)
def my_kernel(x: qd.types.NDArray[qd.f32, 1]) -> None:
    for i in range(x.shape[0]):
        x[i] += 1.0


def main():
    told = []
    for _ in range(2):
        qd.init(arch=qd.cpu)
        some_array = ones()
        before = my_kernel._primal.src_ll_cache_observations
        told.append([before.cache_key_generated, before.cache_stored])
        my_kernel(some_array)
        obs = my_kernel._primal.src_ll_cache_observations
        told.append(
            [obs.cache_key_generated, obs.cache_validated, obs.cache_loaded, obs.cache_stored]
        )
    return told
"""
    runs.write(program(body))
    first = runs.run().result
    assert first[0] == [False, False]
    assert first[1] == [True, False, False, True]
    assert first[3] == [True, True, True, False]
    assert runs.run().result[1] == [True, True, True, False]


def test_the_siblings_of_the_observations(runs):
    """Facts: frontend hits, found in the process, and counts of arguments by their kind."""
    body = (
        SCALE.replace("calls(scale, lambda: (ones(),))", "again()")
        + """

def again():
    told = []
    qd.init(arch=qd.cpu)
    a = ones()
    for _ in range(2):
        scale(a)
        primal = scale._primal
        told.append(bool(primal.launch_observations.found_kernel_in_materialize_cache))
        told.append(sum(primal.launch_stats.kernel_args_count_by_type.values()))
    return told
"""
    )
    runs.write(program(body))
    assert runs.run().result == [False, 1, True, 1]
