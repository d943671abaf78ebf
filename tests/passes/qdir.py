"""File tests of passes: IR, a run line, and the IR that must come out.

A ``*.qdir`` file holds cases, separated by lines of ``=``::

    ; reuses the earlier load                  the case's name
    ; run: simplify, die                       passes, in order
    ; config: fast_math=False                  options that differ from the defaults (optional)
    ; kind: gpu                                a `PipelineKind` to prepare tasks for (optional)
    ; remark: $7 stays                         text that some remark must contain (optional)
    ; error: Negative exponent                 text of the error; then there is no expected IR
    kernel k(...) stage=typed {
      ...
    }
    ----
    kernel k(...) stage=typed {
      ...
    }

What comes out must be the expected text exactly, be good IR, and be announced: a pass says that
it changed something exactly when the text differs. ``---- same`` stands for the input itself, so
it says at a glance that the case is about what a pass leaves alone. Beyond that, the interpreter
must get the same results from the IR before and after, unless ``; no interp`` says why it cannot.
``pytest --bless`` writes what comes out now into the files.
"""

import ast
import re
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
from qd_studio.engine import passes
from qd_studio.engine.backends import interp
from qd_studio.engine.config import CompileConfig
from qd_studio.engine.errors import QuadrantsCompilationError, QuadrantsRuntimeError
from qd_studio.engine.ir import Func, parse, to_text, verify
from qd_studio.engine.ir.semantics import same_const
from qd_studio.engine.passes import pipeline
from qd_studio.engine.passes.full_simplify import full_simplify
from qd_studio.engine.pipeline_kind import PipelineKind

HERE = Path(__file__).parent
_CASES = re.compile(r"^=+\n", re.M)
_EXPECTED = re.compile(r"^----( same)?\n?", re.M)


@dataclass
class Case:
    file: Path
    name: str
    run: list[str]
    head: str
    source: str
    expected: str | None
    same: bool = False
    config: dict[str, object] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)
    error: str | None = None
    interp: bool = True
    kind: PipelineKind | None = None

    def __str__(self) -> str:
        return f"{self.file.stem}: {self.name}"


def read(file: Path) -> list[Case]:
    """The cases of one file."""
    return [_case(file, text) for text in _CASES.split(file.read_text(encoding="utf-8"))]


def _case(file: Path, text: str) -> Case:
    lines = text.splitlines(keepends=True)
    count = next(i for i, line in enumerate(lines) if not line.startswith(";"))
    head = lines[:count]
    body = "".join(lines[count:])
    found = _EXPECTED.search(body)
    source = body[: found.start()] if found else body
    case = Case(file, head[0][1:].strip(), [], "".join(head), source, None)
    if found:
        case.same = bool(found[1])
        case.expected = source if case.same else body[found.end() :]
    for line in head[1:]:
        key, _, value = line[1:].strip().partition(":")
        value = value.strip()
        if key == "run":
            case.run = [name.strip() for name in value.split(",")]
        elif key == "config":
            for part in value.split(","):
                option, _, literal = part.strip().partition("=")
                case.config[option] = ast.literal_eval(literal)
        elif key == "kind":
            case.kind = PipelineKind(value)
        elif key == "remark":
            case.remarks.append(value)
        elif key == "error":
            case.error = value
        elif key == "no interp":
            case.interp = False
        else:
            raise ValueError(f"{file.name}: {case.name}: what is {line.strip()!r}?")
    if not case.run:
        raise ValueError(f"{file.name}: {case.name}: no run line")
    return case


def context(func: Func, config: dict[str, object], remarks: passes.Remarks) -> passes.PassCx:
    return passes.PassCx(func, CompileConfig().replace(**config), (remarks,))


def run_passes(
    func: Func, names: list[str], config: dict[str, object], kind: PipelineKind | None = None
) -> list[str]:
    """Run passes by name on ``func``; gives the texts of their remarks."""
    remarks = passes.Remarks()
    cx = context(func, config, remarks)
    cx.kind = kind
    if kind is not None:
        cx.prepare = partial(pipeline.prepared, config=cx.config, kind=kind)
    for name in names:
        before = to_text(func, locs=True)
        if name == "full_simplify":
            cx.begin("simplify_III")
            changed = full_simplify(func, cx)
        else:
            changed = cx.run_pass(name)
        after = to_text(func, locs=True)
        assert changed == (after != before), f"{name} says changed={changed}"
        errors = verify(func)
        assert not errors, f"after {name}: {errors}\n{after}"
    return [remark.text for _, remark in remarks.found]


