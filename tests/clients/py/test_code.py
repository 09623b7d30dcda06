"""The seven code tools with the official Python SDK, in both revisions of the protocol, over stdio and HTTP."""

import os
import time
import unittest

import httpx2
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

WORKSPACE = os.environ["TENON_WORKSPACE"]
URL = os.environ["TENON_URL"].replace("/mcp/workspace", "/mcp/code")
HEADERS = {"Authorization": f"Bearer {os.environ['TENON_TOKEN']}"}
MODES = {"2025-11-25": "legacy", "2026-07-28": "2026-07-28"}
FILE = f"file://{WORKSPACE}/web/src/label.ts"
PLACE = {"uri": FILE, "position": {"line": 12, "character": 78}}
CALLS = {
    "definition": (PLACE, "locations"),
    "references": (PLACE, "items"),
    "hover": (PLACE, "contents"),
    "documentSymbols": ({"uri": FILE}, "symbols"),
    "workspaceSymbols": ({"query": "price"}, "items"),
    "diagnostics.document": ({"uri": FILE.replace("label", "returns")}, "diagnostics"),
    "diagnostics.workspace": ({}, "items"),
}


class Code(unittest.IsolatedAsyncioTestCase):
    async def check(self, client: Client) -> None:
        names = [tool.name for tool in (await client.list_tools()).tools]
        self.assertEqual(names, [f"vscode.lsp.{name}" for name in CALLS])
        for name, (arguments, field) in CALLS.items():
            result = await self.settled(client, f"vscode.lsp.{name}", arguments)
            self.assertFalse(result.is_error)
            self.assertTrue(result.structured_content[field], f"{name} found nothing")
        with self.assertRaises(MCPError) as refused:
            await client.call_tool("vscode.lsp.hover", {**PLACE, "uri": "file:///etc/passwd"})
        self.assertEqual(refused.exception.error.data["code"], "MCP_LSP_GATEWAY/WORKSPACE_DENIED")

    async def settled(self, client: Client, name: str, arguments: dict):
        """Repeats the call while the answer asks for a retry."""
        deadline = time.monotonic() + 120
        while True:
            try:
                return await client.call_tool(name, arguments)
            except MCPError as error:
                details = (error.error.data or {}).get("details", {})
                if "retryAfterMs" not in details or time.monotonic() > deadline:
                    raise

    async def over_stdio(self, revision: str) -> None:
        arguments = ["mcp", "--surface", "code"]
        bridge = StdioServerParameters(
            command=os.environ["TENON"], args=arguments, cwd=WORKSPACE, env=dict(os.environ)
        )
        async with Client(bridge, mode=MODES[revision]) as client:
            await self.check(client)

    async def over_http(self, revision: str) -> None:
        async with httpx2.AsyncClient(headers=HEADERS) as http:
            transport = streamable_http_client(URL, http_client=http)
            async with Client(transport, mode=MODES[revision]) as client:
                await self.check(client)

    async def test_stdio_2025_11_25(self) -> None:
        await self.over_stdio("2025-11-25")

    async def test_stdio_2026_07_28(self) -> None:
        await self.over_stdio("2026-07-28")

    async def test_http_2025_11_25(self) -> None:
        await self.over_http("2025-11-25")

    async def test_http_2026_07_28(self) -> None:
        await self.over_http("2026-07-28")
