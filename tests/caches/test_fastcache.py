"""The page on fastcache, statement by statement: what it is, how to use it, its constraints.

Keys, diagnostics and compound types are in `test_fastcache_keys`. Each docstring names the
statement. Where the documented system does something else than its page, or worse, it says so.
"""

import pytest
from qd_studio.engine.config import CompileConfig

from tests.caches.programs import NEVER, NEW, SCALE, WARM, letters, program, values
from tests.caches.two_runs import Runs


@pytest.fixture
def runs(tmp_path) -> Runs:
    return Runs(tmp_path)


def twice(runs: Runs, body: str, **env: str):
    """Run a program in two processes."""
    runs.write(program(body))
    return runs.run(**env), runs.run(**env)


# ---- What it is


def test_a_new_process_bypasses_the_front_end(runs):
    """Bypasses parsing and the transformation into IR; loads the compiled artifact directly."""
    first, second = twice(runs, SCALE)
    assert values(first) == values(second) == [[2.0] * 4]
    assert first.parses and first.ran_frontend and first.ran_passes and first.ran_llvm
    assert not second.parses
    assert not (second.ran_frontend or second.ran_passes or second.ran_llvm)


def test_the_offline_cache_alone_still_runs_the_front_end(runs):
    """The standard offline cache still parses the kernel and transforms it into IR."""
    first, second = twice(runs, SCALE.replace("(fastcache=True)", ""))
    assert values(first) == values(second) == [[2.0] * 4]
    assert second.of("scale").layers["offline"]["source"] == "disk"
    assert second.parses and second.ran_frontend
    assert not (second.ran_passes or second.ran_llvm)


def test_the_key_comes_from_source_argument_types_and_options(runs):
    """The key is of the kernel's source text, the argument types and the compiler config."""
    first, _ = twice(runs, SCALE)
    parts = first.of("scale").layers["fastcache"]["parts"]
    assert {"kernel", "source", "arg.a", "config.fast_math", "backend"} <= parts.keys()


# ---- How to use it


def test_it_is_opt_in(runs):
    """A kernel takes part only if its decorator says fastcache=True."""
    body = SCALE.replace("(fastcache=True)", "")
    first, second = twice(runs, body)
    assert letters(first) == letters(second) == [NEVER]
    assert second.of("scale").state("fastcache") == "off"
    assert not runs.files("fastcache")


def test_the_first_call_compiles_and_writes_the_entry(runs):
    """On the first call the kernel compiles normally and its entry is written to disk."""
    runs.write(program(SCALE))
    assert letters(runs.run()) == [NEW]
    assert len(runs.files("fastcache")) == 1


def test_the_entry_is_there_even_if_the_process_is_killed_after_the_call(runs):
    """Better: written at the call itself, not when the process ends."""
    killed = SCALE.replace("main()", "work()") + (
        "\n\ndef main():\n    if os.environ.get('DIE'):\n        work()\n        os._exit(7)\n"
        "    return work()\n"
    )
    runs.write(program(killed))
    with pytest.raises(AssertionError, match="exit code 7"):
        runs.run(DIE="1")
    assert letters(runs.run()) == [WARM]


def test_the_next_process_loads_it(runs):
    """When the next process starts, the artifact is loaded."""
    _, second = twice(runs, SCALE)
    assert letters(second) == [WARM]
    seen = second.of("scale")
    assert seen.key_generated and seen.validated and seen.loaded and not seen.stored
    assert (seen.state("fastcache"), seen.layers["fastcache"]["source"]) == ("hit", "disk")


def test_it_needs_the_offline_cache(runs):
    """Fastcache requires the offline cache to be enabled."""
    runs.write(program(SCALE))
    runs.run()
    for _ in range(2):
        cold = runs.run(QD_OFFLINE_CACHE="0")
        assert values(cold) == [[2.0] * 4]
        assert not cold.of("scale").loaded and cold.ran_frontend and cold.ran_llvm
    assert len(runs.files("fastcache")) == 1


def test_the_offline_cache_is_on_by_default(runs):
    """... which it is by default."""
    assert CompileConfig().offline_cache
    assert "offline_cache" not in SCALE
    _, second = twice(runs, SCALE)
    assert letters(second) == [WARM] and len(runs.files("offline")) == 1


def test_src_ll_cache_is_the_master_switch_and_on_by_default(runs):
    """src_ll_cache: default True; False turns fastcache off, and leaves the rest as it is."""
    runs.write(program(SCALE))
    runs.run()
    assert letters(runs.run()) == [WARM]
    runs.edit("(ones(),))", "(ones(),), src_ll_cache=False)")
    off = runs.run()
    assert letters(off) == [NEVER] and values(off) == [[2.0] * 4]
    assert off.of("scale").state("fastcache") == "off"
    assert off.of("scale").layers["offline"]["source"] == "disk"


