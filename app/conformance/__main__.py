"""``python -m qd_studio.app.conformance BACKEND``: the child of `process`.

Standard input: a line of JSON, ``{"ids": [...], "options": {...}}``. Standard output: a line of
JSON for each cell. Whatever else writes to standard output goes to standard error. The exit status
is `AFRESH` after a feature that has cost this process its device: the rest needs a new process.
"""

from __future__ import annotations

import json
import os
import sys


def main() -> int:
    """Run the features that are named, in order."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    from ...engine import inspect
    from .process import AFRESH, features
    from .run import Runner

    asked = json.loads(sys.stdin.readline())
    runner = Runner(sys.argv[1], asked["options"])
    by_id = {f.id: f for f in features()}
    for name in asked["ids"]:
        print(json.dumps(runner.run(by_id[name])._asdict()), file=out, flush=True)
        if inspect.lost_device() is not None:
            return AFRESH
    return 0


if __name__ == "__main__":
    sys.exit(main())
