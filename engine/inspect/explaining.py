"""The reasons why the code is as it is: remarks of our passes and of LLVM's at the user's lines.

    for one in inspect.explanations(compiled, line=12):
        print(one.line, one.by, one.pass_name, one.text, one.advice)
    print(inspect.pass_page("loop_invariant_code_motion"))

A remark of a pass holds at the moment of its run: a value that stayed in a loop in one round may be
hoisted in the next. `Explanation.later` says so, from the history of the value (`tracking`). Equal
remarks of several rounds are one explanation. ``advice`` says in plain words what would help, and
``assume`` which assumptions of `assuming` try it.
"""

from __future__ import annotations

import inspect
import re
import sys
from typing import Final

import msgspec

from .record import CompileRecord, Remark
from .tracking import Event, Tracker

__all__ = ["Explanation", "explanations", "pass_page", "pass_summary"]


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """One reason, at one place.

    by: ``pass`` for a pass of ours, ``LLVM`` for one of LLVM's. kind: ``missed``, ``done``, or
    ``note``. op: that it is about, -1 for none. line: the user's, 0 for none; file: of that line.
    run: index of the last run that said so, -1 for LLVM. times: the number of runs that said so.
    advice: what would help; empty if nothing is known. assume: names of assumptions that try it.
    later: what a later pass did to the op all the same; empty if it stayed so.
    """

    by: str
    kind: str
    pass_name: str
    text: str
    op: int = -1
    file: str = ""
    line: int = 0
    stage: str = ""
    run: int = -1
    times: int = 1
    advice: str = ""
    assume: tuple[str, ...] = ()
    later: str = ""


_DONE: Final = re.compile(
    r"^(vectorized|interleaved|(completely |partially )?unrolled|hoist|sink|Moving|moving|promot"
    r"|load of type .*(?<!not )eliminated|at most \d|\d+ phases|\d+ clamped|shared by"
    r"|.* becomes? |.* is kept )"
)
_MISSED: Final = re.compile(
    r"\b(not|no|stays?|fail(ed|s)?|cannot|unable|could not|outweigh|beneficial)\b", re.I
)
_ADVICE: Final[tuple[tuple[str, str, tuple[str, ...]], ...]] = (
    (r"move_loop_invariant_outside_if would move it",
     "It is computed on one path of a condition only. Compute it before the condition, or set the "
     "option move_loop_invariant_outside_if: then it is computed on every path.",
     ("hoist_conditional",)),
    (r"its operand \$\d+ is stored to in the loop",
     "The loop changes what is loaded, so each iteration must load again. Keep the value in a "
     "local "
     "variable if no other iteration may see the store.", ()),
    (r"loads are not moved|cache_loop_invariant_global_vars",
     "Load the element into a local variable before the loop, or set the option "
     "cache_loop_invariant_global_vars.", ("cache_elements",)),
    (r"does not touch it in every iteration",
     "The element is used under a condition, and a load that the program does not make could be "
     "outside of the array. Load it into a local variable before the loop.", ()),
    (r"other iterations may update",
     "Where no two iterations update the same element, write x[i] = x[i] + v: that is not atomic. "
     "A sum in a local variable, added once, has fewer atomic updates.", ()),
    (r"accesse?s?.* may hit|may hit the same element",
     "The compiler cannot show that the two places differ. If they never are the same, use two "
     "arrays, or load the value into a local variable before the store.", ("noalias",)),
    (r"arrays may overlap",
     "Arguments of a launch overlapped, so nothing is known about arrays. Pass arrays that do not "
     "share memory.", ("noalias",)),
    (r"fast_math is off|fast_math would",
     "The rewrite changes the last bit of floats. The option fast_math allows it.", ("fast_math",)),
    (r"reorder floating-point|floating point.*reassoc",
     "A sum in another order has another last bit. The option fast_math allows it.",
     ("fast_math",)),
    (r"call instruction cannot be vectorized",
     "The loop calls a function without a vector form, such as a print, an assert, a real "
     "function, "
     "or a function of mathematics. Take the call out of the loop, or split the loop.",
     ("no_checks", "fast_math")),
    (r"[Uu]nsafe dependent memory|[Bb]ackward loop carried|dependence|reorder memory",
     "An iteration may read or write what another one writes, so they cannot run side by "
     "side. Write "
     "to another array than you read from, or keep the value that is carried in a local variable.",
     ("independent", "noalias")),
    (r"cannot identify array bounds",
     "The addresses are not a simple function of the loop's index, such as an index that was "
     "loaded "
     "from an array. LLVM cannot check that they differ.", ("independent", "noalias")),
    (r"clobbered by",
     "A store in between may change what is loaded. Keep the value in a local variable if it does "
     "not.", ("noalias",)),
    (r"may invalidate its value",
     "A store in the loop may change it, so each iteration loads again. Load it into a local "
     "variable before the loop.", ("noalias",)),
    (r"conditionally executed",
     "It is used under a condition only: a load before the loop could be outside of the "
     "array. Load "
     "it before the loop yourself if it always exists.", ()),
    (r"control flow|if-convert|early exit|uncountable|exit count|number of iter|multiple exit",
     "The number of iterations is not known when the loop starts, or a condition leaves the "
     "loop. A "
     "range with a fixed end, and a condition that selects a value instead of a path, help.",
     ("flat_ifs", "no_checks", "unroll")),
    (r"not identified as reduction|could not be identified as reduction|not.*induction",
     "The loop carries a value from one iteration to the next that is not a sum, product, "
     "minimum or "
     "maximum. Vectors need independent iterations.", ("fast_math",)),
    (r"not beneficial",
     "LLVM estimates that it would cost more than it saves: few iterations, or memory that is not "
     "contiguous.", ()),
    (r"used again|reads again|old value is used",
     "The old value is used. An atomic operation whose result is not used can be summed up "
     "locally.",
     ()),
    (r"address varies",
     "Each iteration updates another element. A sum into one variable can be kept in a register.",
     ()),
)  # fmt: skip
_RULES: Final = tuple((re.compile(words), advice, assume) for words, advice, assume in _ADVICE)
_FATE: Final = frozenset({"merged", "deleted", "moved", "rewritten"})


