"""A real client of the Model Context Protocol with the server that ``qd-studio mcp`` starts.

Needs the extra ``mcp``, which ``clients`` includes.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys

import pytest

pytest.importorskip("mcp_types", reason="the extra mcp is not installed")

from mcp import ClientSession, StdioServerParameters, stdio_client
from qd_studio.app.mcp import tools

from tests.app.agents.test_tools import KERNELS

pytestmark = [pytest.mark.slow, pytest.mark.extra("mcp")]


async def test_a_session(tmp_path):
    (tmp_path / "some.py").write_text(KERNELS + "\nprint('not the protocol', flush=True)\n")
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "qd_studio.app.cli", "mcp", str(tmp_path)],
        env=dict(os.environ),
    )
    said: list[str | None] = []

    async def progress(done: float, total: float | None, message: str | None) -> None:
        said.append(message)

    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        listed = await session.list_tools()
        assert [tool.name for tool in listed.tools] == list(tools.TOOLS)
        assert all(tool.annotations.read_only_hint for tool in listed.tools)
        given = {"backend": "cpu"}
        found = await session.call_tool("kernels", given, progress_callback=progress)
        assert not found.is_error and found.structured_content["total"] == 2
        assert json.loads(found.content[0].text) == found.structured_content
        assert any("compiling scale" in (text or "") for text in said)
        wrong = await session.call_tool("code", {"file": "some.py", "text": "nope"})
        assert wrong.is_error and "there is no text" in wrong.structured_content["error"]["message"]
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(session.call_tool("verdicts", {"file": "some.py"}), 0.5)
        found = await session.call_tool("code", {"file": "some.py", "kernel": "scale"})
        assert not found.is_error
