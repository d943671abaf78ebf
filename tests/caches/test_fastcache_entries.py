"""Kernels in files and cells that change; entries that are gone, damaged or switched off."""

import linecache
import sys

import pytest
from qd_studio import engine as qd
from qd_studio.engine.cache import folder
from qd_studio.engine.cache.store import Entry, open_store
from qd_studio.engine.runtime.program import current

from tests.caches.lab import HELPERS, Answer, kernel


@pytest.fixture
def warm(lab):
    """A lab whose kernel, which calls a helper, is found again."""
    lab.write(HELPERS + kernel("double(a[i])"))
    assert lab.warm() == 2.0
    return lab


# ---- files


def test_a_file_that_is_edited_between_import_and_call(lab):
    lab.write(HELPERS + kernel("double(a[i])"))
    with lab.started() as module:
        lab.edit("x * 2.0", "x * 5.0")
        assert module.main() == 2.0  # what was imported
    assert lab.run()[0] == 5.0
    assert lab.run() == Answer(5.0, "hit", "")


def test_a_file_that_is_deleted_between_import_and_call(warm):
    with warm.started() as module:
        (warm.folder / "lab_program.py").unlink()
        assert module.main() == 2.0


@pytest.mark.parametrize(
    ("made", "rest", "name"),
    [(HELPERS, kernel("double(a[i])"), "double"), (kernel("2.0"), "", "k")],
)
def test_what_has_no_source_is_an_error_as_ever(lab, made, rest, name):
    lab.write(f"text = '''{made}'''\nexec(text)\n{rest}")
    with lab.started() as module, pytest.raises(qd.QuadrantsSyntaxError, match=f"of '{name}'"):
        module.main()
    assert not (lab.folder / "cache" / "fastcache").exists()


def test_a_notebook_cell(lab):
    lab.write("def main():\n    return call(k)\n")
    for number, text in enumerate(("x * 2.0", "x * 2.0", "x * 5.0")):
        with lab.started() as module:
            name = f"<ipython-input-{number}-abc>"
            cell = HELPERS.replace("x * 2.0", text) + kernel("double(a[i])")
            linecache.cache[name] = len(cell), None, cell.splitlines(keepends=True), name
            exec(compile(cell, name, "exec"), vars(module))
            assert module.main() == (5.0 if "5" in text else 2.0)
            assert lab.seen().state == ("hit" if number == 1 else "miss")


def test_two_kernels_of_one_name(lab):
    first = kernel("a[i] * 2.0").replace("def main():\n    return call(k)\n", "first = k\n")
    lab.write(first + kernel("a[i] * 3.0").replace("call(k)", "call(first) + 10.0 * call(k)"))
    assert lab.warm() == 32.0


def test_kernels_of_a_factory_do_not_displace_each_other(lab):
    body = """
def make(F):
    @qd.kernel(fastcache=True)
    def k(a: F32) -> None:
        for i in range(1):
            a[i] = a[i] * F
    return k

two, k = make(2.0), make(3.0)

def main():
    return call(two) + 10.0 * call(k)
"""
    lab.write(body)
    with pytest.warns(UserWarning, match="F "):
        assert lab.warm() == 32.0
    with lab.started() as module:
        assert module.main() == 32.0
        assert [lab.seen(one).state for one in (module.two, module.k)] == ["hit", "hit"]


def test_a_failing_assertion_points_to_where_the_function_is_now(lab):
    body = """
@qd.func
def check(x):
    assert x > 2.0, "too small"
    return x
"""
    lab.options = {"debug": True}
    lab.write(body + kernel("check(a[i] + 2.0)"))
    assert lab.warm() == 3.0
    lab.edit("check(a[i] + 2.0)", "check(a[i])")
    for _ in range(2):
        lines = []
        for extra in ("", "\n\n"):
            lab.edit("\n@qd.func", extra + "\n@qd.func")
            with lab.started() as module:
                with pytest.raises(qd.QuadrantsAssertionError) as caught:
                    module.main()
                lines.append(caught.value.span.line)
        assert lines[1] == lines[0] + 2
    assert lab.seen().state == "hit"


def test_arrays_that_overlap(lab):
    body = """
@qd.kernel(fastcache=True)
def k(a: F32, b: F32) -> None:
    for i in range(1):
        a[i] = b[i + 1] * 2.0

def main():
    whole = np.array([1.0, 3.0], np.float32)
    k(whole, whole)
    return float(whole[0])
"""
    lab.write(body)
    assert lab.warm() == 6.0
    with lab.started() as module:
        assert module.main() == 6.0
        (variant,) = module.k.launchers.variants.values()
        compiled = variant.overlapping()
    fast = compiled.layers[0]
    assert (fast.state, dict(fast.parts)["noalias"]) == ("hit", "False")


