"""The PTX cache: what is in its key, what memory and disk answer, and how a backend uses it."""

import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.engine.backends import base
from qd_studio.engine.backends.injected import NO_CACHE, PtxJob
from qd_studio.engine.backends.interp.backend import InterpBackend
from qd_studio.engine.cache import ptx as room
from qd_studio.engine.cache.engine_id import engine_id
from qd_studio.engine.cache.in_process import IN_PROCESS
from qd_studio.engine.cache.observe import BYPASS, DAMAGED, HIT, MISS, NOT_APPLICABLE, OFF
from qd_studio.engine.cache.parts import Part, key_of
from qd_studio.engine.cache.ptx import PtxCache, PtxLayers, symbol_of
from qd_studio.engine.config import CompileConfig

from tests.caches import shelf
from tests.caches.ptx_kit import assembled, llvm_ir, make_ptx

TOOLS = "LLVM 22.1"


@pytest.fixture(autouse=True)
def _empty_memory():
    room.forget()
    IN_PROCESS.clear()
    yield
    room.forget()


@pytest.fixture
def options(tmp_path):
    """Options with the given changes, over a cache folder of the test."""

    def make(**changes) -> CompileConfig:
        return CompileConfig(offline_cache_file_path=str(tmp_path / "root")).replace(**changes)

    return make


class Maker:
    """Makes PTX and counts how often."""

    def __init__(self, text: str = "ptx") -> None:
        self.text, self.calls = text, 0

    def __call__(self) -> str:
        self.calls += 1
        return self.text


def files(tmp_path: Path) -> list[Path]:
    return sorted(p for p in (tmp_path / "root").rglob("*") if p.is_file() and p.suffix != ".lock")


# ---- memory and disk


def test_the_first_time_is_a_miss_and_writes_an_entry(options, tmp_path):
    make = Maker()
    found = PtxCache(options(), "sm_90").ptx(llvm_ir(), make, TOOLS)
    assert (found.text, make.calls) == ("ptx", 1)
    seen = found.observation
    assert (seen.layer, seen.state, seen.stored) == ("ptx", MISS, True)
    assert seen.key == key_of(seen.parts) and seen.ms > 0
    assert [path.parent.name for path in files(tmp_path)] == ["ptx_cache_sm_90"]


def test_equal_llvm_ir_shares_ptx_within_a_process(options):
    make = Maker()
    for config in (options(), options(), options(debug=True)):
        found = PtxCache(config, "sm_90").ptx(llvm_ir(), make, TOOLS)
        assert found.text == "ptx"
    assert make.calls == 1
    assert (found.observation.state, found.observation.source) == (HIT, "memory")


def test_a_new_process_finds_it_on_disk(options):
    make = Maker(make_ptx())
    PtxCache(options(), "sm_90").ptx(llvm_ir(), make, TOOLS)
    room.forget()
    found = PtxCache(options(), "sm_90").ptx(llvm_ir(), make, TOOLS)
    assert make.calls == 1 and found.text == make.text
    assert (found.observation.state, found.observation.source) == (HIT, "disk")
    again = PtxCache(options(), "sm_90").ptx(llvm_ir(), make, TOOLS)
    assert again.observation.source == "memory"


def test_without_the_offline_cache_the_disk_is_neither_read_nor_written(options, tmp_path):
    make = Maker()
    PtxCache(options(), "sm_90").ptx(llvm_ir(), make, TOOLS)
    room.forget()
    before = [(path, path.read_bytes(), path.stat().st_mtime_ns) for path in files(tmp_path)]
    found = PtxCache(options(offline_cache=False), "sm_90").ptx(llvm_ir(), make, TOOLS)
    assert make.calls == 2
    assert found.observation.state == OFF and not found.observation.stored
    assert "offline_cache=False" in found.observation.reason
    assert [(p, p.read_bytes(), p.stat().st_mtime_ns) for p in files(tmp_path)] == before


def test_a_hit_refreshes_last_use(options, tmp_path):
    PtxCache(options(), "sm_90").ptx(llvm_ir(), Maker(), TOOLS)
    (path,) = files(tmp_path)
    os.utime(path, (1e9, 1e9))
    room.forget()
    PtxCache(options(), "sm_90").ptx(llvm_ir(), Maker(), TOOLS)
    assert path.stat().st_mtime > time.time() - 100


