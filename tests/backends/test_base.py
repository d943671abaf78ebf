"""The list of backends, and what each says about itself."""

import importlib.machinery
import os
import struct
import subprocess
import sys

import pytest
from qd_studio.engine.backends import base
from qd_studio.engine.backends.cpu import host, processor
from qd_studio.engine.backends.injected import NO_CACHE
from qd_studio.engine.backends.llvm import toolchain
from qd_studio.engine.config import CompileConfig
from qd_studio.engine.errors import BackendUnavailableError
from qd_studio.engine.types import PRIMITIVE_TYPES


def test_built_backends_work_here_and_are_one_object_each():
    for name in base.BUILT:
        works, reason = base.availability(name)
        backend = base.find(name)
        assert works != bool(reason)
        assert works or name not in ("cpu", "interp")
        assert backend is base.find(name)
        assert backend.name == name
        assert backend.caps.types == frozenset(PRIMITIVE_TYPES)
        assert backend.toolchain()


@pytest.mark.parametrize("name", base.BUILT)
def test_targets_are_asked_for_through_options(name):
    backend, config = base.find(name), CompileConfig()
    assert backend.with_target(config, "") == config
    made = {backend.target(backend.with_target(config, each)) for each in backend.targets()}
    assert len(made) == len(backend.targets())
    with pytest.raises(ValueError, match="|".join(backend.targets()) or "has no targets; others"):
        backend.with_target(config, "abacus")
    if backend.compile_only():
        assert base.availability(name) == (False, backend.compile_only())


@pytest.mark.parametrize("name", base.ABSENT)
def test_absent_backends_say_why(name):
    works, reason = base.availability(name)
    assert not works
    assert reason
    with pytest.raises(BackendUnavailableError, match=f"{name}: {reason}"):
        base.find(name)


def test_a_name_that_is_no_backend():
    assert base.availability("abacus") == (False, "there is no such backend")
    assert set(base.names()) == {*base.BUILT, *base.ABSENT}


def test_targets_compare_by_value():
    config = CompileConfig()
    cpu = base.find("cpu")
    assert cpu.target(config) == cpu.target(config)
    assert cpu.target(config) != base.find("interp").target(config)
    assert cpu.target(config).features


