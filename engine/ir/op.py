"""Operations, blocks and functions: the IR itself.

::

    Func ── body: Block ── ops: [Op, Op, ...]
                                   └─ regions: (Block, ...)

An `Op` is its own value: an operand is the op that computes it. Blocks hold plain lists. There are
no use lists; a pass that needs uses calls `analysis.uses`. Passes edit a block by building a new
list (see `edit`), never by ``list.remove`` or ``list.index``.

``Op.id`` is stable for the life of an op. A rewrite in place keeps it; a replacement op records
the id that it replaces in ``Func.origins``. ``Op.loc`` points to the user's source.
"""

from __future__ import annotations

from typing import Any, Final

from ..named_tuple import NamedTuple
from ..types import DataType, Type
from . import codes as C
from .attrs import Param
from .loc import UNKNOWN, Loc, forget_inlined

__all__ = ["Arg", "Block", "Callee", "Func", "Op", "free"]


class Op:
    """One operation. See `codes` for what each opcode means."""

    __slots__ = ("args", "attr", "block", "code", "id", "loc", "regions", "type")

    def __init__(
        self,
        code: int,
        type: Type,
        args: tuple[Op, ...],
        attr: Any,
        regions: tuple[Block, ...],
        id: int,
        block: Block | None,
        loc: Loc,
    ) -> None:
        self.code = code
        self.type = type
        self.args = args
        self.attr = attr
        self.regions = regions
        self.id = id
        self.block = block
        self.loc = loc

    @property
    def name(self) -> str:
        """The opcode's name. For messages, not for hot loops."""
        return C.NAME[self.code]

    def __repr__(self) -> str:
        args = ", ".join(f"${a.id}" for a in self.args)
        return f"<{self.type}> ${self.id} = {self.name} {args}"


class Block:
    """A list of ops; ``owner`` is the op whose region it is, None for the body of a function."""

    __slots__ = ("ops", "owner")

    def __init__(self, owner: Op | None = None) -> None:
        self.ops: list[Op] = []
        self.owner = owner


