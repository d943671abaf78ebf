"""The offline cache in one process: what is kept, found, refused, and reported."""

import os

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.engine.backends.base import find
from qd_studio.engine.cache import folder
from qd_studio.engine.cache.in_process import IN_PROCESS, InProcessCache
from qd_studio.engine.cache.observe import BYPASS, DAMAGED, HIT, MISS, OFF
from qd_studio.engine.cache.store import Entry, open_store
from qd_studio.engine.passes import Timer
from qd_studio.engine.runtime import program

from tests.caches.offline_kit import compiled, forget, module, numbers, seen, start

KERNEL = """
@qd.kernel
def scale(a: qd.types.NDArray[qd.f32, 1], f: qd.f32) -> qd.f32:
    s = 0.0
    for i in range(4):
        assert a[i] < 100.0, "too large"
        a[i] = a[i] * f
        s += a[i]
    return s
"""


@pytest.fixture(autouse=True)
def _cold():
    forget()
    yield
    qd.reset()
    forget()


@pytest.fixture
def scale(tmp_path):
    return module(tmp_path / "kernels.py", KERNEL).scale


@pytest.fixture
def on(root):
    """Starts a program with the cache on disk, in a folder of the test's own."""
    given = {"offline_cache": True, "offline_cache_file_path": root, "log_level": "warn"}
    return lambda **options: start(**{**given, **options})


def store_of():
    return open_store(program.current().config, "offline")


def entries():
    return list(store_of().all())


def state(kernel):
    found = seen(kernel)
    return found.state, found.source, found.stored


# --- memory -----------------------------------------------------------------------------------


@pytest.mark.parametrize("arch", ["cpu", "interp"])
def test_within_a_process_no_kernel_is_compiled_twice(scale, arch, monkeypatch, capfd):
    monkeypatch.setenv("QD_SHOW_COMPILING", "1")
    for number in range(3):
        start(arch=arch, log_level="info")
        assert scale(numbers(), 2.0) == 12.0
        assert state(scale) == ((HIT, "memory", False) if number else (OFF, "", False))
        assert seen(scale).reason == ("" if number else "offline_cache=False")
    assert capfd.readouterr().err.count("Compiling kernel 'scale'") == 1


def test_equal_kernels_of_two_places_share_code(tmp_path):
    one = module(tmp_path / "one.py", KERNEL).scale
    other = module(tmp_path / "other.py", "\n\n\n" + KERNEL).scale
    start(debug=True)
    assert one(numbers(), 2.0) == other(numbers(), 2.0) == 12.0
    assert (seen(one).state, seen(other).state) == (OFF, HIT)
    for kernel, line in ((one, 7), (other, 10)):
        with pytest.raises(qd.QuadrantsAssertionError, match="too large") as caught:
            kernel(numbers() + 100, 1.0)
        assert caught.value.span.line == line
        assert caught.value.span.file == str(kernel.decl.file)


def test_a_reset_forgets_nothing_and_other_options_are_another_kernel(scale):
    start()
    scale(numbers(), 2.0)
    qd.reset()
    start(fast_math=False)
    scale(numbers(), 2.0)
    assert seen(scale).state == OFF
    start()
    scale(numbers(), 2.0)
    assert state(scale) == (HIT, "memory", False)


def artifact(size: int, texts: int = 0):

    from tests.caches.test_codec import ARTIFACT

    return ARTIFACT.replaced(code=b"x" * size, texts={"llvm_ir": "y" * texts})


def test_memory_is_bounded_and_drops_what_was_used_longest_ago():
    held = InProcessCache(limit=50_000)
    for name in "abc":
        held.put(name, artifact(8_000, 2_000), ())
    assert held.artifact("a", ()) is not None  # used last now
    held.put("d", artifact(8_000, 2_000), ())
    assert [held.artifact(name, ()) is not None for name in "abcd"] == [True, False, True, True]
    assert len(held) == 3
    assert 30_000 < held.size <= 50_000
    held.put("e", artifact(60_000), ())
    assert held.artifact("e", ()) is None
    assert len(held) == 3
    held.put("a", artifact(10), ())
    held.drop("c")
    held.drop("nothing")
    assert len(held) == 2
    held.clear()
    assert (len(held), held.size) == (0, 0)


# --- disk -------------------------------------------------------------------------------------


