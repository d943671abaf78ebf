"""Public names of the reference outside of the documented language, and what they mean here.

They exist so that programs run unchanged: queries about the machine, hints to the compiler, names
of data structures that this engine lacks. `NAMES` says which module has each. A name of something
that is not supported raises an error that says so when it is used; looking it up succeeds, as
programs import it. `docs/compatibility.md` lists all of them.
"""

from __future__ import annotations

import importlib
from typing import Any, Final

__all__ = ["MODULES", "NAMES", "find"]

MODULES: Final = {
    "_lib": ".lib", "interop": ".interop", "linalg": "..linalg", "sparse": ".sparse_grids",
    "tools": "..tools",
}  # fmt: skip
"""Public module -> where it is."""

_WHERE: Final = {
    ".hints": "assume_in_range block_local cache_read_only get_addr no_activate",
    ".nodes": "BitpackedFields Mesh MeshInstance activate append deactivate deactivate_all_snodes "
    "is_active length mesh_local mesh_patch_idx",
    ".queries": "DeviceCapability Format cfg dump_compile_config extension is_extension_enabled "
    "python x86_64",
    "..._logging": "is_logging_effective set_logging_level",
    "..linalg": "sparse_matrix_builder",
}
NAMES: Final = {name: module for module, names in _WHERE.items() for name in names.split()}
"""Name of ``qd`` -> the module that has it."""


def find(name: str) -> Any:
    """The object for ``qd.<name>``. KeyError if there is no such name."""
    if name in MODULES:
        return importlib.import_module(MODULES[name], __name__)
    return getattr(importlib.import_module(NAMES[name], __name__), name)
