"""The sizes of adstacks: their expressions, the evaluation at a launch, and the formulas shown.

============ ===================================================================================
`size_expr`  the nodes, and their text
`linear`     sums in one form
`intervals`  the facts known of a value without a launch
`simplifier` smaller expressions of the same value
`reaching_writes`  the writes to the variables and stacks of a kernel
`arithmetic` operations of a kernel as expressions
`resolve`    values of a kernel as expressions
`push_count` the entries of a stack as an expression
`formulas`   expressions in the user's names, for people
`host_eval`  values of expressions, from the arguments of a launch
============ ===================================================================================
"""

from .formulas import TreeRow, formula, tree
from .simplifier import simplify
from .size_expr import SizeExpr, bound_vars, leaves, parse, text

__all__ = [
    "SizeExpr", "TreeRow", "bound_vars", "formula", "leaves", "parse", "simplify", "text", "tree",
]  # fmt: skip
