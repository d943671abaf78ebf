"""Clocks shared by the children of all engines."""

import time


def calls_within(budget_s, call):
    """Seconds of each call, as many calls as fit into the budget, three at least."""
    seconds = []
    end = time.perf_counter() + budget_s
    while len(seconds) < 3 or time.perf_counter() < end:
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return seconds


def microseconds_a_launch(launches, kernel, array, settle):
    """Mean over a run of launches; `settle` waits until the last one is done."""
    start = time.perf_counter()
    for _ in range(launches):
        kernel(array)
    settle()
    return (time.perf_counter() - start) / launches * 1e6
