"""The configurations that `tenon connect` writes for agents, parsed as the agents parse them and used for a call."""

import json
import os
import subprocess
import unittest

from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    import tomli as tomllib

WORKSPACE = os.environ["TENON_WORKSPACE"]
FILES = {
    "claude": (".mcp.json", lambda text: json.loads(text)["mcpServers"]["tenon"]),
    "codex": (".codex/config.toml", lambda text: tomllib.loads(text)["mcp_servers"]["tenon"]),
    "gemini": (".gemini/settings.json", lambda text: json.loads(text)["mcpServers"]["tenon"]),
}


class Agents(unittest.IsolatedAsyncioTestCase):
    async def check(self, agent: str) -> None:
        subprocess.run([os.environ["TENON"], "connect", agent], cwd=WORKSPACE, check=True, capture_output=True)
        file, read = FILES[agent]
        with open(os.path.join(WORKSPACE, file), encoding="utf-8") as opened:
            server = read(opened.read())
        # Agents start servers in any folder.
        bridge = StdioServerParameters(command=server["command"], args=server["args"], cwd="/", env=dict(os.environ))
        async with Client(bridge) as client:
            names = [tool.name for tool in (await client.list_tools()).tools]
            self.assertIn("find", names)
            found = await client.call_tool("find", {"name": "Label"})
            self.assertFalse(found.is_error, found)
            self.assertIn("interface Label web/src/label.ts:", found.content[0].text)

    async def test_claude(self) -> None:
        await self.check("claude")

    async def test_codex(self) -> None:
        await self.check("codex")

    async def test_gemini(self) -> None:
        await self.check("gemini")
