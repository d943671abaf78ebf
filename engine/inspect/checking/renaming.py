"""Terms of one iteration as those of another one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

__all__ = ["Renaming"]


class Renaming:
    """Replaces constants by others of the same sort, which get a stroke: ``i`` becomes ``i'``.

    z3's `substitute` asks for the sorts of all constants again for each term, which took most of
    the time for kernels with many constants. A term is renamed once.
    """

    def __init__(self, z3: Any, constants: Sequence[Any]) -> None:
        several = {c.get_id(): c for c in constants}
        self._z3: Final = z3
        self._found: Final[dict[int, tuple[Any, Any]]] = {}
        old = [*several.values()]
        # Kept: the arrays hold addresses only.
        self._terms: Final = old, [z3.Const(f"{c.decl().name()}'", c.sort()) for c in old]
        self._arrays: Final = [(z3.Ast * len(old))(*[t.as_ast() for t in ts]) for ts in self._terms]

    def __call__(self, term: Any) -> Any:
        """The term of the other iteration."""
        if not self._terms[0]:
            return term
        found = self._found.get(term.get_id())
        if found is None:
            core, old = self._z3.z3core, self._arrays
            new = core.Z3_substitute(term.ctx_ref(), term.as_ast(), len(old[0]), *old)
            # The first one keeps the number of the term from being used again.
            found = self._found[term.get_id()] = term, self._z3.z3._to_expr_ref(new, term.ctx)
        return found[1]
