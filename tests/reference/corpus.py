"""The corpus: programs, their cases, running them in a process of either system, comparing.

A case is a function of a program. What it gives is a record: ``value`` or ``error``, ``output``
(what was printed), or ``died`` (how the process ended). See worker.py.
"""

import ast
import hashlib
import json
import math
import os
import struct
import subprocess
import tempfile
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

from tests.caches.two_runs import server

from .worker import plain as plain

HERE = Path(__file__).parent
WORKER = HERE / "worker.py"
RECORDED = HERE / "recorded"
ROOT = HERE.parents[1]
VERSION = "Quadrants 1.3.3"

TIGHT, LOOSE = 1e-11, 4e-6
"""Relative distances allowed for f64 and for f32 (a value that f32 holds exactly)."""


@dataclass(frozen=True)
class Case:
    """One function of a program."""

    program: str
    name: str
    says: str
    """What the text of a mistake's error must contain, in both systems."""
    digest: str
    """Of the function's source and of what the module does outside of its cases."""

    @property
    def key(self) -> str:
        return f"{self.program}.{self.name}"


@cache
def cases(program: str) -> tuple[Case, ...]:
    """The cases of a program, in order of the file."""
    text = (HERE / "programs" / f"{program}.py").read_text(encoding="utf-8")
    tree = ast.parse(text)
    own = [
        node
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.name.startswith(("case_", "mistake_"))
    ]
    # INIT holds options of every case: one that is added elsewhere must not outdate the others.
    apart = [_source(text, node) for node in tree.body if node not in own]
    shared = [source for source in apart if not source.startswith(("INIT=", '"'))]
    options = options_of(tree)
    found = []
    for node in own:
        says = (ast.get_docstring(node) or "") if node.name.startswith("mistake_") else ""
        parts = [*shared, _source(text, node), repr(options.get(node.name, options.get("*")))]
        digest = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
        found.append(Case(program, node.name, says, digest))
    assert len({case.name for case in found}) == len(found), f"{program}: a name twice"
    return tuple(found)


def _source(text: str, node: ast.stmt) -> str:
    """The lines of a statement, decorators included, without white space."""
    first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
    return "".join("".join(text.splitlines()[first - 1 : node.end_lineno]).split())


