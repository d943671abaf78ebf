"""Compare our engine with Quadrants: `python tests/reference/compare.py --reference-python PATH`.

PATH is a Python that has Quadrants installed. Without it, our engine is compared with what was
recorded. `--record` runs the reference and keeps what it gives; `--show` prints both sides.
"""

import argparse
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.reference import conformance, corpus
from tests.reference.differences import DIFFERENCES, fulfils


def verdict(case: corpus.Case, expected: dict | None, got: dict | None) -> str | None:
    """What is wrong with a case: nothing is said of a difference that is meant and is as it is
    described."""
    if expected is None:
        return "the reference was not recorded"
    if got is None:
        return "it did not run"
    if case.key in DIFFERENCES:
        meant = DIFFERENCES[case.key]
        if corpus.difference(case, expected, got) is None:
            return "listed as a deliberate difference, but there is none"
        return fulfils(meant, got)
    return corpus.difference(case, expected, got)


def expectations(program: str, python: str | None, names: list[str]) -> dict:
    if python:
        return corpus.run(program, names, python, "reference")
    kept = corpus.recorded(program)["cases"]
    current = {case.name: case.digest for case in corpus.cases(program)}
    return {name: kept[name] for name in names if kept.get(name, {}).get("digest") == current[name]}


def record_program(program: str, python: str) -> None:
    """Run the reference on what has changed since it was recorded."""
    kept = corpus.recorded(program)["cases"]
    stale = [c for c in corpus.cases(program) if kept.get(c.name, {}).get("digest") != c.digest]
    results = corpus.run(program, [c.name for c in stale], python, "reference") if stale else {}
    fresh = {c.name for c in corpus.cases(program)} - {c.name for c in stale}
    corpus.record(program, results, {name: kept[name] for name in fresh})
    for name, result in results.items():
        print(f"{program}.{name}: {corpus.brief(result)} {result.get('output') or ''}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reference-python", default=os.environ.get("QD_REFERENCE_PYTHON"))
    parser.add_argument("--record", action="store_true", help="keep what the reference gives")
    parser.add_argument("--arch", default="cpu", help="of our engine")
    parser.add_argument("--show", action="store_true", help="print what both sides give")
    parser.add_argument("only", nargs="*", help="programs, or program.case, or conformance")
    chosen = parser.parse_args()
    if chosen.record and (not chosen.only or "conformance" in chosen.only):
        conformance.record(chosen.reference_python)
    wrong = total = 0
    for program in corpus.programs():
        asked = [o for o in chosen.only if o.split(".")[0] == program]
        if chosen.only and not asked:
            continue
        if chosen.record:
            record_program(program, chosen.reference_python)
            continue
        some = {o.split(".")[1] for o in asked if "." in o}
        picked = [c for c in corpus.cases(program) if not some or c.name in some]
        names = [case.name for case in picked]
        expected = expectations(program, chosen.reference_python, names)
        got = corpus.ours(program, chosen.arch, names)
        for case in picked:
            total += 1
            left, right = expected.get(case.name), got.get(case.name)
            if chosen.show:
                print(f"{case.key}: {left} | {right}")
            if fault := verdict(case, left, right):
                wrong += 1
                print(f"{case.key}: {fault}")
    if not chosen.record:
        print(f"{total} cases, {wrong} disagree")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