def test_a_folder_for_each_architecture(options, tmp_path):
    for arch in ("sm_80", "sm_90", "sm_90a"):
        PtxCache(options(), arch).ptx(llvm_ir(), Maker(arch), TOOLS)
    names = [path.parent.name for path in files(tmp_path)]
    assert names == ["ptx_cache_sm_80", "ptx_cache_sm_90", "ptx_cache_sm_90a"]
    assert PtxCache(options(), "sm_90a").ptx(llvm_ir(), Maker(), TOOLS).text == "sm_90a"


@pytest.mark.parametrize("arch", ["", "../sm_90", "sm 90", "sm_90/x", "a" * 50])
def test_a_strange_architecture_is_an_error(options, arch):
    with pytest.raises(ValueError, match="architecture"):
        PtxCache(options(), arch)


# ---- the key


def changed_parts(before, after) -> list[str]:
    return [a.name for a, b in zip(before.parts, after.parts, strict=True) if a != b]


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"fast_math": False}, "config.fast_math"),
        ({"opt_level": 0}, "config.opt_level"),
        ({"external_optimization_level": 3}, "config.external_optimization_level"),
        ({"gpu_max_reg": 64}, "config.gpu_max_reg"),
    ],
)
def test_an_option_that_changes_ptx_is_a_part(options, changes, part):
    make = Maker()
    before = PtxCache(options(), "sm_90").ptx(llvm_ir(), make, TOOLS).observation
    after = PtxCache(options(**changes), "sm_90").ptx(llvm_ir(), make, TOOLS).observation
    assert make.calls == 2 and changed_parts(before, after) == [part]


def test_other_options_are_not(options):
    """What LLVM IR shows needs no part: equal IR is equal whatever options it was made under."""
    one = PtxCache(options(), "sm_90").parts(llvm_ir(), TOOLS)
    other = options(debug=True, default_fp="f64", print_ir=True, kernel_profiler=True)
    assert PtxCache(other, "sm_90").parts(llvm_ir(), TOOLS) == one


def test_ir_toolchain_and_architecture_are_parts(options):
    cache, make = PtxCache(options(), "sm_90"), Maker()
    before = cache.ptx(llvm_ir(), make, TOOLS).observation
    assert changed_parts(before, cache.ptx(llvm_ir(4.0), make, TOOLS).observation) == ["ir"]
    assert changed_parts(before, cache.ptx(llvm_ir(), make, "LLVM 23").observation) == ["toolchain"]
    other = PtxCache(options(), "sm_80").ptx(llvm_ir(), make, TOOLS).observation
    assert changed_parts(before, other) == ["arch"]
    assert make.calls == 4


def test_settings_of_the_backend_are_parts(options):
    cache, make = PtxCache(options(), "sm_90"), Maker()
    one = cache.ptx(llvm_ir(), make, TOOLS, [("features", "+ptx80")]).observation
    two = cache.ptx(llvm_ir(), make, TOOLS, [("features", "+ptx86")]).observation
    assert changed_parts(one, two) == ["setting.features"] and make.calls == 2
    assert cache.ptx(llvm_ir(), make, TOOLS, [("features", "+ptx86")]).observation.state == HIT


def test_the_engine_is_a_part(options, monkeypatch):
    make = Maker()
    before = PtxCache(options(), "sm_90").ptx(llvm_ir(), make, TOOLS).observation
    assert dict(before.parts)["engine"] == engine_id()
    monkeypatch.setattr(room, "engine_part", lambda config: Part("engine", "9.9.9+other"))
    after = PtxCache(options(), "sm_90").ptx(llvm_ir(), make, TOOLS).observation
    assert make.calls == 2 and changed_parts(before, after) == ["engine"]


def test_entries_of_different_keys_are_side_by_side(options, tmp_path):
    cache = PtxCache(options(), "sm_90")
    for factor in (2.0, 3.0, 4.0):
        cache.ptx(llvm_ir(factor), Maker(f"ptx {factor}"), TOOLS)
    assert len(files(tmp_path)) == 3
    room.forget()
    texts = [cache.ptx(llvm_ir(f), Maker("none"), TOOLS).text for f in (2.0, 3.0, 4.0)]
    assert texts == ["ptx 2.0", "ptx 3.0", "ptx 4.0"]


def test_an_entry_says_what_it_is_of(options):
    cache = PtxCache(options(), "sm_90")
    seen = cache.ptx(llvm_ir(), Maker(), TOOLS).observation
    info = cache.store.info(seen.key, "scale")
    assert info is not None and info.kernel == "scale" and not info.problem
    assert info.about["parts"] == dict(seen.parts)
    assert info.about["engine"] == engine_id() and info.about["ms"]["codegen"] >= 0
    assert abs(info.created - time.time()) < 100


