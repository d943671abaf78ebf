"""The tools as a server of the package ``mcp``, an optional extra, over standard streams."""

from __future__ import annotations

import asyncio
import itertools
import json
from functools import partial
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

from ..usage import EXIT_ENVIRONMENT, Failure
from . import tools
from .answers import ToolError, failed
from .project import Call, Project

__all__ = ["serve"]

_INSTALL: Final = "python -m pip install 'qd-studio[mcp]'"
_ABOUT: Final = (
    "Answers about the kernels (Quadrants, Taichi, qd_studio) of this project from real compiles "
    "and launches. Call kernels first. Long answers are cut: see truncated, next_start and more."
)


def _packages() -> tuple[Any, Any, Any, Any]:
    """The modules of the server, of its streams, of the protocol's types, and anyio."""
    try:
        if int(version("mcp").partition(".")[0]) < 2:
            found = f"version {version('mcp')} of the package mcp is too old"
            raise Failure(EXIT_ENVIRONMENT, f"mcp: {found}; run: {_INSTALL}")
        names = ("mcp.server.lowlevel", "mcp.server.stdio", "mcp_types", "anyio")
        server, stdio, types, anyio = map(import_module, names)
    except (ImportError, PackageNotFoundError):
        text = f"mcp: the package mcp is not installed; run: {_INSTALL}"
        raise Failure(EXIT_ENVIRONMENT, text) from None
    return server, stdio, types, anyio


def serve(project: Project) -> None:
    """Serve until the client closes the stream. Failure if the package is not installed."""
    server, stdio, types, anyio = _packages()

    async def listed(context: Any, params: Any) -> Any:
        return types.ListToolsResult(tools=[_described(types, x) for x in tools.TOOLS.values()])

    async def called(context: Any, params: Any) -> Any:
        return await _call(project, types, anyio, context, params)

    served = server.Server(
        "qd-studio", version=version("qd-studio"), instructions=_ABOUT, on_list_tools=listed,
        on_call_tool=called,
    )  # fmt: skip

    async def run() -> None:
        async with stdio.stdio_server() as (read, write):
            await served.run(read, write, served.create_initialization_options())

    anyio.run(run)


def _described(types: Any, tool: tools.Tool) -> Any:
    return types.Tool(
        name=tool.name,
        description=tool.help,
        input_schema=tools.input_schema(tool),
        output_schema=tools.output_schema(),
        annotations=types.ToolAnnotations(
            read_only_hint=True, destructive_hint=False, open_world_hint=False
        ),
    )


async def _call(project: Project, types: Any, anyio: Any, context: Any, params: Any) -> Any:
    """The result of a call, which is made in a thread; a client that cancels it ends its work."""

    loop = asyncio.get_running_loop()
    count = itertools.count(1)

    def heard(text: str) -> None:
        # Called by the thread that listens to the worker.
        report = context.session.report_progress(next(count), None, text)
        asyncio.run_coroutine_threadsafe(report, loop)

    call = Call(heard)
    work = partial(tools.call, project, params.name, params.arguments or {}, call)
    try:
        found, is_error = await anyio.to_thread.run_sync(work, abandon_on_cancel=True)
    except anyio.get_cancelled_exc_class():
        call.cancelled.set()
        raise
    except Exception as error:  # a fault of ours: the server goes on
        text = f"{type(error).__name__}: {error}"
        found, is_error = failed(ToolError(text, "report this", "internal")), True
    content = types.TextContent(type="text", text=json.dumps(found, ensure_ascii=False))
    return types.CallToolResult(content=[content], structured_content=found, is_error=is_error)
