"""The configurations that `tenon up` prints for agents, parsed as the agents parse them and used for a call."""

import json
import os
import subprocess
import time
import unittest

from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp.shared.exceptions import MCPError

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    import tomli as tomllib

WORKSPACE = os.environ["TENON_WORKSPACE"]
FILE = f"file://{WORKSPACE}/web/src/label.ts"
PLACE = {"uri": FILE, "position": {"line": 12, "character": 78}}
READERS = {
    "claude": lambda text: json.loads(text)["mcpServers"]["tenon"],
    "codex": lambda text: tomllib.loads(text)["mcp_servers"]["tenon"],
    "gemini": lambda text: json.loads(text)["mcpServers"]["tenon"],
}


class Agents(unittest.IsolatedAsyncioTestCase):
    async def check(self, agent: str) -> None:
        command = [os.environ["TENON"], "up", "--no-install", "--no-wait", "--json", "--agent", agent]
        printed = subprocess.run(command, cwd=WORKSPACE, check=True, capture_output=True, text=True).stdout
        [configuration] = json.loads(printed)["agents"]
        self.assertEqual(configuration["name"], agent)
        server = READERS[agent](configuration["text"])
        # Agents start servers in any folder.
        bridge = StdioServerParameters(command=server["command"], args=server["args"], cwd="/", env=dict(os.environ))
        async with Client(bridge) as client:
            names = [tool.name for tool in (await client.list_tools()).tools]
            self.assertIn("vscode.lsp.definition", names)
            found = await self.definition(client)
            self.assertTrue(found["locations"], found)

    async def definition(self, client: Client) -> dict:
        """Repeats the call while the answer asks for a retry."""
        deadline = time.monotonic() + 120
        while True:
            try:
                return (await client.call_tool("vscode.lsp.definition", PLACE)).structured_content
            except MCPError as error:
                details = (error.error.data or {}).get("details", {})
                if "retryAfterMs" not in details or time.monotonic() > deadline:
                    raise

    async def test_claude(self) -> None:
        await self.check("claude")

    async def test_codex(self) -> None:
        await self.check("codex")

    async def test_gemini(self) -> None:
        await self.check("gemini")
