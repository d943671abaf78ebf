"""The intermediate representation: op table, ops, builder, text form, verifier, stage specs.

Hot code imports `codes` (``from ..ir import codes as C``) and the classes from here.
"""

from . import codes
from .attrs import AssertAttr, ForAttr, Param, TaskAttr
from .builder import Builder, normalize
from .edit import all_blocks, clone, clone_into, drop, replace_uses, set_block, walk
from .loc import UNKNOWN, Loc, get_loc
from .op import Block, Func, Op
from .optable import BY_NAME, CODES, OpInfo
from .printer import Listing, listing, to_text
from .typerules import operand_type, result_type

__all__ = [
    "BY_NAME", "CODES", "UNKNOWN", "AssertAttr", "Block", "Builder", "ForAttr", "Func", "Listing",
    "Loc", "Op", "OpInfo", "Param", "TaskAttr", "all_blocks", "clone", "clone_into", "codes",
    "drop", "get_loc", "listing", "normalize", "operand_type", "replace_uses", "result_type",
    "set_block", "to_text", "walk",
]  # fmt: skip