@pytest.mark.parametrize(
    ("text", "symbol"),
    [
        (llvm_ir(), "scale"),
        ('define ptx_kernel void @"a b"(ptr %0) {', "a b"),
        ("define internal void @help() {\n}\ndefine ptx_kernel void @main.1() {", "main.1"),
        ("define dso_local i32 @f$x(i32 %a) {", "f$x"),
        ("declare void @g()", ""),
        ("", ""),
    ],
)
def test_the_name_of_an_entry_comes_from_the_ir(text, symbol):
    assert symbol_of(text) == symbol


# ---- trouble


def test_a_damaged_entry_is_a_miss_with_one_warning(options, tmp_path, capsys):
    PtxCache(options(), "sm_90").ptx(llvm_ir(), Maker("right"), TOOLS)
    (path,) = files(tmp_path)
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    for _ in range(2):
        room.forget()
        path.write_bytes(data)
        found = PtxCache(options(), "sm_90").ptx(llvm_ir(), Maker("right"), TOOLS)
        assert found.text == "right"
        assert (found.observation.state, found.observation.stored) == (DAMAGED, True)
    assert capsys.readouterr().err.count("warning") == 1
    room.forget()
    assert PtxCache(options(), "sm_90").ptx(llvm_ir(), Maker(), TOOLS).observation.state == HIT


def test_what_making_raises_reaches_the_caller_and_nothing_is_kept(options, tmp_path):
    def fail() -> str:
        raise RuntimeError("LLVM refuses")

    cache = PtxCache(options(), "sm_90")
    with pytest.raises(RuntimeError, match="refuses"):
        cache.ptx(llvm_ir(), fail, TOOLS)
    assert not files(tmp_path)
    assert cache.ptx(llvm_ir(), Maker("now"), TOOLS).text == "now"


def test_memory_is_bounded_and_forgets_what_was_asked_for_longest_ago(options, monkeypatch):
    monkeypatch.setattr(room._memory, "limit", 250)
    cache = PtxCache(options(offline_cache=False), "sm_90")
    makers = {f: Maker("x" * 100) for f in (1.0, 2.0, 3.0)}
    for factor in (1.0, 2.0, 1.0, 3.0):
        cache.ptx(llvm_ir(factor), makers[factor], TOOLS)
    for factor in (1.0, 3.0):
        assert cache.ptx(llvm_ir(factor), makers[factor], TOOLS).observation.state == HIT
    cache.ptx(llvm_ir(2.0), makers[2.0], TOOLS)
    assert [makers[f].calls for f in (1.0, 2.0, 3.0)] == [1, 2, 1]
    huge = Maker("x" * 1000)
    assert len(cache.ptx(llvm_ir(9.0), huge, TOOLS).text) == 1000
    assert cache.ptx(llvm_ir(3.0), makers[3.0], TOOLS).observation.state == HIT


