"""The way from a filled frame to the driver: Python source generated for one kernel.

For a kernel ``k(x: ndarray<f32, 1>, a: f32)`` of one loop it reads, in essence::

    def enter(pointer):
        buffer, ints, stream, frame, host, rows, p0 = pointer
        g = G0[ints[18]]
        r = launch(F0, g, 1, 1, 128, 1, 1, 0, stream, p0, 0)[0]
        if r: again(r, 0, g, pointer)
        pending[pool] = None
        return 0

`cuLaunchKernel` does the rest. Nothing else is called: that the context is current in this thread
is found out by the driver, and `again` sees to it where it is not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ..device_launch.entry import around
from ..kernarg import abi
from ..kernarg.grids import EXACT, HEADER, ONE, Blocks
from .errors import FOREIGN, code_of

if TYPE_CHECKING:
    from .arguments import CudaBufferPool
    from .executable import CudaExecutable

__all__ = ["Control"]

_UNPACK: Final = "    buffer, ints, stream, frame, host, rows, "


def _unknown(*_: Any) -> int:
    """The blocks of a task that only the device knows."""
    return -1


class Control:
    """Makes the functions that launch one kernel.

    run(pointer): launch all its tasks in order, without waiting. grids(pointer): the blocks of each
    task, -1 where only the device knows.
    """

    def __init__(self, executable: CudaExecutable) -> None:
        self.executable: Final = executable
        self.device: Final = executable.device
        self.tasks: Final = executable.tasks
        self.env: Final[dict[str, Any]] = {
            "launch": self.device.driver.cuLaunchKernel, "again": self._again,
            "header": self._header, "upload": self._upload, "clear": self.clear,
            "mark": self.mark, "min": min, "max": max,
        }  # fmt: skip
        for k, function in enumerate(executable.functions):
            self.env[f"F{k}"] = function
            self.env[f"L{k}"] = most = executable.most_blocks(k)
            if self.tasks[k].blocks:
                self.env[f"G{k}"] = Blocks(self.tasks[k], most)
        if executable.alone:
            lines = [line for k in range(len(self.tasks)) for line in self._launch(k)]
            if executable.meta.timed:
                lines.insert(0, "    mark(0, stream)")
        else:
            lines = []  # `CudaBufferPool.runner` knows the way
        self._body: Final = [*self._before(), *lines]
        grids = [line for k in range(len(self.tasks)) for line in (*self._grid(k), "    out(g)")]
        self.run: Final = self._made("run", self._body)
        self.grids: Final = self._made(
            "grids", ["    found = []; out = found.append", *grids, "    return found"], True
        )

    def _made(self, name: str, lines: list[str], known: bool = False) -> Any:
        """A function of ``pointer``. known: grids that the device says are -1."""
        params = "".join([f"p{k}, " for k in range(len(self.tasks))])
        env = dict(self.env)
        if known:
            env["header"] = _unknown
        text = "\n".join([f"def {name}(pointer):", f"{_UNPACK}{params.strip()} = pointer", *lines])
        if name != "grids":
            env = self.env
        exec(compile(text, f"<{name} of {self.executable.meta.name}>", "exec"), env)
        return env[name]

    def _before(self) -> list[str]:
        """What precedes the first task."""
        lines: list[str] = []
        executable = self.executable
        if executable.zeroed:
            lines.append("    clear(frame, stream)")
        if executable.meta.graph:
            lines.append("    upload(frame, host, stream)")
        return lines

    def _grid(self, k: int) -> list[str]:
        """Put the blocks of a task into ``g``."""
        task = self.tasks[k]
        if self.executable.meta.tasks[k].stacks and task.grid != EXACT:
            return [f"    g = rows[{k}]"]
        if task.grid == ONE:
            return ["    g = 1"]
        if not task.blocks:
            if task.grid == EXACT:
                return [f"    g = header({k}, pointer)"]
            return [f"    g = L{k}"]
        reads = ", ".join([f"ints[{at // 4}]" for at in task.reads])
        return [f"    g = G{k}[{reads}]" if reads else f"    g = {self.env[f'G{k}'][()]}"]

    def _launch(self, k: int) -> list[str]:
        task = self.tasks[k]
        grid = self._grid(k)
        blocks = "g"
        if "header" not in grid[0] and "ints" not in grid[0]:
            blocks, grid = grid[0].split(" = ")[1], []
        size = f"{task.block_dim}, 1, 1, {task.shared}"
        lines = [
            *grid,
            f"    r = launch(F{k}, {blocks}, 1, 1, {size}, stream, p{k}, 0)[0]",
            f"    if r: again(r, {k}, {blocks}, pointer)",
        ]
        return [*lines, f"    mark({k + 1}, stream)"] if self.executable.meta.timed else lines

    def task(self, k: int) -> Any:
        """A function of a pointer that launches one task, and nothing before or after it."""
        return self._made(f"task{k}", self._launch(k))

    def entry(self, pool: CudaBufferPool) -> Any:
        """What launches a filled frame of ``pool``: 0 if all went well, else see `pool.check`."""
        meta = self.executable.meta
        several = len(self.tasks) > 1 or self.executable.zeroed or pool.runner is not None
        several = several or meta.graph or any(self.executable.headers)
        body = self._body if pool.runner is None else ["    runner.run(pointer)"]
        lines, names = around(pool, body, bool(several))
        env = {**self.env, **names, "runner": pool.runner}
        params = "".join([f"p{k}, " for k in range(len(self.tasks))])
        text = "\n".join(["def enter(pointer):", f"{_UNPACK}{params.strip()} = pointer", *lines])
        exec(compile(text, f"<launch of {meta.name}>", "exec"), env)
        # A child of this process must not reach the driver.
        self.executable.sources.append(env)
        return env["enter"]

    # --- what generated code calls --------------------------------------------------------------

    def _again(self, code: int, k: int, blocks: int, pointer: Any) -> None:
        """The driver has refused a launch: try once more where another context was current."""
        device, task = self.device, self.tasks[k]
        primary = device.context
        name = self.executable.meta.name
        if primary.lost is None and int(code) in FOREIGN and not primary.is_current():
            with primary.active():
                code = code_of(
                    device.driver.cuLaunchKernel(
                        self.executable.functions[k], blocks, 1, 1, task.block_dim, 1, 1,
                        task.shared, pointer[2], pointer[6 + k], 0,
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

    def _header(self, k: int, pointer: Any) -> int:
        """The number of blocks of a task that only the device knows."""
        device = self.device
        function = self.executable.headers[k]
        device.call(
            "launching a kernel", "cuLaunchKernel", function, 1, 1, 1, 1, 1, 1, 0, pointer[2],
            pointer[6 + k], 0,
        )  # fmt: skip
        device.wait(stream=pointer[2])
        return max(1, device.integer(pointer[3] + HEADER, np.int64))

    def _upload(self, frame: int, host: int, stream: Any) -> None:
        """Copy the arguments to the device frame, where a ``graph`` kernel looks for them."""
        layout = self.executable.layout
        for begin, end in ((abi.SEED, layout.results), (layout.stacks, layout.tmp)):
            if begin < end:
                self.device.call(
                    "copying arguments", "cuMemcpyHtoDAsync", frame + begin, host + begin,
                    end - begin, stream,
                )  # fmt: skip

    def mark(self, number: int, stream: Any) -> None:
        """Note the time when the device comes here."""
        event = self.executable.events[number]
        self.device.call("timing a launch", "cuEventRecord", event, stream)

    def clear(self, frame: int, stream: Any) -> None:
        """Set to 0 what each launch finds as 0."""
        for at, size in self.executable.zeroed:
            self.device.call("clearing", "cuMemsetD8Async", frame + at, 0, size, stream)