MARKED_AND_PLAIN = (
    SCALE
    + """

@qd.kernel
def plain(a: F32) -> None:
    for i in range(a.shape[0]):
        a[i] = a[i] + 1.0


def main():
    qd.init(arch=qd.cpu, print_non_pure=OPTION)
    a = ones()
    scale(a)
    plain(a)
    return a.to_numpy().tolist()
"""
)


def test_print_non_pure_names_kernels_that_are_not_annotated(runs):
    """print_non_pure: default False; True finds un-annotated kernels."""
    runs.write(program(MARKED_AND_PLAIN.replace("OPTION", "True")))
    for _ in range(2):  # a kernel from the cache is found, too
        run = runs.run()
        assert run.result == [3.0] * 4
        text = run.stdout + run.stderr
        assert text.count("[NOT_PURE] Debug information: not pure: plain") == 1
        assert "not pure: scale" not in text
    runs.write(program(MARKED_AND_PLAIN.replace(", print_non_pure=OPTION", "")))
    run = runs.run()
    assert "NOT_PURE" not in run.stdout + run.stderr


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    "how", ["@qd.kernel(pure=True)", "@qd.pure\n@qd.kernel", "@qd.kernel(fastcache=True)"]
)
def test_deprecated_spellings(runs, how):
    """pure=True and @qd.pure do the same, with one deprecation warning each."""
    first, second = twice(runs, SCALE.replace("@qd.kernel(fastcache=True)", how))
    assert (letters(first), letters(second)) == ([NEW], [WARM])
    deprecated = [text for text in first.warnings if "deprecated" in text]
    assert len(deprecated) == ("pure" in how)
    assert all("fastcache=True" in text or "`fastcache`" in text for text in deprecated)


# ---- Constraints: all data flows through parameters


def refused(runs: Runs, body: str, *texts: str) -> None:
    """The program's kernel is refused as impure, in every run, and the message has these texts."""
    runs.write(program(body))
    for _ in range(2):
        run = runs.run(error="QuadrantsCompilationError")
        for text in ("[PURE.VIOLATION]", *texts):
            assert text in run.message, run.message
    assert not runs.files("fastcache")


ASSIGN = """
@qd.kernel(fastcache=True)
def assign(a: F32) -> None:
    for i in range(a.shape[0]):
        a[i] = VALUE


def main():
    return calls(assign, lambda: (ones(),))
"""


def test_the_page_s_example_of_a_kernel_that_is_not_eligible(runs):
    """bad_kernel captures an ndarray of the enclosing scope: QuadrantsCompilationError."""
    body = """
def main():
    qd.init(arch=qd.cpu)
    a = qd.ndarray(qd.f32, (10,))

    @qd.kernel(fastcache=True)
    def bad_kernel() -> None:
        for i in range(10):
            a[i] = 0.0

    bad_kernel()
"""
    runs.write(program(body))
    run = runs.run(error="QuadrantsCompilationError")
    assert "a[i] = 0.0" in run.message


def test_the_page_s_example_of_an_eligible_kernel(runs):
    """good_kernel gets the array as a parameter."""
    body = """
@qd.kernel(fastcache=True)
def good_kernel(a: qd.types.NDArray[qd.f32, 1]) -> None:
    for i in range(a.shape[0]):
        a[i] = 0.0


def main():
    return calls(good_kernel, lambda: (ones(10),))
"""
    first, second = twice(runs, body)
    assert values(second) == [[0.0] * 10]
    assert (letters(first), letters(second)) == ([NEW], [WARM])


def test_fields_of_the_enclosing_scope_are_refused(runs):
    """... any other external state: a field."""
    body = """
def main():
    qd.init(arch=qd.cpu)
    f = qd.field(qd.f32, 4)

    @qd.kernel(fastcache=True)
    def fill() -> None:
        for i in range(4):
            f[i] = 2.0

    fill()
"""
    refused(runs, body, "Accessing global variable f", "f[i] = 2.0")


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    ("before", "after"), [("[3.0, 9.0]", "[4.0, 9.0]"), ("{0: 3.0}", "{0: 4.0}")]
)
def test_mutable_globals_never_mislead(runs, before, after):
    """... mutable globals. Better: the documented system takes lists and keeps their old contents.

    Here, too, a list or dictionary is no error, but its contents are compared.
    """
    runs.write(program(f"table = {before}\n" + ASSIGN.replace("VALUE", "table[0]")))
    assert values(runs.run()) == values(runs.run()) == [[3.0] * 4]
    runs.edit(before, after)
    assert values(runs.run()) == values(runs.run()) == [[4.0] * 4]


