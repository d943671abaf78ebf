"""The intermediate representation: op table, ops, builder, text form, verifier, stage specs.

Hot code imports `codes` (``from ..ir import codes as C``) and the classes from here. What no
compile needs (parser, verifier) is loaded when it is first asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from . import codes
from .attrs import ArrayAttr, AssertAttr, ForAttr, Param, TaskAttr
from .builder import Builder, normalize
from .edit import all_blocks, all_ops, clone, clone_into, drop, replace_uses, set_block, walk
from .equal import difference, equal
from .loc import UNKNOWN, Loc, get_loc
from .op import Arg, Block, Callee, Func, Op
from .optable import BY_NAME, CODES, OpInfo
from .printer import Listing, listing, to_text
from .spec import STAGES, StageSpec
from .typerules import operand_type, result_type

if TYPE_CHECKING:
    from .parser import parse
    from .verifier import VerifyError, check, verify

__all__ = [
    "BY_NAME", "CODES", "STAGES", "UNKNOWN", "Arg", "ArrayAttr", "AssertAttr", "Block", "Builder",
    "Callee", "ForAttr", "Func", "Listing", "Loc", "Op", "OpInfo", "Param", "StageSpec",
    "TaskAttr", "VerifyError", "all_blocks", "all_ops",
    "check", "clone", "clone_into", "codes", "difference", "drop", "equal", "get_loc", "listing",
    "normalize", "operand_type", "parse", "replace_uses", "result_type", "set_block",
    "to_text", "verify", "walk",
]  # fmt: skip

_LATER: Final = {
    "VerifyError": "verifier", "check": "verifier", "parse": "parser", "verify": "verifier",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _LATER:
        value = globals()[name] = getattr(import_module(f".{_LATER[name]}", __name__), name)
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
