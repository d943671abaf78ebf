"""Measure the engine and the studio, side by side with Quadrants and Numba.

    python benchmarks/run.py --reference-python REF/bin/python --numba-python NUMBA/bin/python

Each of the other two lives in an environment of its own, given by its interpreter; without one its
columns stay empty. Everything runs interleaved in one session and is reported as ratios, because
absolute times of a shared machine mean little. Timing never decides a test: this program exits 0
whatever it measures.
"""

import argparse
import dataclasses
import json
import sys
from collections.abc import Callable
from pathlib import Path

from bench import (
    caches,
    first_call,
    gradients,
    imports,
    launch,
    loops,
    machine,
    passes,
    steady,
    studio,
    whole,
)
from bench.model import Options, Section
from bench.tables import markdown, reasons_in, text_section

BENCHMARKS: dict[str, Callable[[Options], list[Section]]] = {
    "first-call": first_call.measure,
    "launch": launch.measure,
    "steady": steady.measure,
    "loops": loops.measure,
    "whole": whole.measure,
    "caches": caches.measure,
    "gradients": gradients.measure,
    "passes": passes.measure,
    "import": imports.measure,
    "studio": studio.measure,
}


def parse(arguments: list[str]) -> argparse.Namespace:
    summary, _, _ = (__doc__ or "").partition("\n")
    parser = argparse.ArgumentParser(description=summary)
    parser.add_argument("--reference-python", metavar="PATH", help="interpreter with quadrants")
    parser.add_argument("--numba-python", metavar="PATH", help="interpreter with numba")
    parser.add_argument(
        "--only", action="append", choices=BENCHMARKS, metavar="NAME",
        help=f"run this one; repeatable: {', '.join(BENCHMARKS)}",
    )  # fmt: skip
    parser.add_argument("--rounds", type=int, default=15, help="rounds of what is kept alive (15)")
    parser.add_argument("--processes", type=int, default=5, help="fresh processes a number (5)")
    parser.add_argument("--json", metavar="OUT", type=Path, help="write all numbers here")
    parser.add_argument("--markdown", metavar="OUT", type=Path, help="write the results page here")
    return parser.parse_args(arguments)


def main(arguments: list[str]) -> int:
    args = parse(arguments)
    options = Options(
        ours=sys.executable,
        reference=args.reference_python,
        numba=args.numba_python,
        rounds=args.rounds,
        processes=args.processes,
    )
    facts = machine.facts(options)
    for name, value in facts.items():
        print(f"{name}: {value}")
    print()
    sections: list[Section] = []
    for name in args.only or BENCHMARKS:
        for section in BENCHMARKS[name](options):
            sections.append(section)
            print(text_section(section), flush=True)
    if args.json:
        numbers = {"facts": facts, "sections": [dataclasses.asdict(s) for s in sections]}
        args.json.write_text(json.dumps(numbers, indent=1) + "\n")
    if args.markdown:
        earlier = args.markdown.read_text() if args.markdown.exists() else ""
        args.markdown.write_text(markdown(facts, sections, reasons_in(earlier)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
