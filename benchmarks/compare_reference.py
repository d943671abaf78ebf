"""Run the samples that are written for both engines on both, and compare what they compute.

    python benchmarks/compare_reference.py --reference-python REF/bin/python [SAMPLE ...]

Exits with 1 if a result differs. Without an environment that has Quadrants it says so and exits
with 0: there is nothing to compare with.
"""

import argparse
import json
import sys
from pathlib import Path

from bench import compare


def parse(arguments: list[str]) -> argparse.Namespace:
    summary, _, _ = (__doc__ or "").partition("\n")
    parser = argparse.ArgumentParser(description=summary)
    parser.add_argument("samples", nargs="*", metavar="SAMPLE", help="only these (all)")
    parser.add_argument("--reference-python", metavar="PATH", help="interpreter with quadrants")
    parser.add_argument(
        "--twice", action="store_true",
        help="compare two runs of the reference, on one thread and on two: its own noise",
    )  # fmt: skip
    parser.add_argument(
        "--record", metavar="OUT", type=Path,
        help="write fingerprints of what the reference computes, for tests without it",
    )  # fmt: skip
    found = parser.parse_args(arguments)
    unknown = sorted({*found.samples} - {*compare.STEPS})
    if unknown:
        known = ", ".join(compare.STEPS)
        parser.error(f"there is no sample {', '.join(unknown)}; there are {known}")
    return found


def main(arguments: list[str]) -> int:
    args = parse(arguments)
    reason = compare.why_not(args.reference_python)
    if reason:
        print(f"skipped: {reason}")
        return 0
    failed = False
    recorded: dict[str, object] = {}
    for sample in args.samples or compare.STEPS:
        try:
            reference = compare.run("reference", args.reference_python, sample, 1)
            if args.twice:
                ours = compare.run("reference", args.reference_python, sample, 2)
            else:
                ours = compare.run("ours", sys.executable, sample)
        except RuntimeError as error:
            print(error)
            failed = True
            continue
        recorded[sample] = compare.fingerprints(reference)
        print(f"{sample}, {compare.STEPS[sample]} steps")
        for found in compare.differences(sample, ours, reference):
            failed |= bool(found.text)
            verdict = found.text or "equal"
            print(f"   {found.name:10} {found.worst:8.1e} of the largest value: {verdict}")
    if args.record:
        args.record.write_text(json.dumps(recorded, indent=1) + "\n")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
