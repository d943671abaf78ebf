"""The way from a filled frame to OpenCL: Python source generated for one kernel.

For a kernel ``k(x: ndarray<f32, 1>, a: f32)`` of one loop it reads, in essence::

    def enter(pointer):
        buffer, ints, queue, rows, k0, m0, n0 = pointer
        v0, v1, v2 = unpack(buffer, 64)
        try:
            g = G0[ints[18]]
            b0, o0 = places[v0]
            m0((1, b0))
            n0((2, b"L", o0, 3, b"I", v1, 4, b"I", v2))
            launch(queue, k0, (g * 128,), (128,))
        except Refused as error: raise again(error, 0, g)
        pending[pool] = None
        return 0

Numbers are taken from the frame and given to OpenCL as unsigned ones of the same size: their bits
are what counts. What sets several arguments at once is pyopencl's own, by which its generated code
does the same; it takes a tenth of a microsecond, where the public way takes five for each number.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ...errors import QuadrantsRuntimeError
from ..device_launch.entry import around
from ..kernarg.grids import EXACT, HEADER, ONE, Blocks
from . import facts
from .errors import code_of

if TYPE_CHECKING:
    from .arguments import OpenclBufferPool
    from .executable import OpenclExecutable

__all__ = ["Control", "task_names"]

_CODES: Final = {1: "B", 2: "H", 4: "I", 8: "Q"}
"""Unsigned numbers by size, for `struct`; OpenCL's are the same but for the last one."""


def task_names(count: int) -> str:
    """The names under which generated code has the parts of a frame's pointer."""
    parts = "".join([f", k{i}, m{i}, n{i}" for i in range(count)])
    return f"    buffer, ints, queue, rows{parts} = pointer"


