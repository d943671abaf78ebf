"""What the PTX of kernels holds, what a launch learns from it, and what cannot be."""

import re

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.engine.backends.cuda import libdevice, toolkit
from qd_studio.engine.backends.injected import InjectedCache
from qd_studio.engine.backends.kernarg import grids
from qd_studio.engine.backends.kernarg.grids import blocks_of
from qd_studio.engine.errors import CudaError

from tests.backends.cuda.ptxkit import artifact, assemble, lines, needs_ptxas, ptx
from tests.fuzz.generate import generate
from tests.fuzz.lower import lower

Floats = qd.types.NDArray[qd.f32, 1]
F = np.zeros(8, np.float32)
I = np.zeros(8, np.int32)  # noqa: E741
G = np.zeros((4, 6), np.float32)


pytestmark = pytest.mark.usefixtures("program")


def tasks(made):
    return made.facts["tasks"]


@qd.kernel
def shift(x: Floats, y: Floats, n: qd.i32):
    for i in range(1, n):
        y[i] = x[i - 1]


def test_a_launch_is_reported_how_many_blocks_a_loop_takes():
    made = artifact(shift, F, F, 5, default_gpu_block_dim=64)
    (task,) = tasks(made)
    assert (task.symbol, task.block_dim, task.grid) == ("shift_kernel_0_range_for", 64, grids.COVER)
    (offset,) = task.reads
    assert offset == made.facts["layout"].params[2]
    assert [blocks_of(task, n) for n in (-7, 1, 65, 66, 641)] == [1, 1, 1, 2, 10]
    assert 0 < task.limit * 64 < 1 << 31
    assert blocks_of(task, 2**31 - 1) <= task.limit
    # Parameters behind the argument buffer: the arrays, and the end of the loop.
    layout = made.facts["layout"]
    assert sorted(task.slots) == sorted(layout.params)
    text = made.text("ptx")
    assert text.count(".param .u64") == 3
    assert ".reqntid 64" in text


@qd.kernel
def rows(x: qd.types.NDArray[qd.f32, 2]):
    for i, j in x:
        x[i, j] += 1.0


def test_a_loop_over_axes_covers_their_product():
    (task,) = tasks(artifact(rows, G))
    assert len(task.reads) == 2
    iterations = blocks_of(task, 1000, 3000) * task.block_dim
    assert 0 < iterations <= 1000 * 3000 + task.block_dim
    assert blocks_of(task, 0, 5) == 1


@qd.kernel
def serial_and_sum(x: Floats) -> qd.f32:
    total = 1.0
    for i in x:
        total += x[i]
    return total


def test_serial_tasks_and_temporaries():
    made = artifact(serial_and_sum, F)
    first, loop, last = tasks(made)
    assert [t.grid for t in (first, last)] == [grids.ONE, grids.ONE]
    assert [t.block_dim for t in (first, last)] == [1, 1]
    assert loop.grid in (grids.COVER, grids.SATURATE)
    assert made.meta.global_tmp_size > 0
    assert made.facts["clears"]


@qd.kernel
def shared(x: Floats):
    qd.loop_config(block_dim=64)
    for i in range(x.shape[0]):
        pad = qd.simt.block.SharedArray((64,), qd.f32)
        t = qd.simt.block.thread_idx()
        pad[t] = x[i]
        qd.simt.block.sync()
        x[i] = pad[63 - t]


@qd.kernel
def shared_of_memory(x: Floats, n: qd.types.NDArray[qd.i32, 1]):
    qd.loop_config(block_dim=64)
    for i in range(n[0]):
        pad = qd.simt.block.SharedArray((64,), qd.f32)
        pad[qd.simt.block.thread_idx()] = x[i]
        qd.simt.block.sync()
        x[i] = pad[0]


def test_blocks_that_share_are_exact():
    made = artifact(shared, F)
    (task,) = tasks(made)
    assert (task.grid, task.block_dim, task.header) == (grids.EXACT, 64, "")
    assert [blocks_of(task, n) for n in (0, 64, 65)] == [1, 1, 2]
    text = made.text("ptx")
    assert lines(text, ".shared", ".b8")
    assert lines(text, "bar.sync") or lines(text, "barrier.sync")
    assert lines(text, "st.shared")
    assert lines(text, "ld.shared")