def options_of(tree: ast.Module) -> dict:
    """`INIT` of a program: the options of `qd.init` by case; ``"*"`` for those it does not name."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "INIT":
            return ast.literal_eval(node.value)
    return {}


def programs() -> list[str]:
    return sorted(path.stem for path in (HERE / "programs").glob("*.py"))


def run(program: str, names: list[str], python: str, engine: str, arch: str = "cpu") -> dict:
    """What each case gives. A case that ends the process is ``died``; the rest run in another."""
    left, results = list(names), {}
    path = str(HERE / "programs" / f"{program}.py")
    while left:
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "out.jsonl"
            start = _forked if engine == "ours" else partial(_started, python)
            status, errors = start([path, str(out), engine, arch, *left], folder)
            lines = out.read_text(encoding="utf-8").splitlines() if out.exists() else []
        started = None
        for line in lines:
            record = json.loads(line)
            if "start" in record:
                started = record["start"]
            else:
                results[record.pop("name")] = record
        if not status:
            break
        if started is None or started in results:
            error = {"classes": ["ImportError"], "text": errors[-3000:], "line": None}
            return results | {name: {"error": error} for name in left}
        results[started] = {"died": status}
        left = left[left.index(started) + 1 :]
    return results


def _started(python: str, arguments: list[str], folder: str) -> tuple[int, str]:
    """Status and errors of a process of the reference."""
    done = subprocess.run(
        [python, str(WORKER), *arguments],
        capture_output=True,
        text=True,
        timeout=600,
        cwd=folder,
        env=_environment("reference", folder),
    )
    return done.returncode, done.stderr


def _forked(arguments: list[str], folder: str) -> tuple[int, str]:
    """The same of ours, in a fork of a process that has the engine."""
    errors = Path(folder) / "errors"
    status = server("tests.reference.worker").run(
        cwd=folder, env=_environment("ours", folder), out=os.path.join(folder, "printed"),
        err=str(errors), path=arguments[0], arguments=arguments,
    )  # fmt: skip
    return status, errors.read_text(encoding="utf-8")


def _environment(engine: str, folder: str) -> dict[str, str]:
    """The process's variables, without those that change what is compiled; with empty caches.

    A kernel that a cache answers for gives no warnings.
    """
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("QD_", "PYTHONPATH"))}
    kept["XDG_CACHE_HOME"] = folder
    return {**kept, "PYTHONPATH": str(ROOT)} if engine == "ours" else kept


def difference(case: Case, expected: dict, got: dict) -> str | None:
    """What is different between what a case should give and gives, or None."""
    if "died" in got or "died" in expected:
        both = "died" in got and "died" in expected
        return None if both else f"{brief(expected)} != {brief(got)}"
    if "error" in expected or "error" in got:
        if "error" not in expected or "error" not in got:
            return f"{brief(expected)} != {brief(got)}"
        return _error_difference(case, expected["error"], got["error"])
    if not same(expected["value"], got["value"]):
        return f"value {brief(expected)} != {brief(got)}"
    if expected["output"] != got["output"]:
        return f"output {expected['output']!r} != {got['output']!r}"
    return None


def _error_difference(case: Case, expected: dict, got: dict) -> str | None:
    wanted = [n for n in expected["classes"] if n.startswith("Quadrants")][:1]
    wanted += [n for n in expected["classes"] if not n.startswith("Quadrants")]
    missing = [name for name in wanted if name not in got["classes"]]
    if missing:
        return f"error is no {', '.join(missing)}: {got['classes'][0]}: {got['text'][-300:]}"
    if expected["line"] is not None and expected["line"] != got["line"]:
        return f"line {expected['line']!r} != {got['line']!r}"
    if case.says and case.says not in got["text"]:
        return f"the text does not say {case.says!r}: {got['text'][-300:]}"
    return None


def brief(record: dict) -> str:
    if "error" in record:
        text = record["error"].get("text", "").strip().splitlines()
        return f"{record['error']['classes'][0]}({(text or [''])[-1][:200]})"
    return f"died {record['died']}" if "died" in record else repr(record["value"])[:400]


def same(a, b) -> bool:
    """Equal in type and value; real numbers up to what their type allows."""
    if type(a) is not type(b):
        return False
    if isinstance(a, float):
        return close(a, b)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    return a == b


def close(a: float, b: float) -> bool:
    if math.isnan(a) or math.isnan(b):
        return math.isnan(a) and math.isnan(b)
    if a == b or math.isinf(a) or math.isinf(b):
        return a == b
    single = fits_single(a) and fits_single(b)
    limit = LOOSE if single else TIGHT
    return abs(a - b) <= max(limit * max(abs(a), abs(b)), 1e-6 if single else 1e-13)


def fits_single(x: float) -> bool:
    try:
        return struct.unpack("f", struct.pack("f", x))[0] == x
    except OverflowError:
        return False


def recorded(program: str) -> dict:
    """What the reference gave when it was last recorded: by case, with the case's digest."""
    path = RECORDED / f"{program}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"cases": {}}


def record(program: str, results: dict, before: dict) -> None:
    """Keep what the reference gave now and before. Of errors the classes and the line are kept."""
    RECORDED.mkdir(exist_ok=True)
    kept = {}
    for case in cases(program):
        if case.name in before:
            kept[case.name] = before[case.name]
            continue
        result = dict(results[case.name])
        if "error" in result:
            text = result["error"]["text"]
            if case.says not in text:
                print(f"{case.key}: the reference does not say {case.says!r}: {text}")
                continue
            result = {"error": {key: result["error"][key] for key in ("classes", "line")}}
        kept[case.name] = {"digest": case.digest, **result}
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(kept[name])}" for name in kept)
    text = f'{{"recorded with": "{VERSION}", "cases": {{\n{lines}\n}}}}\n'
    (RECORDED / f"{program}.json").write_text(text, encoding="utf-8")


def ours(program: str, arch: str = "cpu", names: list[str] | None = None) -> dict:
    chosen = names or [case.name for case in cases(program)]
    return run(program, chosen, "", "ours", arch)
