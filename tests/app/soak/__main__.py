"""`python -m tests.app.soak --edits 500 --seed 1`: the long run, with a closing summary.

Exit status 1 if a verdict was drawn that is not so, if the end is not the state of the last save,
if the event loop did not turn for more than 200 ms of its own, or if memory grows.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import tempfile
import time
from pathlib import Path

from .run import Soak, kinds_of, problems_of


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.app.soak", description=__doc__)
    parser.add_argument("--edits", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--stacks", help="file for all stacks when the loop does not turn")
    args = parser.parse_args()
    stacks = open(args.stacks, "w") if args.stacks else None  # noqa: SIM115 - to the end
    began = time.monotonic()

    def say(text: str) -> None:
        print(f"{time.monotonic() - began:6.0f} s  {text}", flush=True)

    with tempfile.TemporaryDirectory() as name:
        os.chdir(name)  # some keys write files
        for variable in ("XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
            os.environ[variable] = name
        soak = Soak(Path(name), kinds_of(args.edits, args.seed), args.seed, stacks)
        out = asyncio.run(soak.run(say))
        os.chdir("/")
    print("edits:", ", ".join(f"{n} {kind}" for kind, n in out.edits.most_common()))
    print(f"looks waited for: {out.settled}, {out.as_expected} as expected;", dict(out.unlike))
    print(f"good verdicts seen on the screen: {out.verdicts}, false ones: {len(out.faults)}")
    print(
        f"longest pause of the event loop: {out.longest_s * 1e3:.0f} ms, of its own "
        f"{out.own_s * 1e3:.0f} ms; another process was woken up to "
        f"{out.machine_s * 1e3:.0f} ms late; computed at a stretch: {out.cpu_s * 1e3:.0f} ms"
    )
    print("MiB of studio and worker:", ", ".join(f"{n}: {a} {b}" for n, a, b in out.memory))
    problems = problems_of(out)
    for text in problems:
        print("FAULT", text)
    return bool(problems)


if __name__ == "__main__":
    raise SystemExit(main())
