"""``qd-studio doctor``: what works on this machine, what is missing, and how to get it.

Every backend that says it works is made to prove it: a small kernel is compiled and launched.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import shutil
import sys
from typing import Any, Final, NamedTuple

from ..engine import inspect
from . import streams
from .core.format import size
from .usage import EXIT_ENVIRONMENT, EXIT_FAILED, EXIT_OK, EXIT_USAGE, Failure, Parser

__all__ = ["Finding", "Findings", "examine", "main", "parser", "to_json", "to_text"]

_PACKAGES: Final = (
    ("numpy", "arrays"),
    ("llvmlite", "the cpu backend"),
    ("msgspec", "records"),
    ("textual", "the studio's screen"),
    ("rich", "the studio's screen"),
    ("watchdog", "noticing saves"),
    ("pygments", "colours of code"),
    ("cuda-python", "the cuda backend"),
    ("pyopencl", "the opencl backend"),
)
_BACKEND_HINTS: Final = {
    "cpu": "reinstall with: python -m pip install --force-reinstall llvmlite",
}
_CUDA_HINT: Final = (
    "kernels are compiled all the same: qd-studio FILE --backend cuda, or cuda:sm_90"
)
_OPENCL_HINT: Final = (
    "python -m pip install 'pyopencl[pocl]' brings one that runs on the processor; a driver whose "
    "library has no vendor file is found through OCL_ICD_VENDORS=FOLDER with a file NAME.icd that "
    "holds the library's path"
)
_CLEAN: Final = "qd-studio cache verify lists bad entries, qd-studio cache clean removes them"
_SHOWN: Final = 3
"""Bad entries of a layer that are named."""
_MARKS: Final = {"ok": "ok     ", "missing": "missing", "broken": "BROKEN ", "note": "note   "}


class Finding(NamedTuple):
    """One thing looked at. state: ok, missing, broken, note. hint: what can be done about it."""

    area: str
    name: str
    state: str
    detail: str = ""
    hint: str = ""


class Findings(NamedTuple):
    """The whole report. works: kernels can be compiled and launched here."""

    findings: list[Finding]
    works: bool


def examine() -> Findings:
    """Look at everything. Takes about a second, most of it for the backends' self tests."""
    backends = _backends()
    works = any(f.state == "ok" and f.name == "cpu" for f in backends)
    found = [*_machine(), *backends, *_cuda(), *_opencl(), *_packages(), *_caches(), *_terminal()]
    return Findings(found, works)


def _machine() -> list[Finding]:
    tool = inspect.tool_info()
    features = inspect.cpu_features()
    return [
        Finding("machine", "python", "ok", f"{tool.python} ({sys.executable})"),
        Finding("machine", "platform", "ok", tool.platform),
        Finding("machine", "processor", "ok", tool.cpu),
        Finding("machine", "features", "ok" if features else "note", features or "unknown"),
        Finding("machine", "threads", "ok", f"{tool.threads} available to this process"),
        Finding("machine", "qd-studio", "ok", tool.version),
    ]


def _backends() -> list[Finding]:
    out: list[Finding] = []
    for found in inspect.backends():
        if not found.works:
            # What never launches lacks nothing here.
            state, hint = "missing", ""
            if found.only:
                state, hint = "note", f"qd-studio show FILE --panel code --backend {found.name}"
            out.append(Finding("backend", found.name, state, found.reason, hint))
            continue
        fault = inspect.self_test(found.name)
        hint = _BACKEND_HINTS.get(found.name, "") if fault else ""
        detail = fault.partition("\n")[0] or f"{found.toolchain}; a test kernel ran"
        out.append(Finding("backend", found.name, "broken" if fault else "ok", detail, hint))
    return out


def _cuda() -> list[Finding]:
    """The driver, its devices, and the components of the toolkit."""
    found = inspect.cuda_machine()
    state, hint = ("missing", _CUDA_HINT) if found.problem else ("ok", "")
    if "QD_ENABLE_CUDA" in found.problem:
        state, hint = "note", "unset QD_ENABLE_CUDA"
    driver = f"supports CUDA {found.driver}" if found.driver else ""
    text_found = "; ".join(text for text in (driver, found.problem) if text)
    out = [Finding("cuda", "driver", state, text_found, hint)]
    for device in found.devices:
        parts = [
            f"{device.number}: {device.name}",
            f"compute capability {device.capability} ({device.arch})",
            f"{device.processors} SMs",
            size(device.memory) + (f", {size(device.free)} free" if device.free >= 0 else ""),
            device.uuid,
        ]
        chosen = "programs use this one" if device.chosen else ""
        text = ", ".join(part for part in (*parts, chosen) if part)
        out.append(Finding("cuda", "device", "ok" if device.chosen else "note", text))
    for component in found.components:
        where = " ".join(text for text in (component.version, component.path) if text)
        if component.path:
            out.append(Finding("cuda", component.name, "ok", where))
        else:
            why = f"not found: {component.purpose}"
            out.append(Finding("cuda", component.name, "missing", why, component.hint))
    out += [Finding("cuda", name, "note", value or "empty") for name, value in found.variables]
    return out