def test_attributes_of_objects_of_the_enclosing_scope_are_refused(runs):
    """... any other external state: an attribute of an object."""
    state = "class State:\n    speed = 4.0\n\n\nstate = State()\n"
    refused(runs, state + ASSIGN.replace("VALUE", "state.speed"), "speed", "state")


def test_variables_of_an_enclosing_function_are_refused(runs):
    """... closures."""
    body = """
def make(factor):
    @qd.kernel(fastcache=True)
    def fill(a: F32) -> None:
        for i in range(a.shape[0]):
            a[i] = factor

    return fill


def main():
    return calls(make(2.0), lambda: (ones(),))
"""
    refused(runs, body, "Accessing global variable factor <class 'float'>", "a[i] = factor")


SUB = """
factor = 3.0


@qd.func
def inner(x):
    return x * factor


@qd.func
def outer(x):
    return inner(x) + 1.0

"""


def test_functions_that_the_kernel_calls_are_checked_too(runs):
    """Sub-functions must not capture external state either, however deep."""
    refused(runs, SUB + ASSIGN.replace("VALUE", "outer(a[i])"), "factor", "return x * factor")


@pytest.mark.sampled(6)
@pytest.mark.parametrize("value", ["3", "3.5", "'text'", "True"])
def test_other_named_constants_are_refused(runs, value):
    """Other named constants (no enum, no module) raise QuadrantsCompilationError."""
    body = f"speed = {value}\n" + ASSIGN.replace("VALUE", "1.0 if speed == 3 else 2.0")
    kind = type(eval(value)).__name__
    refused(runs, body, f"Accessing global variable speed <class '{kind}'>")


def test_a_kernel_without_fastcache_may_capture_what_it_likes(runs):
    """Purity is asserted by those who opt in; others are not checked."""
    body = "speed = 3.0\n" + ASSIGN.replace("VALUE", "speed").replace("(fastcache=True)", "")
    _, second = twice(runs, body)
    assert values(second) == [[3.0] * 4] and not second.warnings


# ---- Constraints: exemptions


def captured(runs: Runs, setup: str, value: str):
    """The two runs of a kernel that assigns ``value``, which must be cached without a word."""
    first, second = twice(runs, setup + ASSIGN.replace("VALUE", value))
    assert (letters(first), letters(second)) == ([NEW], [WARM]), first.stderr
    assert values(first) == values(second)
    assert not first.warnings and not second.warnings
    return values(second)[0][0]


COLOUR = """
class Colour(enum.IntEnum):
    RED = 1
    BLUE = 2


"""


def test_members_of_enums_are_exempt(runs):
    """Named constants that do not vary: members of an Enum."""
    assert captured(runs, COLOUR, "1.0 * Colour.BLUE") == 2.0


def test_a_changed_member_of_an_enum_is_noticed(runs):
    """Better: the documented system assumes that they never change between processes."""
    captured(runs, COLOUR, "1.0 * Colour.BLUE")
    runs.edit("BLUE = 2", "BLUE = 5")
    run = runs.run()
    assert values(run) == [[5.0] * 4] and letters(run) == [NEW]
    assert letters(runs.run()) == [WARM]


def test_attributes_of_modules_are_exempt(runs):
    """Module attributes such as math.pi and numpy.pi, assumed to be stable."""
    assert captured(runs, "", "math.pi + np.pi") == pytest.approx(6.2831855)


def test_attributes_of_the_language_are_exempt(runs):
    """Attributes of the quadrants module, such as qd.f32."""
    assert captured(runs, "", "qd.cast(qd.math.pi, qd.i32)") == 3.0


def test_types_and_functions_are_exempt(runs):
    """Functions are hashed with the kernel; data types are part of the language."""
    setup = "real = qd.f32\n\n\n@qd.func\ndef twice(x):\n    return qd.cast(x + x, real)\n\n"
    assert captured(runs, setup, "twice(a[i])") == 2.0


def test_uppercase_names_give_a_warning_instead(runs):
    """UPPERCASE names emit a warning, and the kernel is cached."""
    first, second = twice(runs, "SPEED = 3.0\n" + ASSIGN.replace("VALUE", "SPEED"))
    assert (letters(first), letters(second)) == ([NEW], [WARM])
    assert values(second) == [[3.0] * 4]
    warned = [text for text in first.warnings if "SPEED" in text]
    assert len(warned) == 1 and "[PURE.VIOLATION]" in warned[0]


def test_a_changed_uppercase_constant_is_noticed(runs):
    """Better: the documented system loads the kernel with the old value."""
    runs.write(program("SPEED = 3.0\n" + ASSIGN.replace("VALUE", "SPEED")))
    runs.run()
    runs.edit("SPEED = 3.0", "SPEED = 4.0")
    run = runs.run()
    assert values(run) == [[4.0] * 4] and not run.of("assign").loaded
    assert values(runs.run()) == [[4.0] * 4]
    runs.edit("SPEED = 4.0", "SPEED = 3.0")
    assert values(runs.run()) == [[3.0] * 4]


