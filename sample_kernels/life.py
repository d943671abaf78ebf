"""Conway's Game of Life, on a torus and in a walled box.

Integers only, one byte a cell. Look at

- *Passes*: the nine turns of the `static` loops are unrolled by the front end, and the `static`
  condition leaves eight. On the torus each neighbour index goes through `%`; of 16 remainders only
  the distinct ones remain after common subexpressions are merged, and `demote_operations` shows
  what a floor remainder costs.
- *Home*: torus against box. The box needs no remainders and its rows are contiguous, so it
  vectorises.
- *Code*: the box keeps 8-bit cells in whole vector registers, if sums are widened late.
"""

import numpy as np
from qd_studio import engine as qd

Board = qd.types.NDArray[qd.u8, 2]


@qd.func
def lives(alive, neighbours):
    """The rule: a cell is born with three neighbours and survives with two or three."""
    return neighbours == 3 or (alive == 1 and neighbours == 2)


@qd.kernel
def step_torus(board: Board, following: Board):
    for i, j in qd.ndrange(board.shape[0], board.shape[1]):
        neighbours = 0
        for di in qd.static(range(-1, 2)):
            for dj in qd.static(range(-1, 2)):
                if qd.static(di != 0 or dj != 0):
                    row = (i + di) % board.shape[0]
                    column = (j + dj) % board.shape[1]
                    neighbours += qd.cast(board[row, column], qd.i32)
        following[i, j] = 1 if lives(board[i, j], neighbours) else 0


@qd.kernel
def step_box(board: Board, following: Board):
    """Cells on the edge stay as they are in `following`."""
    for i, j in qd.ndrange((1, board.shape[0] - 1), (1, board.shape[1] - 1)):
        neighbours = 0
        for di, dj in qd.static(qd.ndrange((-1, 2), (-1, 2))):
            if qd.static(di != 0 or dj != 0):
                neighbours += qd.cast(board[i + di, j + dj], qd.i32)
        following[i, j] = 1 if lives(board[i, j], neighbours) else 0


@qd.kernel
def population(board: Board) -> qd.i32:
    cells = 0
    for i, j in qd.ndrange(board.shape[0], board.shape[1]):
        cells += qd.cast(board[i, j], qd.i32)
    return cells


def soup(n):
    return (np.random.default_rng(9).random((n, n)) < 0.3).astype(np.uint8)


@step_torus.workload(n=[20, 512, 2048], bytes=lambda n: 2 * n * n)
@step_box.workload(n=[20, 512, 2048], bytes=lambda n: 2 * n * n)
def primordial_soup(n):
    return soup(n), np.zeros((n, n), np.uint8)


@population.workload(n=[32, 2048], bytes=lambda n: n * n)
def one_board(n):
    return (soup(n),)


def one_generation(board):
    shifts = [(di, dj) for di in (-1, 0, 1) for dj in (-1, 0, 1) if di or dj]
    neighbours = sum(np.roll(board, shift, axis=(0, 1)) for shift in shifts)
    return ((neighbours == 3) | ((board == 1) & (neighbours == 2))).astype(np.uint8)


@step_torus.check
def next_generation(before, after, result):
    np.testing.assert_array_equal(after[1], one_generation(before[0]))


@step_box.check
def next_generation_inside(before, after, result):
    expected = before[1].copy()
    expected[1:-1, 1:-1] = one_generation(before[0])[1:-1, 1:-1]
    np.testing.assert_array_equal(after[1], expected)


@population.check
def counts_cells(before, after, result):
    assert result == np.count_nonzero(before[0])


def main():
    board = np.zeros((12, 24), np.uint8)
    board[1, 2] = board[2, 3] = board[3, 1:4] = 1  # a glider
    following = np.zeros_like(board)
    for _ in range(16):
        step_torus(board, following)
        board, following = following, board
    for row in board:
        print("".join(".#"[cell] for cell in row))
    print(f"after 16 generations: {population(board)} cells")


if __name__ == "__main__":
    qd.init(arch=qd.cpu)
    main()
