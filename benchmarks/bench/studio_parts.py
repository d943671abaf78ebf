"""What a save costs between the file and the repainted diff, part by part, and what a key costs.

Everything is measured as CPU time of one process, so that other work on the machine does not count.
The parts are those of the real program: the worker's import, the frontend and the passes up to the
first one with an effect under the studio's recorder, the message to the studio, its decoding, the
diff, and the lines of a screenful. Keys are pressed under Textual's pilot on a diff of 100,000
lines.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .generated import kernel_source

if TYPE_CHECKING:
    from qd_studio.app.worker.loader import Loader

SIZES = (500, 10_000)
LINES = 100_000
ROWS = 50


def load(loader: Loader, folder: Path, statements: int, marker: float = 1.0) -> Any:
    """The kernel of a generated file, imported as by the worker."""
    from qd_studio.app.worker.protocol import Opening

    path = folder / f"generated_{statements}_{int(marker)}.py"
    path.write_text(kernel_source(statements, marker))
    module = loader.load(str(path), Opening()).module
    assert module is not None
    return module.generated


class _Seen(BaseException):
    """The run that is shown is over."""


def save_parts(statements: int, turns: int = 3) -> dict[str, float]:
    """Milliseconds of CPU time by part, of the fastest of several saves."""
    found = [_save(statements, 1.0 + turn) for turn in range(turns)]
    return min(found, key=lambda parts: sum(parts.values()))


def _save(statements: int, marker: float) -> dict[str, float]:
    from qd_studio import engine as qd
    from qd_studio.app.core.views.changes import run_lines
    from qd_studio.app.tui.link import paused_collector
    from qd_studio.app.worker.child import collect_rarely
    from qd_studio.app.worker.loader import Loader
    from qd_studio.app.worker.packing import Packer, Unpacker
    from qd_studio.app.worker.protocol import KernelDone, MessageDecoder, frame
    from qd_studio.engine.inspect.capture import KernelCapture
    from qd_studio.engine.inspect.record import KernelRecord
    from qd_studio.engine.inspect.recorder import ShownRun
    from qd_studio.engine.inspect.steps import Steps
    from qd_studio.engine.runtime import program

    qd.init(arch=qd.cpu)
    collect_rarely()
    out: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        loader = Loader()
        start = time.process_time()
        kernel = load(loader, Path(folder), statements, marker)
        out["import"] = time.process_time() - start
        seen: list[KernelRecord] = []
        ended: list[float] = []
        steps = Steps()

        def stop(record: KernelRecord) -> None:
            ended.append(time.process_time())
            seen.append(record)
            raise _Seen

        steps.updated = stop  # type: ignore[method-assign]
        capture = KernelCapture(kernel, ("cpu",), program.current().config, steps, shown=ShownRun())
        start = time.process_time()
        with contextlib.suppress(_Seen):
            capture.compile()
        out["frontend and passes to the first diff"] = ended[0] - start
        loader.forget()  # it has changed the arguments and the path of this process
    del kernel, capture  # the studio's process has no IR
    gc.collect()
    start = time.process_time()
    kernel, again = Packer().pack(seen[0])
    body = frame(KernelDone(job=1, kernel=kernel, final=False, again=again))[4:]
    out["message"] = time.process_time() - start
    start = time.process_time()
    message = MessageDecoder().decode(body)
    assert isinstance(message, KernelDone)
    found = Unpacker().unpack(message.kernel, message.again)
    out["reading it"] = time.process_time() - start
    compiled = found.backends[0].compile
    assert compiled is not None
    start = time.process_time()
    run = next(r for r in compiled.runs if r.state == "changed")
    with paused_collector():
        lines = run_lines(compiled, run, 0, False, -1, None)
    for i in range(min(ROWS, len(lines))):
        lines[i].spans  # noqa: B018 - a line is made when it is looked at
    out["diff and lines"] = time.process_time() - start
    return {name: 1e3 * took for name, took in out.items()}


def key_to_paint(
    lines: int = LINES, keys: int = 90, readable: bool = False, tab: str = "passes"
) -> list[float]:
    """Milliseconds of CPU time of the screen's thread from each key to the painted screen.

    readable: in the readable form, whose key counts, too. tab: passes or code.
    """
    from qd_studio.app.tui import run
    from qd_studio.app.tui.app import StudioApp

    record = large_record(lines)
    run.prepare(None, False)

    async def press() -> list[float]:
        app = StudioApp(["large.py"], None, record)
        times: list[float] = []
        async with app.run_test(size=(120, 40)) as pilot:
            keys_there = ("2", "x", "w") if tab == "passes" else ("5",)
            for key in ("enter", *keys_there, "end", "home"):
                await pilot.press(key)
                await pilot.pause(0.3)
            cycle = ("down", "pagedown", "end", "up", "pageup", "right_square_bracket",
                     "right_curly_bracket", "home", "left_square_bracket")  # fmt: skip
            if readable:
                start = time.thread_time()
                await pilot.press("f")
                times.append(1e3 * (time.thread_time() - start))
                # It is made on another thread.
                view = app.screen.query_one("#diff" if tab == "passes" else "#code")
                while len(view.lines) < lines // 2:
                    await pilot.pause(0.3)
            for turn in range(keys):
                start = time.thread_time()
                await pilot.press(cycle[turn % len(cycle)])
                await pilot.pause()
                app.screen._compositor.render_strips()
                times.append(1e3 * (time.thread_time() - start))
        return times

    return asyncio.run(press())


def large_record(lines: int) -> Any:
    """A record of one kernel: two pass runs over IR of so many lines, and LLVM IR of so many."""
    from qd_studio.engine.inspect.record import (
        Artefact,
        BackendRecord,
        CompileRecord,
        FileRecord,
        KernelRecord,
        LocRecord,
        PassRun,
        Record,
        Snapshot,
    )

    def shot(odd: int) -> Snapshot:
        texts = ["kernel large() {"]
        texts += [f"  <f32> ${i} = add ${max(i - 1, 0)}, ${max(i - 2, 0)}" if (i + odd) % 1000
                  else f"  <f32> ${i} = mul ${max(i - 1, 0)}, ${max(i - 2, 0)}"
                  for i in range(lines - 2)]  # fmt: skip
        texts.append("}")
        ids = (-1, *range(lines - 2), -1)
        return Snapshot(lines=tuple(texts), ids=ids, locs=(0,) * lines, ops=lines - 2)

    runs = tuple(
        PassRun(index=i, stage="simplify_I", name=f"pass_{i}", state="changed", before=i,
                after=i + 1, rewritten=1)
        for i in range(2)
    )  # fmt: skip
    code = ["define void @large(ptr %kernarg) {", "entry:"]
    code += [f"  %v{i} = fadd reassoc float %v{max(i - 1, 0)}, %v{max(i - 2, 0)}"
             for i in range(lines - 3)]  # fmt: skip
    text = Artefact(name="llvm_ir", language="llvm", text="\n".join([*code, "}"]) + "\n")
    compiled = CompileRecord(
        artefacts=(text,),
        runs=runs,
        snapshots=tuple(map(shot, range(3))),
        locs=(LocRecord(file="large.py", line=1),),
    )
    kernel = KernelRecord(
        id="large.py:large", name="large", file="large.py", line=1,
        backends=(BackendRecord(backend="cpu", status="ok", compile=compiled),),
    )  # fmt: skip
    file = FileRecord(path="large.py", sha256="", text="def large(): pass\n")
    return Record(kernels=(kernel,), files=(file,))


def figures() -> dict[str, Any]:
    """Everything, for `studio`: parts of a save by size, and the times of keys."""
    return {
        "save": {str(size): save_parts(size) for size in SIZES},
        "key": sorted(key_to_paint()),
        "readable key": sorted(key_to_paint(readable=True)),
    }


def percentile(times: Sequence[float], share: float) -> float:
    """The time that this share of the sorted times does not exceed."""
    return times[min(len(times) - 1, int(share * len(times)))]


def main() -> None:
    """Print the figures, with ``--json`` for a program; see the module docstring."""
    found = figures()
    if sys.argv[1:] == ["--json"]:
        print(json.dumps(found))
        return
    for size, parts in found["save"].items():
        print(f"save to diff, {size} statements: {sum(parts.values()):.0f} ms of CPU time")
        for name, took in parts.items():
            print(f"  {name:<40} {took:8.1f}")
    times = found["key"]
    print(f"key to paint, {LINES} lines: median {statistics.median(times):.1f} ms, "
          f"95th percentile {percentile(times, 0.95):.1f} ms, most {times[-1]:.1f} ms")  # fmt: skip


if __name__ == "__main__":
    main()