def arguments(func: Func, seed: int) -> list[object]:
    """Arguments of every kind, with some edge values, the same for the same seed."""
    rng = np.random.default_rng(seed)
    made: list[object] = []
    for param in func.params:
        t = param.dtype
        if param.kind == "scalar":
            value = int(rng.integers(-3, 6)) + (0.5 if t.is_real else 0)
            made.append(t(value))
            continue
        size = (7,) * param.ndim + param.element_shape
        if param.layout is not None:
            size = (param.layout.span,)
        data = rng.integers(-4, 5, size=size).astype(np.float64)
        if t.is_real:
            data = data / 2
        array = data.astype(t.np) if t.is_signed or t.is_real else np.abs(data).astype(t.np)
        made.append((array, array.copy()) if param.needs_grad else array)
    return made


def outcome(func: Func, seed: int) -> tuple[object, ...]:
    """Results, arrays and texts of one run; the error's text if it fails."""
    values = arguments(func, seed)
    printed: list[str] = []
    try:
        result = interp.run(func, values, print_fn=printed.append, max_steps=1_000_000)
    except QuadrantsRuntimeError as error:
        return ("failed", error.message, printed)
    arrays = [[np.array(a) for a in (v if isinstance(v, tuple) else (v,))] for v in values]
    return (result, arrays, printed)


def assert_same_outcome(before: Func, after: Func, exact: bool, seeds: int = 3) -> None:
    """The interpreter gets the same from both: to the bit if ``exact``, else up to rounding."""
    for seed in range(seeds):
        old, new = outcome(before, seed), outcome(after, seed)
        assert len(old) == len(new), (old, new)
        assert old[-1] == new[-1]
        if old[0] == "failed":
            assert old == new
            continue
        _assert_close(list(old[0]), list(new[0]), exact)
        for a, b in zip(old[1], new[1], strict=True):
            for x, y in zip(a, b, strict=True):
                _assert_close(x.ravel().tolist(), y.ravel().tolist(), exact)


def _assert_close(old: list, new: list, exact: bool) -> None:
    for a, b in zip(old, new, strict=True):
        if exact or isinstance(a, int):
            assert same_const(a, b), (old, new)
        else:
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def check(case: Case, bless: bool) -> None:
    """Run one case; with ``bless`` its file is rewritten instead of compared."""
    func = parse(case.source)
    assert not verify(func), verify(func)
    if case.error is not None:
        try:
            run_passes(func, case.run, case.config, case.kind)
        except QuadrantsCompilationError as error:
            assert case.error in error.message
            return
        raise AssertionError(f"no error, although one with {case.error!r} was expected")
    locs = "\nloc @" in case.source
    remarks = run_passes(func, case.run, case.config, case.kind)
    text = to_text(func, locs=locs)
    for want in case.remarks:
        assert any(want in remark for remark in remarks), f"{want!r} is not in {remarks}"
    if bless and not case.same:
        if text != case.expected:
            _write(case, text)
    else:
        assert text.splitlines() == (case.expected or "").strip().splitlines()
    if case.interp:
        exact = case.config.get("fast_math") is False
        # A task that is set aside is not in the function, but in its text.
        after = func if func.shared is None else parse(text)
        assert_same_outcome(parse(case.source), after, exact)


def _write(case: Case, text: str) -> None:
    parts = _CASES.split(case.file.read_text(encoding="utf-8"))
    for i, part in enumerate(parts):
        if part.startswith(case.head + case.source.rstrip("\n")):
            parts[i] = f"{case.head}{case.source.rstrip()}\n----\n{text}"
    case.file.write_text("====\n".join(parts), encoding="utf-8")


def all_cases() -> list[Case]:
    return [case for file in sorted(HERE.rglob("*.qdir")) for case in read(file)]
