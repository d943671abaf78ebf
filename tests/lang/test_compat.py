"""Names of the reference outside of the documented language: what programs get from them."""

import struct
import zlib

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.engine import logs
from qd_studio.engine.lang.compat import MODULES, NAMES
from qd_studio.engine.runtime.arch import support


@pytest.fixture
def level():
    yield
    logs.set_level("info")


def test_the_names_of_the_package_are_those_of_the_table():
    assert {*MODULES, *NAMES} == qd.REFERENCE_NAMES
    for name in sorted(qd.REFERENCE_NAMES - {"cfg"}):
        assert getattr(qd, name) is not None
    assert set(dir(qd)) >= qd.REFERENCE_NAMES


def test_hints_change_nothing():
    qd.init(arch=qd.cpu)
    x = qd.field(qd.i32, shape=4)

    @qd.kernel
    def k():
        qd.block_local(x)
        qd.cache_read_only(x)
        qd.no_activate(x.parent())
        qd.activate(x.parent(), [0])
        qd.deactivate(x.parent(), [1])
        for i in x:
            x[i] = qd.assume_in_range(i * 2, i, 0, 8)

    k()
    qd.deactivate_all_snodes()
    assert x.to_numpy().tolist() == [0, 2, 4, 6]


REFUSED = {
    "is_active": ("is_active(x.parent(), [0])", "only works on pointer, hash or bitmasked nodes"),
    "append": ("append(x.parent(), [0], 1)", "only works on dynamic nodes"),
    "length": ("length(x.parent(), [0])", "only works on dynamic nodes"),
    "clock_counter": ("clock_counter()", "clock_counter is not supported"),
    "clock_freq_hz": ("clock_freq_hz()", "clock_freq_hz is not supported"),
    "get_addr": ("get_addr(x, [0])", "get_addr is not supported"),
    "mesh_patch_idx": ("mesh_patch_idx()", "mesh_patch_idx is not supported"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_kernels_cannot_do_is_an_error_at_the_line(name, tmp_path):
    call, words = REFUSED[name]
    path = tmp_path / "refused.py"
    path.write_text(
        "from qd_studio import engine as qd\nqd.init(arch=qd.cpu)\nx = qd.field(qd.i32, shape=4)\n"
        f"@qd.kernel\ndef k():\n    a = qd.{call}\n    x[0] = 1\n"
    )
    scope = {}
    exec(compile(path.read_text(), str(path), "exec"), scope)
    with pytest.raises(qd.QuadrantsCompilationError, match=words) as caught:
        scope["k"]()
    assert f'"{path}", line 6' in str(caught.value) and "hint: " in str(caught.value)
    of_host = {"clock_freq_hz": (NotImplementedError, "kernel_profiler")}  # called from Python
    error, text = of_host.get(name, (qd.QuadrantsAssertionError, "can only be used in a kernel"))
    with pytest.raises(error, match=text):
        eval(f"qd.{call}", scope)


def test_objects_that_cannot_be_made_say_so():
    for make in (
        lambda: qd.BitpackedFields(32), qd.Mesh, lambda: qd.Mesh.load_meta("a"),
        lambda: qd.sparse.grid({}, 3), lambda: qd.sparse.usage(None),
    ):  # fmt: skip
        with pytest.raises(qd.QuadrantsUnsupportedError, match="is not supported in this version"):
            make()


def test_queries_of_the_program(capsys):
    qd.reset()
    assert qd.cfg is None
    qd.init(arch=qd.cpu, default_fp=qd.f64, ad_stack_experimental_enabled=True)
    assert qd.cfg.default_fp is qd.f64
    enabled = {e.name for e in qd.extension if qd.is_extension_enabled(e)}
    assert enabled == {"adstack", "assertion", "data64"}
    qd.dump_compile_config()
    lines = capsys.readouterr().out.splitlines()
    assert "default_fp=f64" in lines and lines == sorted(lines)
    with pytest.raises(TypeError, match="is not an extension"):
        qd.is_extension_enabled("data64")
    assert qd.Format.rgba8.value == 3 and qd.x86_64 == qd.x64
    assert qd.DeviceCapability.spirv_has_int8 == "spirv_has_int8"
    assert qd.interop.get_mps_command_queue() == 0


def test_queries_of_the_machine():
    core = qd._lib.core
    assert not core.with_vulkan() and not core.with_metal() and not core.with_opengl()
    assert core.with_cuda() == (support("cuda")[0] == "cuda")
    assert core.with_opencl() == (support("opencl")[0] == "opencl")
    assert core.arch_from_name("cuda") == qd.cuda and core.arch_uses_llvm(qd.cuda)
    assert core.get_version_string() == ".".join(map(str, qd.__version__))
    with pytest.raises(RuntimeError, match="Unknown architecture"):
        core.arch_from_name("nonsense")


def test_log_levels_are_public(level):
    qd.set_logging_level(qd.ERROR)
    assert qd.is_logging_effective(qd.ERROR) and not qd.is_logging_effective(qd.WARN)


def test_the_arch_python_is_the_interpreter():
    qd.init(arch=qd.python, enable_fallback=False)
    assert qd.cfg.arch == qd.python and qd.lang.impl.is_python_backend()
    x = qd.field(qd.f32, shape=3)

    @qd.kernel
    def k():
        for i in x:
            x[i] = i * 0.5

    k()
    assert x.to_numpy().tolist() == [0.0, 0.5, 1.0]


def test_the_profiler_says_what_it_does_not_measure(capsys):
    qd.init(arch=qd.cpu, kernel_profiler=True)
    x = qd.Vector.field(2, qd.f64, shape=(3, 4))
    x.fill(1.0)
    profiler = qd.profiler
    assert profiler.set_kernel_profiler_toolkit("default")
    assert not profiler.set_kernel_profiler_toolkit("cupti")
    assert profiler.get_predefined_cupti_metrics("global_access") == []
    assert profiler.get_predefined_cupti_metrics("nonsense") is None
    with profiler.collect_kernel_profiler_metrics([profiler.CuptiMetric("a")]):
        profiler.print_memory_profiler_info()
    out, err = capsys.readouterr()
    assert "f64 (3, 4), 96 B" in out and "Total: 192 B" in out
    assert "cupti is not supported" in err and "counters of the device" in err


def test_points_as_files(tmp_path):
    writer = qd.tools.PLYWriter(num_vertices=3, num_faces=1)
    writer.add_vertex_pos(np.arange(3.0), np.ones(3), np.zeros(3))
    writer.add_vertex_channel("q", "double", np.arange(6.0).reshape(3, 2))
    writer.add_faces(np.array([0, 1, 2]))
    writer.export_frame_ascii(3, str(tmp_path / "a.ply"))
    text = (tmp_path / "a_000003.ply").read_text().splitlines()
    assert text[:4] == [
        "ply",
        "format ascii 1.0",
        "comment created by PLYWriter",
        "element vertex 3",
    ]
    assert text[-5:] == ["end_header", "0.0 1.0 0.0 0.0 1.0 ", "1.0 1.0 0.0 2.0 3.0 ",
                         "2.0 1.0 0.0 4.0 5.0 ", "3 0 1 2 "]  # fmt: skip
    writer.export(str(tmp_path / "b.ply"))
    data = (tmp_path / "b.ply").read_bytes()
    assert data.endswith(struct.pack("=B3i", 3, 0, 1, 2))
    writer.add_faces(np.array([0, 1, 3]))
    with pytest.raises(AssertionError, match="face indices are invalid"):
        writer.export(str(tmp_path / "c.ply"))


def test_grids_and_pictures_as_files(tmp_path):
    qd.init(arch=qd.cpu)
    x = qd.field(qd.f32, shape=(2, 3))
    x.from_numpy(np.arange(6, dtype=np.float32).reshape(2, 3) / 5)
    qd.tools.write_vtk(x, str(tmp_path / "grid"))
    text = (tmp_path / "grid.vtr").read_text()
    assert 'WholeExtent="0 2 0 3 0 1"' in text and ">0.0 0.6" in text
    name = qd.tools.imwrite(x, str(tmp_path / "a.png"))
    data = (tmp_path / "a.png").read_bytes()
    assert name.endswith("a.png") and data[16:24] == struct.pack(">II", 2, 3)
    begin = data.index(b"IDAT") + 4
    lines = zlib.decompress(data[begin : data.index(b"IEND") - 8])
    assert list(lines) == [0, 102, 255, 0, 51, 204, 0, 0, 153]
    assert qd.tools.imresize(x, 4, 3).shape == (4, 3)
    with pytest.raises(ValueError, match="2D or 3D"):
        qd.tools.write_vtk(qd.field(qd.f32, shape=2), "a")
