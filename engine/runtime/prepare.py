"""Prepared launchers: Python source made for one kernel and one set of argument features.

What is generated for ``k(x: ndarray<f32, 1>, a: f32)`` reads, in essence::

    def launch(a0=MISSING, a1=MISSING, *rest):
        c = a0.__class__
        if c is Ndarray:
            key, p0, s0, w0, m0 = a0._ready
            if key is not K0: return miss(a0, a1, *rest)
        elif c is ndarray:
            if a0.dtype is not D0 or a0.ndim != 1 or not a0.flags.carray: return miss(...)
            p0 = address_at(id(a0) + 16).value; s0 = a0.shape; w0 = UNSEEN
        else: return miss(...)
        c = a1.__class__
        if (c is not float and c is not int) or rest: return miss(...)
        try: frame = free.pop()
        except IndexError: frame = new_frame()
        buffer, pointer = frame
        try: pack(buffer, 128, p0, *s0, a1)
        except RANGE: return slow(...)
        if enter(pointer): return failed(frame, ...)
        w0.touched = True
        free.append(frame)

Members of dataclasses and of ``self`` are read by plain attribute access, those only that the
kernel uses; what it was compiled for (the class of a dataclass, a field that an object holds) is
compared by identity. Addresses of fields stand in the frames from the beginning.

An assertion, or arrays that overlap where they must not, make ``enter`` fail before anything is
lost: `failed` raises or launches the other variant. Frames are taken by one interpreter step, and
given back only after a launch without error; threads that launch, and kernels that print and so
launch, each have one of their own. A data pointer is read where NumPy keeps it (checked once when
this module is imported); NumPy's own ways to ask for it cost as much as a whole launch.
"""

from __future__ import annotations

import ctypes
import itertools
import math
import struct
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ..backends.kernarg.packing import yielded
from ..frontend.features import (
    InstanceFeature,
    Leaf,
    NdarrayFeature,
    RecordFeature,
    Used,
    ValueFeature,
    contents_of,
    follow,
    ndarray_feature,
    same,
)
from ..ir import Param
from ..types import (
    CompoundType,
    DataType,
    StructType,
    TensorHandle,
    flat_names,
)
from .apart import ArrayNames, apart_lines
from .args import flat
from .binding import MISSING
from .foreign import on_device, torch_tensor
from .reading import DATA_OFFSET, FAST_ADDRESS, UNSEEN, memory_of, slow_address, wrong_order

if TYPE_CHECKING:
    from .launch import Launchers, Variant
    from .sizer import Need, Sizer

__all__ = ["prepare"]


def prepare(
    owner: Launchers, variant: Variant, args: tuple[Any, ...], miss: Callable[..., Any],
    stream: int = 0,
) -> Callable[..., Any] | None:  # fmt: skip
    """The launcher for ``variant`` on a stream, which passes other calls to ``miss``.

    None if the executable has no frame (as with the interpreter), or for what only the
    long way takes: kernels that have something to report after a launch, that are timed, that print
    and have adstacks, or whose adstacks are sized by a component of a vector.
    """
    executable: Any = variant.executable
    frame = executable.pool(stream) if stream else getattr(executable, "frame", None)
    meta = variant.executable.meta
    timed = variant.program.profiler is not None
    if frame is None or meta.reports or timed or (meta.has_stacks and meta.prints):
        return None
    if owner.decl.autodiff == "validation":
        return None  # whose marks (see `marks`) only the long way finds
    fields = [leaf.field for leaf in variant.compiled.plan.leaves if leaf.field is not None]
    memory = [field.flat() for field in fields]  # held first: see `_Writer.env`
    frame.bind_fields([field.address() for field in fields])
    enter = frame.enter if stream else executable.enter
    writer = _Writer(owner, variant, args, miss, frame, memory, enter, stream)
    try:
        return writer.launcher()
    except _TooInvolved:
        return None


def _sizer(variant: Variant) -> Sizer | None:
    """What sizes the adstacks of the kernel, if it has some."""
    if not variant.executable.meta.has_stacks:
        return None
    return variant.program.stacks.sizer(variant.executable)


class _TooInvolved(Exception):
    """A launcher for this would do no better than the long way."""