def test_uppercase_attributes_give_a_warning_instead(runs):
    """The same for an attribute of the user's module; its changes are noticed."""
    runs.write("SPEED = 3.0\nslow = 1.0\n", "constants")
    body = "import constants\n" + ASSIGN.replace("VALUE", "constants.SPEED")
    first, second = twice(runs, body)
    assert (letters(first), letters(second)) == ([NEW], [WARM])
    assert any("SPEED" in text for text in first.warnings)
    runs.write("SPEED = 5.0\n", "constants")
    assert values(runs.run()) == [[5.0] * 4]


def test_lowercase_attributes_of_the_user_s_modules_are_refused(runs):
    """... and its other attributes raise."""
    runs.write("speed = 3.0\n", "constants")
    body = "import constants\n" + ASSIGN.replace("VALUE", "constants.speed")
    refused(runs, body, "Accessing global var speed from outside function scope")


def test_names_in_static_give_a_warning_instead(runs):
    """What is used inside of qd.static is exempt, with a warning; its changes are noticed."""
    body = ASSIGN.replace("VALUE", "2.0\n        if qd.static(fast):\n            a[i] = 3.0")
    first, second = twice(runs, "fast = True\n" + body)
    assert (letters(first), letters(second)) == ([NEW], [WARM])
    assert any("fast" in text and "[PURE.VIOLATION]" in text for text in first.warnings)
    assert values(second) == [[3.0] * 4]
    runs.edit("fast = True", "fast = False")
    assert values(runs.run()) == [[2.0] * 4]


# ---- Constraints: source code must be available


def test_a_deleted_source_file_falls_back_to_normal_compilation(runs):
    """If the source cannot be read the cache cannot validate; the kernel compiles normally."""
    runs.write("X = 1\n" + program(SCALE))
    runs.run()
    gone = SCALE.replace("return calls", "os.remove(__file__)\n    return calls")
    runs.write(program(gone))
    run = runs.run()
    assert values(run) == [[2.0] * 4] and not runs.path.exists()


def test_a_deleted_file_of_a_function_falls_back_to_normal_compilation(runs):
    """The same for a file that only a function stands in: right results, and nothing fails."""
    helper = "import quadrants as qd\n\n\n@qd.func\ndef twice(x):\n    return x * 2.0\n"
    body = "import helper\n" + ASSIGN.replace("VALUE", "helper.twice(a[i])")
    runs.write(helper, "helper")
    runs.write(program(body))
    runs.run()
    runs.edit("    return calls", "    os.remove(helper.__file__)\n    return calls")
    assert values(runs.run()) == [[2.0] * 4]
    runs.write(helper.replace("2.0", "5.0"), "helper")
    assert values(runs.run()) == [[5.0] * 4]


def test_a_file_changed_after_its_import_does_not_mislead(runs):
    """Better: the code that runs is what was imported, whatever the file says now."""
    body = SCALE.replace(
        "    return calls",
        "    if os.environ.get('EDIT'):\n"
        "        text = open(__file__).read().replace('* 2.0', '* 9.0')\n"
        "        open(__file__, 'w').write(text)\n"
        "    return calls",
    )
    runs.write(program(body))
    assert values(runs.run(EDIT="1")) == [[2.0] * 4]
    assert values(runs.run()) == [[9.0] * 4]


EXEC = """
import linecache

TEXT = '''
@qd.kernel(fastcache=True)
def made(a: F32) -> None:
    for i in range(a.shape[0]):
        a[i] = 5.0
'''


def main():
    scope = {"qd": qd, "F32": F32, "__name__": "program"}
    if REGISTER:
        linecache.cache["<made>"] = (len(TEXT), None, TEXT.splitlines(True), "<made>")
    exec(compile(TEXT, "<made>", "exec"), scope)
    return calls(scope["made"], lambda: (ones(),))
"""


def test_a_kernel_made_by_exec_has_no_source(runs):
    """A kernel whose source nobody can find is an error, as it cannot be compiled either."""
    runs.write(program(EXEC.replace("REGISTER", "False")))
    run = runs.run(error="QuadrantsSyntaxError")
    assert "source text cannot be found" in run.message
    assert {path.parent.name for path in runs.files()} <= {"runtime"}  # nothing of a kernel


def test_a_kernel_made_by_exec_with_a_source_never_misleads(runs):
    """... as in a notebook, which tells Python the text of a cell: always the right result."""
    runs.write(program(EXEC.replace("REGISTER", "True")))
    assert values(runs.run()) == values(runs.run()) == [[5.0] * 4]
    runs.edit("a[i] = 5.0", "a[i] = 6.0")
    assert values(runs.run()) == values(runs.run()) == [[6.0] * 4]
