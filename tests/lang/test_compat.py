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


def test_addresses_of_elements_follow_the_layout(arch):
    x = qd.field(qd.i32)
    v = qd.Vector.field(3, qd.f64)
    qd.root.dense(qd.ij, (1, 2)).dense(qd.ij, 2).dense(qd.ij, 2).place(x, offset=(-1, 0))
    qd.root.dense(qd.i, 4).place(v)
    S = qd.types.struct(a=qd.f32, b=qd.i64)
    s = S.field(shape=4, layout=qd.Layout.AOS)
    found = qd.field(qd.i64, shape=(3, 3))

    @qd.kernel
    def numbers():
        for i, j in x:
            first = qd.get_addr(x.snode, [-1, 0])
            x[i, j] = int(qd.get_addr(x, qd.Vector([i, j])) - first) // 4

    @qd.kernel
    def distances():
        found[0, 0] = qd.get_addr(v, 3) - qd.get_addr(v, [1])
        found[0, 1] = qd.get_addr(s.b, 1) - qd.get_addr(s.b, 0)
        found[0, 2] = qd.get_addr(s, 2) - qd.get_addr(s.a, 1)
        found[1, 0] = qd.get_addr(x, (0, 0)) != qd.get_addr(v, 0)

    numbers()
    assert x.to_numpy().tolist() == [
        [0, 1, 4, 5, 16, 17, 20, 21],
        [2, 3, 6, 7, 18, 19, 22, 23],
        [8, 9, 12, 13, 24, 25, 28, 29],
        [10, 11, 14, 15, 26, 27, 30, 31],
    ]
    distances()
    assert found.to_numpy()[0].tolist() == [48, 16, 16] and found[1, 0] == 1


def test_the_clock_counts_what_is_between_two_reads(arch):
    spent = qd.field(qd.i64, shape=4)
    x = qd.field(qd.f32, shape=2)

    @qd.func
    def now():
        return qd.clock_counter()

    @qd.kernel
    def work(n: qd.i32):
        began = qd.clock_counter()
        for _ in range(1):
            a = now()
            for j in range(n):
                x[0] += qd.sin(x[1] + j)
            b = now()
            c = qd.clock_counter()
            spent[0], spent[1] = b - a, c - b
        spent[2] = qd.clock_counter() - began

    @qd.kernel
    def wait() -> qd.i64:
        a = qd.clock_counter()
        while qd.clock_counter() - a < 100000:
            pass
        return qd.clock_counter() - a

    found = {}
    for n in (100, 100000):
        runs = []
        for _ in range(3):
            work(n)
            runs.append(spent.to_numpy())
        found[n] = np.min(runs, axis=0)
        assert found[n][1] >= 0 and 0 < found[n][0] < found[n][2]
    assert found[100000][0] > 20 * found[100][0] and found[100000][0] > 20 * found[100000][1]
    assert wait() >= 100000
    if arch == "interp":
        assert qd.clock_freq_hz() == 1e9


REFUSED = {
    "is_active": ("is_active(x.parent(), [0])", "only works on pointer, hash or bitmasked nodes"),
    "append": ("append(x.parent(), [0], 1)", "only works on dynamic nodes"),
    "length": ("length(x.parent(), [0])", "only works on dynamic nodes"),
    "clock_freq_hz": ("clock_freq_hz()", "clock_freq_hz is not known on"),
    "get_addr": ("get_addr(x, [0, 1])", "a field with 1 axes got 2 indices"),
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
    if name == "clock_freq_hz" and qd.lang.impl.current_cfg().arch == qd.cuda:
        assert qd.clock_freq_hz() > 1e8  # CUDA knows it
        return
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


def png(lines, filters, color, bits=8, table=b""):
    """A PNG file with ``lines``, each coded by the filter of its place."""
    step = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[color] * bits // 8
    height, width = len(lines), len(lines[0]) // step
    raw = b""
    for number, (line, kind) in enumerate(zip(lines, filters, strict=True)):
        raw += bytes([kind])
        for k, value in enumerate(line):
            left = line[k - step] if k >= step else 0
            up = lines[number - 1][k] if number else 0
            corner = lines[number - 1][k - step] if number and k >= step else 0
            nearest = min((left, up, corner), key=lambda n, p=left + up - corner: abs(n - p))
            raw += bytes([(value - (0, left, up, (left + up) // 2, nearest)[kind]) % 256])

    def chunk(kind, data):
        crc = zlib.crc32(kind + data)
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", crc)

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, bits, color, 0, 0, 0))
    head += chunk(b"PLTE", table) if table else b""
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b"")


@pytest.mark.parametrize("color", [0, 2, 4, 6])
def test_pictures_of_every_filter_are_read(color, tmp_path):
    rng = np.random.default_rng(color)
    lines = rng.integers(0, 256, (10, 12), np.uint8)
    path = tmp_path / "a.png"
    path.write_bytes(png(lines.tolist(), [*range(5), *range(5)], color))
    found = qd.tools.imread(str(path))
    assert np.array_equal(found.swapaxes(0, 1)[::-1].reshape(10, 12), lines)


def test_pictures_of_16_bits_and_of_a_palette_are_read(tmp_path):
    path = tmp_path / "a.png"
    path.write_bytes(png([[1, 2, 3, 4]], [0], 0, bits=16))
    assert qd.tools.imread(str(path))[:, 0].tolist() == [[1], [3]]
    path.write_bytes(png([[1, 0]], [1], 3, table=bytes(range(6))))
    assert qd.tools.imread(str(path))[:, 0].tolist() == [[3, 4, 5], [0, 1, 2]]


def test_frames_of_videos_are_pictures(tmp_path, monkeypatch, capsys):
    manager = qd.tools.VideoManager(str(tmp_path), framerate=10)
    manager.write_frames([np.zeros((5, 4, 3)), np.ones((4, 4, 3))])
    assert "its last column is left out" in capsys.readouterr().out
    assert sorted(p.name for p in (tmp_path / "frames").iterdir()) == ["000000.png", "000001.png"]
    assert qd.tools.imread(str(tmp_path / "frames" / "000001.png")).shape == (4, 4, 3)
    with pytest.raises(ValueError, match="a frame of"):
        manager.write_frame(np.zeros((8, 8)))
    monkeypatch.setenv("PATH", "")
    with pytest.raises(qd.QuadrantsRuntimeError, match="needs ffmpeg"):
        manager.make_video()
    assert manager.get_output_filename(".gif") == str(tmp_path / "video.gif")
    manager.clean_frames()
    assert not list((tmp_path / "frames").iterdir())


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
    assert qd.tools.imread(name)[:, :, 0].tolist() == [[0, 51, 102], [153, 204, 255]]
    wide = np.full((2, 2), 0xFF00, np.uint16)
    assert (qd.tools.imread(qd.tools.imwrite(wide, name)) == 255).all()
    with pytest.raises(ValueError, match="2D or 3D"):
        qd.tools.write_vtk(qd.field(qd.f32, shape=2), "a")
