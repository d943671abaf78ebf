"""The page on fastcache, statement by statement: what it is, how to use it, its constraints.

Keys are in `test_fastcache_keys`, types in `test_fastcache_types` and `test_fastcache_compound`.
Each docstring names the statement. Where the documented system does something else than its page,
or worse, it says so.
"""

import pytest
from qd_studio.engine.config import CompileConfig

from tests.caches.programs import NEVER, NEW, SCALE, WARM, assign, letters, program, values
from tests.caches.two_runs import Runs


def twice(runs: Runs, body: str, **env: str):
    """Run a program in two processes."""
    runs.write(program(body))
    return runs.run(**env), runs.run(**env)


# ---- What it is


def test_a_new_process_loads_what_the_first_call_compiled(runs):
    """The first call compiles normally and writes an entry, the next process loads the artifact.

    That bypasses parsing and the transformation into IR. The key is of the kernel's source text,
    the argument types and the compiler config. The offline cache, which it needs, is on by default.
    """
    assert CompileConfig().offline_cache and "offline_cache" not in SCALE
    runs.write(program(SCALE))
    first = runs.run()
    assert letters(first) == [NEW] and values(first) == [[2.0] * 4]
    assert len(runs.files("fastcache")) == len(runs.files("offline")) == 1
    assert first.parses and first.ran_frontend and first.ran_passes and first.ran_llvm
    parts = first.of("scale").layers["fastcache"]["parts"]
    assert {"kernel", "source", "arg.a", "config.fast_math", "backend"} <= parts.keys()
    second = runs.run()
    assert letters(second) == [WARM] and values(second) == [[2.0] * 4]
    assert not second.parses
    assert not (second.ran_frontend or second.ran_passes or second.ran_llvm)
    seen = second.of("scale")
    assert seen.key_generated and seen.validated and seen.loaded and not seen.stored
    assert (seen.state("fastcache"), seen.layers["fastcache"]["source"]) == ("hit", "disk")


# ---- How to use it


def test_it_is_opt_in(runs):
    """A kernel takes part only if its decorator says fastcache=True.

    The offline cache alone still parses the kernel and transforms it into IR.
    """
    first, second = twice(runs, SCALE.replace("(fastcache=True)", ""))
    assert values(first) == values(second) == [[2.0] * 4]
    assert letters(first) == letters(second) == [NEVER]
    assert second.of("scale").state("fastcache") == "off"
    assert second.of("scale").layers["offline"]["source"] == "disk"
    assert second.parses and second.ran_frontend
    assert not (second.ran_passes or second.ran_llvm)
    assert not runs.files("fastcache")


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


def test_it_needs_the_offline_cache(runs):
    """Fastcache requires the offline cache to be enabled."""
    runs.write(program(SCALE))
    runs.run()
    for _ in range(2):
        cold = runs.run(QD_OFFLINE_CACHE="0")
        assert values(cold) == [[2.0] * 4]
        assert not cold.of("scale").loaded and cold.ran_frontend and cold.ran_llvm
    assert len(runs.files("fastcache")) == 1


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
NAMED = "1.0 if speed == 3 else 2.0"

# Lines before the kernel, what it assigns, and words of the message.
REFUSED = {
    "attributes of objects of the enclosing scope": (
        "class State:\n    speed = 4.0\n\n\nstate = State()\n", "state.speed", "speed", "state",
    ),
    "what functions capture that the kernel calls, however deep": (
        SUB, "outer(a[i])", "factor", "return x * factor",
    ),
    "attributes of the user's modules": (
        "import constants\n", "constants.speed",
        "Accessing global var speed from outside function scope",
    ),
    **{
        f"a named constant, {kind}": (
            f"speed = {value}\n", NAMED, f"Accessing global variable speed <class '{kind}'>",
        )
        for kind, value in (("int", "3"), ("float", "3.5"), ("str", "'text'"), ("bool", "True"))
    },
}  # fmt: skip


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", REFUSED)
def test_other_external_state_is_refused(runs, name):
    """Neither an enum nor a module, in lower case: QuadrantsCompilationError."""
    before, value, *texts = REFUSED[name]
    runs.write("speed = 3.0\n", "constants")
    refused(runs, before + assign(value), *texts)


