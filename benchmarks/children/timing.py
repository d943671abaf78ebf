"""Clocks shared by the children of all engines."""

import time


def calls_within(budget_s, call):
    """Seconds of each call on the clock, and of all processors; as many calls as fit into the
    budget, one at least."""
    seconds = []
    end = time.perf_counter() + budget_s
    while not seconds or time.perf_counter() < end:
        start, busy = time.perf_counter(), time.process_time()
        call()
        seconds.append((time.perf_counter() - start, time.process_time() - busy))
    return seconds


def microseconds_a_launch(launches, kernel, array, settle):
    """Mean over a run of launches; `settle` waits until the last one is done."""
    start = time.perf_counter()
    for _ in range(launches):
        kernel(array)
    settle()
    return (time.perf_counter() - start) / launches * 1e6


def latencies(launches, kernel, array, settle, rest_s):
    """Median and 90th percentile, microseconds, of launches that follow a rest each; fewer ones
    where they take more than a second together."""
    found = []
    end = time.perf_counter() + 1.0
    while len(found) < launches and time.perf_counter() < end:
        if rest_s:
            time.sleep(rest_s)
        start = time.perf_counter()
        kernel(array)
        settle()
        found.append((time.perf_counter() - start) * 1e6)
    found.sort()
    return found[len(found) // 2], found[len(found) * 9 // 10]
