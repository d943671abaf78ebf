"""`python -m tests.fuzz --count 2000 --seed 0`: the big job, with a closing summary.

With ``--cuda`` the configurations are those of CUDA, on the device of this machine, else on the
simulated one. With ``--opencl chunks`` or ``lanes`` they are those of OpenCL, loops mapped so.
``--mappings`` is about loops of the shapes that passes map to GPUs, on CUDA (see `mappings`).
Exit status 1 if anything disagreed.
"""

from __future__ import annotations

import argparse
import sys
import time

from .campaign import LEVELS, part, part_of_tiers, part_on_cuda, part_on_opencl, run
from .configs import CUDA_VARIANTS, OPENCL_VARIANTS, TIER_VARIANTS, VARIANTS
from .farmed import farmed
from .mappings import MappingTally, part_of_mappings
from .runner import Tally


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--count", type=int, default=200, help="number of kernels")
    parser.add_argument("--seed", type=int, default=0, help="seed of the first kernel")
    parser.add_argument("--level", choices=(*LEVELS, "both"), default="both")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--executor", default="", help="where they run; see app/farm/executors.py")
    parser.add_argument("--keep", action="store_true", help="do not make failing kernels small")
    parser.add_argument("--thorough", action="store_true", help="LLVM optimises every compile")
    parser.add_argument("--cuda", action="store_true", help="with CUDA in place of the CPU")
    parser.add_argument("--tiers", action="store_true", help="first-tier code alone")
    parser.add_argument("--mappings", action="store_true", help="loops that GPUs map, on CUDA")
    parser.add_argument("--opencl", choices=tuple(OPENCL_VARIANTS), help="with OpenCL")
    args = parser.parse_args()
    start = time.perf_counter()
    tally: Tally | MappingTally = MappingTally() if args.mappings else Tally()
    failures = list[str]()
    end = args.seed + args.count
    step = 20
    variants = OPENCL_VARIANTS.get(args.opencl, CUDA_VARIANTS if args.cuda else VARIANTS)
    if args.tiers:
        variants = TIER_VARIANTS
    if args.mappings:
        parts = [(s, min(s + step, end)) for s in range(args.seed, end, step)]
        failures = farmed(part_of_mappings, parts, args, tally, lambda: f"{tally.programs} loops")
    elif args.jobs == 1 and not (args.executor or args.cuda or args.opencl or args.tiers):
        seeds = range(args.seed, end)
        tally, failures = run(seeds, args.level, _say, not args.keep, thorough=args.thorough)
    else:
        job, more = (part_on_cuda, ()) if args.cuda else (part, (args.thorough,))
        if args.tiers:
            job, more = part_of_tiers, ()
        if args.opencl:
            job, more = part_on_opencl, (args.opencl,)
        parts = [
            (s, min(s + step, end), args.level, not args.keep, *more)
            for s in range(args.seed, end, step)
        ]
        failures = farmed(job, parts, args, tally, lambda: f"{tally.programs} kernels")
    print(tally.summary(len(variants), time.perf_counter() - start))
    print(f"{len(failures)} failures")
    return 1 if failures else 0


def _say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
