// The configurations that `tenon connect` writes for agents, parsed as the agents parse them and used for a call.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";

const { TENON, TENON_WORKSPACE } = process.env as Record<string, string>;

type Server = { command: string; args: string[] };
// Codex uses TOML, which Node cannot parse: the Python clients cover it.
const files: Record<string, string> = { claude: ".mcp.json", gemini: ".gemini/settings.json" };

for (const [agent, file] of Object.entries(files)) {
  test(`written configuration for ${agent} connects`, async () => {
    execFileSync(TENON, ["connect", agent], { cwd: TENON_WORKSPACE, stdio: "ignore" });
    const { command, args }: Server = JSON.parse(readFileSync(join(TENON_WORKSPACE, file), "utf8")).mcpServers.tenon;
    const client = new Client({ name: "tenon-clients", version: "1.0.0" });
    // Agents start servers in any folder.
    await client.connect(new StdioClientTransport({ command, args, cwd: "/", env: process.env as Record<string, string> }));
    try {
      const found = await client.callTool({ name: "find", arguments: { name: "Label" } });
      const [item] = found.content as { text: string }[];
      assert.match(item.text, /^interface Label web\/src\/label\.ts:/);
    } finally {
      await client.close();
    }
  });
}