def test_an_entry_whose_code_is_gone(warm):
    for path in (warm.folder / "cache" / "offline").iterdir():
        path.unlink()
    with warm.started() as module:
        assert module.main() == 2.0
        seen = module.k._primal.src_ll_cache_observations
        assert seen == (True, True, False, True)
        assert "no longer in the offline cache" in warm.seen().reason
    assert warm.run() == Answer(2.0, "hit", "")


@pytest.mark.parametrize("spoil", ["missing", "number", "owner", "leaf", "none", "no list"])
def test_an_entry_that_makes_no_sense_is_damaged(warm, spoil, warnings):
    with warm.started() as module:
        module.main()
        key = warm.seen().key
        store = open_store(current().config, "fastcache")
        versions, _ = store.peek(key, "k")
        (load,) = versions
        if spoil == "missing":
            del load["leaves"]
        elif spoil == "number":
            load["functions"] = 3
        elif spoil == "owner":
            load["captures"][0][0] = "kernel"
        elif spoil == "leaf":
            load["leaves"] = [[0, [], 3]]
        elif spoil == "none":
            versions.clear()
        else:
            versions = {"a": load}
        store.write(Entry(key, "k", {}, versions, b""))
    warnings()
    value, state, reason = warm.run()
    assert (value, state) == (2.0, "damaged")
    assert "cannot be read back" in reason
    assert len(warnings()) == 1
    assert warm.run() == Answer(2.0, "hit", "")


def test_the_options_and_the_environment(warm, monkeypatch):
    monkeypatch.setenv("QD_KERNEL_COVERAGE", "1")
    assert warm.run()[:2] == (2.0, "miss")
    monkeypatch.delenv("QD_KERNEL_COVERAGE")
    for options in ({"src_ll_cache": False}, {"offline_cache": False}):
        warm.options = options
        (name,) = options
        assert warm.run() == Answer(2.0, "off", f"{name}=False")
    warm.options = {"print_kernel_llvm_ir": True}
    assert warm.run()[:2] == (2.0, "bypass")
    warm.options = {}
    assert warm.run() == Answer(2.0, "hit", "")


def test_a_process_that_only_looks_uses_nothing(warm, monkeypatch):
    before = [(p, p.stat().st_mtime_ns) for p in (warm.folder / "cache").rglob("*")]
    monkeypatch.setattr(folder, "_dry", True)
    assert warm.run()[:2] == (2.0, "bypass")
    assert [(p, p.stat().st_mtime_ns) for p in (warm.folder / "cache").rglob("*")] == before


def test_another_python_parses_for_itself(warm, monkeypatch):
    monkeypatch.setattr(sys, "version_info", (3, 99, 0, "final", 0))
    assert warm.run()[:2] == (2.0, "miss")


@pytest.mark.parametrize(
    "odd",
    [
        "class Odd:\n    def __getattr__(self, name):\n        raise RuntimeError\ndouble = Odd()",
        "class O:\n    @property\n    def decl(self):\n        raise RuntimeError\ndouble = O()",
        "double = 10 ** 5000",
    ],
)
def test_what_cannot_even_be_looked_at_is_the_compiler_s_to_tell(warm, odd):
    """A name that led to a function leads to something odd: an error of the compile, no other."""
    warm.edit("def main", f"{odd}\n\ndef main")
    with warm.started() as module, pytest.raises(qd.QuadrantsCompilationError):
        module.main()


# ---- where a process has been before


def test_a_relative_folder_stays_where_it_was_when_the_program_began(lab, monkeypatch):
    lab.write(kernel("2.0"))
    other = lab.folder / "other"
    other.mkdir()
    with lab.started() as module:
        monkeypatch.chdir(lab.folder)
        qd.init(arch=qd.cpu, offline_cache_file_path="here")
        monkeypatch.chdir(other)
        assert module.main() == 2.0
    assert not list(other.iterdir())
    assert list((lab.folder / "here" / "fastcache").iterdir())


# ---- what a process has seen before


def test_struct_types_of_other_kernels_do_not_count(lab):
    """A type has its number among those of one kernel, not of all that the process knew."""
    lab.write("""
def make(T):
    @qd.kernel(fastcache=True)
    def k(a: F32) -> None:
        for i in range(1):
            a[i] = T(x=2.0).x
    return k

k = make(qd.types.struct(x=qd.f32))

def main():
    return call(k)
""")
    assert lab.warm() == 2.0