def _opencl() -> list[Finding]:
    """The devices of all drivers, or what to do where there are none."""
    found = inspect.opencl_machine()
    out: list[Finding] = []
    if found.problem:
        hidden = "QD_ENABLE_OPENCL" in found.problem
        hint = "unset QD_ENABLE_OPENCL" if hidden else _OPENCL_HINT
        if found.devices:
            hint = "unset QD_OPENCL_DEVICE, or name one of these"
        what = "choice" if found.devices else "driver"
        out.append(Finding("opencl", what, "note" if hidden else "missing", found.problem, hint))
    for one in found.devices:
        parts = [
            f"{one.place}: {one.name}",
            f"{one.platform}, {one.version}, driver {one.driver}",
            f"{one.kind}, {one.units} compute units, {size(one.memory)}",
            f"without {', '.join(one.lacks)}" if one.lacks else "",
            "programs use this one" if one.chosen else "",
        ]
        text = ", ".join(part for part in parts if part)
        out.append(Finding("opencl", "device", "ok" if one.chosen else "note", text))
    return [*out, *(Finding("opencl", n, "note", value or "empty") for n, value in found.variables)]


def _packages() -> list[Finding]:
    out: list[Finding] = []
    for name, purpose in _PACKAGES:
        try:
            version = importlib.metadata.version(name)
            out.append(Finding("package", name, "ok", version))
        except importlib.metadata.PackageNotFoundError:
            wanted = "'pyopencl[pocl]'" if name == "pyopencl" else name
            hint = f"python -m pip install {wanted}"
            out.append(Finding("package", name, "missing", f"needed for {purpose}", hint))
    return out


def _caches() -> list[Finding]:
    """The caches on disk: their folder, how full they are, and what is wrong with them."""
    found = inspect.cache_folder()
    root, problem = found.root, found.problem
    if not found.there:
        out = [Finding("cache", "folder", "note", f"{root} is not there yet")]
    else:
        detail = f"{root} {problem}" if problem else root
        out = [Finding("cache", "folder", "broken" if problem else "ok", detail, found.remedy)]
        used = f"{size(found.bytes)} of {size(found.limit)}; cleaning: {found.policy}"
        out.append(Finding("cache", "size", "ok", used))
    if found.off:
        out.append(Finding("cache", "in use", "note", found.off, "unset QD_OFFLINE_CACHE"))
    for layer in found.layers:
        out += _layer(layer)
    return out + _shared()


def _shared() -> list[Finding]:
    """The cache that machines share, if QD_REMOTE_CACHE names one."""
    if not os.environ.get("QD_REMOTE_CACHE"):
        return []
    found = inspect.shared_cache()
    detail = f"{found.url} answers in {found.answer_ms:.1f} ms, {found.mode.replace('_', ' and ')}"
    if found.problem:
        detail = f"{found.url}: {found.problem}"
    hint = "qd-studio cache remote" if found.problem else ""
    return [Finding("cache", "shared", "broken" if found.problem else "ok", detail, hint)]


def _layer(layer: inspect.LayerFolder) -> list[Finding]:
    if layer.problem:
        return [Finding("cache", layer.name, "broken", layer.problem, layer.remedy)]
    number = f"{layer.entries:,} {'entry' if layer.entries == 1 else 'entries'}"
    detail = f"{number}, {size(layer.bytes)}"
    if layer.foreign:
        detail += f"; {layer.foreign:,} of other versions"
    out = [Finding("cache", layer.name, "ok", detail)]
    for path, problem in layer.bad[:_SHOWN]:
        out.append(Finding("cache", layer.name, "broken", f"{path} {problem}", _CLEAN))
    if len(layer.bad) > _SHOWN:
        rest = f"{len(layer.bad) - _SHOWN:,} more entries are of no use"
        out.append(Finding("cache", layer.name, "broken", rest, _CLEAN))
    return out


