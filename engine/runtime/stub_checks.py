"""The section ``checks`` of a launch stub: checks of arguments, and names of packed values.

A check that fails forwards the call: to ``miss``, the next stub of the kernel, where the arguments
may fit another specialization; to ``slow`` where only the slow path can decide. See
`runtime.stub` for a whole stub.
"""

from __future__ import annotations

import ctypes
import itertools
import math
from collections.abc import Collection, Sequence
from dataclasses import is_dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ..backends.stub import Lines
from ..frontend.specialization import (
    InstanceKey,
    NdarrayKey,
    ParamBinding,
    RecordKey,
    Used,
    ValueKey,
    follow,
    ndarray_key,
)
from ..ir import Param
from ..named_tuple import NamedTuple
from ..types import CompoundType, DataType, StructType, TensorHandle, flat_names
from .alias_check import ArrayNames, alias_tests
from .binding import MISSING, torch_tensor
from .reading import DATA_OFFSET, FAST_ADDRESS, UNSEEN, slow_address, wrong_order

if TYPE_CHECKING:
    from .launch import Launchers
    from .variant import Variant

__all__ = ["NOTHING", "Checks", "Fixed", "TooInvolved"]


class TooInvolved(Exception):
    """Raised when a stub would be no better than the slow path."""


class Fixed(NamedTuple):
    """Members and parameters that need no check where records are compared (see `runtime.kept`).

    anchors: the objects that are compared, each by its argument and a path in it. args: numbers of
    those arguments that are compared as a whole. members: arguments and paths of members that the
    code depends on as a whole. params: numbers of parameters whose values are known.
    """

    anchors: Sequence[tuple[int, tuple[str, ...]]] = ()
    args: Collection[int] = ()
    members: Collection[tuple[int, tuple[str, ...]]] = ()
    params: Collection[int] = ()


NOTHING: Final = Fixed()


