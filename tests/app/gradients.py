"""A hand-made record of a kernel and its gradient, for tests of what renders them."""

from __future__ import annotations

import msgspec
from qd_studio.engine.inspect import record as rec
from qd_studio.engine.inspect import record_autodiff as ad

from tests.app.records import LAYERS

SOURCE = """from qd_studio import engine as qd


@qd.kernel
def power(x: qd.types.NDArray[qd.f32, 1], n: qd.types.NDArray[qd.i32, 1],
          loss: qd.types.NDArray[qd.f32, 1]):
    for i in range(x.shape[0]):
        y = x[i]
        for j in range(n[i] + 1):
            y = y * x[i]  # <b>&
        loss[0] += y
"""
HEAD = "kernel power(x: ndarray f32 1 grad 3, n: ndarray i32 1, loss: ndarray f32 1 grad 4) {"
FORWARD = (
    (HEAD, -1, -1),
    ("  $1 : i32 = external_tensor_shape_along_axis (0, 0)", 1, 0),
    ("  range_for $2 : [0, $1) {", 2, 0),
    ("    $3 : f32 = global_load $30", 3, 1),
    ("    $4 : <*f32> = alloca", 4, 1),
    ("    local_store $4 $3", 5, 1),
    ("    $6 : i32 = global_load $31", 6, 2),
    ("    range_for $7 : [0, $6) {", 7, 2),
    ("      $8 : f32 = local_load $4", 8, 3),
    ("      $9 : f32 = mul $8 $3", 9, 3),
    ("      local_store $4 $9", 10, 3),
    ("    }", -1, -1),
    ("    $11 : f32 = local_load $4", 11, 4),
    ("    $12 : f32 = atomic_add $32 $11", 12, 4),
    ("  }", -1, -1),
    ("}", -1, -1),
)  # fmt: skip
REVERSE = (
    (HEAD, -1, -1),
    ("  $1 : i32 = external_tensor_shape_along_axis (0, 0)", 1, 0),
    ("  range_for $2 : [0, $1) {", 2, 0),
    ("    $3 : f32 = global_load $30", 3, 1),
    ("    $40 : <*f32> = ad_stack_alloca AdStackAttr(name='y', size='(add (read 1 (var 0)) 2)')",
     40, 1),
    ("    ad_stack_push $40 $3", 41, 1),
    ("    $6 : i32 = global_load $31", 6, 2),
    ("    range_for $7 : [0, $6) {", 7, 2),
    ("      $8 : f32 = ad_stack_load_top $40", 42, 3),
    ("      $9 : f32 = mul $8 $3", 9, 3),
    ("      ad_stack_push $40 $9", 43, 3),
    ("    }", -1, -1),
    ("    $50 : f32 = global_load $33", 50, 4),
    ("    ad_stack_acc_adjoint $40 $50", 51, 4),
    ("    range_for $52 : [0, $6) reversed {", 52, 2),
    ("      $53 : f32 = ad_stack_load_top_adj $40", 53, 3),
    ("      $54 : f32 = mul $53 $3", 54, 3),
    ("      ad_stack_pop $40", 55, 3),
    ("      ad_stack_acc_adjoint $40 $54", 56, 3),
    ("    }", -1, -1),
    ("  }", -1, -1),
    ("}", -1, -1),
)  # fmt: skip
FORMULA = "(max over i < x.shape[0] of n[i] + 1) + 1"
TREE = (
    ad.SizeRow(depth=0, text="a + b", value=33),
    ad.SizeRow(depth=1, text="max over i < x.shape[0]", value=32),
    ad.SizeRow(depth=2, text="a + b"),
    ad.SizeRow(depth=3, text="n[i]"),
    ad.SizeRow(depth=3, text="1", value=1),
    ad.SizeRow(depth=1, text="1", value=1),
)
LEAVES = (
    ad.SizeLeaf(text="x.shape[0]", value=1000),
    ad.SizeLeaf(text="largest n[i]", value=31),
)
Y = ad.StackRecord(
    name="y", dtype="f32", size="(add (maxover 0 0 (shape 0 0) (add (read 1 (var 0)) 1)) 1)",
    formula=FORMULA, tree=TREE, leaves=LEAVES, forced_by="the loop over j at line 9", line=8,
    entry=8, slots=33, bytes=264, rows=2, total=528, peak=True,
)  # fmt: skip
COUNT = ad.StackRecord(
    name="count", dtype="i32", real=False, adjoint=False, max_size=12, formula="12",
    forced_by="the loop over <k> at line 10", line=10, entry=4, slots=12, bytes=48, rows=2,
    total=96,
)  # fmt: skip
PREDICATE = ad.PredicateRecord(
    state="not captured", reason="the condition compares two loads, at line 9"
)
TASK = ad.StackTask(
    index=0, name="power_kernel_0_range_for", line=7, trip="x.shape[0]", predicate=PREDICATE,
    stacks=(Y, COUNT), real_rows=2, integer_rows=2, real_stride=264, integer_stride=48,
)  # fmt: skip
AUTODIFF = ad.AutodiffRecord(
    mode="reverse", forward=0, reverse=1, tasks=(TASK,), sized=True, workload="n=1000", bytes=624,
    rounds=1, dispatches=1, evaluations=3,
    links=tuple(
        ad.OpLink(forward=f, reverse=r, by=by)
        for f, r, by in (
            (1, 1, "same"), (2, 2, "same"), (3, 3, "same"), (4, 40, "made"), (5, 41, "made"),
            (6, 6, "same"), (7, 7, "same"), (8, 42, "made"), (9, 9, "same"), (10, 43, "made"),
            (12, 50, "place"), (12, 51, "place"), (7, 52, "made"), (9, 53, "place"),
            (9, 54, "place"), (9, 55, "place"), (9, 56, "place"),
        )
    ),
    reducers=(
        ad.ReducerRecord(
            task=0, stack="y", formula="max over i < x.shape[0] of n[i] + 1", axes=(1000,),
            how="numpy", value=32,
        ),
    ),
    layers=tuple(
        ad.SizerLayer(name=name, hits=hits, misses=1)
        for name, hits in (("size_expr", 4), ("reducer_code", 0), ("task_metadata", 9),
                           ("max_reducer", 3))
    ),
    heaps=(ad.HeapRecord(kind="real", needed=528, size=1 << 16),
           ad.HeapRecord(kind="integer", needed=96, size=4096)),
)  # fmt: skip


