"""From a packed argument buffer to the driver: Python source generated for one kernel.

For a kernel ``k(x: ndarray<f32, 1>, a: f32)`` of one loop the section ``enter`` of its stub (see
`device_launch.control`) reads, in essence::

    g = G0[args.ints[18]]
    r = launch(F0, g, 1, 1, 128, 1, 1, 0, args.stream, args.params[0], 0)[0]
    if r: again(r, 0, g, args)

`cuLaunchKernel` does the rest. No other call is made: the driver reports a context that is not
current in this thread, and `again` then makes it current.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from ..device_launch.control import Control
from ..kernarg.grids import Blocks
from ..stub import Stub
from .arguments import CudaArguments
from .errors import FOREIGN, code_of

if TYPE_CHECKING:
    from .executable import CudaExecutable
    from .facts import CudaTask

__all__ = ["CudaControl"]


class _FirstBlocks(Blocks):
    """The blocks of a task in the first tier, whose code is right, or fast enough, up to a number.

    most: with which launches are right in both tiers. full: called where that is not enough, with
    whether first-tier code would be wrong.
    """

    def __init__(self, task: CudaTask, most: int, full: Callable[[bool], None]) -> None:
        super().__init__(task._replace(blocks=task.first) if task.first else task, most + 1)
        self.few: Final = most if task.first else 1
        self.full: Final = full

    def __missing__(self, key: Any) -> int:
        found = super().__missing__(key)
        if found > self.few:
            del self[key]
            self.full(self.few > 1)
        return min(found, self.most - 1)


def _unknown(*_: Any) -> int:
    """The blocks of a task that only the device knows."""
    return -1


class CudaControl(Control["CudaExecutable", CudaArguments]):
    """See `device_launch.control`.

    run(args): launch all tasks in order, without waiting. grids(args): the blocks of each task, -1
    where only the device knows. Both are made when first asked for: kernels of one task need
    neither.
    """

    def __init__(self, executable: CudaExecutable) -> None:
        launch = executable.device.driver.cuLaunchKernel
        super().__init__(executable, {"launch": launch, "again": self._again, "mark": self.mark})

    @cached_property
    def run(self) -> Callable[[CudaArguments], Any]:
        """See the class."""
        stub = Stub("run", "args")
        self.begin(stub)
        self.write(stub, range(len(self.tasks)))
        return self.made(stub, self.env)

    @cached_property
    def grids(self) -> Callable[[CudaArguments], list[int]]:
        """See the class."""
        stub = Stub("grids", "args")
        stub.results.add(f"return [{', '.join(map(self.grid, range(len(self.tasks))))}]")
        return self.made(stub, {**self.env, "header": _unknown})

    def of_code(self) -> dict[str, Any]:
        executable, names = self.executable, super().of_code()
        for k, task in enumerate(self.tasks):
            names[f"F{k}"] = executable.functions[k]
            if not executable.is_full and (task.tiled or task.first):
                names[f"G{k}"] = grid = _FirstBlocks(task, names[f"L{k}"], executable.finish)
                if not task.reads:
                    names[f"N{k}"] = grid[()]
        return names

    def begin(self, stub: Stub) -> None:
        super().begin(stub)
        if self.executable.meta.timed:
            stub.enter.add("mark(0, args.stream)")

    def write(self, stub: Stub, tasks: Sequence[int]) -> None:
        for k in tasks:
            task, blocks = self.tasks[k], self.grid(k)
            # Before the function is looked up: full code may run with the first tier's blocks.
            if blocks.startswith(("header", "G", "N")):
                stub.enter.add(f"g = {blocks}")
                blocks = "g"
            size = f"{task.block_dim}, 1, 1, {task.shared}"
            stub.enter.add(
                f"r = launch(F{k}, {blocks}, 1, 1, {size}, args.stream, args.params[{k}], 0)[0]",
                f"if r: again(r, {k}, {blocks}, args)",
            )
            if self.executable.meta.timed:
                stub.enter.add(f"mark({k + 1}, args.stream)")

    # --- what generated code calls --------------------------------------------------------------

    def _again(self, code: int, k: int, blocks: int, args: CudaArguments) -> None:
        """Handle a refused launch: try once more if another context was current."""
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

    def launch_header(self, k: int, args: CudaArguments) -> None:
        device, function = self.device, self.executable.headers[k]
        device.call(
            "launching a kernel", "cuLaunchKernel", function, 1, 1, 1, 1, 1, 1, 0, args.stream,
            args.params[k], 0,
        )  # fmt: skip
        device.wait(stream=args.stream)

    def mark(self, number: int, stream: Any) -> None:
        """Record the time when the device gets to this point of the stream."""
        event = self.executable.events[number]
        self.device.call("timing a launch", "cuEventRecord", event, stream)

    def clear(self, args: CudaArguments) -> None:
        at = args.device_buffer
        for offset, size in self.executable.zeroed:
            self.device.call("clearing", "cuMemsetD8Async", at + offset, 0, size, args.stream)
