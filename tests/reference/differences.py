"""Where our engine differs from the reference on purpose: why, and what it gives instead.

Each entry is checked: a difference that has gone must be struck from the list. The entries are in
modules by their kind.
"""

from . import (
    corpus,
    differences_of_gradients,
    differences_of_language,
    differences_of_mistakes,
    differences_of_results,
)
from .meant import NOTHING, PROMISE, Meant

__all__ = ["DIFFERENCES", "STATED", "Meant", "fulfils"]

DIFFERENCES: dict[str, Meant] = {
    **differences_of_results.DIFFERENCES,
    **differences_of_language.DIFFERENCES,
    **differences_of_mistakes.DIFFERENCES,
    **differences_of_gradients.DIFFERENCES,
}

_BOTH = "the reference performs the side effects of both operands"
_PRINTS = "the reference prints to the descriptor, not through Python"
STATED = {
    "types.not_finite": "NaN is unequal to everything; the reference says that it is not",
    "types.saturation": "casts saturate; the reference leaves it to the machine",
    "operators.boolean_operators": _BOTH,
    "operators.conditional": _BOTH,
    "operators.powers": "the reference uses the absolute exponent",
    "loops.thread_numbers": "the reference counts the threads of its pool",
    "functions.prints": _PRINTS,
    "functions.parallel_prints": _PRINTS,
    "functions.formatted_prints": _PRINTS,
    "arrays.same_array": "the reference assumes that two parameters are two arrays",
    "graphs.carried": "the reference begins each round with the values of before the loop",
    "graphs.refused": "the reference takes arrays of the host",
    "gradients.overflow": "the reference sizes this stack whatever is asked for",
    "tapes.without_gradients": PROMISE,
    "checks.field_bounds": PROMISE,
    "errors.lacking": "sparse structures are not supported",
}
"""Features of the conformance suite for which the reference gives something else, and why."""


def fulfils(meant: Meant, got: dict) -> str | None:
    """What is wrong with what ours gives, where it should differ."""
    if "died" in got:
        return "the process died"
    if meant.error:
        if "error" not in got:
            return f"no {meant.error}: {corpus.brief(got)}"
        if meant.error not in got["error"]["classes"] or meant.says not in got["error"]["text"]:
            return f"no {meant.error} that says {meant.says!r}: {corpus.brief(got)}"
        if meant.line and meant.line != got["error"]["line"]:
            return f"line {meant.line!r} != {got['error']['line']!r}"
        return None
    if "error" in got:
        return f"raises {corpus.brief(got)}"
    if meant.value is not NOTHING and not corpus.same(corpus.plain(meant.value), got["value"]):
        return f"value {meant.value!r} != {got['value']!r}"
    if meant.output is not None and meant.output != got["output"]:
        return f"output {meant.output!r} != {got['output']!r}"
    return None