class _Writer:
    """Writes one launcher."""

    def __init__(
        self, owner: Launchers, variant: Variant, args: tuple[Any, ...], miss: Callable[..., Any],
        frame: Any, memory: Sequence[Any], enter: Callable[[Any], int], stream: int,
    ) -> None:  # fmt: skip
        self.owner: Final = owner
        self.variant: Final = variant
        self.args: Final = args
        self.frame: Final = frame
        self.stream: Final = stream
        self.names: Final = [f"a{i}" for i in range(len(args))]
        self.again: Final = ", ".join([*self.names, "*rest"])
        self.lines: list[str] = []
        self.values: list[str] = []
        # What counts the writes to arrays that are written, and of any that are watched.
        self.writes: Final[list[str]] = []
        self.counts: Final[dict[int, str]] = {}
        self.known_as: Final[dict[int, str]] = {}  # scalars, and extents of arrays, by parameter
        self.sizer: Final = _sizer(variant)
        needs = self.sizer.needs if self.sizer else ()
        self.contents: Final = {need.param for need in needs if need.kind == "content"}
        self.numbers: Final = itertools.count()  # of names of locals
        self.arrays: Final[dict[int, ArrayNames]] = {}
        self.on_host: Final[bool] = variant.program.device.host_arrays
        self.members: Final[dict[tuple[int, tuple[str, ...]], str]] = {
            (i, ()): name for i, name in enumerate(self.names)
        }
        executable: Any = variant.executable
        self.env: Final[dict[str, Any]] = {
            "MISSING": MISSING, "Ndarray": owner.array_class, "ndarray": np.ndarray, "miss": miss,
            "address_at": ctypes.c_void_p.from_address, "slow_address": slow_address,
            "RANGE": (struct.error, OverflowError), "free": frame.free, "new_frame": frame.new,
            "pack": frame.pack, "enter": enter, "unpack": frame.unpack,
            # The last: a thread inside of the code keeps it mapped while another ends the program;
            # so with the memory of fields.
            "next_seed": variant.program.next_seed, "running": executable,
            "memory": memory,
            "UNSEEN": UNSEEN, "Tensor": TensorHandle, "flat": flat, "same": same,
            "kernel": owner.decl.name,
        }  # fmt: skip

    def launcher(self) -> Callable[..., Any]:
        head = ", ".join([*(f"{n}=MISSING" for n in self.names), "*rest"])
        for i, param in enumerate(self.owner.decl.params):
            self.argument(i, param.kind)
        plan, meta = self.variant.compiled.plan, self.variant.executable.meta
        for used in plan.used:
            self.used(used)
        leaves: list[Leaf] = list(plan.leaves)
        for i, (param, leaf) in enumerate(zip(meta.params, leaves, strict=True)):
            if leaf.field is None:
                self.leaf(i, param, leaf)
            elif i in meta.written or i in self.contents:
                self.watch(i, self.constant("W", leaf.field.writes))
        body = self.lines
        if any("." in line for line in body) and len(self.members) > len(self.names):
            # A member that is missing: the long way says so.
            body = ["    try:", *(f"    {line}" for line in body)]
            body.append(f"    except AttributeError: return slow({self.again})")
        lines = [f"def launch({head}):", *body]
        lines.append(f"    if rest: return miss({self.again})")
        if not self.on_host and meta.noalias:  # where the code does not look itself
            lines += apart_lines(meta, plan.leaves, self.arrays, self.again, self.env)
        lines += self.launch_lines()
        owner, frame, stream = self.owner, self.frame, self.stream

        def slow(*args: Any) -> Any:
            return owner.patient(args, stream)

        def failed(used: Any, *args: Any) -> Any:
            try:
                frame.check(used)
            except BaseException as error:
                raise owner.failed(args, error) from None
            return owner.patient(args, stream)

        self.env.update(slow=slow, failed=failed)
        name = f"<launcher of {self.owner.decl.name}>"
        exec(compile("\n".join(lines), name, "exec"), self.env)
        return self.env["launch"]

    def guard(self, test: str) -> None:
        self.lines.append(f"    if {test}: return miss({self.again})")

    def constant(self, prefix: str, value: Any) -> str:
        """A name of the generated code for ``value``."""
        name = f"{prefix}_{len(self.env)}"
        self.env[name] = value
        return name

    # Arguments and what lies in them

    def argument(self, i: int, kind: str) -> None:
        """Check what the kernel was compiled for as a whole."""
        name, feature = self.names[i], self.variant.features[i]
        whole = kind in ("template", "tensor") and not isinstance(feature, NdarrayFeature)
        if isinstance(feature, RecordFeature | InstanceFeature):
            self.known(name, feature, self.args[i])
        elif feature is None or whole:
            self.known(name, feature, feature)

    def known(self, name: str, feature: Any, value: Any) -> None:
        """Check that ``name`` is what the kernel was compiled for."""
        if isinstance(feature, RecordFeature):
            self.guard(f"{name}.__class__ is not {self.constant('R', feature.cls)}")
            return
        if isinstance(feature, InstanceFeature):
            if not self.owner.decl.is_method:  # a method has launchers for each object
                self.guard(f"{name} is not {self.constant('I', feature.reference)}()")
            return
        if isinstance(feature, ValueFeature):
            known = self.constant("T", feature.content)
            self.guard(f"{self.constant('F', contents_of)}({name}) != {known}")
            return
        known = self.constant("T", feature)
        test = f"{name} is not {known}"
        if type(feature).__eq__ is not object.__eq__ and feature is not None:
            kind = self.constant("C", feature.__class__)
            test += f" and ({name}.__class__ is not {kind} or not same({name}, {known}))"
        self.lines += [
            f"    if {name} is not {known}:",
            f"        if isinstance({name}, Tensor): {name} = {name}._unwrap()",
            f"        if {test}: return miss({self.again})",
        ]

    def member(self, arg: int, path: tuple[str, ...]) -> str:
        """The variable that holds what ``path`` leads to."""
        found = self.members.get((arg, path))
        if found is None:
            above = self.member(arg, path[:-1])
            found = self.members[arg, path] = f"m{len(self.members)}"
            self.lines.append(f"    {found} = {above}.{path[-1]}")
        return found

    def used(self, used: Used) -> None:
        """Check a member that the code depends on; arrays and numbers are checked as leaves."""
        feature = used.feature
        if not isinstance(feature, DataType | CompoundType | NdarrayFeature):
            self.known(self.member(used.arg, used.path), feature, feature)

    def leaf(self, number: int, param: Param, leaf: Leaf) -> None:
        """Check and read one parameter of the compiled kernel."""
        if leaf.part > 0:
            return  # came with part 0
        name = self.member(leaf.arg, leaf.path)
        if leaf.part == 0:
            self.compound(name, leaf)
        elif param.kind == "scalar":
            if param.dtype.bits == 1 and self.owner.decl.params[leaf.arg].kind != "scalar":
                self.guard(f"{name}.__class__ is not bool")  # another number compiles again
            self.scalar(name, param.dtype)
            self.known_as[number] = name
        else:
            self.array(name, param, leaf, number)

    def scalar(self, name: str, dtype: DataType) -> None:
        self.lines.append(f"    c = {name}.__class__")
        self.values.append(name)
        test = "c is not float and c is not int" if dtype.is_real else "c is not int"
        self.guard(test if dtype.bits > 1 else f"{test} and c is not bool")

    def compound(self, name: str, leaf: Leaf) -> None:
        """The scalars of a vector, matrix or struct. `pack` checks that they are numbers."""
        lines, self.lines = self.lines, []
        if all(dtype.bits > 1 for _, dtype in flat_names(leaf.type, "")):
            values = self.parts(name, leaf.type)
        else:  # anything is true or false: the long way looks closer
            values = [f"*flat(kernel, '', {name}, {self.constant('V', leaf.type)})"]
        read, self.lines = self.lines, lines
        self.lines += ["    try:", *(f"    {line}" for line in read), "        pass"]
        self.lines.append(f"    except Exception: return slow({self.again})")
        self.values += values

    def parts(self, name: str, t: Any) -> list[str]:
        """Check the form of a value, and name its scalars; errors of any kind go the long way."""
        if isinstance(t, DataType):
            return [name]
        k = next(self.numbers)
        bad = f"return slow({self.again})"
        if isinstance(t, StructType):
            self.lines += [
                f"    d{k} = {name} if {name}.__class__ is dict else {name}._entries()",
                f"    if len(d{k}) != {len(t.members)}: {bad}",
            ]
            out: list[str] = []
            for i, (key, member) in enumerate(t.members.items()):
                self.lines.append(f"    d{k}_{i} = d{k}[{key!r}]")
                out += self.parts(f"d{k}_{i}", member)
            return out
        self.lines += [
            f"    c = {name}.__class__",
            f"    if c is list or c is tuple: v{k} = {name}",
            f"    else: v{k} = {name}.tolist() if c is ndarray else {name}.to_list()",
            f"    if len(v{k}) != {t.n}: {bad}",
        ]
        if len(t.shape) == 1:
            return [f"*v{k}"]
        rows = [f"v{k}_{i}" for i in range(t.n)]
        self.lines.append(f"    {', '.join(rows)}, = v{k}")
        wrong = " or ".join(f"len({row}) != {t.m}" for row in rows)
        self.lines.append(f"    if {wrong}: {bad}")
        return [f"*{row}" for row in rows]

    def watch(self, number: int, name: str) -> None:
        """``name`` counts the writes to the array or field of a parameter."""
        self.counts[number] = name
        if number in self.variant.executable.meta.written:
            self.writes.append(name)

    def array(self, name: str, param: Param, leaf: Leaf, number: int) -> None:
        """Check an array, and put its address and extents into ``p`` and ``s``.

        If need be also what counts its writes into ``w``.
        """
        k = len(self.values)
        watched = number in self.variant.executable.meta.written or number in self.contents
        if watched:
            self.watch(number, f"w{k}")
        self.known_as[number] = f"s{k}"
        ndim, element = param.ndim, param.element_shape
        seen = follow(self.args[leaf.arg], leaf.path)
        key = ndarray_feature(param.dtype, ndim, param.needs_grad, element, param.axes)
        if isinstance(seen, self.owner.array_class):
            key = seen._key  # it knows of duals, which no parameter tells of
            if key is None:  # another thread has ended the program
                raise _TooInvolved
        feature = self.constant("K", key)
        dtype = self.constant("D", np.dtype(param.dtype.np))
        pointer = f"address_at(id({name}) + {DATA_OFFSET}).value" if FAST_ADDRESS else (
            f"slow_address({name})")  # fmt: skip
        miss = f"return miss({self.again})"
        dims = ndim + len(element)
        self.lines += [
            f"    c = {name}.__class__",
            "    if c is not Ndarray and c is not ndarray and isinstance(" + name + ", Tensor):",
            f"        {name} = {name}._unwrap(); c = {name}.__class__",
            "    if c is Ndarray:",
            f"        key, p{k}, s{k}, w{k}, m{k} = {name}._ready",
            f"        if key is not {feature}: {miss}",
        ]
        wrong = wrong_order(param, name)
        of_host = not self.owner.decl.options.graph  # which the long way refuses
        if not self.on_host:  # an array of the host is copied to the device and back
            self.lines.append(f"    elif c is ndarray: return slow({self.again})")
        elif of_host and not param.needs_grad and not key.needs_dual and wrong:
            shape = f"{name}.shape" + (f"[:{ndim}]" if element else "")
            bad = f"{name}.dtype is not {dtype} or {name}.ndim != {dims} or {wrong}"
            if element:
                bad += f" or {name}.shape[{ndim}:] != {element!r}"
            self.lines += [
                "    elif c is ndarray:",
                f"        if {bad}: {miss}",
                f"        p{k} = {pointer}; s{k} = {shape}"
                + (f"; w{k} = UNSEEN" if watched else ""),
            ]
        foreign = self.tensor(name, param, leaf, k, watched)
        size = param.dtype.size * math.prod(element)
        self.arrays[number] = ArrayNames(f"p{k}", f"s{k}", size, foreign)
        self.lines.append(f"    else: {miss}")
        self.values.append(f"p{k}")
        if param.needs_grad:
            self.values.append("0")  # no code reads gradients through the array itself
        if ndim:
            self.values.append(f"*s{k}")

    def tensor(self, name: str, param: Param, leaf: Leaf, k: int, watched: bool) -> bool:
        """Take a tensor of torch, if the call that this is made from has one: whether it has."""
        seen = follow(self.args[leaf.arg], leaf.path)
        if not torch_tensor(seen):
            return False
        device = self.variant.program.device
        if self.on_host and seen.device.type == "cpu":
            elsewhere = f"not {name}.is_cpu"
        elif not self.on_host and on_device(seen, device):
            elsewhere = f"{name}.get_device() != {device.dlpack[1]}"
        else:
            return False
        dims = param.ndim + len(param.element_shape)
        bad = (
            f"{name}.dtype is not {self.constant('D', seen.dtype)} or {name}.ndim != {dims} or"
            f" {elsewhere} or not {name}.is_contiguous() or {name}.requires_grad is not"
            f" {param.needs_grad}"
        )
        if param.element_shape:
            bad += f" or {name}.shape[{param.ndim}:] != {param.element_shape!r}"
        if param.needs_grad:
            bad += f" or {name}.grad is None"
        shape = f"{name}.shape" + (f"[:{param.ndim}]" if param.element_shape else "")
        self.lines += [
            f"    elif c is {self.constant('Torch', seen.__class__)}:",
            f"        if {bad}: return miss({self.again})",
            f"        p{k} = {name}.data_ptr(); s{k} = {shape}"
            + (f"; w{k} = UNSEEN" if watched else ""),
        ]
        return True

    # The launch

    def within_lock(self, sizer: Sizer, lines: list[str]) -> list[str]:
        """The lines that fill a frame and enter a kernel with adstacks, given the plan."""
        observed = ", ".join([self.observed(need) for need in sizer.needs])
        self.env.update(
            sizer=sizer, lock=sizer.stacks.lock, last_plan=sizer.caches.last_plan,
            write_stacks=self.frame.write_stacks, replan=sizer.replan, memory_of=memory_of,
        )  # fmt: skip
        observed = f"({observed},)" if observed else "()"
        at = lines.index("    buffer, pointer = frame") + 1
        plan = ["    if frame.plan is not plan: write_stacks(frame, plan)"]
        return [
            f"    seen = {observed}",
            "    with lock:",
            "        ready = sizer.ready",
            "        if ready is None or ready.observed != seen:",
            f"            ready = replan(seen, [{self.canonical()}])",
            "        else: last_plan.hits += 1",
            "        plan = ready.plan",
            *(f"    {line}" for line in (*lines[:at], *plan, *lines[at:])),
        ]

    def canonical(self) -> str:
        """The values of those parameters that sizes depend on, as executables take them."""
        meta = self.variant.executable.meta
        arrays = {need.param for need in self.sizer.needs} if self.sizer else set[int]()
        values: list[str] = []
        leaves: list[Leaf] = list(self.variant.compiled.plan.leaves)
        for i, (param, leaf) in enumerate(zip(meta.params, leaves, strict=True)):
            if leaf.field is not None:
                values.append(self.constant("M", leaf.field.flat()) if i in arrays else "0")
            elif param.kind == "scalar":
                values.append(self.known_as.get(i, "0"))
            elif i in arrays:
                values.append(f"memory_of({self.member(leaf.arg, leaf.path)})")
            else:
                values.append("0")
        return ", ".join(values)

    def observed(self, need: Need) -> str:
        """What is observed of something that sizes depend on."""
        if need.kind == "content":
            return f"{self.counts[need.param]}.generation"
        name = self.known_as.get(need.param)
        if name is None:
            raise _TooInvolved
        return f"{name}[{need.axis}]" if need.kind == "shape" else name

    def launch_lines(self) -> list[str]:
        """The part after the checks: fill a frame, enter the kernel, read results."""
        variant, frame, values, again = self.variant, self.frame, self.values, self.again
        meta = variant.executable.meta
        lines = [
            "    try: frame = free.pop()",
            "    except IndexError: frame = new_frame()",
            "    buffer, pointer = frame",
        ]
        if meta.seeded:
            values = ["next_seed()", *values]
        if values:
            lines += [
                f"    try: pack(buffer, {frame.start}, {', '.join(values)})",
                f"    except RANGE: return slow({again})",
            ]
        lines.append(f"    if enter(pointer): return failed(frame, {again})")
        if self.sizer is not None:
            lines = self.within_lock(self.sizer, lines)
        lines += [f"    {name}.touched = True" for name in self.writes]
        if meta.results:
            lines.append(f"    result = unpack(buffer, {frame.results_at})")
        if meta.labels:
            self.env["yielded"], self.env["status"] = yielded, variant.status
            lines.append("    number = yielded(buffer)")
        lines.append("    free.append(frame)")
        if meta.results:
            made = variant.makes_result
            self.env["made"] = made
            lines.append("    return made(result)" if made else "    return result[0]")
        if meta.labels:
            lines.append("    return status(number)")
        return lines
