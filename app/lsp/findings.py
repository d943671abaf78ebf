"""The errors of a record at their source locations, and changes that mend them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from ...engine.inspect.record import ErrorRecord, KernelRecord, Record
from ..core.views.errors import errors_of, headline
from .positions import Region, Text

__all__ = ["Finding", "Fix", "findings", "fixes"]

_SILENT: Final = frozenset({"NoKernels"})
_CHAIN: Final = re.compile(r"(.+):(\d+)(?: in (.+))?$")
_NEAR: Final = re.compile(r'did you mean "([^"]+)"\?')
_CODE: Final = re.compile(r"`(\w+): ([^`]+)`|annotate it: (\w+): ([\w.]+)")
_INSTEAD: Final = re.compile(r"(?:use|count from the end with) (\S.*)")
_OPTION: Final = re.compile(r"qd\.init\((\w+)=([\w.]+)\)")
_STATIC: Final = re.compile(r"qd\.static\([\w.]+\)")


class Finding(NamedTuple):
    """An error where an editor shows it.

    severity: error, hint, or warning (of a gradient, which the program may not need). related:
    regions of the calls that led to inlined code, with their functions.
    """

    region: Region
    message: str
    severity: str
    kind: str
    hint: str
    related: tuple[tuple[Region, str], ...] = ()


class Fix(NamedTuple):
    """A change that a hint suggests: the new text of a region."""

    title: str
    region: Region
    text: str


def findings(record: Record) -> list[Finding]:
    """The errors of a record, each once."""
    texts = {file.path: Text(file.text) for file in record.files}
    out: list[Finding] = []
    # An error of the frontend names the function, which a gradient calls by another name.
    several = ((k, e) for k in record.kernels for b in (k, *k.backends) for e in b.errors)
    owners = {id(error): kernel for kernel, error in several}
    for error in errors_of(record):
        if error.kind in _SILENT:
            continue
        region = _region(record, error, texts)
        if region.file:
            kernel = owners.get(id(error)) or _kernel(record, error.kernel)
            out.append(_finding(error, region, kernel.name if kernel and kernel.primal else ""))
    # An error of a call at module level is one of its kernel and one of the import.
    return list({(found.region, found.message): found for found in reversed(out)}.values())[::-1]


def _finding(error: ErrorRecord, region: Region, gradient: str) -> Finding:
    message = f"{gradient}: {error.message}" if gradient else error.message
    if error.stage in ("launch", "check", "workload", "load", "codegen", "passes"):
        message = f"{headline(error)}: {message}"
    if error.hint and error.hint not in message:
        message += f"\nhint: {error.hint}"
    unsaved = error.kind == "UnsavedError"
    severity = "hint" if unsaved else "warning" if gradient else "error"
    related: list[tuple[Region, str]] = []
    for call in error.chain:
        found = _CHAIN.match(call)
        if found:
            line = int(found[2])
            related.append((Region(found[1], line, 0, line, 1 << 20), f"called in {found[3]}"))
    return Finding(region, message, severity, error.kind, error.hint, tuple(related))


def _region(record: Record, error: ErrorRecord, texts: dict[str, Text]) -> Region:
    """The part of a file that an error is about: the whole line if no columns are known, and the
    first line of the kernel or file if no line is."""
    file, line = error.file, error.line
    if not line:
        kernel = _kernel(record, error.kernel)
        if kernel is not None and file in ("", kernel.file):
            file, line = kernel.file, kernel.line
        file, line = file or (record.files[0].path if record.files else ""), line or 1
    elif error.end_col > error.col or (error.end_line or line) > line:
        return Region(file, line, error.col, max(error.end_line, line), error.end_col)
    text = texts[file].lines if file in texts else []
    code = text[line - 1] if 0 < line <= len(text) else error.source
    start = len(code[: len(code) - len(code.lstrip())].encode("utf-8", "surrogatepass"))
    end = len(code.rstrip().encode("utf-8", "surrogatepass"))
    return Region(file, line, start, line, max(end, start + 1))


def _kernel(record: Record, name: str) -> KernelRecord | None:
    return next((k for k in record.kernels if name and name in (k.name, k.id)), None)


# ---- changes


def fixes(found: Finding, text: Text) -> list[Fix]:
    """The changes that the hint of an error suggests. text: of its file, as the record has it."""
    return list(_fixes(found, text))


def _fixes(found: Finding, text: Text) -> Iterator[Fix]:
    region, hint, code = found.region, found.hint, text.cut(found.region)
    near = _NEAR.search(hint)
    if near:
        name = _named(found, near[1], text)
        if name is not None:
            yield Fix(f'change to "{near[1]}"', name, near[1])
    for match in _CODE.finditer(hint):
        name, annotation = match[1] or match[3], match[2] or match[4]
        if code == name:
            yield Fix(f"annotate as {annotation}", region, f"{name}: {annotation}")
    static = _STATIC.search(hint)
    if static and code and f"qd.static({code})" == static[0]:
        yield Fix(f"change to {static[0]}", region, static[0])
    option = _OPTION.search(hint)
    if option:
        yield from _with_option(region.file, option[1], option[2], text)
    instead = _INSTEAD.fullmatch(hint)
    if instead and code and _is_expression(instead[1]) and instead[1] != code:
        yield Fix(f"change to {instead[1]}", region, instead[1])


def _named(found: Finding, name: str, text: Text) -> Region | None:
    """The name in the region of an error that its message quotes, or the whole region if it is
    a name."""
    code = text.cut(found.region)
    if code.isidentifier():
        return found.region
    quoted = [q for q in re.findall(r"[\"'](\w+)[\"']", found.message) if q != name]
    for wrong in quoted:
        for match in re.finditer(rf"\b{re.escape(wrong)}\b", code):
            start = found.region.col + len(code[: match.start()].encode())
            end = start + len(wrong.encode())
            return found.region._replace(col=start, end_col=end)
    return None


def _with_option(file: str, name: str, value: str, text: Text) -> Iterator[Fix]:
    """Add an option to the call of ``init`` in a file, or change it there."""
    try:
        tree = ast.parse("\n".join(text.lines))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        if node.func.attr != "init" or any(k.arg is None for k in node.keywords):
            continue
        title = f"set {name}={value} in {ast.unparse(node.func)}"
        given = next((k.value for k in node.keywords if k.arg == name), None)
        if given is not None:
            end = given.end_lineno or given.lineno, given.end_col_offset or 0
            yield Fix(title, Region(file, given.lineno, given.col_offset, *end), value)
        else:
            at = (node.end_lineno or node.lineno), (node.end_col_offset or 1) - 1
            before = text.cut(Region(file, at[0], 0, at[0], at[1])).rstrip()
            comma = ", " if not before.endswith(("(", ",")) and before else ""
            yield Fix(title, Region(file, *at, *at), f"{comma}{name}={value}")
        return


def _is_expression(text: str) -> bool:
    """True for code such as ``x.shape[0]``, not for a word or a sentence."""
    if text.isidentifier() or len(text) > 80:
        return False
    try:
        node = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError):
        return False
    return isinstance(node, ast.Subscript | ast.Call | ast.Attribute | ast.BinOp)