def test_a_kernel_without_fastcache_may_capture_what_it_likes(runs):
    """Purity is asserted by those who opt in; others are not checked."""
    body = "speed = 3.0\n" + assign("speed").replace("(fastcache=True)", "")
    _, second = twice(runs, body)
    assert values(second) == [[3.0]] and not second.warnings


# ---- Constraints: exemptions


COLOUR = "class Colour(enum.IntEnum):\n    RED = 1\n    BLUE = 2\n\n\n"
TWICE = "real = qd.f32\n\n\n@qd.func\ndef twice(x):\n    return qd.cast(x + x, real)\n\n"


@pytest.mark.parametrize(
    ("before", "value", "result"),
    [
        (COLOUR, "1.0 * Colour.BLUE", 2.0),
        ("", "math.pi + np.pi", pytest.approx(6.2831855)),
        ("", "qd.cast(qd.math.pi, qd.i32)", 3.0),
        (TWICE, "twice(a[i])", 2.0),
    ],
    ids=["members of enums", "modules", "the language", "types and functions"],
)
def test_what_is_exempt_is_cached_without_a_word(runs, before, value, result):
    """Members of an Enum, math.pi, numpy.pi, what quadrants has, functions, which are hashed."""
    first, second = twice(runs, before + assign(value))
    assert (letters(first), letters(second)) == ([NEW], [WARM]), first.stderr
    assert values(first) == values(second) == [[result]]
    assert not first.warnings and not second.warnings


def test_uppercase_names_give_a_warning_instead(runs):
    """UPPERCASE names emit a warning, and the kernel is cached."""
    first, second = twice(runs, "SPEED = 3.0\n" + assign("SPEED"))
    assert (letters(first), letters(second)) == ([NEW], [WARM])
    assert values(second) == [[3.0]]
    warned = [text for text in first.warnings if "SPEED" in text]
    assert len(warned) == 1 and "[PURE.VIOLATION]" in warned[0]


def test_uppercase_attributes_give_a_warning_instead(runs):
    """The same for an attribute of the user's module; its changes are noticed."""
    runs.write("SPEED = 3.0\nslow = 1.0\n", "constants")
    body = "import constants\n" + assign("constants.SPEED")
    first, second = twice(runs, body)
    assert (letters(first), letters(second)) == ([NEW], [WARM])
    assert any("SPEED" in text for text in first.warnings)
    runs.write("SPEED = 5.0\n", "constants")
    assert values(runs.run()) == [[5.0]]


def test_names_in_static_give_a_warning_instead(runs):
    """What is used inside of qd.static is exempt, with a warning; its changes are noticed."""
    body = assign("2.0\n        if qd.static(fast):\n            a[i] = 3.0")
    first, second = twice(runs, "fast = True\n" + body)
    assert (letters(first), letters(second)) == ([NEW], [WARM])
    assert any("fast" in text and "[PURE.VIOLATION]" in text for text in first.warnings)
    assert values(second) == [[3.0]]
    runs.edit("fast = True", "fast = False")
    assert values(runs.run()) == [[2.0]]


# ---- Constraints: source code must be available


def test_a_deleted_file_of_a_function_falls_back_to_normal_compilation(runs):
    """If a source cannot be read, the cache cannot validate; the kernel compiles normally.

    What the kernel's own file, and kernels without one, do is in `test_fastcache_entries`.
    """
    helper = "import quadrants as qd\n\n\n@qd.func\ndef twice(x):\n    return x * 2.0\n"
    body = "import helper\n" + assign("helper.twice(a[i])")
    runs.write(helper, "helper")
    runs.write(program(body))
    runs.run()
    runs.edit("    return calls", "    os.remove(helper.__file__)\n    return calls")
    assert values(runs.run()) == [[2.0]]
    runs.write(helper.replace("2.0", "5.0"), "helper")
    assert values(runs.run()) == [[5.0]]