def test_a_kernel_states_how_many_blocks_where_the_host_cannot_know():
    made = artifact(shared_of_memory, F, I)
    task = tasks(made)[-1]
    assert task.blocks == ""
    assert task.header
    assert f".entry {task.header}(" in made.text("ptx")


@qd.kernel
def huge(x: Floats):
    for i in range(x.shape[0]):
        pad = qd.simt.block.SharedArray((1 << 18,), qd.f32)
        pad[0] = x[i]
        x[i] = pad[0]


@qd.kernel
def wide_block(x: Floats):
    qd.loop_config(block_dim=512)
    for i in range(x.shape[0]):
        x[i] = 1.0


def test_what_no_block_can_be():
    with pytest.raises(
        qd.QuadrantsCompilationError, match="shared arrays of the loop take"
    ) as reported:
        artifact(huge, F)
    assert "huge" in str(reported.value)
    assert __file__ in str(reported.value)
    with pytest.raises(qd.QuadrantsCompilationError, match="block of 512 iterations is too large"):
        artifact(wide_block, F, max_block_dim=256)
    assert tasks(artifact(wide_block, F))[0].block_dim == 512


def test_loads_of_arrays_that_are_only_read():
    text = ptx(shift, F, F, 5)
    assert lines(text, "ld.global.nc")
    assert lines(text, "st.global")
    # An array that may be the other one is not only read.
    assert not lines(ptx(rows, G), "ld.global.nc")


def atomics(dtype):
    @qd.kernel
    def update(x: qd.types.NDArray[dtype, 1], at: qd.types.NDArray[qd.i32, 1]):
        for i in at:
            qd.atomic_add(x[at[i]], qd.cast(3, dtype))
            qd.atomic_max(x[at[i] + 1], qd.cast(3, dtype))
            qd.atomic_mul(x[at[i] + 2], qd.cast(3, dtype))

    return update


@needs_ptxas
@pytest.mark.parametrize("name", ["i8", "u16", "i32", "u32", "i64", "u64", "f16", "f32", "f64"])
def test_atomics_of_every_type(name, tmp_path):
    dtype = getattr(qd, name)
    for arch in ("sm_75", "sm_90"):
        made = artifact(atomics(dtype), np.zeros(8, dtype.np), I, arch=arch)
        assemble(made, tmp_path)
        text = made.text("ptx")
        # Products are made by comparing and swapping, sums of 32 bits and more by the machine.
        assert lines(text, "atom", ".cas")
        assert bool(lines(text, "atom", ".add")) == (dtype.size >= 4 or dtype is qd.f16)


@qd.kernel
def fences(x: Floats):
    for i in x:
        x[i] = 1.0
        qd.simt.block.mem_fence()
        x[i] = 2.0
        qd.simt.grid.mem_fence()


def test_fences():
    text = ptx(fences, F)
    assert lines(text, "fence.acq_rel.cta") or lines(text, "membar.cta")
    assert lines(text, "fence.acq_rel.gpu") or lines(text, "membar.gl")


@qd.kernel
def times(x: Floats, y: qd.types.NDArray[qd.i64, 1]):
    for i in x:
        a = qd.clock_counter()
        x[i] += 1.0
        qd.clock_counter()
        y[i] = qd.clock_counter() - a


def test_each_read_of_the_clock_is_there_and_accesses_stay_between():
    text = ptx(times, F, np.zeros(8, np.int64))
    found = re.findall(r"%clock64|st\.global|ld\.global", text)
    assert found == ["%clock64", "ld.global", "st.global", "%clock64", "%clock64", "st.global"]


@qd.kernel
def mathematics(x: Floats, y: qd.types.NDArray[qd.f64, 1], z: qd.types.NDArray[qd.f16, 1]):
    for i in x:
        a = x[i]
        x[i] = qd.sin(a) + qd.cos(a) + qd.tan(a) + qd.exp(a) + qd.log(a) + qd.tanh(a)
        x[i] += qd.asin(a) + qd.acos(a) + qd.atan2(a, 2.0) + a**1.5 + a % 0.7 + qd.rsqrt(a)
        b = y[i]
        y[i] = qd.sin(b) + qd.exp(b) + qd.atan2(b, b) + b**b + qd.sqrt(b) + qd.round(b)
        c = z[i]
        z[i] = qd.exp(c) + c * c + qd.floor(c) + qd.cast(b, qd.f16)


