"""Builders of trees, ``qd.root`` and `FieldsBuilder`, and the memory of these trees.

A builder is turned into memory (see `storage`) by `FieldsBuilder.finalize`. ``qd.root`` stands for
one that the program keeps: it is finalised when one of its fields is first used, and then a new one
takes its place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from ... import logs as log
from ...errors import QuadrantsRuntimeError
from ...runtime import program
from ..elements import memory_shortage
from .snode import Nestable, SNode, cell, fields_of, inner_offsets, offsets, place_all, whole
from .storage import ALIGN, Block, Digit, Placement, guard

if TYPE_CHECKING:
    from .make import ScalarField

__all__ = ["FieldsBuilder", "SNodeTree", "first_use", "materialize", "placed_fields", "root"]


def _settle(top: SNode, block: Block, start: int, alone: bool) -> None:
    """Set the placement of the fields below ``top``, which is ``start`` bytes into ``block``.

    alone: True if nothing else is in the block.
    """
    alone = alone and len({id(f.owner()) for f in fields_of(top)}) == 1

    def visit(node: SNode, base: int, digits: tuple[tuple[int, int, int], ...]) -> None:
        if node.field is not None:
            field, axes = node.field, node.axes
            position = {axis: number for number, axis in enumerate(axes)}
            found = tuple([Digit(position[axis], n, stride) for axis, n, stride in digits])
            origin = offsets(field.offset, len(axes))
            field.settle(Placement(block, base, node.shape, origin, found, alone))
            return
        stride = cell(node)[0]
        own: list[tuple[int, int, int]] = []
        for axis, n in reversed(node.dims):
            own.append((axis, n, stride))
            stride *= n
        for child, offset in inner_offsets(node).items():
            visit(child, base + offset, (*digits, *reversed(own)))

    visit(top, start, ())


def _groups(tops: Sequence[SNode]) -> list[list[SNode]]:
    """The children of a root, those together that hold components of one vector field."""
    leader = list(range(len(tops)))

    def find(number: int) -> int:
        while leader[number] != number:
            number = leader[number]
        return number

    first: dict[int, int] = {}
    for number, top in enumerate(tops):
        for field in fields_of(top):
            other = find(first.setdefault(id(field.owner()), number))
            mine = find(number)
            leader[max(mine, other)] = min(mine, other)
    groups: dict[int, list[SNode]] = {}
    for number, top in enumerate(tops):
        groups.setdefault(find(number), []).append(top)
    return list(groups.values())


class FieldsBuilder(Nestable):
    """Builds a tree of nodes and fields that is separate from ``qd.root``.

    The fields are usable after `finalize`, which returns the tree; the tree can be destroyed.
    memory_error, hint_of_memory: the error and the hint of the device when it ran out of memory.
    """

    def __init__(self) -> None:
        self.program: Final = program.current()
        self.finalized: SNodeTree | None = None
        self._root: Final = SNode("root", None, self, ())
        self.is_root_of_program = False
        self.memory_text = ""
        self.hint_of_memory: str | None = None
        _state(self.program).builders.append(self)

    def _node(self) -> SNode:
        return self._root

    def face(self) -> Any:
        """The root of this tree as users see it."""
        return root if self.is_root_of_program else self._root

    def fields(self) -> list[ScalarField]:
        """The scalar fields, and components of other fields, that are placed in it."""
        return list(fields_of(self._root))

    def release(self) -> None:
        """Let go of the memory: the fields' views of it."""
        for field in self.fields():
            field.release()
            field.owner().release()

    @property
    def empty(self) -> bool:
        """True if it holds no fields."""
        return next(fields_of(self._root), None) is None

    def check_open(self) -> None:
        """QuadrantsRuntimeError if nothing can be added any more."""
        if self.finalized is not None:
            raise QuadrantsRuntimeError(
                "FieldsBuilder finalized: nothing can be added to a tree after its allocation",
                hint="start a new branch at qd.root, or another qd.FieldsBuilder",
            )
        if not self.program.alive:
            raise QuadrantsRuntimeError("FieldsBuilder of a program that has ended")

    def finalize(self, raise_warning: bool = True) -> SNodeTree:
        """Allocate the memory; from here on the fields can be used, and nothing can be added.

        raise_warning: warn if the builder has no fields.
        QuadrantsRuntimeError if it is finalised already, and if there is not enough memory: then
        the fields that have memory can be used, and the others report the error.
        """
        self.check_open()
        if raise_warning and self.empty:
            log.warn("Finalizing a FieldsBuilder in which no fields were placed")
        blocks: list[Block] = []
        lacking = 0
        for group in _groups([c for c in self._root.children if next(fields_of(c), None)]):
            starts: list[int] = []
            size = 0
            for top in group:
                starts.append(size)
                size += -(-whole(top)[0] // ALIGN) * ALIGN
            try:
                edge = guard(size)
                block = Block(self.program.device.allocate(size + 2 * edge))
            except (MemoryError, ValueError) as error:
                lacking += size
                shortage, self.hint_of_memory = memory_shortage(self.program, error)
                self.memory_text = f": {shortage}" if shortage else ""
                continue
            self.program.own(block)
            blocks.append(block)
            for top, start in zip(group, starts, strict=True):
                _settle(top, block, edge + start, len(group) == 1)
        self.finalized = SNodeTree(self, blocks)
        if lacking:
            raise QuadrantsRuntimeError(
                f"there is not enough memory for fields of {lacking} bytes{self.memory_text}",
                hint=self.hint_of_memory,
            )
        return self.finalized


class SNodeTree:
    """The memory of a finalised `FieldsBuilder`.

    blocks: that memory. id: counts the trees of the program. destroyed: True after `destroy`.
    """

    def __init__(self, builder: FieldsBuilder, blocks: list[Block]) -> None:
        state = _state(builder.program)
        self.blocks: Final = blocks
        self.id: Final = state.trees
        self.destroyed = False
        self._builder: Final = builder
        state.trees += 1

    def destroy(self) -> None:
        """Free the memory: the fields are of no use from here on."""
        if self.destroyed:
            raise QuadrantsRuntimeError("SNode tree has been destroyed")
        self.destroyed = True
        for block in self.blocks:
            block.program_ended()
        self._builder.release()
        self._builder.program.forget("forget_launchers")


class _State:
    """The state of the fields of a program: the builder of ``qd.root``, the number of trees."""

    def __init__(self) -> None:
        self.builder: FieldsBuilder | None = None
        self.builders: list[FieldsBuilder] = []
        self.trees = 0

    def program_ended(self) -> None:
        """Let go of everything: builders hold the program that this is kept for."""
        for builder in self.builders:
            builder.release()
        self.builder, self.builders = None, []


_states: WeakKeyDictionary[program.Program, _State] = WeakKeyDictionary()


def _state(owner: program.Program) -> _State:
    found = _states.get(owner)
    if found is None:
        found = _states[owner] = _State()
        owner.own(found)
    return found


def placed_fields(role: str = "primal") -> list[ScalarField]:
    """All scalar fields of the program in force that are placed: of this ``role``, which is
    ``primal``, ``grad`` or ``dual``, and not of a tree that was destroyed."""
    return [
        field
        for builder in _state(program.current()).builders
        if builder.finalized is None or not builder.finalized.destroyed
        for field in builder.fields()
        if field.role == role
    ]


def materialize() -> None:
    """Give the fields below ``qd.root`` that have none yet their memory."""
    builder = _state(program.current()).builder
    if builder is not None and builder.finalized is None and not builder.empty:
        builder.finalize()


first_use: Final[list[Callable[[], None]]] = [materialize]
"""One function: what a field below ``qd.root`` that has no memory calls when it is used.

`materialize`, with whatever a program has put before and after it; see `lang.impl`.
"""


class Root(Nestable):
    """``qd.root``: the tree that fields with a shape are placed in, and others may be."""

    def _builder(self) -> FieldsBuilder:
        state = _state(program.current())
        if state.builder is None or state.builder.finalized is not None:
            state.builder = FieldsBuilder()
            state.builder.is_root_of_program = True
        return state.builder

    def _node(self) -> SNode:
        return self._builder()._node()  # pyright: ignore[reportPrivateUsage]

    def place(self, *args: Any, offset: Any = None) -> None:
        """Place 0-D fields side by side."""
        place_all(self._node(), args, offset)

    @property
    def shape(self) -> tuple[int, ...]:
        return ()

    def parent(self, n: int = 1) -> None:
        """None: nothing is above the root."""
        return None

    def _get_children(self) -> list[SNode]:
        return list(self._node().children)

    def __repr__(self) -> str:
        return "qd.root"


root: Final = Root()