def test_threads_that_ask_at_once_get_one_text(options):
    cache, start, texts = PtxCache(options(), "sm_90"), threading.Barrier(8), []
    numbers = iter(range(100))

    def ask(_):
        start.wait()
        texts.append(cache.ptx(llvm_ir(), lambda: f"ptx {next(numbers)}", TOOLS).text)

    shelf.in_threads(ask, 8)
    assert len(texts) == 8 and len(set(texts)) == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_process_is_not_stuck_on_the_lock_of_another_thread():
    code = (
        "import os\nfrom qd_studio.engine.cache import ptx\nptx._memory.add('k', 'text', 4)\n"
        "ptx._memory._lock.acquire()\nchild = os.fork()\n"
        "if child == 0:\n    os._exit(0 if ptx._memory.get('k') == 'text' else 1)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == ["0"]


# ---- a backend


class PtxBackend:
    """The caching part of a CUDA backend: the code that the real one will have in these places."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.compiles, self.images = folder, 0, []

    def lower(self, text: str, cache=NO_CACHE) -> str:
        def make() -> str:
            self.compiles += 1
            return make_ptx(text)

        job = PtxJob("sm_90", TOOLS, text, (("features", "+ptx80"),), make)
        return cache.ptx(job)

    def load(self, ptx: str, cache=NO_CACHE) -> bytes:
        image = cache.submitted(ptx)
        new = image not in self.images  # as the driver, which knows texts
        self.images.append(image)
        cache.loaded(compiled=new, ms=1.0)
        return assembled(image, self.folder)


def compile_and_load(backend: PtxBackend, config: CompileConfig):
    layers = PtxLayers(config, "cuda")
    code = backend.load(backend.lower(llvm_ir(), layers), layers)
    return code, [(seen.layer, seen.state) for seen in layers.observations]


def test_a_backend_gets_all_it_needs(options, tmp_path):
    backend, config = PtxBackend(tmp_path), options()
    first, seen = compile_and_load(backend, config)
    assert seen == [("ptx", MISS), ("driver", MISS)]
    room.forget()
    second, seen = compile_and_load(backend, config)
    assert seen == [("ptx", HIT), ("driver", HIT)]
    assert first == second and backend.compiles == 1


def test_a_backend_without_the_offline_cache_submits_the_nonce(options, tmp_path):
    backend, cold = PtxBackend(tmp_path), options(offline_cache=False)
    warm_code, _ = compile_and_load(PtxBackend(tmp_path), options())
    codes = [compile_and_load(backend, cold)[0] for _ in range(2)]
    assert codes == [warm_code, warm_code]
    one, two = backend.images
    assert one == two and re.search(rb"\n// qd-session-nonce: \d+-[0-9a-f]{8}\n\0$", one)
    assert not re.search(r"nonce", make_ptx())


class _PtxOfInterp(InterpBackend):
    """The interpreter, as if a driver had to compile PTX for what it runs."""

    name = "cuda"
    makes_ptx = True

    def __init__(self, folder: Path) -> None:
        self.inner = PtxBackend(folder)

    def lower(self, func, config, cache=NO_CACHE):
        artifact = super().lower(func, config)
        artifact.facts["ptx"] = self.inner.lower(llvm_ir(), cache)
        return artifact

    def load(self, artifact, cache=NO_CACHE):
        self.inner.load(artifact.facts["ptx"], cache)
        return super().load(artifact)


@qd.kernel
def add(a: qd.types.NDArray[qd.f32, 1]) -> None:
    for i in range(1):
        a[i] += 1.0


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [MISS, MISS, MISS]),
        ({"offline_cache": False}, [OFF, OFF, OFF]),
        ({"print_kernel_llvm_ir": True}, [BYPASS, BYPASS, MISS]),
    ],
)
def test_what_launches_compile_goes_through_both_layers(tmp_path, monkeypatch, options, expected):
    """A backend that makes PTX is passed the layers, and they are observed."""
    backend = _PtxOfInterp(tmp_path)
    monkeypatch.setitem(base._found, "interp", backend)
    qd.init(arch=qd.interp, **options)
    a = np.zeros(1, np.float32)
    add(a)
    assert a[0] == 1.0 and backend.inner.compiles == 1
    (variant,) = add.launchers.variants.values()
    states = {seen.layer: seen.state for seen in variant.compiled.layers}
    assert [states[layer] for layer in ("offline", "ptx", "driver")] == expected
    nonce = b"nonce" in backend.inner.images[0]
    assert nonce == (options.get("offline_cache") is False)
    qd.reset()


def test_launches_of_other_backends_ask_neither():
    qd.init(arch=qd.interp)
    add(np.zeros(1, np.float32))
    (variant,) = add.launchers.variants.values()
    assert [seen.layer for seen in variant.compiled.layers] == ["fastcache", "offline"]
    qd.reset()


def test_the_nonce_is_not_kept_on_disk(options, tmp_path):
    compile_and_load(PtxBackend(tmp_path), options())
    assert all(b"nonce" not in path.read_bytes() for path in files(tmp_path))


def test_a_backend_works_without_a_cache(tmp_path):
    backend = PtxBackend(tmp_path)
    ptx = backend.lower(llvm_ir())
    assert NO_CACHE.submitted(ptx) == ptx.encode() + b"\0"
    backend.lower(llvm_ir())
    assert backend.compiles == 2


def test_backends_that_make_no_ptx_say_so(options):
    ptx, driver = PtxLayers(options(), "cpu").observations
    assert (ptx.state, driver.state) == (NOT_APPLICABLE, NOT_APPLICABLE)
    assert "cpu" in ptx.reason and "cpu" in driver.reason
    nothing, _ = PtxLayers(options(), "cuda").observations
    assert nothing.state == NOT_APPLICABLE and nothing.reason


def test_memory_stays_through_init_and_reset():
    make = Maker()
    for _ in range(2):
        qd.init(arch=qd.cpu, offline_cache=False)
        config = CompileConfig(offline_cache=False)
        PtxCache(config, "sm_90").ptx(llvm_ir(), make, TOOLS)
        qd.reset()
    assert make.calls == 1