def snapshot(rows) -> rec.Snapshot:
    lines, ids, locs = zip(*rows, strict=True)
    return rec.Snapshot(lines=lines, ids=ids, locs=locs, ops=sum(i >= 0 for i in ids))


def with_autodiff(record: rec.Record, autodiff, **more) -> rec.Record:
    """``record`` with another account of the gradient's differentiation."""
    primal, gradient = record.kernels
    backend = msgspec.structs.replace(gradient.backends[0], autodiff=autodiff, **more)
    gradient = msgspec.structs.replace(gradient, backends=(backend, *gradient.backends[1:]))
    return msgspec.structs.replace(record, kernels=(primal, gradient))


def make_record() -> rec.Record:
    """``power`` and ``power.grad``, on cpu."""
    locs = tuple(rec.LocRecord(file="power.py", line=n) for n in (7, 8, 9, 10, 11))
    shots = (snapshot(FORWARD), snapshot(REVERSE))
    runs = (
        rec.PassRun(index=0, stage="autodiff", name="make_adjoint", state="changed", us=9.0,
                    before=0, after=1, added=12, removed=3),
    )  # fmt: skip
    primal = rec.CompileRecord(snapshots=shots[:1], locs=locs, cold_ms=9.0)
    gradient = rec.CompileRecord(snapshots=shots, locs=locs, runs=runs, cold_ms=14.0)
    launch = rec.LaunchRecord(
        workload="n=1000", method="host wall clock", n=2, warmup=1, first_us=90.0, median_us=50.0,
        mad_us=1.0, min_us=49.0, max_us=51.0, samples_us=(49.0, 51.0),
    )  # fmt: skip
    agreement = rec.AgreementRecord(
        state="ok",
        workload="n=1000",
        tolerance="4 ulp",
        elements=1000,
        against="the interpreter",
    )
    common = {
        "file": "power.py", "line": 5, "end_line": 11,
        "workloads": (rec.WorkloadRecord(label="n=1000", origin="workload"),),
    }  # fmt: skip

    def backend(compiled, autodiff=None):
        return rec.BackendRecord(
            backend="cpu", status="ok", compile=compiled, launches=(launch,),
            agreement=agreement, caches=LAYERS, autodiff=autodiff,
        )  # fmt: skip

    kernels = (
        rec.KernelRecord(id="power.py:power", name="power", gradient="power.py:power.grad",
                         backends=(backend(primal),), **common),
        rec.KernelRecord(id="power.py:power.grad", name="power.grad", primal="power.py:power",
                         backends=(backend(gradient, AUTODIFF),), **common),
    )  # fmt: skip
    return rec.Record(
        tool=rec.ToolInfo(version="0.1.0", python="3.11", llvm="22", cpu="cpu", threads=2),
        files=(rec.FileRecord(path="power.py", sha256="0", text=SOURCE),),
        kernels=kernels,
    )