D, H = np.zeros(8), np.zeros(8, np.float16)


@needs_ptxas
@pytest.mark.parametrize("fast", [False, True])
def test_mathematics(fast, tmp_path):
    made = artifact(mathematics, F, D, H, fast_math=fast)
    assemble(made, tmp_path)
    text = made.text("ptx")
    assert bool(lines(text, "div.approx")) == fast or bool(lines(text, "rcp.approx")) == fast
    assert bool(lines(text, "mul", ".ftz.f32")) == fast
    assert lines(text, "mul", ".f16") or lines(text, "fma", ".f16")
    assert "__nv_" not in text


@qd.kernel
def plain(x: Floats):
    for i in x:
        x[i] = qd.sqrt(x[i]) / 3.0


def test_without_libdevice(monkeypatch, tmp_path):
    monkeypatch.setattr(toolkit, "_found", lambda name, roots: ())
    assert "sqrt" in ptx(plain, F)
    with pytest.raises(CudaError, match="needs libdevice") as reported:
        ptx(mathematics, F, D, H)
    assert "CUDA_HOME" in str(reported.value.hint)
    monkeypatch.setenv("QD_LIBDEVICE", str(tmp_path / "none.bc"))
    with pytest.raises(CudaError, match=r"QD_LIBDEVICE is .*none.bc"):
        ptx(mathematics, F, D, H)


def test_pieces_of_the_toolkit_are_found_where_variables_say(monkeypatch, tmp_path):
    monkeypatch.setattr(toolkit, "_by_pathfinder", lambda function, argument: "")
    monkeypatch.setattr(toolkit.sys, "path", [str(tmp_path / "site")])
    home = tmp_path / "home"
    wanted = home / "nvvm" / "libdevice" / "libdevice.10.bc"
    wanted.parent.mkdir(parents=True)
    wanted.write_bytes(b"BC")
    monkeypatch.setenv("CUDA_HOME", str(home))
    assert toolkit.library("libdevice") == str(wanted)
    packaged = tmp_path / "site" / "nvidia" / "cu13" / "nvvm" / "libdevice" / "libdevice.10.bc"
    packaged.parent.mkdir(parents=True)
    packaged.write_bytes(b"BC")
    toolkit._found.cache_clear()
    assert toolkit.library("libdevice") == str(packaged)
    named = tmp_path / "mine.bc"
    named.write_bytes(b"BC")
    monkeypatch.setenv("QD_LIBDEVICE", str(named))
    assert toolkit.library("libdevice") == str(named)
    toolkit._found.cache_clear()


def test_kept_pieces_that_are_damaged_are_made_again(monkeypatch):
    if toolkit.library("libdevice") is None:
        pytest.skip("there is no libdevice")
    kept = {}

    def library(_, name, make, use):
        try:
            return use(kept[name])
        except (KeyError, ValueError):
            kept[name] = make()
            return use(kept[name])

    monkeypatch.setattr(libdevice, "_bitcodes", {})
    monkeypatch.setattr(InjectedCache, "library", library)
    first = ptx(mathematics, F, D, H)
    assert len(kept) > 10
    monkeypatch.setattr(libdevice, "_bitcodes", {})
    for name in kept:
        kept[name] = b"BC damaged"
    assert ptx(mathematics, F, D, H) == first
    assert b"BC damaged" not in kept.values()
    monkeypatch.setattr(libdevice, "_bitcodes", {})
    monkeypatch.setattr(libdevice, "_cut", None)
    assert ptx(mathematics, F, D, H) == first


@qd.kernel
def reported(x: Floats):
    for i in x:
        assert x[i] > 0.0, "not above 0"
        print("x", i, x[i])


def test_asserts_and_prints():
    made = artifact(reported, F, debug=True)
    assert [site.text for site in made.meta.asserts if site.kind == "user"] == ["not above 0"]
    assert len(made.meta.prints) == 1
    text = made.text("ptx")
    assert lines(text, "atom", "cas.b64")
    assert lines(text, "atom", "add.u64")
    assert not artifact(reported, F).meta.asserts


