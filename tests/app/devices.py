"""Hand-made records of kernels for a GPU: compiled without a device, and launched on one."""

from __future__ import annotations

from msgspec.structs import replace
from qd_studio.engine.inspect import record as rec

from tests.app.records import make_record

NODE = rec.FlowNode
FLOW = rec.FlowRecord(
    how="graph", replays=3, updates=1, rebuilds=1, streams=2,
    nodes=(
        NODE(id=0, kind="task", name="serial", task=0, grid=1, block=1, loc=0),
        NODE(id=1, kind="do_while", param="left", runs=1200),
        NODE(id=2, kind="task", name="range_for", task=1, parent=1, grid=2048, block=128, loc=1),
        NODE(id=3, kind="do_while", param="inner", parent=1),
        NODE(id=4, kind="task", name="range_for", task=2, parent=3),
        NODE(id=5, kind="parallel"),
        NODE(id=6, kind="section", parent=5),
        NODE(id=7, kind="task", name="range_for", task=3, parent=6, stream=1),
        NODE(id=8, kind="section", parent=5),
        NODE(id=9, kind="task", name="range_for", task=4, parent=8, stream=2),
        NODE(id=10, kind="checkpoint", label="<7>", param="flag"),
        NODE(id=11, kind="task", name="range_for", task=5, parent=10),
    ),
    edges=((0, 1), (2, 3), (1, 5), (5, 10)),
)  # fmt: skip
KERNEL = rec.MachineKernel(
    symbol="scale_kernel_0_range_for", task=0, block_dim=128, grid="cover", blocks="(n+127)//128",
    known=True, registers=40, spill_stores=8, spill_loads=16, shared=512, constant=388,
    blocks_held=12, warps_held=48, occupancy=0.75, limit="registers",
)  # fmt: skip
MACHINE = rec.MachineRecord(
    arch="sm_90", title="Hopper", ptx_version="8.0", ptx_bytes=2048, assembler="ptxas 13.0.88",
    assemble_ms=20.0, sass_reason="neither <nvdisasm> nor cuobjdump is installed",
    kernels=(KERNEL, rec.MachineKernel(symbol="helper")),
)  # fmt: skip
PTX = "\t.reg .b32 %r<3>;\n\tmov.u32 \t%r1, %tid.x; // <i>\n"
NAME = "cuda:sm_90"


def with_cuda(**more) -> rec.Record:
    """The hand-made record with a kernel that was compiled for a GPU, too."""
    record = make_record()
    kernel = record.kernels[0]
    cpu = kernel.backends[0].compile
    task = rec.TaskRecord(index=0, kind="range_for", name="scale_kernel_0_range_for", ops=3, loc=0)
    text = rec.Artefact(name="ptx", language="ptx", text=PTX, lines=(-1, 1))
    compiled = replace(cpu, machine=MACHINE, tasks=(task,), artefacts=(text,), code_bytes=2048)
    backend = rec.BackendRecord(backend=NAME, status="ok", compile=compiled, **more)
    return replace(record, kernels=(replace(kernel, backends=(*kernel.backends, backend)),))


NO_DEVICE = with_cuda(unlaunched="no driver found", flow=FLOW)
LAUNCHED = with_cuda(
    device=rec.DeviceRecord(
        name="NVIDIA H200", driver="13.0", capability="9.0", multiprocessors=132,
        total_bytes=140 << 30,
    ),
    flow=FLOW,
    launches=(
        rec.LaunchRecord(
            workload="n=1024", method="events", n=3, warmup=1, first_us=9.0, median_us=5.0,
            mad_us=0.1, min_us=4.9, max_us=5.2, samples_us=(4.9, 5.0, 5.2), gbps=4350.0,
            host_us=3.5, memory_bytes=8 << 20,
        ),
    ),
)  # fmt: skip

ONLY = ("amdgpu", "gfx90a", "cuda", "spirv")


def many():
    """cpu and opencl launched, four that only compiled, the interpreter."""
    kernel = with_cuda().kernels[0]
    cpu, _, cuda = kernel.backends
    launch = replace(
        cpu.launches[0], median_us=4.7, host_us=3.0, wall_us=60.0, wall_mad_us=2.0,
        wall_samples_us=(58.0, 60.0, 60.0, 69.0),
    )  # fmt: skip
    opencl = replace(
        cpu, backend="opencl", launches=(launch,), device=rec.DeviceRecord(name="pthread")
    )
    interp = replace(cpu, backend="interp")
    only = [replace(cuda, backend=name, unlaunched="no runtime") for name in ONLY]
    verdict = rec.VerdictRecord(
        workload="n=1024", backend="opencl", against="cpu", ratio=0.6, band=0.06, verdict="faster",
        clock="wall clock",
    )  # fmt: skip
    kernel = replace(
        kernel, backends=(cpu, interp, *only[:2], opencl, *only[2:]), verdicts=(verdict,)
    )
    return replace(make_record(), kernels=(kernel,))
