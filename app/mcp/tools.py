"""The tools of ``qd-studio mcp``: their arguments and schemas, and calls of them.

A tool reads the project and writes nothing to it. Importing a file runs its code, as any command of
``qd-studio`` does, and tools that need results launch its kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, cast

from ..panels import NothingToShow
from ..usage import Failure
from . import queries
from .answers import LIMIT, MOST, ToolError, failed
from .project import Call, Project

__all__ = ["TOOLS", "Tool", "call", "input_schema", "output_schema"]

_TEXT: Final = {"type": "string"}
_ARGUMENTS: Final[Mapping[str, Mapping[str, Any]]] = {
    "file": {
        **_TEXT,
        "description": "A Python file, notebook or folder of the project, by its path in it; "
        "default: the whole project",
    },
    "kernel": {**_TEXT, "description": "Name or id of a kernel; default: all of the file"},
    "backend": {
        **_TEXT,
        "description": "Backends separated by commas, such as 'cpu,cuda:sm_90'; 'all': every one",
    },
    "config": {
        "type": "object",
        "additionalProperties": {"type": ["string", "number", "boolean"]},
        "description": "Compile options, such as {\"fast_math\": false}",
    },
    "run": {
        "type": "boolean",
        "description": "Also run the file as a script, and launch its kernels with the arguments "
        "of the recorded calls; for files without workloads",
    },
    "start": {
        "type": "integer", "minimum": 0, "description": "First entry of the answer; default: 0",
    },
    "limit": {
        "type": "integer", "minimum": 1, "maximum": MOST,
        "description": f"Most entries of the answer; default: {LIMIT}",
    },
    "pass_name": {**_TEXT, "description": "A pass, 'NAME' or 'NAME@STAGE'"},
    "form": {
        **_TEXT, "enum": ["exact", "readable"],
        "description": "IR and code as they are (default), or with the names of the source",
    },
    "against": {
        **_TEXT,
        "description": "Compare with: a revision of git ('HEAD~3'), a compile option "
        "('fast_math=0'), or a backend ('cuda')",
    },
    "text": {
        **_TEXT,
        "description": "The text: 'source', 'ir' (after all passes), or one of those that the "
        "answer without this argument lists, such as 'asm' or 'ptx'",
    },
    "panel": {**_TEXT, "description": "The panel; the answer to a wrong name lists them"},
    "line": {"type": "integer", "minimum": 1, "description": "Only this line of the source"},
    "hits": {"type": "boolean", "description": "Also the layers that would hit"},
    "metric": {
        **_TEXT,
        "description": "Find what makes this worse, in place of results: time, statements, loads, "
        "stores, instructions, registers, spills, vector-width, bytes, code-bytes",
    },
    "good": {**_TEXT, "description": "A revision of git that is good; or, with a metric, options"},
    "bad": {**_TEXT, "description": "A bad one; default: the file as it is, or HEAD"},
}  # fmt: skip
_LOOK: Final = ("file", "kernel", "backend", "config")
_PAGE: Final = ("start", "limit")


class Tool(NamedTuple):
    """arguments: names in `_ARGUMENTS`. needed: those without a default. run: makes the answer."""

    help: str
    arguments: tuple[str, ...]
    run: Callable[[Project, Call, dict[str, Any]], dict[str, Any]]
    needed: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """That of its function."""
        return self.run.__name__


TOOLS: Final[Mapping[str, Tool]] = {
    tool.name: tool
    for tool in (
        Tool(
            "List the kernels of the project or a file: parameters, workloads, whether each "
            "backend compiles them, and errors with file, line, caret and hint. Nothing is "
            "launched. Start here. Default backend: cpu.",
            (*_LOOK, *_PAGE),
            queries.kernels,
        ),
        Tool(
            "Without pass_name and against: the runs of passes that changed the IR of a kernel, "
            "with counts and times. With pass_name: the diff of the IR that the pass made. With "
            "against: two compiles compared, and where the IR first differs. Default backend: cpu.",
            (*_LOOK, "pass_name", "against", "form", *_PAGE),
            queries.diff,
            ("file",),
        ),
        Tool(
            "For each layer of the caches: the answer to a program that starts now, and for a "
            "miss the part of the key that changed, what it costs and what to do. "
            "Nothing is launched. Default backend: cpu.",
            (*_LOOK, "hits", *_PAGE),
            queries.why_miss,
        ),
        Tool(
            "Launch a kernel with its workloads: time, bytes and operations of each source line, "
            "and what limits each task. Default backend: cpu.",
            (*_LOOK, "run", *_PAGE),
            queries.cost,
            ("file",),
        ),
        Tool(
            "Launch kernels on each backend: does the result agree with the interpreter, with the "
            "first difference; launch times; comparison of backends.",
            (*_LOOK, "run", *_PAGE),
            queries.verdicts,
        ),
        Tool(
            "Find what makes the result of a kernel wrong: the pass, the op and the source line. "
            "With metric: what makes it larger or slower. With good: the commit.",
            (*_LOOK, "metric", "good", "bad", *_PAGE),
            queries.bisect,
            ("file",),
        ),
        Tool(
            "Source, IR and generated code of a kernel. Without text: the list of its texts with "
            "their sizes, and registers and spills. Default backend: cpu.",
            (*_LOOK, "text", "form", *_PAGE),
            queries.code,
            ("file",),
        ),
        Tool(
            "Any panel of the studio as text, such as explain (why something was not hoisted or "
            "vectorised), track (the history of the values of a line), cfg, autodiff. "
            "Default backend: cpu.",
            (*_LOOK, "panel", "line", "pass_name", "run", *_PAGE),
            queries.show,
            ("file", "panel"),
        ),
        Tool(
            "The report on a file or the project as Markdown: table of results, launch times, "
            "passes, caches, failures.",
            (*_LOOK, "run", *_PAGE),
            queries.report,
        ),
    )
}


def input_schema(tool: Tool) -> dict[str, Any]:
    """The JSON schema of a tool's arguments."""
    return {
        "type": "object",
        "properties": {name: dict(_ARGUMENTS[name]) for name in tool.arguments},
        "required": list(tool.needed),
        "additionalProperties": False,
    }