@pytest.mark.parametrize("arch", ["cpu", "interp"])
def test_what_was_compiled_is_found_again(scale, on, arch):
    on(arch=arch)
    assert scale(numbers(), 2.0) == 12.0
    assert state(scale) == (MISS, "", True)
    forget()
    on(arch=arch)
    assert scale(numbers(), 2.0) == 12.0
    assert state(scale) == (HIT, "disk", False)
    assert set(compiled(scale).timings) == {"frontend_ms", "load_ms"}
    on(arch=arch)
    assert scale(numbers(), 2.0) == 12.0
    assert state(scale) == (HIT, "memory", False)


def test_what_memory_has_goes_to_every_folder_once(scale, on, tmp_path):
    on(offline_cache_file_path=str(tmp_path / "first"))
    scale(numbers(), 2.0)
    assert state(scale) == (MISS, "", True)
    folders = [str(tmp_path / name) for name in ("one", "other")]
    for number in range(2):
        for path in folders:
            on(offline_cache_file_path=path)
            assert scale(numbers(), 2.0) == 12.0
            assert state(scale) == (HIT, "memory", number == 0)
            assert len(entries()) == 1
    forget()
    for path in folders:
        on(offline_cache_file_path=path)
        assert scale(numbers(), 2.0) == 12.0
        assert state(scale)[0] == HIT
    # What came from the disk of one folder is written to another, not back.
    forget()
    on(offline_cache_file_path=folders[0])
    scale(numbers(), 2.0)
    before = store_of().statistics.stored
    on(offline_cache_file_path=folders[0])
    scale(numbers(), 2.0)
    assert state(scale) == (HIT, "memory", False)
    assert store_of().statistics.stored == before


def test_equal_kernels_of_several_names_have_an_entry_each(tmp_path, on):
    """So that each is found by a process that has only one of them."""
    text = f"""
def make():
    {KERNEL.replace(chr(10), chr(10) + "    ")}
    return scale
one = make()
{KERNEL}
"""
    kernels = module(tmp_path / "kernels.py", text)
    for number in range(2):
        on()
        for kernel in (kernels.one, kernels.scale):
            assert kernel(numbers(), 2.0) == 12.0
            assert seen(kernel).stored == (number == 0)
        assert seen(kernels.one).key == seen(kernels.scale).key
        assert len(entries()) == 2
        forget()
    on()
    kernels.scale(numbers(), 2.0)
    assert state(kernels.scale) == (HIT, "disk", False)


def test_what_is_too_large_for_memory_is_kept_on_disk(scale, on, monkeypatch):
    monkeypatch.setattr(IN_PROCESS, "limit", 1000)
    for expected in ((MISS, "", True), (HIT, "disk", False)):
        on()
        assert scale(numbers(), 2.0) == 12.0
        assert state(scale) == expected
    assert len(IN_PROCESS) == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_child_can_compile_although_another_thread_held_the_memory(scale):
    start(arch="interp")
    with IN_PROCESS._lock:
        pid = os.fork()
        if not pid:
            ok = False
            try:
                ok = scale(numbers(), 2.0) == 12.0 and len(IN_PROCESS) == 1
            finally:
                os._exit(0 if ok else 1)
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0


def test_an_entry_says_what_it_is(scale, on):
    on()
    scale(numbers(), 2.0)
    (info,) = entries()
    about = info.about
    assert info.problem == ""
    assert about["kernel"] == scale.decl.qualname == info.kernel
    assert (about["file"], about["line"]) == (scale.decl.file, scale.decl.line)
    assert about["parts"] == dict(seen(scale).parts)
    assert list(about["parts"]) == [part.name for part in seen(scale).parts]
    assert info.key == seen(scale).key
    assert about["engine"] == about["parts"]["engine"]
    assert about["backend"] == "cpu"
    assert about["params"] == ["a: ndarray<f32, 1>", "f: f32"]
    assert {"frontend", "passes", "codegen"} <= set(about["ms"])
    (source,) = about["sources"]
    assert source["name"] == scale.decl.qualname
    assert source["text"] == KERNEL.lstrip("\n")
    assert about["created"] == pytest.approx(info.used, abs=100)