def test_what_keys_need_comes_without_the_toolchain():
    """In a process of its own, as this one has loaded everything."""
    script = (
        "import sys\n"
        "from qd_studio.engine.backends import base\n"
        "from qd_studio.engine.config import CompileConfig\n"
        "for name in base.BUILT:\n"
        "    backend = base.find(name)\n"
        "    backend.available()\n"
        "    config = CompileConfig(cuda_arch='sm_90')\n"
        "    print(backend.fingerprint(config), backend.identity(), sep=';')\n"
        "heavy = ('.llvm.library', 'engine.passes')\n"
        "print([m for m in sys.modules if m.endswith(heavy)])\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    *reported, loaded = done.stdout.splitlines()
    assert loaded == "[]"
    config = CompileConfig(cuda_arch="sm_90")  # whatever device another test has simulated
    backends = [base.find(name) for name in base.BUILT]
    assert reported == [f"{b.fingerprint(config)};{b.identity()}" for b in backends]


def test_the_identity_of_llvm_holds_what_changes_its_code():
    import llvmlite

    identity = base.find("cpu").identity()
    assert identity.startswith(f"llvmlite {llvmlite.__version__} ")
    for setting in ("-disable-lsr", "-enable-load-in-loop-pre=false", "+prefer-no-scatter"):
        assert setting in identity


def test_a_version_that_is_written_in_another_way_is_imported(monkeypatch, tmp_path):
    package = tmp_path / "llvmlite"
    package.mkdir()
    (package / "_version.py").write_text("version = compute()\n")
    (package / "__init__.py").write_text("")
    spec = importlib.machinery.ModuleSpec("llvmlite", None, origin=str(package / "__init__.py"))
    usual = toolchain.identity()
    toolchain.identity.cache_clear()
    monkeypatch.setattr(toolchain.importlib.util, "find_spec", lambda name: spec)
    try:
        assert toolchain.identity() == usual
        (package / "_version.py").write_text("version_version = '7.8'\n")
        toolchain.identity.cache_clear()
        assert toolchain.identity().startswith("llvmlite 7.8 ")
    finally:
        toolchain.identity.cache_clear()


on_x86 = pytest.mark.skipif(not host.maps_objects(), reason="the processor is asked on x86-64")


@on_x86
def test_the_processor_says_what_llvm_sees():
    answers, states = processor.ask()
    bits = {
        "sse4.2": (1, 0, 2, 20), "popcnt": (1, 0, 2, 23), "fma": (1, 0, 2, 12),
        "f16c": (1, 0, 2, 29), "avx": (1, 0, 2, 28), "rdrnd": (1, 0, 2, 30),
        "cx16": (1, 0, 2, 13), "movbe": (1, 0, 2, 22), "avx2": (7, 0, 1, 5), "bmi": (7, 0, 1, 3),
        "bmi2": (7, 0, 1, 8), "adx": (7, 0, 1, 19), "avx512f": (7, 0, 1, 16),
        "avx512vl": (7, 0, 1, 31), "sha": (7, 0, 1, 29), "rdseed": (7, 0, 1, 18),
        "gfni": (7, 0, 2, 8), "vaes": (7, 0, 2, 9), "avx512fp16": (7, 0, 3, 23),
        "avxvnni": (7, 1, 0, 4), "avx512bf16": (7, 1, 0, 5), "xsavec": (0xD, 1, 0, 1),
        "lzcnt": (0x80000001, 0, 2, 5), "sse4a": (0x80000001, 0, 2, 6),
        "fma4": (0x80000001, 0, 2, 16), "clzero": (0x80000008, 0, 1, 0),
    }  # fmt: skip
    # Of these LLVM asks whether the system saves their registers.
    vectors = {"fma", "f16c", "avx", "avx2", "vaes", "avxvnni", "fma4"}
    seen = set(toolchain.host_target().features.split(","))
    for name, (leaf, part, register, bit) in bits.items():
        here = bool(answers.get((leaf, part), (0,) * 4)[register] >> bit & 1)
        if name in vectors:
            here = here and states & 6 == 6
        if name.startswith("avx512"):
            here = here and states & 0xE6 == 0xE6
        assert (f"+{name}" in seen, f"-{name}" in seen) == (here, not here), name


@on_x86
def test_any_core_gives_the_same_fingerprint():
    cores = os.sched_getaffinity(0)
    try:
        reported = set()
        for core in list(cores)[:8]:
            os.sched_setaffinity(0, {core})
            reported.add(processor.described(*processor.ask()))
    finally:
        os.sched_setaffinity(0, cores)
    assert reported == {processor.fingerprint()}


def test_all_that_is_asked_makes_a_difference():
    """The answers of an old Intel processor, then each bit of them turned."""
    vendor = struct.unpack("<3I", b"GenuntelineI")
    old = {
        (0, 0): (13, *vendor), (1, 0): (0x206A7, 5, 0x1FBAE3FF, 0xBFEBFBFF),
        (7, 0): (0, 0, 0, 0), (0xD, 1): (1, 2, 3, 4),
        (0x80000000, 0): (0x80000008, 0, 0, 0), (0x80000001, 0): (0, 0, 1, 0x28100800),
        (0x80000008, 0): (0x3024, 0, 0, 0),
    }  # fmt: skip
    usual = processor.described(old, 7)
    assert usual.startswith("x86-64 Linux, GenuineIntel family 6 model 42 stepping 7, features ")
    assert processor.described(old, 3) != usual
    used = {(leaf, part): registers for leaf, part, registers in processor._QUESTIONS}
    for question, answer in old.items():
        for register in range(4):
            for bit in range(32):
                other = list(answer)
                other[register] ^= 1 << bit
                reported = processor.described({**old, question: tuple(other)}, 7)
                assert (reported != usual) == ("abcd"[register] in used[question])


def test_a_cache_that_keeps_nothing_makes_everything():
    made = []
    for expected in (1, 2):
        code = NO_CACHE.library("a", lambda: made.append(1) or b"code", bytes.decode)
        assert (code, len(made)) == ("code", expected)
    with pytest.raises(ValueError, match="no code"):
        NO_CACHE.library("a", lambda: b"", lambda code: int(code or "no code"))


def test_where_the_processor_cannot_be_asked_llvm_is(monkeypatch):
    usual = processor.fingerprint()

    def forbidden():
        raise OSError("no code can be made here")

    monkeypatch.setattr(processor, "ask", forbidden)
    processor.fingerprint.cache_clear()
    try:
        reported = processor.fingerprint()
        target = toolchain.host_target()
        assert reported.startswith(f"{target.arch}, {target.cpu}, features ")
        monkeypatch.setattr(host, "maps_objects", lambda: False)
        processor.fingerprint.cache_clear()
        assert processor.fingerprint() == reported
        monkeypatch.setattr(toolchain, "host_target", lambda: target._replace(features="+sse2"))
        processor.fingerprint.cache_clear()
        assert processor.fingerprint() != reported
    finally:
        processor.fingerprint.cache_clear()
    monkeypatch.undo()
    assert processor.fingerprint() == usual
