"""Determinant and inverse, written out over the parts of a matrix.

Up to four rows: cofactors, which have no branches and few operations. Above: Gauss and Jordan's
elimination; the row with the largest element of a column comes to its diagonal, by selects.
"""

from __future__ import annotations

from typing import Any

__all__ = ["determinant", "inverse"]

Lines = list[list[Any]]


def _without(lines: Lines, row: int, column: int) -> Lines:
    return [
        [v for j, v in enumerate(line) if j != column] for i, line in enumerate(lines) if i != row
    ]


def determinant(do: Any, lines: Lines) -> Any:
    """The determinant, by expansion along the first column."""
    if len(lines) == 1:
        return lines[0][0]
    if len(lines) == 2:
        (a, b), (c, d) = lines
        return do.sub(do.mul(a, d), do.mul(b, c))
    found: Any = None
    for i, line in enumerate(lines):
        term = do.mul(line[0], determinant(do, _without(lines, i, 0)))
        found = (
            term if found is None else do.add(found, term) if i % 2 == 0 else do.sub(found, term)
        )
    return found


def inverse(do: Any, lines: Lines) -> list[Any]:
    """The parts of the inverse, row-major; without meaning if there is none."""
    n = len(lines)
    if n > 4:
        return _eliminated(do, lines)
    if n == 1:
        return [do.div(1.0, lines[0][0])]
    cofactors: Lines = [
        [determinant(do, _without(lines, i, j)) for j in range(n)] for i in range(n)
    ]
    total: Any = None
    for i in range(n):
        term = do.mul(lines[i][0], cofactors[i][0])
        total = (
            term if total is None else do.add(total, term) if i % 2 == 0 else do.sub(total, term)
        )
    scale = do.div(1.0, total)
    return [
        do.mul(scale, cofactors[j][i] if (i + j) % 2 == 0 else do.neg(cofactors[j][i]))
        for i in range(n)
        for j in range(n)
    ]


def _eliminated(do: Any, lines: Lines) -> list[Any]:
    n = len(lines)
    work = [
        [do.real(v) for v in line] + [do.real(1.0 if i == j else 0.0) for j in range(n)]
        for i, line in enumerate(lines)
    ]
    for k in range(n):
        for i in range(k + 1, n):  # the largest element so far moves up to row k
            larger = do.magnitude_above(work[i][k], work[k][k])
            for j in range(k, 2 * n):
                a, b = work[k][j], work[i][j]
                work[k][j], work[i][j] = do.select(larger, b, a), do.select(larger, a, b)
        scale = do.div(1.0, work[k][k])
        work[k] = [v if j < k else do.mul(v, scale) for j, v in enumerate(work[k])]
        for i in range(n):
            if i != k:
                factor = work[i][k]
                for j in range(k, 2 * n):
                    work[i][j] = do.sub(work[i][j], do.mul(factor, work[k][j]))
    return [v for line in work for v in line[n:]]
