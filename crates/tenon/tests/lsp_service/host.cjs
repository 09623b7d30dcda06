// A host in Node: `vscode-jsonrpc` on stdin and stdout, the official MCP client on file descriptors 3 and 4, which Node opens as
// sockets. Prints the responses as one JSON object.
const { spawn } = require('node:child_process');
const { createRequire } = require('node:module');

const [modules, program, file] = process.argv.slice(2);
const load = createRequire(`${modules}/`);
const rpc = load('vscode-jsonrpc/node');
const { Client } = load('@modelcontextprotocol/sdk/client/index.js');

const child = spawn(program, ['lsp-service'], { stdio: ['pipe', 'pipe', 'inherit', 'pipe', 'pipe'], detached: true });
const exited = new Promise((resolve) => child.on('exit', (code, signal) => resolve({ code, signal })));

/** Newline-delimited MCP: writes to descriptor 3, reads from 4. */
class Pipes {
  constructor(to, from) {
    Object.assign(this, { to, from, rest: '' });
  }
  async start() {
    this.from.setEncoding('utf8');
    this.from.on('data', (chunk) => {
      const lines = (this.rest + chunk).split('\n');
      this.rest = lines.pop();
      for (const line of lines) this.onmessage?.(JSON.parse(line));
    });
    this.from.on('close', () => this.onclose?.());
  }
  async send(message) {
    this.to.write(`${JSON.stringify(message)}\n`);
  }
  async close() {
    this.to.end();
  }
}

async function main() {
  const seen = {};
  const connection = rpc.createMessageConnection(
    new rpc.StreamMessageReader(child.stdout),
    new rpc.StreamMessageWriter(child.stdin),
  );
  const ready = new Promise((resolve) => connection.onNotification('lsp/ready', resolve));
  connection.listen();
  seen.ready = await ready;

  const epoch = await connection.sendRequest('lsp/getDiagnosticEpoch');
  seen.checked = await connection.sendRequest('lsp/checkFile', { filePath: file, text: 'so bad' });
  seen.advanced = (await connection.sendRequest('lsp/getDiagnosticEpoch')) > epoch;
  seen.after = await connection.sendRequest('lsp/diagnosticsAfter', { afterEpoch: epoch });

  const cancel = new rpc.CancellationTokenSource();
  const cancelled = connection.sendRequest('lsp/checkFile', { filePath: file, text: 'other' }, cancel.token);
  cancel.cancel();
  seen.cancelled = Array.isArray(await cancelled);

  const client = new Client({ name: 'host', version: '0' });
  await client.connect(new Pipes(child.stdio[3], child.stdio[4]));
  seen.tools = (await client.listTools()).tools.map((tool) => tool.name);
  const hover = await client.callTool({ name: 'lsp_hover', arguments: { file, line: 1, character: 1 } });
  seen.hover = hover.structuredContent;
  seen.rejected = (await client.callTool({ name: 'lsp_hover', arguments: { file: '/etc/passwd', line: 1, character: 1 } })).isError;

  seen.shutdown = await connection.sendRequest('lsp/shutdown');
  seen.exit = await exited;
  console.log(JSON.stringify(seen));
  process.exit(0);
}

main().catch((error) => {
  console.error(error);
  child.kill('SIGKILL');
  process.exit(1);
});
