"""Run the examples of the pages about the language: `python docs/examples.py [--write] [PAGE ...]`.

Without `--write` it says where what an example prints is not what the page shows; with it the
pages are made to show what is printed. An example is the Python block of an entry; what it prints
is in the block after it. Every example begins with the lines of `PRELUDE`. A page of
`WALK_THROUGHS` is one program: each of its blocks continues the one before.
"""

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent / "language"

WALK_THROUGHS = (FOLDER.parent / "library.md",)

PRELUDE = """\
import numpy as np
from qd_studio import engine as qd

qd.init(arch=qd.cpu)
"""

ENTRY = re.compile(
    r"^### (?P<head>.+)\n(?P<text>(?:(?!^#|^```).*\n)*)"
    r"```python\n(?P<code>(?:(?!^```).*\n)*)```\n"
    r"(?:```text\n(?P<output>(?:(?!^```).*\n)*)```\n)?",
    re.M,
)

STEP = re.compile(
    r"^```python\n(?P<code>(?:(?!^```).*\n)*)```\n```text\n(?P<output>(?:(?!^```).*\n)*)```\n", re.M
)

RUNNER = """\
import contextlib, io, json, runpy, sys, traceback, warnings
warnings.simplefilter("error")
outputs = []
for path in sys.argv[1:]:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        try:
            runpy.run_path(path, run_name="__main__")
        except Exception:
            out.write(traceback.format_exc())
    outputs.append(out.getvalue())
sys.stderr.write("@@" + json.dumps(outputs))
"""


@dataclass(frozen=True)
class Example:
    """An entry of a page: the names it is for, the code, what the page says it prints."""

    page: Path
    names: tuple[str, ...]
    code: str
    output: str


def pages() -> list[Path]:
    return sorted(path for path in FOLDER.glob("*.md") if "\n### " in path.read_text("utf-8"))


def examples(page: Path) -> Iterator[Example]:
    """The entries of a page that have an example, in order."""
    for found in ENTRY.finditer(page.read_text(encoding="utf-8")):
        names = tuple(re.findall(r"`([^`]+)`", found["head"]))
        yield Example(page, names, found["code"], found["output"] or "")


def headings(page: Path) -> list[str]:
    """All names that have an entry in a page, with an example or not."""
    heads = re.findall(r"^### (.+)$", page.read_text(encoding="utf-8"), re.M)
    return [name for head in heads for name in re.findall(r"`([^`]+)`", head)]


def run(
    chosen: Sequence[Example], prelude: str = PRELUDE, python: str = sys.executable
) -> list[str]:
    """What each example prints, or the traceback it ends with. They share one process."""
    with tempfile.TemporaryDirectory() as folder:
        paths: list[str] = []
        for number, example in enumerate(chosen):
            path = Path(folder) / f"example_{number}.py"
            path.write_text(f"{prelude}\n{example.code}", encoding="utf-8")
            paths.append(str(path))
        done = subprocess.run(
            [python, "-c", RUNNER, *paths], capture_output=True, text=True, timeout=300
        )
    mark = done.stderr.rfind("@@")
    if mark < 0:
        raise RuntimeError(f"the examples ended the process:\n{done.stderr[-3000:]}")
    return json.loads(done.stderr[mark + 2 :])


def steps(page: Path) -> list[tuple[str, str]]:
    """The blocks of a walk-through, each with what the page says it prints."""
    found = STEP.finditer(page.read_text(encoding="utf-8"))
    return [(step["code"], step["output"]) for step in found]


def walk(page: Path) -> list[str]:
    """What each block of a walk-through prints when the page is run from its start."""
    between = "\nprint(chr(30), end='')\n"
    code = between.join(code for code, _ in steps(page))
    (printed,) = run([Example(page, (), code, "")], prelude="")
    return printed.split(chr(30))


def show_walk(page: Path, outputs: Sequence[str]) -> str:
    """The text of a walk-through with these outputs."""
    left = iter(outputs)
    return STEP.sub(
        lambda step: f"```python\n{step['code']}```\n```text\n{next(left)}```\n",
        page.read_text(encoding="utf-8"),
    )


def show(page: Path, outputs: Sequence[str]) -> str:
    """The text of a page with these outputs."""
    left = iter(outputs)

    def entry(found: re.Match[str]) -> str:
        printed = next(left)
        block = f"```text\n{printed}```\n" if printed else ""
        return f"### {found['head']}\n{found['text']}```python\n{found['code']}```\n{block}"

    return ENTRY.sub(entry, page.read_text(encoding="utf-8"))


def main() -> int:
    write = "--write" in sys.argv
    named = [Path(arg).resolve() for arg in sys.argv[1:] if arg != "--write"]
    wrong = 0
    for page in named or [*pages(), *WALK_THROUGHS]:
        if page in WALK_THROUGHS:
            printed = walk(page)
            if printed != [output for _, output in steps(page)]:
                wrong += 1
                print(f"{page.name}:\n{''.join(printed)}")
            if write:
                page.write_text(show_walk(page, printed), encoding="utf-8")
            continue
        chosen = list(examples(page))
        outputs = run(chosen)
        for example, printed in zip(chosen, outputs, strict=True):
            if printed != example.output:
                wrong += 1
                print(f"{page.name}: {' '.join(example.names)}\n{printed}")
        if write:
            page.write_text(show(page, outputs), encoding="utf-8")
    return 1 if wrong and not write else 0


if __name__ == "__main__":
    sys.exit(main())
