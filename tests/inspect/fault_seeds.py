"""Seeds faults into kernels and counts those that the checks find.

    python -m tests.inspect.fault_seeds [--most 300] [--per-file 24] [FILE ...]

A mutation changes one expression of a kernel: an index by one, to a constant or to half of itself,
the end of a range, a guard, an atomic update to a plain one, a loop that ran in order. Not every
mutation is a fault, so each mutant is judged by other means than the checks: the interpreter with
``check_out_of_bound``, and `engine.inspect.races`, which knows nothing of values and proofs, on
every workload that they can follow. Mutants that these find nothing in are not counted. Two writes
of an equal value are a conflict for the judge and none for the checks, so a mutant with no other
conflict is judged again by its results with the iterations in the opposite order.
"""

import argparse
import ast
import copy
import importlib.util
import io
import sys
import tempfile
from collections import Counter
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from qd_studio.engine import alias
from qd_studio.engine.config import CompileConfig
from qd_studio.engine.errors import QuadrantsAssertionError, QuadrantsRuntimeError
from qd_studio.engine.inspect import KernelCapture
from qd_studio.engine.inspect.checking import check
from qd_studio.engine.inspect.discover import ensure_program, kernels_in
from qd_studio.engine.inspect.interpreting import TooLong
from qd_studio.engine.inspect.launching import ORACLE
from qd_studio.engine.inspect.races import conflicts
from qd_studio.engine.inspect.trials import Trials, UnjudgedError
from qd_studio.engine.ir import codes as C
from qd_studio.engine.ir import walk

ROOT = Path(__file__).parents[2]
FILES = [
    "blur", "heat", "histogram", "jacobi", "life", "matmul", "nbody", "poly", "prefix_sum",
    "reduction", "saxpy", "mandelbrot", "ragged",
]  # fmt: skip


class Mutant(NamedTuple):
    """kernel: its name. kind: of the mutation. line: of the original. source: the whole file."""

    kernel: str
    kind: str
    line: int
    source: str


def mutants(source: str) -> list[Mutant]:
    """Every mutation of every kernel in a file."""
    lines = source.splitlines()
    out: list[Mutant] = []
    for node in ast.parse(source).body:
        if not isinstance(node, ast.FunctionDef) or not any(
            "kernel" in ast.unparse(d) for d in node.decorator_list
        ):
            continue
        first = node.decorator_list[0].lineno - 1
        for spot, each in enumerate(ast.walk(node)):
            if not isinstance(each, _PLACES):
                continue
            for kind, change in _KINDS.items():
                kernel = copy.deepcopy(node)
                target = list(ast.walk(kernel))[spot]
                if change(kernel, target):
                    text = ast.unparse(ast.fix_missing_locations(kernel)).splitlines()
                    whole = [*lines[:first], *text, *lines[node.end_lineno :]]
                    out.append(Mutant(node.name, kind, each.lineno, "\n".join(whole) + "\n"))
    return out


_PLACES = (ast.Subscript, ast.Call, ast.If, ast.AugAssign, ast.Expr, ast.keyword)
"""Nodes that a mutation may change."""


def _indices(node: ast.AST) -> list[ast.expr] | None:
    """The indices of an element, in a list that may be changed; None for anything else."""
    if not isinstance(node, ast.Subscript) or ".shape" in ast.unparse(node.value):
        return None
    if "types" in ast.unparse(node.value) or isinstance(node.slice, ast.Slice):
        return None
    if isinstance(node.slice, ast.Tuple):
        return node.slice.elts
    return None


def _swap_index(node: ast.AST, text: str) -> bool:
    """Replace the first index, ``I`` in ``text``."""
    several = _indices(node)
    if several is None and (
        not isinstance(node, ast.Subscript)
        or isinstance(node.slice, ast.Slice | ast.Tuple)
        or ".shape" in ast.unparse(node.value)
    ):
        return False
    assert isinstance(node, ast.Subscript)
    old = several[0] if several else node.slice
    new = ast.parse(text.replace("I", f"({ast.unparse(old)})"), mode="eval").body
    if several:
        several[0] = new
    else:
        node.slice = new
    return True


def _range_end(kernel: ast.AST, node: ast.AST) -> bool:
    if not isinstance(node, ast.Call) or ast.unparse(node.func) not in ("range", "qd.ndrange"):
        return False
    last = node.args[-1]
    if isinstance(last, ast.Tuple):
        last.elts[-1] = ast.BinOp(last.elts[-1], ast.Add(), ast.Constant(1))
    else:
        node.args[-1] = ast.BinOp(last, ast.Add(), ast.Constant(1))
    return True


def _drop_guard(kernel: ast.AST, node: ast.AST) -> bool:
    if not isinstance(node, ast.If) or node.orelse:
        return False
    node.test = ast.Constant(True)
    return True


def _plain_update(kernel: ast.AST, node: ast.AST) -> bool:
    """A plain update in place of an atomic one."""
    for parent in ast.walk(kernel):
        body = getattr(parent, "body", None)
        if isinstance(body, list) and node in body:
            break
    else:
        return False
    if isinstance(node, ast.AugAssign):
        load = ast.parse(ast.unparse(node.target), mode="eval").body
        new: ast.stmt = ast.Assign([node.target], ast.BinOp(load, node.op, node.value))
    elif isinstance(node, ast.Expr) and "atomic_" in ast.unparse(node):
        call = node.value
        if not isinstance(call, ast.Call) or len(call.args) != 2:
            return False
        target, value = ast.unparse(call.args[0]), ast.unparse(call.args[1])
        name = ast.unparse(call.func).rpartition("atomic_")[2]
        text = {"add": f"{target} + {value}", "max": f"qd.max({target}, {value})",
                "min": f"qd.min({target}, {value})"}.get(name)  # fmt: skip
        if text is None:
            return False
        new = ast.parse(f"{target} = {text}").body[0]
    else:
        return False
    body[body.index(node)] = new
    return True