def output_schema() -> dict[str, Any]:
    """The JSON schema of all answers that are no errors."""
    return {
        "type": "object",
        "properties": {
            "lines": {"type": "array", "items": _TEXT, "description": "Lines of text"},
            "items": {"type": "array", "description": "Objects, in place of lines"},
            "start": {"type": "integer", "description": "Index of the first entry here"},
            "total": {"type": "integer", "description": "Number of all entries"},
            "truncated": {"type": "boolean", "description": "True if something was left out"},
            "next_start": {
                "type": ["integer", "null"], "description": "The start that continues the answer",
            },
            "more": {**_TEXT, "description": "How to see what was left out"},
            "errors": {
                "type": "array",
                "description": "Failures in the files, each with file, line, caret and hint",
                "items": {"type": "object"},
            },
        },
        "required": ["start", "total", "truncated", "next_start", "more"],
    }  # fmt: skip


def call(
    project: Project, name: str, given: Mapping[str, Any], call: Call | None = None
) -> tuple[dict[str, Any], bool]:
    """(the answer of a tool, True if it is an error)."""
    try:
        tool = TOOLS.get(name)
        if tool is None:
            raise ToolError(f"there is no tool {name!r}; there are: {', '.join(TOOLS)}")
        return tool.run(project, call or Call(), _checked(tool, given)), False
    except ToolError as error:
        return failed(error), True
    except NothingToShow as error:
        return failed(ToolError(str(error))), True
    except SystemExit:
        return failed(ToolError("the arguments do not fit each other")), True
    except Failure as error:
        kinds = {1: "failed", 2: "usage", 3: "environment", 4: "not judged"}
        return failed(ToolError(str(error), kind=kinds.get(error.status, "failed"))), True


def _checked(tool: Tool, given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments that were given, none of them null. ToolError for one that does not fit."""
    out = {name: value for name, value in given.items() if value is not None}
    unknown = sorted(set(out) - set(tool.arguments))
    if unknown:
        known = ", ".join(tool.arguments)
        raise ToolError(f"{tool.name} has no argument {unknown[0]!r}; there are: {known}")
    for name in tool.needed:
        if name not in out:
            about = _ARGUMENTS[name]["description"].partition("; default:")[0]
            raise ToolError(f"{tool.name} needs the argument {name}: {about}")
    for name, value in out.items():
        fault = _fault(_ARGUMENTS[name], value)
        if fault:
            raise ToolError(f"{tool.name}: {name} must be {fault}")
    return out


_TYPES: Final[Mapping[str, tuple[type, str]]] = {
    "string": (str, "a text"), "integer": (int, "a whole number"), "object": (dict, "an object"),
    "boolean": (bool, "true or false"),
}  # fmt: skip


def _fault(schema: Mapping[str, Any], value: Any) -> str:
    """The form that a value must have; empty if it has it."""
    wanted, words = _TYPES[schema["type"]]
    if not isinstance(value, wanted) or (wanted is int and isinstance(value, bool)):
        return words
    choices = cast("Sequence[str]", schema.get("enum", ()))
    if choices and value not in choices:
        return f"one of {', '.join(choices)}"
    if "minimum" in schema and value < schema["minimum"]:
        return f"{schema['minimum']} or more"
    if "maximum" in schema and value > schema["maximum"]:
        return f"{schema['maximum']} or less"
    if isinstance(value, str) and "\0" in value:
        return "without null characters"
    if isinstance(value, dict) and not _plain(cast("dict[Any, Any]", value).values()):
        return "an object of texts, numbers and truth values"
    return ""


def _plain(values: Iterable[Any]) -> bool:
    return all(isinstance(value, str | int | float | bool) for value in values)