class Control:
    """Makes the functions that launch one kernel."""

    def __init__(self, executable: OpenclExecutable) -> None:
        self.executable: Final = executable
        self.device: Final = executable.device
        self.tasks: Final = executable.tasks
        device = self.device
        self.env: Final[dict[str, Any]] = {
            "launch": device.cl.enqueue_nd_range_kernel, "again": self._again,
            "places": device.places, "Refused": (device.cl.Error, KeyError),
            "header": self._header, "clear": self.clear, "mark": self._mark,
        }  # fmt: skip
        self._head: Final = task_names(len(self.tasks))
        for k, task in enumerate(self.tasks):
            self.env[f"L{k}"] = most = executable.most_blocks(k)
            if task.blocks:
                self.env[f"G{k}"] = Blocks(task, most)

    # --- pieces of source -----------------------------------------------------------------------

    def _unpacked(
        self, tasks: list[int], name: str
    ) -> tuple[list[str], dict[tuple[int, int], str]]:
        """Lines that read what some tasks need of the frame; the names by offset and size."""
        need: dict[tuple[int, int], str] = {}
        for k in tasks:
            for letter, offset in self.tasks[k].args:
                size = 8 if letter == facts.MEMORY else struct.calcsize("<" + letter)
                need.setdefault((offset, size), "")
        if not need:
            return [], {}
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
        self.env[name] = struct.Struct(form).unpack_from
        lines = [f"    {', '.join(out)}, = {name}(buffer, {start})"]
        for offset, size in overlaid:
            self.env["one"] = struct.unpack_from
            lines.append(f"    {need[offset, size]}, = one('<{_CODES[size]}', buffer, {offset})")
        return lines, need

    def _given(self, k: int, names: dict[tuple[int, int], str]) -> list[str]:
        """Lines that give a task its arguments."""
        task = self.tasks[k]
        memories: list[str] = []
        numbers: list[str] = []
        lines: list[str] = []
        places = iter(task.places)
        at = 1 + task.prints
        for letter, offset in task.args:
            at = next(places, at)
            if letter == facts.MEMORY:
                name = names[offset, 8]
                lines.append(f"    b{name}, o{name} = places[{name}]")
                memories.append(f"{at}, b{name}")
                numbers.append(f"{at + 1}, b'L', o{name}")
                at += 2
                continue
            size = struct.calcsize("<" + letter)
            numbers.append(f"{at}, b'{'L' if size == 8 else _CODES[size]}', {names[offset, size]}")
            at += 1
        if memories:
            lines.append(f"    m{k}(({', '.join(memories)},))")
        if numbers:
            lines.append(f"    n{k}(({', '.join(numbers)},))")
        return lines

    def _grid(self, k: int) -> list[str]:
        """Put the groups of a task into ``g``."""
        task = self.tasks[k]
        if self.executable.meta.tasks[k].stacks and task.grid != EXACT:
            return ["    g = 1"] if task.grid == ONE else [f"    g = rows[{k}]"]
        if task.grid == ONE:
            return ["    g = 1"]
        if not task.blocks:
            return [f"    g = header({k}, pointer)" if task.grid == EXACT else f"    g = L{k}"]
        reads = ", ".join([f"ints[{at // 4}]" for at in task.reads])
        return [f"    g = G{k}[{reads}]" if reads else f"    g = {self.env[f'G{k}'][()]}"]

    def _launch(self, k: int, names: dict[tuple[int, int], str]) -> list[str]:
        size = self.tasks[k].block_dim
        lines = [*self._given(k, names), *self._grid(k)]
        lines.append(f"    event = launch(queue, k{k}, (g * {size},), ({size},))")
        if self.executable.meta.timed:
            lines.append(f"    mark({k}, event)")
        lines = ["    g = 0", "    try:", *[f"    {line}" for line in lines]]
        return [*lines, f"    except Refused as error: raise again(error, {k}, g)"]

    # --- functions ------------------------------------------------------------------------------

    def task(self, k: int) -> Any:
        """A function of a pointer that launches one task, and nothing before or after it."""
        lines, names = self._unpacked([k], f"U{k}")
        return self._made(f"task{k}", [*lines, *self._launch(k, names)], self.env)

    def entry(self, pool: OpenclBufferPool, runner: Any) -> Any:
        """What launches a filled frame of ``pool``: 0 if all went well, else see `pool.check`.

        runner: runs the tasks where that is more than one after the other.
        """
        env = {**self.env, "runner": runner, "one": struct.unpack_from}
        lines = ["    clear(pool)"] if self.executable.zeroed else []
        if runner is not None:
            lines.append("    runner(pointer)")
        else:
            every = list(range(len(self.tasks)))
            read, names = self._unpacked(every, "unpack_all")
            env["unpack_all"] = self.env.get("unpack_all")
            lines += read
            for k in every:
                lines += self._launch(k, names)
        several = len(self.tasks) > 1 or self.executable.zeroed or runner is not None
        headers = any(task.header for task in self.tasks)
        lines, names_around = around(pool, lines, bool(several or headers))
        env |= names_around
        # A child of this process must not reach the driver.
        self.executable.sources.append(env)
        return self._made("enter", lines, env)

    def _made(self, name: str, lines: list[str], env: dict[str, Any]) -> Any:
        text = "\n".join([f"def {name}(pointer):", self._head, *lines])
        exec(compile(text, f"<{name} of {self.executable.meta.name}>", "exec"), env)
        return env[name]

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

    def _header(self, k: int, pointer: Any) -> int:
        """The number of groups of a task that only the device knows."""
        pool, device = self.executable.pool_of(pointer[2]), self.device
        self.executable.header(k, pool)(pointer)
        device.wait_for(pool.stream)
        return max(1, device.integer(pool.device_frame + HEADER, np.int64))

    def header_of(self, k: int, pool: OpenclBufferPool) -> Any:
        """A function of a pointer that launches the header of a task."""
        kernel = self.executable.kernel(self.tasks[k].header)
        kernel.set_arg(0, self.device.places[pool.device_frame][0])
        lines, names = self._unpacked([k], f"H{k}")
        lines += self._given(k, names)
        own = {"K": kernel, "M": kernel._set_arg_multi, "N": kernel._set_arg_buf_pack_multi}
        lines = [f"    k{k}, m{k}, n{k} = K, M, N", *lines, f"    launch(queue, k{k}, (1,), (1,))"]
        return self._made(f"header{k}", lines, {**self.env, **own})

    def _mark(self, k: int, event: Any) -> None:
        """Keep the event of a task of a timed kernel."""
        self.executable.events.append((k, event))

    def clear(self, pool: OpenclBufferPool) -> None:
        """Set to 0 what each launch finds as 0."""
        device = self.device
        buffer, start = device.places[pool.device_frame]
        for at, size in self.executable.zeroed:
            device.call("clearing", device.fill, pool.queue, buffer, b"\0" * 8, start + at, size)
