"""From a packed argument buffer to OpenCL: Python source generated for one kernel.

For a kernel ``k(x: ndarray<f32, 1>, a: f32)`` of one loop the sections ``pack`` and ``enter`` of
its stub (see `device_launch.control`) read, in essence::

    v0, v1, v2 = unpack(args.view, 64)
    try:
        g = G0[args.ints[18]]
        k, m, n = args.kernels[0]
        b0, o0 = buffers[v0]
        m((1, b0))
        n((2, b"L", o0, 3, b"I", v1, 4, b"I", v2))
        launch(args.stream, k, (g * 128,), (128,))
    except Refused as error: raise again(error, 0, g)

Numbers are read from the buffer and passed to OpenCL as unsigned ones of the same size: only their
bits matter. The methods that set several arguments at once are internal ones of pyopencl, which its
generated code uses for the same; they take a tenth of a microsecond, the public API five for each
number.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from ...errors import QuadrantsRuntimeError
from ..device_launch.control import Control
from ..stub import Lines, Stub
from . import facts
from .arguments import OpenclArguments
from .errors import code_of

if TYPE_CHECKING:
    from .executable import OpenclExecutable

__all__ = ["OpenclControl"]

_CODES: Final = {1: "B", 2: "H", 4: "I", 8: "Q"}
"""Unsigned numbers by size, for `struct`; OpenCL's are the same but for the last one."""


Names = dict[tuple[int, int], str]
"""Names of what is read of the buffer, by offset and size."""


class OpenclControl(Control["OpenclExecutable", OpenclArguments]):
    """See `device_launch.control`."""

    def __init__(self, executable: OpenclExecutable) -> None:
        device = executable.device
        names = {
            "launch": device.cl.enqueue_nd_range_kernel, "again": self._again,
            "buffers": device.buffers, "Refused": (device.cl.Error, KeyError), "mark": self._mark,
            "one": struct.unpack_from,
        }  # fmt: skip
        super().__init__(executable, names)

    # --- pieces of source -----------------------------------------------------------------------

    def _unpack(self, lines: Lines, tasks: Sequence[int]) -> Names:
        """Read what some tasks need of the buffer."""
        need: Names = {}
        for k in tasks:
            for letter, offset in self.tasks[k].args:
                size = 8 if letter == facts.MEMORY else struct.calcsize("<" + letter)
                need.setdefault((offset, size), "")
        if not need:
            return {}
        start = min(need)[0]
        at, form, out = start, "<", list[str]()
        overlaid: list[tuple[int, int]] = []
        for key in sorted(need):
            offset, size = key
            need[key] = f"v{len(out) + len(overlaid)}"
            if offset < at:  # the same bytes in another size
                overlaid.append(key)
                continue
            form += f"{offset - at}x{_CODES[size]}"
            out.append(need[key])
            at = offset + size
        name = f"U{len(self.env)}"
        self.env[name] = struct.Struct(form).unpack_from
        lines.add(f"{', '.join(out)}, = {name}(args.view, {start})")
        for offset, size in overlaid:
            lines.add(f"{need[offset, size]}, = one('<{_CODES[size]}', args.view, {offset})")
        return need

    def _give(self, lines: Lines, k: int, names: Names) -> None:
        """Give its arguments to the kernel of a task, by ``m`` and ``n``."""
        task = self.tasks[k]
        memories: list[str] = []
        numbers: list[str] = []
        positions = iter(task.positions)
        at = 1 + task.prints
        for letter, offset in task.args:
            at = next(positions, at)
            if letter == facts.MEMORY:
                name = names[offset, 8]
                lines.add(f"b{name}, o{name} = buffers[{name}]")
                memories.append(f"{at}, b{name}")
                numbers.append(f"{at + 1}, b'L', o{name}")
                at += 2
                continue
            size = struct.calcsize("<" + letter)
            numbers.append(f"{at}, b'{'L' if size == 8 else _CODES[size]}', {names[offset, size]}")
            at += 1
        if memories:
            lines.add(f"m(({', '.join(memories)},))")
        if numbers:
            lines.add(f"n(({', '.join(numbers)},))")

    def write(self, stub: Stub, tasks: Sequence[int]) -> None:
        names = self._unpack(stub.pack, tasks)
        for k in tasks:
            size = self.tasks[k].block_dim
            stub.enter.add("g = 0")
            attempt = stub.enter.block("try:")
            attempt.add(f"k, m, n = args.kernels[{k}]")
            self._give(attempt, k, names)
            attempt.add(
                f"g = {self.grid(k)}", f"event = launch(args.stream, k, (g * {size},), ({size},))"
            )
            if self.executable.meta.timed:
                attempt.add(f"mark({k}, event)")
            stub.enter.add(f"except Refused as error: raise again(error, {k}, g)")

    # --- what generated code calls --------------------------------------------------------------

    def _again(self, error: Exception, k: int, groups: int) -> Exception:
        """The error of a launch that was refused."""
        device, task = self.device, self.tasks[k]
        name, what = self.executable.meta.name, self.executable.meta.tasks[k]
        if isinstance(error, KeyError):
            return QuadrantsRuntimeError(
                "an array or field was freed before the launch, or belongs to a program that ended",
                kernel=name,
            )
        loop = f" ({what.loop_name})" if what.loop_name else ""
        doing = f"launching its task {k}{loop} with {groups} groups of {task.block_dim} work-items"
        found = device.failed(error, doing, name)
        if code_of(error) == -5 and task.block_dim > 1:
            found.hint = "use a smaller qd.loop_config(block_dim=...)"
        return found.locate(what.loc)

    def launch_header(self, k: int, args: OpenclArguments) -> None:
        self.executable.header(k, args.device_buffer)(args)
        self.device.call("waiting for kernels", args.stream.finish, waits=True)

    def header_of(self, k: int, device_buffer: int) -> Any:
        """A function of a buffer that launches the header of a task."""
        kernel = self.executable.kernel(self.tasks[k].header)
        kernel.set_arg(0, self.device.buffers[device_buffer][0])
        stub = Stub(f"header{k}", "args")
        names = self._unpack(stub.pack, [k])
        self._give(stub.enter, k, names)
        stub.enter.add("launch(args.stream, k, (1,), (1,))")
        own = {"k": kernel, "m": kernel._set_arg_multi, "n": kernel._set_arg_buf_pack_multi}
        return self.made(stub, {**self.env, **own})

    def _mark(self, k: int, event: Any) -> None:
        """Keep the event of a task of a timed kernel."""
        self.executable.events.append((k, event))

    def clear(self, args: OpenclArguments) -> None:
        device = self.device
        buffer, at = device.buffers[args.device_buffer]
        for offset, size in self.executable.zeroed:
            device.call("clearing", device.fill, args.stream, buffer, b"\0" * 8, at + offset, size)
