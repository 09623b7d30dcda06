// The official TypeScript SDKs as clients: version 1, which speaks 2025-11-25, and version 2, which speaks both.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { Client as FirstClient } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport as FirstStdio } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport as FirstHttp } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const { TENON, TENON_WORKSPACE, TENON_URL, TENON_TOKEN } = process.env as Record<string, string>;
const identity = { name: "tenon-clients", version: "1.0.0" };
const bridge = {
  command: TENON,
  args: ["mcp", "--surface", "workspace"],
  cwd: TENON_WORKSPACE,
  env: process.env as Record<string, string>,
};
const authorised = { requestInit: { headers: { Authorization: `Bearer ${TENON_TOKEN}` } } };

// The part of both clients that these tests use.
interface AnyClient {
  listTools(): Promise<{ tools: { name: string; outputSchema?: unknown }[] }>;
  callTool(call: { name: string; arguments: Record<string, unknown> }): Promise<Record<string, unknown>>;
  getServerVersion(): { name: string } | undefined;
  close(): Promise<void>;
}

async function connectFirst(transport: FirstStdio | FirstHttp): Promise<AnyClient> {
  const client = new FirstClient(identity);
  await client.connect(transport);
  return client as unknown as AnyClient;
}

async function connect(revision: string, transport: StdioClientTransport | StreamableHTTPClientTransport): Promise<AnyClient> {
  const mode = revision === "2026-07-28" ? { pin: revision } : ("legacy" as const);
  const client = new Client(identity, { versionNegotiation: { mode } });
  await client.connect(transport);
  assert.equal(client.getNegotiatedProtocolVersion(), revision);
  return client as unknown as AnyClient;
}

const clients: Record<string, () => Promise<AnyClient>> = {
  "first SDK over stdio": () => connectFirst(new FirstStdio(bridge)),
  "first SDK over HTTP": () => connectFirst(new FirstHttp(new URL(TENON_URL), authorised)),
};
for (const revision of ["2025-11-25", "2026-07-28"]) {
  clients[`second SDK over stdio, ${revision}`] = () => connect(revision, new StdioClientTransport(bridge));
  clients[`second SDK over HTTP, ${revision}`] = () =>
    connect(revision, new StreamableHTTPClientTransport(new URL(TENON_URL), authorised));
}

for (const [name, open] of Object.entries(clients)) {
  test(`${name}: workspace status has the root`, async () => {
    const client = await open();
    try {
      assert.equal(client.getServerVersion()?.name, "tenon");
      const { tools } = await client.listTools();
      const status = tools.find((tool) => tool.name === "workspace_status");
      assert.ok(status?.outputSchema, "the tool publishes its output schema");
      const result = await client.callTool({ name: "workspace_status", arguments: {} });
      assert.equal(result.isError, false);
      const { root } = result.structuredContent as { root: string };
      assert.equal(root, TENON_WORKSPACE);
    } finally {
      await client.close();
    }
  });

  test(`${name}: bad calls are rejected and the next call works`, async () => {
    const client = await open();
    try {
      await assertRefused(client, "no_such_tool", {});
      await assertRefused(client, "workspace_status", { surprise: 1 });
      const result = await client.callTool({ name: "workspace_status", arguments: {} });
      assert.equal(result.isError, false);
    } finally {
      await client.close();
    }
  });
}

// A surface reports errors as JSON-RPC errors or as tool errors, depending on its contract.
async function assertRefused(client: AnyClient, name: string, args: Record<string, unknown>): Promise<void> {
  const refused = await client.callTool({ name, arguments: args }).then(
    (result) => result.isError === true,
    () => true,
  );
  assert.ok(refused, `${name} ${JSON.stringify(args)} was not refused`);
}

test("HTTP without a token is rejected", async () => {
  const client = new FirstClient(identity);
  await assert.rejects(client.connect(new FirstHttp(new URL(TENON_URL))), { code: 401 });
});