def explanations(compiled: CompileRecord, line: int = 0) -> list[Explanation]:
    """All remarks about a compile by source line, what was missed in the end first; line 0: all.

    Remarks without a line come last.
    """
    tracker = Tracker(compiled)
    found: dict[tuple[str, str, int], Explanation] = {}
    for run in compiled.runs:
        for remark in run.remarks:
            # The same op in the same loop: what was said last holds.
            about = remark.text.partition(":")[0] if remark.op >= 0 else remark.text
            key = (run.name, about, remark.op)
            before = found.pop(key, None)
            made = _made(compiled, remark, "pass", run.index, run.stage)
            if before is not None:
                made = msgspec.structs.replace(made, times=before.times + 1)
            found[key] = made
    out = [_settled(tracker, one) for one in found.values()]
    for artefact in compiled.artefacts:
        out += [_made(compiled, remark, "LLVM") for remark in artefact.remarks]
    if line:
        out = [one for one in out if one.line == line]
    rank = {"missed": 0, "done": 1, "note": 2}
    out.sort(key=lambda x: (x.line == 0, x.line, bool(x.later), rank[x.kind], x.by == "pass"))
    return out


def _made(
    compiled: CompileRecord, remark: Remark, by: str, run: int = -1, stage: str = ""
) -> Explanation:
    place = compiled.root(remark.loc)
    text = remark.text
    if "interleaving is not beneficial" in text:  # said about loops that are vectors already
        text = text.replace("the cost-model indicates that i", "I")
    kind = (
        "note"
        if text.startswith("Inter")
        else "done"
        if _DONE.match(text)
        else "missed"
        if _MISSED.search(text)
        else "note"
    )
    advice, assume = "", ()
    if kind == "missed":
        rule = next((rule for rule in _RULES if rule[0].search(text)), None)
        if rule is not None:
            _, advice, names = rule
            line = place.line if place is not None else 0
            loops = ("unroll", "independent")
            assume = tuple([f"{x}={line}" if x in loops else x for x in names])
            assume = tuple([x for x in assume if not x.endswith("=0")])
    return Explanation(
        by=by, kind=kind, pass_name=remark.pass_name, text=text, op=remark.op,
        file=place.file if place is not None else "", line=place.line if place is not None else 0,
        stage=stage, run=run, advice=advice, assume=assume,
    )  # fmt: skip


def _settled(tracker: Tracker, one: Explanation) -> Explanation:
    """``one`` with what became of its op after the last run that said so."""
    if one.op < 0 or one.kind != "missed":
        return one
    try:
        events = tracker.of_op(one.op).events
    except KeyError:
        return one
    if one.pass_name == "demote_atomics" and events[0].pass_name == "make_thread_local":
        why = "stays atomic: each thread, or block of a GPU, adds its own sum to the element, once"
        return msgspec.structs.replace(one, kind="note", text=why, advice="", assume=())
    now = next((e.after for e in reversed(events) if e.run <= one.run and e.after), "")
    if " = local_load " in now:  # a variable: a register in the end
        one = msgspec.structs.replace(one, kind="note", advice="", assume=())
    after = [e for e in events if e.run > one.run and e.kind in _FATE and e.op == one.op]
    return msgspec.structs.replace(one, later=_fate(after[0])) if after else one


def _fate(event: Event) -> str:
    how = {"merged": f"replaced by ${event.into}", "deleted": "deleted"}.get(event.kind, event.kind)
    why = f" ({event.how})" if event.how else ""
    return f"{event.pass_name}: {how}{why}"


# ---- the documentation of passes


def pass_page(name: str) -> str:
    """The page of a pass: its effect, an example, and what it leaves alone.

    For a pass of LLVM's, one sentence; empty for a pass that is not known.
    """
    fn = _function(name)
    if fn is None:
        return _OF_LLVM.get(name, "")
    module = sys.modules.get(fn.__module__)
    return inspect.cleandoc(module.__doc__ or "") if module is not None else ""


def pass_summary(name: str) -> str:
    """The first line about a pass."""
    fn = _function(name)
    if fn is None:
        return _OF_LLVM.get(name, "")
    return (fn.__doc__ or "").strip().partition("\n")[0]


def _function(name: str) -> object | None:
    from ..passes import registry

    try:
        return registry.get(name).fn
    except KeyError:
        return None


_OF_LLVM: Final = {
    "loop-vectorize": "A pass of LLVM: it computes several iterations of an innermost loop at "
    "once, with vectors.",
    "loop-unroll": "A pass of LLVM: it repeats the body of a loop with few iterations, without "
    "the loop.",
    "licm": "A pass of LLVM: it moves what does not change in a loop in front of it, also loads, "
    "if no store in the loop may change them.",
    "gvn": "A pass of LLVM: it reuses values and loads that were computed before.",
}