HELPERS = """
@qd.func
def inner(x):
    return x + 1.0

@qd.func
def outer(x):
    return inner(x) * 2.0

@qd.kernel
def uses(a: qd.types.NDArray[qd.f32, 1]):
    for i in a:
        a[i] = outer(a[i])
"""


def test_it_keeps_the_sources_of_all_functions_kernel_first(tmp_path, on):
    kernel = module(tmp_path / "kernels.py", HELPERS).uses
    on()
    kernel(numbers())
    (info,) = entries()
    sources = info.about["sources"]
    assert [s["name"] for s in sources] == ["uses", "outer", "inner"]
    assert [s["line"] for s in sources] == [11, 7, 3]
    assert sources[2]["text"] == "@qd.func\ndef inner(x):\n    return x + 1.0\n"


def test_without_the_option_nothing_is_written_or_read(scale, on, root, tmp_path):
    start(offline_cache=False, offline_cache_file_path=root)
    scale(numbers(), 2.0)
    assert not (tmp_path / "cache").exists()
    on()
    forget()
    scale(numbers(), 2.0)
    assert state(scale) == (MISS, "", True)
    before = sorted((tmp_path / "cache").rglob("*"))
    forget()
    start(offline_cache=False, offline_cache_file_path=root)
    scale(numbers(), 2.0)
    assert state(scale) == (OFF, "", False)
    assert sorted((tmp_path / "cache").rglob("*")) == before


def test_code_that_backends_share_is_kept_next_to_the_entries(on, root, tmp_path, capsys):
    on()
    made = []

    def kept(name, use=bytes.decode):
        def make():
            made.append(name)
            return f"code {len(made)}".encode()

        return program.current().offline.injected().library(name, make, use)

    assert [kept("for tests"), kept("for tests")] == ["code 1", "code 1"]
    assert len(list((tmp_path / "cache" / "runtime").iterdir())) == 1
    assert kept("for tests", lambda code: int(code[-1:]) if code != b"code 1" else int("x")) == 2
    assert kept("for tests") == "code 2", "what cannot be used is made again, and replaced"
    assert capsys.readouterr().err == ""
    start(offline_cache=False, offline_cache_file_path=root)
    assert [kept("for tests"), kept("more")] == ["code 3", "code 4"]
    assert len(list((tmp_path / "cache" / "runtime").iterdir())) == 1


OVERLAP = """
@qd.kernel
def shift(a: qd.types.NDArray[qd.i32, 1], b: qd.types.NDArray[qd.i32, 1]):
    qd.static_print("compiling")
    for i in range(4):
        a[i] = b[i] + 1
"""


def test_the_variant_for_overlapping_arrays_is_an_entry_of_its_own(tmp_path, on, capfd):
    kernel = module(tmp_path / "kernels.py", OVERLAP).shift
    for number in range(2):
        on()
        x = numbers(5, np.int32)
        kernel(x[1:], x[:4])
        assert list(x) == [0, 1, 2, 3, 4]
        variant = next(iter(kernel.launchers.variants.values()))
        for found in (variant.compiled, variant.overlapping()):
            assert found.layers[-1].state == (HIT if number else MISS)
        assert len(entries()) == 2
        # What a compile prints, it prints once, also where a second one follows.
        assert capfd.readouterr().out == "compiling\n"
        forget()


def test_warnings_of_a_compile_come_once_and_also_when_code_is_found(tmp_path, on, capfd):
    text = OVERLAP.replace('qd.static_print("compiling")', "for _ in qd.static(range(40)): pass")
    kernel = module(tmp_path / "kernels.py", text).shift
    for _ in range(2):
        on()
        x = numbers(5, np.int32)
        with pytest.warns(SyntaxWarning) as caught:
            kernel(x[1:], x[:4])
        assert len(caught) == 1
        forget()


# --- what watches a compile -------------------------------------------------------------------

WATCHED = [
    ({"print_ir": True}, {}, "print_ir=True shows every compile"),
    ({"print_kernel_asm": True}, {}, "print_kernel_asm=True shows every compile"),
    ({}, {"QD_DUMP_IR": "1"}, "QD_DUMP_IR writes files for every compile"),
    ({}, {"QD_DUMP_CFG": "1"}, "QD_DUMP_CFG writes files for every compile"),
]


