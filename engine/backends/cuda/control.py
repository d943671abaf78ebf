"""From a packed argument buffer to the driver: Python source generated for one kernel.

For a kernel ``k(x: ndarray<f32, 1>, a: f32)`` of one loop the section ``enter`` of its stub (see
`device_launch.entry`) reads, in essence::

    g = G0[args.ints[18]]
    r = launch(F0, g, 1, 1, 128, 1, 1, 0, args.stream, args.params[0], 0)[0]
    if r: again(r, 0, g, args)

`cuLaunchKernel` does the rest. Nothing else is called: that the context is current in this thread
is found out by the driver, and `again` sees to it where it is not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ..device_launch.entry import entry
from ..kernarg.grids import EXACT, HEADER, ONE, Blocks
from ..stub import Lines, Stub
from .errors import FOREIGN, code_of

if TYPE_CHECKING:
    from .arguments import CudaArguments, CudaBufferPool
    from .executable import CudaExecutable

__all__ = ["Control"]


def _unknown(*_: Any) -> int:
    """The blocks of a task that only the device knows."""
    return -1


class Control:
    """Makes the functions that launch one kernel.

    run(args): launch all its tasks in order, without waiting. grids(args): the blocks of each task,
    -1 where only the device knows.
    """

    def __init__(self, executable: CudaExecutable) -> None:
        self.executable: Final = executable
        self.device: Final = executable.device
        self.tasks: Final = executable.tasks
        self.env: Final[dict[str, Any]] = {
            "launch": self.device.driver.cuLaunchKernel, "again": self._again,
            "header": self._header, "clear": self.clear, "mark": self.mark,
        }  # fmt: skip
        for k, function in enumerate(executable.functions):
            self.env[f"F{k}"] = function
            self.env[f"L{k}"] = most = executable.most_blocks(k)
            if self.tasks[k].blocks:
                self.env[f"G{k}"] = Blocks(self.tasks[k], most)
        run, grids = Stub("run", "args"), Stub("grids", "args")
        self._launches(run.enter)
        self.run: Final = self._made(run)
        every = ", ".join([self._grid(k) for k in range(len(self.tasks))])
        grids.results.add(f"return [{every}]")
        self.grids: Final = self._made(grids, {**self.env, "header": _unknown})

    def _made(self, stub: Stub, names: dict[str, Any] | None = None) -> Any:
        file = f"<{stub.name} of {self.executable.meta.name}>"
        return stub.function(self.env if names is None else names, file)

    def _grid(self, k: int) -> str:
        """The blocks of a task, as an expression."""
        task = self.tasks[k]
        if self.executable.meta.tasks[k].stacks and task.grid != EXACT:
            return f"args.rows[{k}]"
        if task.grid == ONE:
            return "1"
        if not task.blocks:
            return f"header({k}, args)" if task.grid == EXACT else f"L{k}"
        reads = ", ".join([f"args.ints[{at // 4}]" for at in task.reads])
        return f"G{k}[{reads}]" if reads else str(self.env[f"G{k}"][()])

    def _launch(self, lines: Lines, k: int) -> None:
        """Launch one task."""
        task, blocks = self.tasks[k], self._grid(k)
        if blocks.startswith(("header", "G")):
            lines.add(f"g = {blocks}")
            blocks = "g"
        size = f"{task.block_dim}, 1, 1, {task.shared}"
        lines.add(
            f"r = launch(F{k}, {blocks}, 1, 1, {size}, args.stream, args.params[{k}], 0)[0]",
            f"if r: again(r, {k}, {blocks}, args)",
        )
        if self.executable.meta.timed:
            lines.add(f"mark({k + 1}, args.stream)")

    def _launches(self, lines: Lines) -> None:
        """Launch all tasks in order."""
        if self.executable.zeroed:
            lines.add("clear(args.device_buffer, args.stream)")
        if self.executable.meta.timed:
            lines.add("mark(0, args.stream)")
        for k in range(len(self.tasks)):
            self._launch(lines, k)

    def task(self, k: int) -> Any:
        """A function of a buffer that launches one task, and nothing before or after it."""
        stub = Stub(f"task{k}", "args")
        self._launch(stub.enter, k)
        return self._made(stub)

    def entry(self, pool: CudaBufferPool) -> Any:
        """What launches a packed buffer of ``pool``: 0 if all went well, else see `pool.check`."""
        executable, runner = self.executable, pool.runner
        several = len(self.tasks) > 1 or executable.zeroed or runner or any(executable.headers)
        stub, names = entry(pool, bool(several))
        if runner is None:
            self._launches(stub.enter)
        else:
            stub.enter.add("runner.run(args)")
        env = {**self.env, **names, "runner": runner}
        # A child of this process must not reach the driver.
        executable.sources.append(env)
        return self._made(stub, env)

    # --- what generated code calls --------------------------------------------------------------

    def _again(self, code: int, k: int, blocks: int, args: CudaArguments) -> None:
        """The driver has refused a launch: try once more where another context was current."""
        device, task = self.device, self.tasks[k]
        primary = device.context
        name = self.executable.meta.name
        if primary.lost is None and int(code) in FOREIGN and not primary.is_current():
            with primary.active():
                code = code_of(
                    device.driver.cuLaunchKernel(
                        self.executable.functions[k], blocks, 1, 1, task.block_dim, 1, 1,
                        task.shared, args.stream, args.params[k], 0,
                    )
                )  # fmt: skip
            if not code:
                return
        if primary.lost is not None:
            raise primary.lost.with_traceback(None)
        what = self.executable.meta.tasks[k]
        loop = f" ({what.loop_name})" if what.loop_name else ""
        doing = f"launching its task {k}{loop} with {blocks} blocks of {task.block_dim} threads"
        error = device.failed(int(code), doing, name)
        # The driver also reports here what an earlier kernel has done, which is elsewhere.
        raise error.locate(what.loc) if error.kernel == name else error

    def _header(self, k: int, args: CudaArguments) -> int:
        """The number of blocks of a task that only the device knows."""
        device = self.device
        function = self.executable.headers[k]
        device.call(
            "launching a kernel", "cuLaunchKernel", function, 1, 1, 1, 1, 1, 1, 0, args.stream,
            args.params[k], 0,
        )  # fmt: skip
        device.wait(stream=args.stream)
        return max(1, device.integer(args.device_buffer + HEADER, np.int64))

    def mark(self, number: int, stream: Any) -> None:
        """Note the time when the device comes here."""
        event = self.executable.events[number]
        self.device.call("timing a launch", "cuEventRecord", event, stream)

    def clear(self, buffer: int, stream: Any) -> None:
        """Set to 0 what each launch finds as 0."""
        for at, size in self.executable.zeroed:
            self.device.call("clearing", "cuMemsetD8Async", buffer + at, 0, size, stream)
