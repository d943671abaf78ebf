"""The page on fastcache, statement by statement: what keys are made of.

Types of arguments are in `test_fastcache_types`, functions that a kernel calls in
`test_fastcache_captures`, diagnostics in `test_fastcache_cheap`.

Each docstring names the statement. Where the documented system does something else than its page,
or worse, it says so.
"""

import pytest
from qd_studio import engine as qd
from qd_studio.engine.runtime.fastcache import VERSIONS

from tests.caches.lab import HELPERS, kernel
from tests.caches.programs import NEW, SCALE, WARM, letters, program, values


def test_the_version_is_in_the_key(runs):
    """The version of the engine; better: also the content of its source."""
    runs.write(program(SCALE))
    engine = runs.run().of("scale").layers["fastcache"]["parts"]["engine"]
    version, content = engine.split("+")
    assert version.count(".") == 2 and len(content) >= 8


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


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("debug", True),
        ("opt_level", 0),
        ("fast_math", False),
        ("check_out_of_bound", True),
        ("default_fp", qd.f64),
        ("default_ip", qd.i64),
        ("cache_loop_invariant_global_vars", False),
    ],
)
def test_the_compiler_configuration_is_in_the_key(lab, option, value):
    """The compiler configuration: debug, opt_level, fast_math and whatever changes code.

    Better: the documented system forgets cache_loop_invariant_global_vars in its IR key.
    """
    lab.write(kernel("a[i] * 2.0"))
    assert lab.warm() == 2.0
    old = dict(lab.seen().parts)
    lab.options = {option: value}
    assert lab.run()[:2] == (2.0, "miss")
    new = dict(lab.seen().parts)
    also = {"config.check_out_of_bound"} if option == "debug" else set()
    assert {name for name in old if old[name] != new.get(name)} == {f"config.{option}"} | also
    assert lab.run()[:2] == (2.0, "hit")


def test_the_arch_is_in_the_key(runs):
    """... the arch."""
    runs.write(program(SCALE.replace("main():\n", "main():\n    os.environ.pop('X', None)\n")))
    assert letters(runs.run()) == [NEW]
    other = runs.run(QD_ARCH="interp")
    assert values(other) == [[2.0] * 4] and letters(other) == [NEW]
    assert letters(runs.run()) == letters(runs.run(QD_ARCH="interp")) == [WARM]


def test_options_that_change_no_code_are_not_in_the_key(lab):
    """Facts: options about printing and about the caches themselves are left out."""
    lab.write(kernel("a[i] * 2.0"))
    assert lab.warm() == 2.0
    for name, value in (
        ("log_level", "error"), ("offline_cache_cleaning_policy", "fifo"), ("print_non_pure", True),
    ):  # fmt: skip
        lab.options = {name: value}
        assert lab.run() == (2.0, "hit", "")


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


def test_an_edit_of_a_function_keeps_what_was_there_before(lab):
    """... also when a function changes that the kernel calls: versions coexist.

    Better: the documented system writes over the entry.
    """
    lab.write(HELPERS + kernel("double(a[i])"))
    assert lab.warm() == 2.0
    lab.edit("x * 2.0", "x * 5.0")
    assert lab.run()[:2] == (5.0, "miss")
    for old, new, value in (("x * 5.0", "x * 2.0", 2.0), ("x * 2.0", "x * 5.0", 5.0)):
        lab.edit(old, new)
        assert lab.run() == (value, "hit", "")
    assert len(list((lab.folder / "cache" / "fastcache").iterdir())) == 1


def test_a_kernel_has_a_bounded_number_of_versions(lab):
    """... a few of them: the version that is not found again is the oldest."""

    def run(number):
        scaled = f"\n@qd.func\ndef scaled(x):\n    return x * {number}.0\n"
        lab.write(scaled + kernel("scaled(a[i])"))
        return lab.run()[:2]

    for number in range(VERSIONS + 1):
        assert run(number) == (number, "miss")
    for number in range(VERSIONS, -1, -1):
        assert run(number) == (number, "hit" if number else "miss")
