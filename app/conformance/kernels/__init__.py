"""The programs of the conformance suite, in the kernel language. Importing this registers them."""

from . import (  # noqa: I001  the order of the table
    numbers,
    operators,
    maths,
    control,
    functions,
    compound,
    containers,
    atomics,
    blocks,
    graphs,
    gradients,
    tapes,
    checks,
)

__all__ = [
    "atomics", "blocks", "checks", "compound", "containers", "control", "functions", "gradients",
    "graphs", "maths", "numbers", "operators", "tapes",
]  # fmt: skip
