"""What a person waits for in the studio: the first paint, and the new diff after a save.

The real program runs under a pseudo-terminal of 120 x 40. The first paint is the moment the first
visible words of a frame arrive; it is shown once from the start of the process and once less what a
bare interpreter needs to start. Save to diff: a kernel of 500 statements is open at its passes; a
constant in the file changes, and the clock runs from the write until the new constant has been
painted.
"""

import json
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from .generated import kernel_source
from .model import Options, Section, Target
from .studio_parts import LINES, percentile
from .terminal import Terminal

SAMPLE = Path(__file__).parents[2] / "sample_kernels" / "nbody.py"
ALTERNATE_SCREEN = b"\x1b[?1049h"
STATEMENTS = 500

# From the home screen to the passes of the only kernel; the first one that changes it is chosen.
TO_PASSES = ("\r", "2")

# What the status line says when everything is compiled and launched.
READY = "ready"
TIMEOUT_S = 60.0


def command(options: Options, *arguments: str) -> list[str]:
    """The installed program, as a user starts it."""
    return [str(Path(options.ours).with_name("qd-studio")), *arguments]


def interpreter_start_ms(options: Options) -> float:
    """What `python -c pass` takes."""
    times: list[float] = []
    for _ in range(options.processes):
        start = time.perf_counter()
        subprocess.run([options.ours, "-c", "pass"], check=True)
        times.append((time.perf_counter() - start) * 1e3)
    return statistics.median(times)


def painted(terminal: Terminal) -> bool:
    """Whether a frame with words has arrived."""
    _, entered, frame = terminal.written.partition(ALTERNATE_SCREEN)
    return bool(entered) and sum(character.isalnum() for character in terminal.text_of(frame)) > 20


def first_paint_ms(options: Options) -> float:
    with Terminal(command(options, str(SAMPLE))) as terminal:
        return (terminal.wait(lambda: painted(terminal)) - terminal.started) * 1e3


def kernels_listed_ms(options: Options) -> float:
    """From the start to the name of a kernel on the screen: imports, discovery, worker."""
    with Terminal(command(options, str(SAMPLE))) as terminal:
        seen = terminal.wait(lambda: "kick_and_drift" in terminal.text)
        return (seen - terminal.started) * 1e3


def save(path: Path, text: str) -> None:
    """Replace the file at once, as editors do: half of it is never seen."""
    fresh = path.with_suffix(".fresh")
    fresh.write_text(text)
    fresh.replace(path)


def save_to_diff_ms(options: Options) -> list[float]:
    """One studio, many saves; the first save warms the worker and is dropped.

    A save is made when the studio has come to rest: what is timed is one save, not a burst.
    """
    times: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "generated.py"
        path.write_text(kernel_source(STATEMENTS, marker=1.0))
        with Terminal(command(options, str(path)), QD_OFFLINE_CACHE="0") as terminal:
            terminal.wait(lambda: READY in terminal.text, TIMEOUT_S)
            terminal.settle()
            for keys in TO_PASSES:
                terminal.press(keys)
                terminal.settle()
            for turn in range(options.rounds + 1):
                marker = 7001.5 + 123 * turn
                text = kernel_source(STATEMENTS, marker=marker)
                terminal.settle()
                terminal.written = b""
                start = time.perf_counter()
                save(path, text)
                shown = terminal.wait(lambda m=str(marker): m in terminal.text, TIMEOUT_S)
                times.append((shown - start) * 1e3)
                terminal.wait(lambda: READY in terminal.text, TIMEOUT_S)
    return times[1:]


def measure(options: Options) -> list[Section]:
    section = Section("The studio (milliseconds)", ["what", "median", "least", "most"])
    if not Path(command(options)[0]).exists():
        section.notes.append("qd-studio is not installed beside this interpreter.")
        return [section]

    bare = interpreter_start_ms(options)
    subjects = {
        "start to first paint": lambda: [first_paint_ms(options) for _ in range(options.processes)],
        "start to kernels listed": lambda: [
            kernels_listed_ms(options) for _ in range(options.processes)
        ],
        f"save to painted diff, {STATEMENTS} statements": lambda: save_to_diff_ms(options),
    }
    medians: dict[str, float] = {}
    for name, run in subjects.items():
        try:
            times = run()
        except TimeoutError as error:
            section.notes.append(f"{name}: {error}")
            section.rows.append([name, None, None, None])
            continue
        medians[name] = statistics.median(times)
        section.rows.append([name, medians[name], min(times), max(times)])
        section.raw[name] = times
    section.rows.append(["bare interpreter start", bare, None, None])
    paint = medians.get("start to first paint")
    section.targets = [
        Target("First paint after the interpreter started", 300.0,
               paint - bare if paint else None, " ms"),
        Target(f"Save to repainted diff, {STATEMENTS} statements", 100.0,
               medians.get(f"save to painted diff, {STATEMENTS} statements"), " ms"),
    ]  # fmt: skip
    return [section, parts(options)]


def parts(options: Options) -> Section:
    """What a save and a key cost in CPU time; see `studio_parts`."""
    section = Section("The studio, by part (milliseconds of CPU time)", ["what", "time"])
    done = subprocess.run(
        [options.ours, "-m", "bench.studio_parts", "--json"], capture_output=True, text=True,
        cwd=Path(__file__).parents[1], check=False,
    )  # fmt: skip
    if done.returncode:
        section.notes.append(f"studio_parts failed: {done.stderr.strip().splitlines()[-1:]}")
        return section
    found = json.loads(done.stdout)
    totals: dict[str, float] = {}
    for size, took in found["save"].items():
        totals[size] = sum(took.values())
        section.rows += [[f"{size} statements: {name}", ms] for name, ms in took.items()]
        section.rows.append([f"{size} statements: save to diff", totals[size]])
    late = percentile(found["key"], 0.95)
    section.rows.append([f"key to paint, {LINES} lines, 95th percentile", late])
    section.raw["key to paint"] = found["key"]
    readable = percentile(found["readable key"], 0.95)
    section.rows.append([f"the same in the readable form of IR, {LINES} lines", readable])
    section.targets = [
        Target("Save to diff, 10000 statements, CPU time", 1000.0, totals.get("10000"), " ms"),
        Target("Key to paint, 95th percentile", 50.0, max(late, readable), " ms"),
    ]
    return section
