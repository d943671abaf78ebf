"""The intermediate representation: op table, ops, builder, text form, verifier, stage specs.

Hot code imports `codes` (``from ..ir import codes as C``) and the classes from here. Every name is
imported from its module when it is first asked for: a kernel that comes from a cache needs its
parameters and places, and no ops.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from . import codes
    from .attrs import ArrayAttr, AssertAttr, ForAttr, GraphAttr, Param, TaskAttr
    from .builder import Builder, normalize
    from .codes import BY_NAME, CODES, OpInfo
    from .edit import (
        all_blocks,
        all_ops,
        base_of,
        clone,
        clone_into,
        drop,
        param_of,
        pointee,
        replace_uses,
        set_block,
        walk,
    )
    from .equality import difference, equal
    from .loc import UNKNOWN, Loc, get_loc
    from .op import Arg, Block, Callee, Func, Op
    from .parser import parse
    from .printer import Listing, listing, loc_table, marked_text, to_text
    from .spec import STAGES, StageSpec
    from .typerules import operand_type, result_type
    from .verifier import VerifyError, check, verify

__all__ = [
    "BY_NAME", "CODES", "STAGES", "UNKNOWN", "Arg", "ArrayAttr", "AssertAttr", "Block", "Builder",
    "Callee", "ForAttr", "Func", "GraphAttr", "Listing", "Loc", "Op", "OpInfo", "Param",
    "StageSpec", "TaskAttr", "VerifyError", "all_blocks", "all_ops", "base_of", "check",
    "clone", "clone_into", "codes", "difference", "drop", "equal", "get_loc", "listing",
    "loc_table", "marked_text", "normalize", "operand_type", "param_of", "parse", "pointee",
    "replace_uses", "result_type", "set_block", "to_text", "verify", "walk",
]  # fmt: skip

_MODULES: Final = {
    "attrs": "ArrayAttr AssertAttr ForAttr GraphAttr Param TaskAttr",
    "builder": "Builder normalize",
    "edit": "all_blocks all_ops base_of clone clone_into drop param_of pointee replace_uses "
    "set_block walk",
    "equality": "difference equal",
    "loc": "UNKNOWN Loc get_loc",
    "op": "Arg Block Callee Func Op",
    "codes": "BY_NAME CODES OpInfo",
    "parser": "parse",
    "printer": "Listing listing loc_table marked_text to_text",
    "spec": "STAGES StageSpec",
    "typerules": "operand_type result_type",
    "verifier": "VerifyError check verify",
}
_HOME: Final = {name: module for module, names in _MODULES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    module = _HOME.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f".{module}", __name__), name)
    return value
