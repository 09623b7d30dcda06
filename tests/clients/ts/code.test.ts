// The seven code tools with the official TypeScript SDKs: both major versions, both transports, both revisions.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { Client as FirstClient } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport as FirstStdio } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport as FirstHttp } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const { TENON, TENON_WORKSPACE, TENON_URL, TENON_TOKEN } = process.env as Record<string, string>;
const url = new URL(TENON_URL.replace("/mcp/workspace", "/mcp/code"));
const identity = { name: "tenon-clients", version: "1.0.0" };
const bridge = {
  command: TENON,
  args: ["mcp", "--surface", "code"],
  cwd: TENON_WORKSPACE,
  env: process.env as Record<string, string>,
};
const authorised = { requestInit: { headers: { Authorization: `Bearer ${TENON_TOKEN}` } } };

const file = `file://${TENON_WORKSPACE}/web/src/label.ts`;
const place = { uri: file, position: { line: 12, character: 78 } };
const calls: [string, Record<string, unknown>, string][] = [
  ["definition", place, "locations"],
  ["references", place, "items"],
  ["hover", place, "contents"],
  ["documentSymbols", { uri: file }, "symbols"],
  ["workspaceSymbols", { query: "price" }, "items"],
  ["diagnostics.document", { uri: file.replace("label", "returns") }, "diagnostics"],
  ["diagnostics.workspace", {}, "items"],
];

type Result = { isError?: boolean; structuredContent?: Record<string, unknown[]> };
interface AnyClient {
  listTools(): Promise<{ tools: { name: string }[] }>;
  callTool(call: { name: string; arguments: Record<string, unknown> }): Promise<Result>;
  close(): Promise<void>;
}

async function first(transport: FirstStdio | FirstHttp): Promise<AnyClient> {
  const client = new FirstClient(identity);
  await client.connect(transport);
  return client as unknown as AnyClient;
}

async function second(revision: string, transport: StdioClientTransport | StreamableHTTPClientTransport): Promise<AnyClient> {
  const mode = revision === "2026-07-28" ? { pin: revision } : ("legacy" as const);
  const client = new Client(identity, { versionNegotiation: { mode } });
  await client.connect(transport);
  return client as unknown as AnyClient;
}

const clients: Record<string, () => Promise<AnyClient>> = {
  "first SDK over stdio": () => first(new FirstStdio(bridge)),
  "first SDK over HTTP": () => first(new FirstHttp(url, authorised)),
};
for (const revision of ["2025-11-25", "2026-07-28"]) {
  clients[`second SDK over stdio, ${revision}`] = () => second(revision, new StdioClientTransport(bridge));
  clients[`second SDK over HTTP, ${revision}`] = () => second(revision, new StreamableHTTPClientTransport(url, authorised));
}

// Repeats the call while the answer asks for a retry.
async function settled(client: AnyClient, name: string, args: Record<string, unknown>): Promise<Result> {
  const deadline = Date.now() + 120_000;
  for (;;) {
    try {
      return await client.callTool({ name, arguments: args });
    } catch (error) {
      const { data } = error as { data?: { details?: { retryAfterMs?: number } } };
      if (data?.details?.retryAfterMs === undefined || Date.now() > deadline) throw error;
    }
  }
}

for (const [name, open] of Object.entries(clients)) {
  test(`${name}: all seven code tools answer`, async () => {
    const client = await open();
    try {
      const { tools } = await client.listTools();
      assert.deepEqual(tools.map((tool) => tool.name), calls.map(([tool]) => `vscode.lsp.${tool}`));
      for (const [tool, args, field] of calls) {
        const result = await settled(client, `vscode.lsp.${tool}`, args);
        assert.equal(result.isError, false);
        assert.ok((result.structuredContent?.[field]?.length ?? 0) > 0, `${tool} found nothing`);
      }
      const outside = client.callTool({ name: "vscode.lsp.hover", arguments: { ...place, uri: "file:///etc/passwd" } });
      await assert.rejects(outside, (error: { data?: { code?: string } }) => error.data?.code === "MCP_LSP_GATEWAY/WORKSPACE_DENIED");
    } finally {
      await client.close();
    }
  });
}
