// The configurations that `tenon up` prints for agents, parsed as the agents parse them and used for a call.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";

const { TENON, TENON_WORKSPACE } = process.env as Record<string, string>;

type Server = { command: string; args: string[] };
// Codex uses TOML, which Node cannot parse: the Python clients cover it.
const readers: Record<string, (text: string) => Server> = {
  claude: (text) => JSON.parse(text).mcpServers.tenon,
  gemini: (text) => JSON.parse(text).mcpServers.tenon,
};

for (const [agent, read] of Object.entries(readers)) {
  test(`printed configuration for ${agent} connects`, async () => {
    const up = ["up", "--no-install", "--no-wait", "--json", "--agent", agent];
    const printed = JSON.parse(execFileSync(TENON, up, { cwd: TENON_WORKSPACE, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }));
    assert.equal(printed.agents.length, 1);
    const { command, args } = read(printed.agents[0].text);
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
