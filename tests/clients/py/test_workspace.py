"""The official Python SDK as a client, in both revisions of the protocol, over stdio and HTTP."""

import os
import unittest

import httpx2
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

WORKSPACE = os.environ["TENON_WORKSPACE"]
URL = os.environ["TENON_URL"]
HEADERS = {"Authorization": f"Bearer {os.environ['TENON_TOKEN']}"}
MODES = {"2025-11-25": "legacy", "2026-07-28": "2026-07-28"}


def bridge() -> StdioServerParameters:
    arguments = ["mcp", "--surface", "workspace"]
    return StdioServerParameters(command=os.environ["TENON"], args=arguments, cwd=WORKSPACE, env=dict(os.environ))


class Workspace(unittest.IsolatedAsyncioTestCase):
    async def check(self, client: Client, revision: str) -> None:
        self.assertEqual(client.protocol_version, revision)
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        self.assertIsNotNone(tools["workspace_status"].output_schema)
        await self.refused(client, "no_such_tool", {})
        await self.refused(client, "workspace_status", {"surprise": 1})
        result = await client.call_tool("workspace_status", {})
        self.assertFalse(result.is_error)
        self.assertEqual(result.structured_content["root"], WORKSPACE)

    async def refused(self, client: Client, name: str, arguments: dict) -> None:
        """A surface reports errors as JSON-RPC errors or as tool errors, depending on its contract."""
        try:
            result = await client.call_tool(name, arguments)
        except MCPError:
            return
        self.assertTrue(result.is_error, f"{name} {arguments} was not refused")

    async def over_stdio(self, revision: str) -> None:
        async with Client(bridge(), mode=MODES[revision]) as client:
            await self.check(client, revision)

    async def over_http(self, revision: str) -> None:
        async with httpx2.AsyncClient(headers=HEADERS) as http:
            transport = streamable_http_client(URL, http_client=http)
            async with Client(transport, mode=MODES[revision]) as client:
                await self.check(client, revision)

    async def test_stdio_2025_11_25(self) -> None:
        await self.over_stdio("2025-11-25")

    async def test_stdio_2026_07_28(self) -> None:
        await self.over_stdio("2026-07-28")

    async def test_http_2025_11_25(self) -> None:
        await self.over_http("2025-11-25")

    async def test_http_2026_07_28(self) -> None:
        await self.over_http("2026-07-28")

    async def test_http_without_a_token_is_rejected(self) -> None:
        async with httpx2.AsyncClient() as http:
            response = await http.post(URL, json={"jsonrpc": "2.0", "id": 1, "method": "ping"})
        self.assertEqual(response.status_code, 401)
