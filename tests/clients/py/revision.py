"""Connects with one version 1 of the Python SDK, over stdio and HTTP: negotiates the revision in the first argument, lists tools, calls `find`."""

import asyncio
import os
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamablehttp_client
from mcp.types import LATEST_PROTOCOL_VERSION

REVISION = sys.argv[1]
URL = os.environ["TENON_URL"].removesuffix("/workspace")
HEADERS = {"Authorization": f"Bearer {os.environ['TENON_TOKEN']}"}
BRIDGE = StdioServerParameters(
    command=os.environ["TENON"], args=["mcp"], cwd=os.environ["TENON_WORKSPACE"], env=dict(os.environ)
)


async def check(over: str, streams) -> None:
    async with streams as (read, write, *_), ClientSession(read, write) as session:
        negotiated = (await session.initialize()).protocolVersion
        assert negotiated == REVISION, f"{over}: negotiated {negotiated}"
        names = [tool.name for tool in (await session.list_tools()).tools]
        assert "find" in names, f"{over}: {names}"
        found = await session.call_tool("find", {"name": "Label"})
        assert not found.isError, f"{over}: {found}"
        text = found.content[0].text
        assert text.startswith("interface Label web/src/label.ts:"), f"{over}: {text}"
        print(f"{over}: {negotiated}")


async def main() -> None:
    assert LATEST_PROTOCOL_VERSION == REVISION, f"this SDK asks for {LATEST_PROTOCOL_VERSION}"
    await check("stdio", stdio_client(BRIDGE))
    await check("http", streamablehttp_client(URL, headers=HEADERS))


asyncio.run(main())