def _in_parallel(kernel: ast.AST, node: ast.AST) -> bool:
    """A loop in parallel that ran in order."""
    if not isinstance(node, ast.keyword) or node.arg != "serialize":
        return False
    node.value = ast.Constant(False)
    return True


_KINDS: dict[str, Any] = {
    "index + 1": lambda k, n: _swap_index(n, "I + 1"),
    "index - 1": lambda k, n: _swap_index(n, "I - 1"),
    "index // 2": lambda k, n: _swap_index(n, "I // 2"),
    "index 0": lambda k, n: _swap_index(n, "I * 0"),
    "range + 1": _range_end,
    "no guard": _drop_guard,
    "plain update": _plain_update,
    "in parallel": _in_parallel,
}


def load(source: str, folder: Path, number: int) -> Any:
    """A module of this source."""
    path = folder / f"mutant_{number}.py"
    path.write_text(source)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    with redirect_stdout(io.StringIO()):
        spec.loader.exec_module(module)
    return module


def truth(capture: KernelCapture) -> set[str]:
    """The faults that the judge finds with the smallest workloads: race, bounds."""
    found: set[str] = set()
    cases = sorted(capture.cases, key=lambda c: np.prod([float(v) for v in c.sizes.values()]))
    for case in cases[:2]:
        made = capture.launcher(0.0).round_of(case, False)
        if made is None:
            continue
        trials = Trials(capture, capture.launcher(0.0), made, ORACLE, light=True)
        assert trials.build is not None
        func = trials.build.func
        try:
            names = conflicts(trials.given, func)
            if names and _order_matters(trials, func):
                found.add("race")
        except (UnjudgedError, TooLong):
            pass
        except (QuadrantsRuntimeError, IndexError):
            found.add("bounds")
        if "bounds" in found:
            break
        try:
            trials.interpret(func, 100_000)
        except TooLong:
            pass
        except QuadrantsAssertionError:
            pass
        except (QuadrantsRuntimeError, IndexError):
            found.add("bounds")
    return found


def _order_matters(trials: Trials, func: Any) -> bool:
    """True if results differ with the iterations in the opposite order."""
    forward = trials.interpret(func, 100_000)
    loops = [op for op in walk(func.body) if op.code == C.RANGE_FOR and func.is_root(op.block)]
    for loop in loops:
        loop.attr = loop.attr._replace(reversed=not loop.attr.reversed)
    try:
        backward = trials.interpret(func, 100_000)
    finally:
        for loop in loops:
            loop.attr = loop.attr._replace(reversed=not loop.attr.reversed)
    pairs = zip(forward.values, backward.values, strict=True)
    return any(not np.allclose(a, b, rtol=1e-3, equal_nan=True) for a, b in pairs)


class Score(NamedTuple):
    """faults: of mutants with one. found: those that the checks found. other: where the checks
    found a fault that the judge did not."""

    faults: Counter[str]
    found: Counter[str]
    missed: list[str]
    other: list[str]


def score(files: list[Path], most: int, per_file: int) -> Score:
    """Count over the mutants of files."""
    out = Score(Counter(), Counter(), [], [])
    number = 0
    with tempfile.TemporaryDirectory() as name:
        for file in files:
            several = mutants(file.read_text())
            step = max(1, len(several) // per_file)
            for mutant in several[::step][:per_file]:
                if sum(out.faults.values()) >= most:
                    return out
                number += 1
                _count(mutant, file, Path(name), number, out)
    return out


def _count(mutant: Mutant, file: Path, folder: Path, number: int, out: Score) -> None:
    where = f"{file.name}:{mutant.line} {mutant.kernel} {mutant.kind}"
    try:
        module = load(mutant.source, folder, number)
        ensure_program()
        path = str(folder / f"mutant_{number}.py")
        subject = next(s for s in kernels_in(vars(module), path) if s.name == mutant.kernel)
        capture = KernelCapture(subject, (ORACLE,), CompileConfig())
        capture.prepare()
        real = truth(capture)
    except Exception:  # the mutant does not compile
        return
    found = {v.check for v in check(capture).verdicts if v.outcome == "fault"}
    if real:
        out.faults[mutant.kind] += 1
        if found & real:
            out.found[mutant.kind] += 1
        else:
            out.missed.append(f"{where}: {', '.join(sorted(real))}")
    elif found:
        out.other.append(f"{where}: {', '.join(sorted(found))}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--most", type=int, default=300)
    parser.add_argument("--per-file", type=int, default=60)
    options = parser.parse_args()
    alias.install("quadrants")
    files = options.files or [ROOT / "sample_kernels" / f"{name}.py" for name in FILES]
    found = score(files, options.most, options.per_file)
    for kind, count in sorted(found.faults.items()):
        print(f"{kind:<14} {found.found[kind]:>4} of {count}")
    print(f"all            {sum(found.found.values()):>4} of {sum(found.faults.values())}")
    for title, several in (("missed", found.missed), ("not of the judge", found.other)):
        for one in several:
            print(f"{title}: {one}")


if __name__ == "__main__":
    main()