@qd.real_func
def descend(n: qd.i32, x: Floats) -> qd.f32:
    out = x[0]
    if n > 0:
        out = descend(n - 1, x) + 1.0
    return out


@qd.kernel
def calls(x: Floats):
    for i in x:
        x[i] = descend(i, x)


@needs_ptxas
def test_real_functions(tmp_path):
    made = artifact(calls, F)
    assemble(made, tmp_path)
    assert lines(made.text("ptx"), "call.uni") or lines(made.text("ptx"), "call ")
    assert made.facts["recursive"]
    assert not artifact(plain, F).facts["recursive"]


def test_a_larger_stack_allows_deeper_recursion():
    def depth(**options):
        (text,) = [s.text for s in artifact(calls, F, **options).meta.asserts if "levels" in s.text]
        return int(text.split("more than ")[1].split()[0])

    assert 16 < depth() < depth(cuda_stack_limit=128 << 10) <= 4096


def test_options_of_registers_and_blocks():
    assert ".maxnreg 40" in ptx(shift, F, F, 5, gpu_max_reg=40)
    assert ".maxnreg" not in ptx(shift, F, F, 5)


def test_the_cpu_s_hints_do_not_matter():
    text = artifact(rows, G, max_vector_width=4).texts["llvm_ir"]
    assert "prefer-vector-width" not in text
    assert "optnone" not in text


@needs_ptxas
@pytest.mark.parametrize("seed", range(40, 46))
def test_generated_kernels_assemble(seed, tmp_path):
    from tests.backends.cuda.ptxkit import of_func

    func = lower(generate(seed))
    assemble(of_func(func, ("sm_75", "sm_90")[seed % 2], fast_math=seed % 3 == 0), tmp_path)


@qd.kernel
def large(x: Floats):
    qd.loop_config(block_dim=128)
    for i in range(x.shape[0]):
        t = i % 128
        small = qd.simt.block.SharedArray((128,), qd.u8)
        pad = qd.simt.block.SharedArray((128, 100), qd.f32)
        last = qd.simt.block.SharedArray((128,), qd.f64)
        small[t] = qd.u8(t)
        pad[t, 99] = x[i]
        last[t] = 0.5 * t
        qd.simt.block.sync()
        other = 127 - t
        x[i] = pad[other, 99] * 1000.0 + small[other] + last[other] + pad[other, 98]


@needs_ptxas
def test_shared_arrays_beyond_48_kib_are_given_by_the_launch(tmp_path):
    made = artifact(large, F)
    (task,) = tasks(made)
    assert task.shared == 128 + 128 * 100 * 4 + 128 * 8
    assert ".extern .shared" in made.text("ptx")
    assemble(made, tmp_path)
    with pytest.raises(qd.QuadrantsCompilationError, match="of 49152 that a block of the GPU has"):
        artifact(large, F, arch="sm_61")


@qd.kernel
def many_blocks(x: Floats):
    qd.loop_config(block_dim=128)
    for i, j in qd.ndrange(1 << 17, 1 << 17):
        qd.simt.block.sync()
        if i + j == 0:
            x[0] = 1.0


def test_an_exact_grid_may_have_more_threads_than_32_bits_count():
    made = artifact(many_blocks, F)
    (task,) = tasks(made)
    assert blocks_of(task) * task.block_dim == 1 << 34
    assert lines(made.texts["llvm_ir"], "mul i64", ", 128")
    assert not lines(made.texts["llvm_ir"], "mul nuw i32")


@qd.kernel
def tiles_of_blocks(x: Floats, tiles: qd.i32):
    qd.loop_config(block_dim=256)
    for i in range(tiles * 256):
        qd.simt.block.sync()
        x[i] = 1.0


def test_the_host_counts_the_blocks_of_a_product_by_a_power_of_two():
    (task,) = tasks(artifact(tiles_of_blocks, F, np.int32(3)))
    assert not task.header
    assert [blocks_of(task, n) for n in (3, 0, -1)] == [3, 1, 1]
