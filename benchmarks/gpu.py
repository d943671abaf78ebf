"""Measure the engine on a GPU, side by side with Quadrants.

    python benchmarks/gpu.py --reference-python REF/bin/python --markdown gpu.md

A run takes three to four minutes. The page it writes has the verdict on each target and the tables
for `RESULTS.md`. Without a GPU, `--arch cpu --small` tries out that everything runs. This program
exits 0 whatever it measures.
"""

import argparse
import dataclasses
import json
import subprocess
import sys
from pathlib import Path

from bench import gpu, machine
from bench.model import Options
from bench.tables import markdown, text_section


def parse(arguments: list[str]) -> argparse.Namespace:
    summary, _, _ = (__doc__ or "").partition("\n")
    parser = argparse.ArgumentParser(description=summary)
    parser.add_argument("--reference-python", metavar="PATH", help="interpreter with quadrants")
    parser.add_argument("--arch", default="cuda", help="what both engines run on (cuda)")
    parser.add_argument("--small", action="store_true", help="tiny sizes: times mean nothing")
    parser.add_argument("--json", metavar="OUT", type=Path, help="write all numbers here")
    parser.add_argument("--markdown", metavar="OUT", type=Path, help="write the tables here")
    return parser.parse_args(arguments)


def device() -> str:
    """The GPU and its driver, as its own tool names them."""
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    try:
        return subprocess.run(query, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "none"


def main(arguments: list[str]) -> int:
    args = parse(arguments)
    options = Options(sys.executable, args.reference_python, None, 1, 1)
    facts = {**machine.facts(options), "device": device()}
    for name, value in facts.items():
        print(f"{name}: {value}")
    print()
    sections = []
    for section in gpu.measure(options, args.arch, gpu.SMALL if args.small else gpu.FULL):
        sections.append(section)
        print(text_section(section), flush=True)
    if args.json:
        numbers = {"facts": facts, "sections": [dataclasses.asdict(s) for s in sections]}
        args.json.write_text(json.dumps(numbers, indent=1) + "\n")
    if args.markdown:
        args.markdown.write_text(markdown(facts, sections))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
