"""A hand-made record of the kind an engine writes, for tests of what renders records."""

from __future__ import annotations

from qd_studio.engine import ir
from qd_studio.engine.inspect import record as rec
from qd_studio.engine.ir import codes as C
from qd_studio.engine.types import f32, i32, pointer_to

SOURCE = """from qd_studio import engine as qd


@qd.kernel
def scale(x: qd.types.ndarray(dtype=qd.f32, ndim=1), a: qd.f32):
    for i in x:
        x[i] = x[i] * (a * 1.0)  # <b>&
"""


QUIET = rec.LoadRecord(cpus=2, waited=0.0, loop_us=10.0, loop_fast_us=9.5, loop_slow_us=11.0)
"""A machine that did nothing else."""

LAYERS = (
    rec.CacheLayer(name="in_process", state="bypass", reason="a capture compiles everything"),
    rec.CacheLayer(
        name="fastcache", state="off", reason="the kernel is not marked fastcache=True",
        advice="could be marked fastcache=True: it is pure",
    ),
    rec.CacheLayer(
        name="offline", state="miss", reason="config.fast_math: True -> False; and 1 more",
        key="0123456789abcdef0123456789abcdef01234567", nearest="fedcba9876543210",
        parts={"kernel": "scale", "config.fast_math": "False", "ir": "77" * 16},
        before={"config.fast_math": "True"}, against="entry", cost_ms=12.5,
        entry_created="2026-01-02 03:04:05", path="/c/q.qdc", size_bytes=900,
        differences=(
            rec.CacheDifference(
                part="config.fast_math", text="config.fast_math: True -> False", before="True",
                after="False",
            ),
            rec.CacheDifference(
                part="source", text="source of helper `half<b>` changed, line 12", name="half",
                file="scale.py", line=10, lines=("-12     return x * 0.5", "+12     return x / 2"),
            ),
        ),
    ),
    rec.CacheLayer(name="ptx", state="not_applicable", reason="the cpu backend makes no PTX"),
)  # fmt: skip


def make_func() -> ir.Func:
    """``x[i] = x[i] * (a * 1.0)`` before any pass."""
    loc = ir.get_loc("scale.py", 6, 4, 6, 20, "scale")
    func = ir.Func(
        "scale", (ir.Param("x", "ndarray", f32, 1), ir.Param("a", "scalar", f32)), loc=loc
    )
    b = ir.Builder(func, func.body, loc)
    base = b.emit(C.ARG_ADDR, (), (0, False), pointer_to(f32))
    extent = b.emit(C.EXTERNAL_TENSOR_SHAPE_ALONG_AXIS, (), (0, 0))
    loop = b.range_for((b.const(0, i32), extent), ir.ForAttr())
    with b.inside(loop.regions[0]):
        b.loc = ir.get_loc("scale.py", 7, 8, 7, 31, "scale")
        ptr = b.emit(C.EXTERNAL_PTR, (base, b.loop_index(loop, 0)), "unsafe", base.type)
        a = b.emit(C.ARG_LOAD, (), 1, f32)
        product = b.binary(C.MUL, a, b.const(1.0, f32))
        b.store(ptr, b.binary(C.MUL, b.load(ptr), product))
    return func


def snapshot(func: ir.Func) -> rec.Snapshot:
    lines, ids, locs = ir.listing(func)
    return rec.Snapshot(
        lines=tuple(lines),
        ids=tuple(ids),
        locs=tuple({6: 0, 7: 1}.get(loc.line, -1) for loc in locs),
        ops=len(ir.walk(func.body)),
    )


def make_record(*, cpu_us: float = 100.0, mad_us: float = 1.0) -> rec.Record:
    """One kernel on cpu and interp, with a pass that changed the IR and one that did not."""
    func = make_func()
    before = snapshot(func)
    body = func.body.ops[-1].regions[0]
    product = next(o for o in body.ops if o.code == C.MUL)
    ir.replace_uses(func.body, {product: product.args[0]})
    ir.drop({product, product.args[1]})
    after = snapshot(func)
    locs = tuple(rec.LocRecord(file="scale.py", line=n) for n in (6, 7))
    return _record(before, after, locs, cpu_us, mad_us)


def _record(before, after, locs, cpu_us, mad_us) -> rec.Record:
    runs = (
        rec.PassRun(
            index=0, stage="simplify_I", name="alg_simp", round=1, state="changed", us=40.0,
            before=0, after=1, removed=2, rewritten=1,
            remarks=(rec.Remark(pass_name="alg_simp", op=7, text="x * 1 is x"),),
        ),
        rec.PassRun(index=1, stage="simplify_I", name="die", round=1, us=5.0, before=1, after=1),
    )  # fmt: skip
    node = rec.CfgNode(id=0, ops=(3,), lines=("  $3 : a",), prev=(), next=(1,), label="start")
    last = rec.CfgNode(id=1, ops=(), lines=(), prev=(0,), next=(), label="final")
    cfg = rec.CfgRecord(stage="simplify_III", task=0, when="before", nodes=(node, last))
    compiled = rec.CompileRecord(
        cold_ms=12.5, passes_ms=1.0, runs=runs, snapshots=(before, after), locs=locs, cfgs=(cfg,),
        artefacts=(rec.Artefact(name="llvm_ir", language="llvm", text="; <script>\nret void\n"),),
        metrics={"loads": 1, "stores": 1}, code_bytes=900,
    )  # fmt: skip
    launch = rec.LaunchRecord(
        workload="n=1024", method="host wall clock", n=8, warmup=1, first_us=300.0,
        median_us=cpu_us, mad_us=mad_us, min_us=cpu_us - 2, max_us=cpu_us + 9,
        samples_us=(
            cpu_us - 2, cpu_us + mad_us, cpu_us - mad_us, cpu_us, cpu_us, cpu_us + mad_us,
            cpu_us - mad_us, cpu_us + 9,
        ),
        gbps=12.0, load=QUIET,
    )  # fmt: skip
    agreement = rec.AgreementRecord(
        state="ok",
        workload="n=1024",
        max_abs=2e-7,
        tolerance="4 ulp",
        elements=1024,
        against="the interpreter",
    )
    kernel = rec.KernelRecord(
        id="scale.py:scale", name="scale", file="scale.py", line=5, doc="Scale <x>.",
        params=(rec.ParamRecord(name="x", kind="ndarray", dtype="f32", ndim=1),),
        workloads=(rec.WorkloadRecord(label="n=1024", origin="workload", sizes={"n": 1024}),),
        backends=(
            rec.BackendRecord(
                backend="cpu", status="ok", compile=compiled, launches=(launch,),
                agreement=agreement, caches=LAYERS,
            ),
            rec.BackendRecord(backend="cuda", status="absent", reason="cuda: no driver found"),
        ),
    )  # fmt: skip
    return rec.Record(
        tool=rec.ToolInfo(version="0.1.0", python="3.11", llvm="22", cpu="a|b", threads=2),
        config=(rec.ConfigEntry(name="fast_math", value=False, default=True, origin="init"),),
        files=(rec.FileRecord(path="scale.py", sha256="0", text=SOURCE),),
        kernels=(kernel,),
    )