class Func:
    """A kernel in IR form, with the real functions that it calls.

    params / results: the signature. body: the root block; after `offload` it holds tasks only, and
    graph regions that hold tasks.
    noalias: distinct array parameters do not overlap (checked by the launch).
    origins: id of a replacement op -> id of the op it replaced.
    version: bumped by passes that change anything; analyses are cached by it.
    stage: the stage spec the IR meets (`spec.STAGES`): ast, lowered, typed, offloaded, accesses.
    global_tmp_size: bytes of the buffer between tasks.
    callees: real functions by name, those that they call among them.
    autodiff: the code to make from it: ``none`` (it runs as it is), ``reverse`` (its gradient),
        ``forward`` (it, with the duals of what it computes) or ``validation`` (it, with a check of
        the rules that gradients depend on). The passes that do so keep the value.
    graph: a device may record its tasks once and replay them.
    repeats: finished tasks that are equal to an earlier one, which their code is that of.
    copies: finished tasks that are an earlier one but for numbers, and have its blocks
        (`passes.task_copies.TaskCopy`).
    renumbered: finished tasks that are an earlier one but for numbers, with blocks of their own.
    shared: tasks, or loops that become tasks, that are set aside or share their blocks
        (`passes.share_tasks.SharedTasks`). One that is set aside is not in the body; it has the
        earlier one as its operand, and no regions.
    """

    __slots__ = (
        "autodiff", "body", "callees", "copies", "global_tmp_size", "graph", "loc", "name",
        "next_id", "noalias", "origins", "params", "renumbered", "repeats", "results", "shared",
        "stage", "version",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        params: tuple[Param, ...] = (),
        results: tuple[DataType, ...] = (),
        loc: Loc = UNKNOWN,
    ) -> None:
        self.name: Final = name
        self.params = params
        self.results = results
        self.loc = loc
        self.body = Block()
        self.noalias = True
        self.origins: dict[int, int] = {}
        self.next_id = 0
        self.version = 0
        self.stage = "ast"
        self.global_tmp_size = 0
        self.callees: dict[str, Callee] = {}
        self.autodiff = "none"
        self.graph = False
        self.repeats: dict[Op, Op] = {}
        self.copies: dict[Op, Any] = {}
        self.renumbered: dict[Op, Op] = {}
        self.shared: Any = None

    def new_op(
        self,
        code: int,
        type: Type,
        args: tuple[Op, ...] = (),
        attr: Any = None,
        loc: Loc = UNKNOWN,
        block: Block | None = None,
        regions: int = 0,
    ) -> Op:
        """A fresh op with ``regions`` empty blocks. The caller puts it into a block's list."""
        op = Op(code, type, args, attr, (), self.next_id, block, loc)
        self.next_id += 1
        if regions:
            op.regions = tuple(Block(op) for _ in range(regions))
        return op

    def tasks(self) -> list[Op]:
        """The offloaded tasks in program order, also those in graph regions."""
        found: list[Op] = []
        _tasks(self.body, found)
        return found

    def listed(self) -> list[Op]:
        """The ops of the root as they are printed: with the tasks that are set aside."""
        if self.shared is None:
            return self.body.ops
        left, equal = set(self.body.ops), self.shared.equal
        runs: dict[Op, list[Op]] = self.shared.runs
        if not runs.keys() <= left:
            order = [task for run in runs.values() for task in run]
            runs, run = {}, []
            for task in order:
                if task in left:
                    run = runs[task] = [task]
                elif equal.get(task) in left:
                    run.append(task)
        return [task for op in self.body.ops for task in runs.get(op, (op,))]

    def numbered_tasks(self) -> dict[int, Op]:
        """The tasks that are not set aside, by their number among all."""
        tasks = self.tasks() if self.shared is None else self.listed()
        return {number: task for number, task in enumerate(tasks) if not task.args}

    def is_root(self, block: Block | None) -> bool:
        """True if ``block`` is the body of the function or of a graph region."""
        while block is not None and block is not self.body:
            owner = block.owner
            if owner is None or owner.code != C.GRAPH_REGION:
                return False
            block = owner.block
        return block is not None

    def roots(self) -> list[Block]:
        """The blocks of the root: the body, then those of graph regions, outer before inner."""
        found = [self.body]
        for block in found:
            found += [op.regions[0] for op in block.ops if op.code == C.GRAPH_REGION]
        return found

    def bodies(self) -> list[Block]:
        """The root blocks of the kernel and of its callees."""
        return [self.body, *[callee.body for callee in self.callees.values()]]

    def release(self) -> None:
        """Free the ops and their locations. They refer to each other: Python's collector would have
        to find that out, which costs as much as a pass."""
        free(self.bodies())
        forget_inlined(self.loc)


def free(blocks: list[Block]) -> None:
    """Empty blocks that are no longer needed, and those in them; see `Func.release`."""
    found = list(blocks)
    for block in found:
        for op in block.ops:
            found += op.regions
    for block in found:
        block.ops, block.owner = [], None


def _tasks(block: Block, found: list[Op]) -> None:
    for op in block.ops:
        if op.code == C.OFFLOADED:
            found.append(op)
        elif op.code == C.GRAPH_REGION:
            _tasks(op.regions[0], found)


class Arg(NamedTuple):
    """An argument of a call: a number, or the address of one."""

    name: str
    type: Type


class Callee(Func):
    """A real function: kernels and other such functions call it, also itself.

    args: the arguments of a call, read by `call_arg`. results: at most one. The parameters are
    those of the kernel: a function sees the arrays and fields of the launch as the kernel does.
    It draws the ids of its ops from the kernel's.
    """

    __slots__ = ("args", "kernel")

    def __init__(
        self,
        kernel: Func,
        name: str,
        args: tuple[Arg, ...] = (),
        results: tuple[DataType, ...] = (),
        loc: Loc = UNKNOWN,
    ) -> None:
        self.kernel = kernel
        self.args = args
        super().__init__(name, (), results, loc)
        # An address passed in may be that of any element.
        self.noalias = not any(arg.type.is_ptr for arg in args)
        self.origins = kernel.origins
        self.callees = kernel.callees

    @property
    def params(self) -> tuple[Param, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Those of the kernel."""
        return self.kernel.params

    @params.setter
    def params(self, params: tuple[Param, ...]) -> None:
        """They are the kernel's to set."""

    @property
    def next_id(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The kernel's: ids are unique among all of its functions."""
        return self.kernel.next_id

    @next_id.setter
    def next_id(self, number: int) -> None:
        self.kernel.next_id = max(number, self.kernel.next_id)
