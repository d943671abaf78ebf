"""What the passes cost: microseconds an op a pass, on one large generated kernel, ours only."""

import tempfile
from pathlib import Path

from .child import ChildError, run_once
from .generated import kernel_source
from .model import Options, Section, Target

STATEMENTS = 800  # about 5,000 ops


def measure(options: Options) -> list[Section]:
    section = Section(
        "Passes on a generated kernel", ["pass", "runs", "ops seen", "ms", "us per op per run"]
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "generated.py"
        path.write_text(kernel_source(STATEMENTS))
        answer = None
        try:
            rounds = str(options.processes)
            answer = run_once("ours", options.ours, "pass_cost.py", str(path), rounds)[-1]
        except ChildError as error:
            section.notes.append(str(error))
    mean = slowest = None
    if answer:
        for name, (runs, ops, ms) in sorted(answer["passes"].items(), key=lambda p: -p[1][2]):
            section.rows.append([name, str(runs), f"{ops:,}", ms, 1e3 * ms / ops if ops else None])
        ops = sum(row[1] for row in answer["passes"].values())
        ms = sum(row[2] for row in answer["passes"].values())
        mean = 1e3 * ms / ops
        slowest = max(1e3 * row[2] / row[1] for row in answer["passes"].values())
        section.rows.append(["all", None, f"{ops:,}", ms, mean])
        section.notes.append(f"{answer['first_ops']:,} ops from the front end.")
        section.raw = answer
    section.targets = [
        Target("Passes on 5,000 ops, an op a pass, all of them", 1.0, mean, " us"),
        Target("Passes on 5,000 ops, an op a pass, the slowest one", 1.0, slowest, " us"),
    ]
    return [section]