def _terminal() -> list[Finding]:
    environ = os.environ
    out: list[Finding] = []

    def found(name: str, good: bool, detail: str, hint: str) -> None:
        """hint: what to do if it is not good."""
        state = "ok" if good else "note"
        out.append(Finding("terminal", name, state, detail, "" if good else hint))

    both = sys.stdin.isatty() and sys.stdout.isatty()
    found("screen", both, "standard input and output are a terminal" if both else "not a terminal",
          "the studio needs one; without it a report is written")  # fmt: skip
    term = environ.get("TERM", "")
    found("type", term not in ("", "dumb"), f"TERM={term or 'is not set'}",
          "a terminal emulator sets TERM; with 'dumb' a report is written")  # fmt: skip
    truecolor = environ.get("COLORTERM", "") in ("truecolor", "24bit")
    colours = "true colour" if truecolor else "256 colours or fewer"
    if environ.get("NO_COLOR"):
        colours = "switched off by NO_COLOR"
    found("colours", truecolor, colours, "a terminal with true colour sets COLORTERM=truecolor")
    size = shutil.get_terminal_size((0, 0))
    if size.columns:
        found("size", size.columns >= 80 and size.lines >= 24,
              f"{size.columns} columns, {size.lines} lines",
              "the studio is made for 80 by 24 and more")  # fmt: skip
    encoding = (sys.stdout.encoding or "").lower().replace("-", "")
    found("encoding", encoding == "utf8", sys.stdout.encoding or "unknown",
          "set a UTF-8 locale, such as LANG=C.UTF-8")  # fmt: skip
    tools = [t for t in ("wl-copy", "xclip", "xsel", "pbcopy") if shutil.which(t)]
    detail = f"OSC 52, {tools[0]}" if tools else "OSC 52 only; a file where that is not honoured"
    hint = "inside tmux: set -g set-clipboard on" if environ.get("TMUX") else ""
    out.append(Finding("terminal", "copying", "ok", detail, hint))
    return out


def to_text(found: Findings) -> str:
    """A line a finding, a line more for a hint."""
    out: list[str] = []
    area = ""
    for f in found.findings:
        if f.area != area:
            area = f.area
            out += ([""] if out else []) + [area]
        out.append(f"  {_MARKS[f.state]} {f.name:<12} {f.detail}".rstrip())
        if f.hint:
            out.append(f"  {'':7} {'':12} -> {f.hint}")
    verdict = "kernels can be compiled and launched here"
    if not found.works:
        verdict = "kernels cannot be compiled for the cpu here; see above"
    return "\n".join([*out, "", verdict]) + "\n"


def to_json(found: Findings) -> str:
    """The same as JSON: {"works": bool, "findings": [{area, name, state, detail, hint}]}."""
    value: dict[str, Any] = {
        "works": found.works,
        "findings": [f._asdict() for f in found.findings],
    }
    return json.dumps(value, indent=1) + "\n"


def parser() -> Parser:
    """The arguments."""
    made = Parser(
        prog="qd-studio doctor",
        description="Show what works on this machine, what is missing, and how to install it.",
    )
    made.add_argument("--json", action="store_true", help="print JSON")
    _conformance(made)
    return made


def _conformance(parser: Parser) -> None:
    add = parser.add_argument
    add("--conformance", action="store_true",
        help="run a small program for each feature of the language on each backend, and print the "
        "results as a table; exit code 1 if a cell is FAILED")  # fmt: skip
    add("--backend", action="append", default=[], metavar="NAMES",
        help="with --conformance: backends, separated by commas or repeated; default: every "
        "backend that can launch here")  # fmt: skip
    add("--feature", action="append", default=[], metavar="NAME",
        help="with --conformance: run only this feature or group; may be repeated")  # fmt: skip
    add("--config", action="append", default=[], metavar="KEY=VALUE",
        help="with --conformance: an option for all programs; may be repeated")  # fmt: skip


def main(words: list[str]) -> int:
    """Run the command and return the exit code."""
    options = parser().parse_args(words)
    if options.conformance:
        return _conform(options)
    if options.backend or options.feature or options.config:
        raise Failure(EXIT_USAGE, "--backend, --feature and --config go with --conformance")
    found = examine()
    streams.write(to_json(found) if options.json else to_text(found), options.json)
    return EXIT_OK if found.works else EXIT_ENVIRONMENT


def _conform(options: argparse.Namespace) -> int:
    from .conformance import process, progress, table

    try:
        config = dict(inspect.parse_setting(text) for text in options.config)
        columns = process.chosen(options.backend)
        wanted = process.features(options.feature)
    except ValueError as error:
        raise Failure(EXIT_USAGE, str(error)) from None
    with progress.watching(columns, len(wanted), sys.stderr) as watch:
        found = process.measure(columns, wanted, config, watch)
    streams.write(table.to_json(found) if options.json else table.to_text(found), options.json)
    if all(column.absent for column in columns):
        return EXIT_ENVIRONMENT
    return EXIT_FAILED if found.failed else EXIT_OK