@pytest.mark.filterwarnings("ignore:print_ir or QD_DUMP_IR is on")
@pytest.mark.parametrize(("options", "environ", "reason"), WATCHED, ids=str)
def test_who_watches_compiles_sees_one(scale, on, tmp_path, monkeypatch, options, environ, reason):
    on()
    scale(numbers(), 2.0)
    code = compiled(scale).artifact.code
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    dumps = tmp_path / "dumps"
    on(debug_dump_path=str(dumps), **options)
    assert scale(numbers(), 2.0) == 12.0
    assert [(o.layer, o.state, o.reason) for o in compiled(scale).layers] == [
        ("fastcache", BYPASS, reason), ("offline", BYPASS, reason),
    ]  # fmt: skip
    assert {"passes_ms", "codegen_ms"} <= set(compiled(scale).timings)
    assert compiled(scale).artifact.code == code
    assert bool(environ) == (dumps.exists() and bool(list(dumps.iterdir())))
    assert len(entries()) == 1


def test_so_does_an_instrument(scale, on):
    on()
    timer = Timer()
    program.current().instruments.append(timer)
    scale(numbers(), 2.0)
    assert timer.runs
    assert seen(scale).reason == "instruments watch every compile"
    assert entries() == []
    assert len(IN_PROCESS) == 0


def test_a_process_that_only_looks_uses_nothing_and_writes_nothing(scale, on, tmp_path):
    on()
    scale(numbers(), 2.0)
    forget()
    folder.set_dry(True)
    on()
    assert scale(numbers(), 2.0) == 12.0
    assert seen(scale).state == BYPASS
    assert seen(scale).reason
    assert not seen(scale).stored
    assert len(entries()) == 1


# --- what cannot be used ----------------------------------------------------------------------


def spoil(scale, change):
    """Rewrite the kernel's entry with a good checksum but other contents."""
    store = open_store(program.current().config, "offline")
    found = seen(scale)
    load, code = store.peek(found.key, scale.decl.qualname)
    (info,) = store.all()
    load, code = change(load, code)
    assert store.write(Entry(found.key, scale.decl.qualname, info.about, load, code))


SPOILED = {
    "data of another form": lambda load, code: ({**load, "params": 3}, code),
    "a type that is none": lambda load, code: ({**load, "results": ["f33"]}, code),
    "no code": lambda load, code: (load, b""),
    "other code": lambda load, code: (load, b"\x90" * len(code)),
    "half of the code": lambda load, code: (load, code[: len(code) // 2]),
}


@pytest.mark.parametrize("arch", ["cpu", "interp"])
@pytest.mark.parametrize("change", SPOILED.values(), ids=SPOILED)
def test_an_entry_that_cannot_be_used_is_compiled_again_with_one_warning(
    scale, on, warnings, change, arch
):
    on(arch=arch)
    scale(numbers(), 2.0)
    spoil(scale, change)
    forget()
    warnings()
    on(arch=arch)
    assert scale(numbers(), 2.0) == 12.0
    assert seen(scale).state == DAMAGED
    assert seen(scale).reason.startswith("the entry cannot be ")
    (line,) = warnings()
    assert "the kernel is compiled again" in line
    assert seen(scale).stored  # in place of the bad one
    forget()
    on(arch=arch)
    assert scale(numbers(), 2.0) == 12.0
    assert state(scale) == (HIT, "disk", False)
    assert warnings() == []


def test_a_damaged_file_is_a_miss_with_one_warning(scale, on, warnings):
    on()
    scale(numbers(), 2.0)
    (info,) = entries()
    with open(info.path, "r+b") as file:
        file.seek(200)
        byte = file.read(1)[0]
        file.seek(200)
        file.write(bytes([byte ^ 1]))
    forget()
    warnings()
    on()
    assert scale(numbers(), 2.0) == 12.0
    assert seen(scale).state == DAMAGED
    assert len(warnings()) == 1


def test_a_fact_that_cannot_be_kept_is_reported(scale, on, warnings, monkeypatch):
    on()
    backend = type(find("cpu"))
    lower = backend.lower

    def odd(self, func, config, cache):
        made = lower(self, func, config, cache)
        made.facts["odd"] = object()
        return made

    monkeypatch.setattr(backend, "lower", odd)
    assert scale(numbers(), 2.0) == 12.0
    assert state(scale) == (MISS, "", False)
    (line,) = warnings()
    assert "cannot be kept" in line