class Checks:
    """Writes the checks of one stub.

    again: the arguments of the call, as source. values: the packed values, in order. writes: names
    of the write counters of the arrays that the kernel writes. counters: names of the write
    counters of arrays and fields, by parameter. known_as: names of scalars, and of the extents of
    arrays, by parameter. counts: for each parameter, how many of the values are its own; a vector,
    matrix or struct counts them all for the first of its parameters.
    """

    def __init__(
        self, owner: Launchers, variant: Variant, args: tuple[Any, ...], contents: Collection[int],
        names: dict[str, Any], fixed: Fixed,
    ) -> None:  # fmt: skip
        """args: of the call that the stub is made for. contents: parameters whose contents the
        sizes of adstacks depend on. names: globals of the stub; this adds to them."""
        self.owner: Final = owner
        self.variant: Final = variant
        self.args: Final = args
        self.contents: Final = contents
        self.env: Final = names
        self.fixed: Final = fixed
        self.counts: Final[dict[int, int]] = {}
        self.names: Final = [f"a{i}" for i in range(len(args))]
        self.again: Final = ", ".join([*self.names, "*rest"])
        self.values: Final[list[str]] = []
        self.writes: Final[list[str]] = []
        self.counters: Final[dict[int, str]] = {}
        self.known_as: Final[dict[int, str]] = {}
        self.lines = Lines()
        self._numbers: Final = itertools.count()  # of names of locals
        self._arrays: Final[dict[int, ArrayNames]] = {}
        self._on_host: Final[bool] = variant.program.device.host_arrays
        self._members: Final[dict[tuple[int, tuple[str, ...]], str]] = {
            (i, ()): name for i, name in enumerate(self.names)
        }
        names.update({
            "MISSING": MISSING, "Ndarray": owner.array_class, "ndarray": np.ndarray,
            "address_at": ctypes.c_void_p.from_address, "slow_address": slow_address,
            "UNSEEN": UNSEEN, "Tensor": TensorHandle,
            "kernel": owner.decl.name, "prod": math.prod,
        })  # fmt: skip

    def write(self, lines: Lines) -> None:
        """Write all checks. TooInvolved where no stub can handle such a call."""
        plan, meta = self.variant.compiled.plan, self.variant.executable.meta
        fixed = self.fixed
        read = [
            used for used in plan.used
            if is_checked(used) and (used.arg, used.path) not in fixed.members
        ]  # fmt: skip
        bindings: list[ParamBinding] = [
            binding for i, binding in enumerate(plan.bindings)
            if binding.field is None and i not in fixed.params
        ]  # fmt: skip
        self.lines = lines
        if any(one.path for one in (*read, *bindings)):
            self.lines = lines.block("try:")  # a member that is missing: the slow path says so
            lines.add(f"except AttributeError: return slow({self.again})")
        for i, param in enumerate(self.owner.decl.params):
            if i not in fixed.args:
                self._argument(i, param.kind)
        for used in read:
            self._known(self.member(used.arg, used.path), used.spec_key, used.spec_key)
        for i, (param, binding) in enumerate(zip(meta.params, plan.bindings, strict=True)):
            before = len(self.values)
            if i in fixed.params:
                continue
            if binding.field is None:
                self._bound(i, param, binding)
                self.counts[i] = len(self.values) - before
            elif i in meta.written or i in self.contents:
                self._watch(i, self.constant("W", binding.field.writes))
        lines.add(f"if rest: return miss({self.again})")
        if not self._on_host and meta.noalias:  # where the code does not look itself
            tests = alias_tests(meta, plan.bindings, self._arrays)
            if tests:
                lines.add(f"if {' or '.join(tests)}: return slow({self.again})")

    def _guard(self, test: str) -> None:
        self.lines.add(f"if {test}: return miss({self.again})")

    def constant(self, prefix: str, value: Any) -> str:
        """A name of the generated code for ``value``."""
        name = f"{prefix}_{len(self.env)}"
        self.env[name] = value
        return name

    def _argument(self, i: int, kind: str) -> None:
        """Check an argument that the kernel depends on as a whole."""
        name, spec_key = self.names[i], self.variant.spec_keys[i]
        whole = kind in ("template", "tensor") and not isinstance(spec_key, NdarrayKey)
        if isinstance(spec_key, RecordKey | InstanceKey):
            self._known(name, spec_key, self.args[i])
        elif spec_key is None or whole:
            self._known(name, spec_key, spec_key)

    def _known(self, name: str, spec_key: Any, value: Any) -> None:
        """Check that ``name`` is the value that the kernel was compiled for."""
        if isinstance(spec_key, RecordKey):
            self._guard(f"{name}.__class__ is not {self.constant('R', spec_key.cls)}")
            return
        if isinstance(spec_key, InstanceKey):
            if not self.owner.decl.is_method:  # a method has stubs for each object
                self._guard(f"{name} is not {self.constant('I', spec_key.reference)}()")
            return
        if isinstance(spec_key, ValueKey):
            from ..frontend.contents import contents_of

            known = self.constant("T", spec_key.content)
            self._guard(f"{self.constant('F', contents_of)}({name}) != {known}")
            return
        known = self.constant("T", spec_key)
        test = f"{name} is not {known}"
        if type(spec_key).__eq__ is not object.__eq__ and spec_key is not None:
            from ..frontend.contents import same

            kind, alike = self.constant("C", spec_key.__class__), self.constant("F", same)
            test += f" and ({name}.__class__ is not {kind} or not {alike}({name}, {known}))"
        self.lines.add(
            f"if {name} is not {known}:",
            f"    if isinstance({name}, Tensor): {name} = {name}._unwrap()",
            f"    if {test}: return miss({self.again})",
        )

    def member(self, arg: int, path: tuple[str, ...]) -> str:
        """The variable that holds the value at ``path``."""
        found = self._members.get((arg, path))
        if found is None:
            above = self.member(arg, path[:-1])
            found = self._members[arg, path] = f"m{len(self._members)}"
            self.lines.add(f"{found} = {above}.{path[-1]}")
        return found

    def _bound(self, number: int, param: Param, binding: ParamBinding) -> None:
        """Check and read one parameter of the compiled kernel."""
        if binding.part > 0:
            return  # came with part 0
        name = self.member(binding.arg, binding.path)
        if binding.part == 0:
            self._compound(name, binding)
        elif param.kind == "scalar":
            if param.dtype.bits == 1 and self.owner.decl.params[binding.arg].kind != "scalar":
                self._guard(f"{name}.__class__ is not bool")  # another number compiles again
            self._scalar(name, param.dtype)
            self.known_as[number] = name
        else:
            self._array(name, param, binding, number)

    def _scalar(self, name: str, dtype: DataType) -> None:
        self.lines.add(f"c = {name}.__class__")
        self.values.append(name)
        test = "c is not float and c is not int" if dtype.is_real else "c is not int"
        self._guard(test if dtype.bits > 1 else f"{test} and c is not bool")

    def _compound(self, name: str, binding: ParamBinding) -> None:
        """The scalars of a vector, matrix or struct. `pack` checks that they are numbers."""
        lines, self.lines = self.lines, self.lines.block("try:")
        if all(dtype.bits > 1 for _, dtype in flat_names(binding.type, "")):
            values = self._parts(name, binding.type)
        else:  # anything is true or false: the slow path looks closer
            from .flat_values import flat

            numbers = self.constant("F", flat)
            values = [f"*{numbers}(kernel, '', {name}, {self.constant('V', binding.type)})"]
        self.lines.add("pass")
        self.lines = lines
        self.lines.add(f"except Exception: return slow({self.again})")
        self.values.extend(values)

    def _parts(self, name: str, t: Any) -> list[str]:
        """Check the form of a value, and name its scalars. Any error leads to the slow path."""
        if isinstance(t, DataType):
            return [name]
        k = next(self._numbers)
        bad = f"return slow({self.again})"
        if isinstance(t, StructType):
            self.lines.add(
                f"d{k} = {name} if {name}.__class__ is dict else {name}._entries()",
                f"if len(d{k}) != {len(t.members)}: {bad}",
            )
            out: list[str] = []
            for i, (key, member) in enumerate(t.members.items()):
                self.lines.add(f"d{k}_{i} = d{k}[{key!r}]")
                out += self._parts(f"d{k}_{i}", member)
            return out
        self.lines.add(
            f"c = {name}.__class__",
            f"if c is list or c is tuple: v{k} = {name}",
            f"else: v{k} = {name}.tolist() if c is ndarray else {name}.to_list()",
            f"if len(v{k}) != {t.n}: {bad}",
        )
        if len(t.shape) == 1:
            return [f"*v{k}"]
        rows = [f"v{k}_{i}" for i in range(t.n)]
        self.lines.add(f"{', '.join(rows)}, = v{k}")
        wrong = " or ".join(f"len({row}) != {t.m}" for row in rows)
        self.lines.add(f"if {wrong}: {bad}")
        return [f"*{row}" for row in rows]

    def _watch(self, number: int, name: str) -> None:
        """Use ``name`` as the write counter of the array or field of a parameter."""
        self.counters[number] = name
        if number in self.variant.executable.meta.written:
            self.writes.append(name)

    def _array(self, name: str, param: Param, binding: ParamBinding, number: int) -> None:
        """Check an array, and put its address and extents into ``p`` and ``s``.

        If needed, also put its write counter into ``w``.
        """
        k = len(self.values)
        watched = number in self.variant.executable.meta.written or number in self.contents
        if watched:
            self._watch(number, f"w{k}")
        self.known_as[number] = f"s{k}"
        ndim, element = param.ndim, param.element_shape
        seen = follow(self.args[binding.arg], binding.path)
        key = ndarray_key(param.dtype, ndim, param.needs_grad, element, param.axes)
        if isinstance(seen, self.owner.array_class):
            key = seen._key  # it has duals, which no parameter shows
            if key is None:  # another thread has ended the program
                raise TooInvolved
        spec_key = self.constant("K", key)
        dtype = self.constant("D", np.dtype(param.dtype.np))
        pointer = f"address_at(id({name}) + {DATA_OFFSET}).value" if FAST_ADDRESS else (
            f"slow_address({name})")  # fmt: skip
        miss = f"return miss({self.again})"
        dims = ndim + len(element)
        self.lines.add(
            f"c = {name}.__class__",
            "if c is not Ndarray and c is not ndarray and isinstance(" + name + ", Tensor):",
            f"    {name} = {name}._unwrap(); c = {name}.__class__",
            "if c is Ndarray:",
            f"    key, p{k}, s{k}, w{k}, h{k} = {name}._ready",
            f"    if key is not {spec_key}: {miss}",
        )
        wrong = wrong_order(param, name)
        # The slow path refuses NumPy arrays in a graph, and in place of an object's own arrays,
        # except for members of its records.
        own = isinstance(self.variant.spec_keys[binding.arg], InstanceKey)
        if own and binding.path:
            own = not is_dataclass(follow(self.args[binding.arg], binding.path[:-1]))
        of_host = not self.owner.decl.options.graph and (not own or isinstance(seen, np.ndarray))
        if not self._on_host:  # an array of the host is copied to the device and back
            self.lines.add(f"elif c is ndarray: return slow({self.again})")
        elif of_host and not param.needs_grad and not key.needs_dual and wrong:
            shape = f"{name}.shape" + (f"[:{ndim}]" if element else "")
            bad = f"{name}.dtype is not {dtype} or {name}.ndim != {dims} or {wrong}"
            if element:
                bad += f" or {name}.shape[{ndim}:] != {element!r}"
            self.lines.add(
                "elif c is ndarray:",
                f"    if {bad}: {miss}",
                f"    p{k} = {pointer}; s{k} = {shape}" + (f"; w{k} = UNSEEN" if watched else ""),
            )
        foreign = self._tensor(name, param, binding, k, watched)
        size = param.dtype.size * math.prod(element)
        self._arrays[number] = ArrayNames(f"p{k}", f"s{k}", size, foreign)
        self.lines.add(f"else: {miss}")
        self.values.append(f"p{k}")
        if param.needs_grad:
            self.values.append("0")  # no code reads gradients through the array itself
        if ndim:
            self.values.append(f"*s{k}")

    def _tensor(
        self, name: str, param: Param, binding: ParamBinding, k: int, watched: bool
    ) -> bool:
        """Accept a torch tensor; True if the call that the stub is made from has one."""
        seen = follow(self.args[binding.arg], binding.path)
        if not torch_tensor(seen):
            return False
        from .foreign import on_device

        device = self.variant.program.device
        if self._on_host and seen.device.type == "cpu":
            elsewhere = f"not {name}.is_cpu"
        elif not self._on_host and on_device(seen, device):
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
        fresh: list[str] = []  # as on the slow path
        if param.needs_grad:
            fresh = [f"    if {name}.grad is None: {name}.grad = {name}.new_zeros({name}.shape)"]
        shape = f"{name}.shape" + (f"[:{param.ndim}]" if param.element_shape else "")
        self.lines.add(
            f"elif c is {self.constant('Torch', seen.__class__)}:",
            f"    if {bad}: return miss({self.again})",
            *fresh,
            f"    p{k} = {name}.data_ptr(); s{k} = {shape}"
            + (f"; w{k} = UNSEEN" if watched else ""),
        )
        return True


def is_checked(used: Used) -> bool:
    """True for a member that the code depends on as a whole; arrays and numbers are read."""
    return not isinstance(used.spec_key, DataType | CompoundType | NdarrayKey)
