"""Kernels of a wanted size, for benchmarks whose subject is the size.

The text is deterministic. Every statement feeds later ones and the last value is stored, so
nothing can be thrown away at once; each group of eight has something for a pass to find: a
repeated load, a store that a later one hides, a store that is read back, an invariant in an inner
loop, a foldable constant.
"""

HEADER = '''"""A generated kernel of {statements} statements."""

import numpy as np

from qd_studio import engine as qd


@qd.kernel
def generated(x: qd.types.NDArray[qd.f32, 1], y: qd.types.NDArray[qd.f32, 1], a: qd.f32):
    for i in range(x.shape[0]):
        marked = x[i] + {marker}
        s = marked
'''

FOOTER = """        y[i] = s + marked


@generated.workload(n=[64])
def arguments(n):
    return np.linspace(0.0, 1.0, n, dtype=np.float32), np.zeros(n, np.float32), 0.5
"""

INDENT = " " * 8


def group(k: int) -> list[str]:
    """Eight statements around the variables of group k; `s` carries a bounded value along."""
    c = (k * 37 % 101) / 16 + 0.25
    return [
        f"p{k} = s * {c / 8} + x[i] * a",
        f"q{k} = (p{k} * p{k} - {c}) / (p{k} * p{k} + (2.0 + {c}))",
        f"y[i] = q{k}",
        f"if p{k} > q{k}:",
        f"    s = qd.max(p{k} * 0.5, q{k})",
        f"y[i] = y[i] + p{k} * {c}",
        f"for _ in range({k % 3 + 2}):",
        f"    s = s * 0.25 + a * a * q{k}",
    ]


def kernel_source(statements: int, marker: float = 1.0) -> str:
    """A file with one kernel of about so many statements; the first one holds `marker`."""
    body = [line for k in range((statements - 3) // 8) for line in group(k)]
    text = "".join(f"{INDENT}{line}\n" for line in body)
    return HEADER.format(statements=statements, marker=marker) + text + FOOTER
