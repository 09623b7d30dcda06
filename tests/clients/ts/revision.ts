// Connects with one version 1 of the TypeScript SDK, over stdio and HTTP: negotiates the revision in the second argument, lists
// tools, calls `find`. The first argument is the name under which the SDK is installed.

import assert from "node:assert/strict";

const [sdk, revision] = process.argv.slice(2);
const { Client } = await import(`${sdk}/client/index.js`);
const { StdioClientTransport } = await import(`${sdk}/client/stdio.js`);
const { StreamableHTTPClientTransport } = await import(`${sdk}/client/streamableHttp.js`);
const { LATEST_PROTOCOL_VERSION } = await import(`${sdk}/types.js`);

const { TENON, TENON_WORKSPACE, TENON_URL, TENON_TOKEN } = process.env as Record<string, string>;
const bridge = { command: TENON, args: ["mcp"], cwd: TENON_WORKSPACE, env: process.env };
const url = new URL(TENON_URL.replace(/\/workspace$/, ""));
const authorised = { requestInit: { headers: { Authorization: `Bearer ${TENON_TOKEN}` } } };

async function check(over: string, transport: unknown): Promise<void> {
  const client = new Client({ name: "tenon-clients", version: "1.0.0" }, { capabilities: {} });
  // Version 1 keeps the negotiated revision to itself: read it from the answer to `initialize`.
  let negotiated: string | undefined;
  const request = client.request.bind(client);
  client.request = async (...args: unknown[]) => {
    const result = await request(...args);
    negotiated ??= result.protocolVersion;
    return result;
  };
  await client.connect(transport);
  try {
    assert.equal(negotiated, revision, over);
    const names = (await client.listTools()).tools.map((tool: { name: string }) => tool.name);
    assert.ok(names.includes("find"), `${over}: ${names}`);
    const found = await client.callTool({ name: "find", arguments: { name: "Label" } });
    assert.ok(!found.isError, over);
    assert.match(found.content[0].text, /^interface Label web\/src\/label\.ts:/, over);
    console.log(`${over}: ${negotiated}`);
  } finally {
    await client.close();
  }
}

assert.equal(LATEST_PROTOCOL_VERSION, revision, "this SDK asks for another revision");
await check("stdio", new StdioClientTransport(bridge));
await check("http", new StreamableHTTPClientTransport(url, authorised));
