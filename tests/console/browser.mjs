// Uses the web console as a person does, in Chromium. Each step states what must be seen; waits end when it is seen.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

const { TENON, TENON_WORKSPACE: root, TENON_TOOLS, TENON_MODULES: modules, TENON_EXAMPLE, TENON_SCREENSHOTS } = process.env;
const require = createRequire(TENON_TOOLS);
const { chromium } = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const PATIENCE = 60_000;

const tenon = (...args) => execFileSync(TENON, ["--root", root, ...args], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
const link = () => tenon("console", "--no-open").trim();

/** An agent: an MCP client over stdio. */
class Agent {
  constructor(name) {
    this.process = spawn(TENON, ["--root", root, "mcp", "--surface", "tasks,memory,explore"], { stdio: ["pipe", "pipe", "ignore"] });
    this.waiting = new Map();
    this.last = 0;
    createInterface({ input: this.process.stdout }).on("line", (line) => {
      const message = JSON.parse(line);
      this.waiting.get(message.id)?.(message);
    });
    this.ready = this.request("initialize", { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name, version: "1.0" } })
      .then(() => this.send({ method: "notifications/initialized" }));
  }
  send(message) { this.process.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`); }
  request(method, params) {
    const id = ++this.last;
    const answer = new Promise((resolve) => this.waiting.set(id, resolve));
    this.send({ id, method, params });
    return answer;
  }
  async call(name, args) {
    await this.ready;
    const { result, error } = await this.request("tools/call", { name, arguments: args });
    assert.ok(result, JSON.stringify(error));
    return result.structuredContent ?? result.content[0].text;
  }
  close() { this.process.stdin.end(); }
}

const problems = [];
const watch = (page) => {
  page.on("console", (message) => {
    const text = message.text();
    // The daemon is stopped on purpose below.
    if (message.type() === "error" && !text.includes("ERR_CONNECTION_REFUSED") && !text.includes("ERR_INCOMPLETE_CHUNKED") && !text.includes("ERR_CONNECTION_RESET") && !text.includes("401")) problems.push(text);
  });
  page.on("pageerror", (error) => problems.push(String(error)));
};

const profile = mkdtempSync(join(tmpdir(), "chromium-"));
const flags = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: flags, env: { ...process.env, HOME: profile } });
const open = async () => {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
  context.setDefaultTimeout(PATIENCE);
  const page = await context.newPage();
  watch(page);
  await page.goto(link());
  return page;
};
const step = async (name, work) => {
  const start = Date.now();
  try { await work(); } catch (error) { throw new Error(`${name}: ${error.stack}`); }
  console.log(`ok ${name} (${Date.now() - start} ms)`);
};
const go = (page, path) => page.goto(new URL(`/console/${path}`, page.url()).href);
const sees = (page, text, options = {}) => page.locator("main").getByText(text, options).first().waitFor();
/** Goes to an element with the Tab key alone. */
const tabTo = async (page, locator) => {
  const element = await locator.first().elementHandle();
  for (let pressed = 0; pressed < 300; pressed++) {
    if (await element.evaluate((one) => one === document.activeElement)) return;
    await page.keyboard.press("Tab");
  }
  throw new Error("the Tab key does not reach the element");
};
/** Presses a button or follows a link with the keyboard alone. */
const press = async (page, locator) => { await tabTo(page, locator); await page.keyboard.press("Enter"); };
const button = (page, name) => page.getByRole("button", { name, exact: true });

const agent = new Agent("claude-code");
await agent.call("tasks_create", { kind: "plan", title: "Ship order totals", description: "Totals agree in every language." });
await agent.call("tasks_create", {
  parent: "PLAN-001", title: "Fix rounding in Python", priority: "high", tags: ["python", "money"],
  description: "Totals differ by a cent for large orders.",
  steps: [{ title: "Reproduce the error", success_criteria: ["a failing test exists"] }, { title: "Count in cents", success_criteria: ["no float in totals"] }],
});
await agent.call("tasks_create", { parent: "PLAN-001", title: "Document the tariff", description: "One page with the zones." });
await agent.call("tasks_create", { parent: "PLAN-001", title: "Close me from the agent", steps: [{ title: "Only step", success_criteria: ["done"] }] });
await agent.call("memory_notes_commit", { title: "Money", content: "Totals are cents, never floats." });
const fact = (id, type, title) => ({ op: "node_upsert", id, type, title });
const edge = (from, rel, to) => ({ op: "edge_upsert", from, rel, to });
await agent.call("memory_graph_apply", { doc: "graph", branch: "main", ops: [
  fact("cents", "decision", "Count in cents"), fact("float", "hypothesis", "Floats lose cents"), fact("test", "evidence", "0.1 + 0.2 fails"),
  fact("tariff", "fact", "Zones multiply"), fact("ts", "question", "Is TypeScript affected?"), fact("round", "fact", "Half up, per line"),
] });
await agent.call("memory_graph_apply", { doc: "graph", branch: "main", ops: [
  edge("float", "supports", "cents"), edge("test", "supports", "float"), edge("tariff", "refines", "cents"), edge("ts", "asks", "cents"), edge("round", "refines", "cents"),
] });
for (const name of ["Parcel", "price", "zone_of"]) {
  await agent.call("find", { name });
  await agent.call("references", { symbol: `python/parcel/tariff.py#${name === "Parcel" ? "price" : name}` });
}

const page = await open();

await step("overview shows servers, clients and activity", async () => {
  await sees(page, "Language servers");
  await page.locator("main").getByText("claude-code").first().waitFor();
  await page.getByRole("row", { name: /pyright/ }).getByText("ready").waitFor();
});

await step("an agent's call appears while it runs", async () => {
  await go(page, "activity");
  const { result: status } = await agent.call("memory_status", {});
  const waiting = agent.call("tasks_delta", { wait_ms: 20_000, since: status.last_event });
  await page.getByRole("row", { name: /tasks_delta/ }).first().getByText("running").first().waitFor();
  await agent.call("tasks_note", { task: "TASK-002", note: "started" });
  await page.getByRole("row", { name: /tasks_note/ }).first().getByText("ok").waitFor();
  await waiting;
});

await step("filters and pause work", async () => {
  await page.locator("select[name=tool]").selectOption("find");
  await page.getByRole("button", { name: "Filter" }).click();
  await page.getByText(/^3 of \d+ calls/).waitFor();
  await page.getByRole("button", { name: "Pause" }).click();
  await agent.call("find", { name: "quote" });
  // The other page hears of the call, so this one would show it too.
  const other = await open();
  await go(other, "activity");
  await other.getByRole("row", { name: /find quote/ }).waitFor();
  assert.equal(await page.getByRole("row", { name: /find quote/ }).count(), 0);
  await other.context().close();
  await page.getByRole("button", { name: "Continue" }).click();
  await page.getByRole("row", { name: /find quote/ }).waitFor();
});

await step("a planted error appears within two seconds and goes when corrected", async () => {
  await go(page, "problems");
  await page.locator("#freshness").getByText("current").waitFor();
  const file = join(root, "python/parcel/quote.py");
  const before = readFileSync(file, "utf8");
  const planted = page.locator("main").getByText("planted_nonsense", { exact: false }).first();
  writeFileSync(file, `${before}\nplanted_nonsense(1)\n`);
  const saved = Date.now();
  await planted.waitFor();
  const took = Date.now() - saved;
  console.log(`planted error seen after ${took} ms`);
  await page.locator(".problem", { hasText: "planted_nonsense" }).first().getByText("new", { exact: true }).waitFor();
  writeFileSync(file, before);
  await planted.waitFor({ state: "detached" });
  const editor = await page.getByRole("link", { name: "open in the editor" }).first().getAttribute("href");
  assert.match(editor, /^vscode:\/\/file\/.*:\d+:\d+$/);
  await page.locator("select[name=severity]").selectOption("warning");
  await page.getByRole("button", { name: "Filter" }).click();
  await page.waitForURL(/severity=warning/);
  await page.locator(".problem-error").first().waitFor({ state: "detached" });
});

await step("code is found as one types, and every name leads on", async () => {
  await go(page, "code");
  await page.keyboard.press("/");
  await page.keyboard.type("zone_of");
  await page.locator("#results").getByText("python/parcel/tariff.py").first().waitFor();
  await page.locator("#results .found a", { hasText: "references" }).first().click();
  await page.locator("pre.answer a").first().click();
  await page.locator("pre.source .line").first().waitFor();
  await page.locator("pre.source a").first().click();
  await page.locator("#results .found").waitFor();
  await go(page, "code?q=python/parcel/tariff.py%23zone_of");
  await page.locator("select[name=view]").selectOption("callers");
  await page.getByRole("button", { name: "Search" }).click();
  await page.locator("pre.answer a", { hasText: "python/parcel/" }).first().waitFor();
});

await step("a task closed in the page is closed for the agent, and the other way round", async () => {
  await go(page, "tasks");
  await page.getByRole("link", { name: /Fix rounding/ }).click();
  await page.waitForURL(/task=TASK-001/);
  for (const title of ["Reproduce the error", "Count in cents"]) {
    for (const checkpoint of ["criteria", "tests"]) {
      const button = page.getByRole("button", { name: `Confirm ${checkpoint} of ${title}` });
      if (await button.count() === 0) continue;
      await button.click();
      await button.waitFor({ state: "detached" });
      await sees(page, "The checkpoint is confirmed.");
    }
    await page.getByRole("button", { name: `Close ${title}` }).click();
    await sees(page, "The step is closed.");
  }
  const { result } = await agent.call("tasks_context", { ids: ["TASK-001"] });
  assert.equal(result.tasks[0].status, "done");
  await go(page, "tasks");
  await agent.call("tasks_close_step", { task: "TASK-003", path: "s:0", checkpoints: { criteria: { confirmed: true }, tests: { confirmed: true } } });
  await page.locator(".column", { hasText: "Done" }).getByText("Close me from the agent").waitFor();
});

await step("two browsers edit one task and one sees the conflict", async () => {
  const other = await open();
  for (const one of [page, other]) {
    await go(one, "tasks?task=TASK-002");
    await one.getByText("Edit the task").click();
  }
  await page.locator("#page input[name=title]").fill("Document the tariff, with zones");
  await other.locator("#page input[name=title]").fill("Something else");
  await page.getByRole("button", { name: "Save" }).click();
  await sees(page, "Saved.");
  await other.getByRole("button", { name: "Save" }).click();
  await sees(other, "Not saved");
  await other.getByRole("heading", { name: "Document the tariff, with zones" }).waitFor();
  await other.context().close();
});

await step("a note and a new task are added", async () => {
  await go(page, "memory");
  await page.locator("textarea[name=content]").fill("Zones are numbers.");
  await page.getByRole("button", { name: "Add the note" }).click();
  await sees(page, "Zones are numbers.");
  await page.locator("svg.graph a").first().click();
  await sees(page, /of \d+ nodes/);
  await go(page, "tasks");
  await page.getByText("Add a task or a plan").click();
  await page.locator("select[name=parent]").selectOption("PLAN-001");
  await page.locator("#page input[name=title]").fill("Added in the browser");
  await page.getByRole("button", { name: "Add", exact: true }).click();
  await page.getByRole("heading", { name: "Added in the browser" }).waitFor();
});

await step("a document cache is built, verified and tried", async () => {
  writeFileSync(join(root, "zones.md"), "# Zones\n\nA zone multiplies the price of a parcel.\n");
  mkdirSync(join(root, "notes"), { recursive: true });
  writeFileSync(join(root, "notes/price.md"), "# Price\n\nThe price of a parcel is in cents.\n");
  mkdirSync(join(modules, "../caches"), { recursive: true });
  await go(page, "context");
  await page.getByText("Build a cache").click();
  await page.locator("form[method=post] input[name=cache]:not([type=hidden])").fill("notes");
  await page.locator("input[name=sources]").fill("notes");
  await page.getByRole("button", { name: "Build" }).click();
  await page.getByRole("row", { name: /notes/ }).waitFor();
  await page.getByRole("button", { name: "Verify notes" }).click();
  await page.locator(".notice-done").waitFor();
  await page.locator("input[name=q]").fill("price parcel");
  await page.getByRole("button", { name: "Try" }).click();
  await page.getByText(/matches of/).first().waitFor();
});

const addModule = () => cpSync(TENON_EXAMPLE, join(modules, "release-notes"), { recursive: true });
await step("a module is added, changed, broken and removed", async () => {
  await go(page, "workspace");
  await sees(page, "cannot use the module's folder");
  addModule();
  await page.locator(".sidebar").getByText("Release notes").click();
  await sees(page, "Fix rounding in Python");
  const template = join(modules, "release-notes/templates/home.html");
  const text = readFileSync(template, "utf8");
  writeFileSync(template, text.replace("{{ data.heading }}", "Changed heading"));
  await sees(page, "Changed heading");
  writeFileSync(template, "{% if %}");
  await page.locator(".surface-fallback").waitFor();
  await sees(page, /WCP-HANDLE-00/);
  await go(page, "activity");
  await page.getByText("step closed").first().waitFor();
  rmSync(join(modules, "release-notes"), { recursive: true });
  await page.locator(".sidebar").getByText("Release notes").waitFor({ state: "detached" });
  await page.getByRole("row", { name: /tasks_close_step/ }).first().waitFor();
  addModule();
  await page.locator(".sidebar").getByText("Release notes").waitFor();
});

await step("keys lead through the console", async () => {
  await go(page, "");
  await page.keyboard.press("?");
  await page.getByRole("dialog").getByText("Pause or continue updates").waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "hidden" });
  // The second key must follow within 1.2 s, which a busy machine may miss.
  const deadline = Date.now() + PATIENCE;
  while (!page.url().endsWith("/console/tasks")) {
    assert.ok(Date.now() < deadline, "the keys `g` and `t` lead to the tasks");
    await page.keyboard.press("g");
    await page.keyboard.press("t");
    await page.waitForURL("**/console/tasks", { timeout: 5_000 }).catch(() => {});
  }
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.textContent), "Skip to content");
});

await step("a server is restarted by keyboard", async () => {
  const pid = () => /pyright[^\n]*process (\d+)/.exec(tenon("servers", "list"))[1];
  await go(page, "");
  const before = pid();
  await press(page, button(page, "Restart pyright"));
  await sees(page, "pyright restarts");
  await agent.call("references", { symbol: "python/parcel/tariff.py#zone_of" });
  assert.notEqual(pid(), before);
});

await step("a task is claimed, noted and released by keyboard", async () => {
  await go(page, "tasks");
  await press(page, button(page, "Claim the next ready task"));
  await sees(page, "is claimed by the console");
  const id = new URL(page.url()).searchParams.get("task");
  const { result } = await agent.call("tasks_context", { ids: [id] });
  assert.equal(result.tasks[0].claim.agent, "console");
  await tabTo(page, page.getByLabel("Add a note"));
  await page.keyboard.type("written by keyboard");
  await press(page, button(page, "Add"));
  await sees(page, "written by keyboard");
  await press(page, button(page, "Release the claim"));
  await sees(page, "The claim is released.");
});

await step("a conflict is shown with both sides and resolved by keyboard", async () => {
  const upsert = (branch, title) => agent.call("memory_graph_apply", { doc: "graph", branch, ops: [fact("round", "fact", title)] });
  await agent.call("memory_branch_create", { name: "half-even", from: "main" });
  await upsert("half-even", "Half even, per line");
  await upsert("main", "Half up, per order");
  await go(page, "memory");
  await agent.call("memory_graph_merge", { from: "half-even", into: "main", doc: "graph" });
  await sees(page, "Half even, per line");
  await press(page, button(page, "Use theirs for round"));
  await sees(page, "The conflict is resolved.");
  const { result } = await agent.call("memory_graph_query", { doc: "graph", branch: "main", ids: ["round"] });
  assert.equal(result.nodes[0].title, "Half even, per line");
});

await step("an agent is connected by keyboard", async () => {
  await go(page, "connect");
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await press(page, button(page, "Copy tenon connect claude"));
  await page.getByRole("button", { name: /^Copied/ }).waitFor();
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), "tenon connect claude");
  await press(page, page.getByRole("link", { name: "Show the change for Claude Code" }));
  await page.locator("#preview .d-added").first().waitFor();
  await press(page, button(page, "Connect Claude Code"));
  await sees(page, "`tenon connect claude` is done.");
  await page.locator(".agents li", { hasText: "Claude Code" }).getByText("connected", { exact: true }).waitFor();
  assert.ok(JSON.parse(readFileSync(join(root, ".mcp.json"), "utf8")).mcpServers.tenon);
  rmSync(join(root, ".mcp.json"));
  rmSync(join(root, ".claude"), { recursive: true, force: true });
});

const NAMES = {
  overview: "", problems: "problems", code: "code?file=python/parcel/model.py", tasks: "tasks", task: "tasks?task=TASK-001", memory: "memory",
  context: "context?q=price&cache=notes", activity: "activity", workspace: "workspace", connect: "connect", change: "connect?agent=claude", module: "release-notes",
};
// The change for an agent names folders of this machine.
const PICTURED = Object.keys(NAMES).filter((name) => name !== "change");
await step("every page passes axe and fits 360 pixels, light and dark", async () => {
  for (const [name, path] of Object.entries(NAMES)) {
    await go(page, path);
    for (const colorScheme of ["light", "dark"]) {
      await page.emulateMedia({ colorScheme });
      for (const width of [1280, 360]) {
        await page.setViewportSize({ width, height: 900 });
        const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        assert.ok(over <= 0, `${name} is ${over} pixels too wide at ${width}`);
        if (TENON_SCREENSHOTS && PICTURED.includes(name)) await page.screenshot({ path: join(TENON_SCREENSHOTS, `${name}-${colorScheme}-${width}.png`) });
      }
      // Evaluated by the debugger, which the content security policy does not limit.
      const found = await page.evaluate(`(() => { ${axe}; return axe.run().then((result) => result.violations.map((one) => one.id + ": " + one.nodes.map((node) => node.html.slice(0, 160)).slice(0, 3).join(" | "))); })()`);
      assert.deepEqual(found, [], `${name} ${colorScheme}`);
    }
  }
  await page.setViewportSize({ width: 1280, height: 900 });
});

await step("pages read without JavaScript", async () => {
  const context = await browser.newContext({ javaScriptEnabled: false });
  const plain = await context.newPage();
  await plain.goto(link());
  for (const path of Object.values(NAMES)) {
    await go(plain, path);
    await plain.locator("h1").waitFor();
  }
  await context.close();
});

await step("the daemon restarts under an open page, which reconnects and says so", async () => {
  await go(page, "activity");
  await page.waitForLoadState("networkidle").catch(() => {});
  await page.locator("#pause").waitFor();
  agent.close();
  tenon("stop");
  await page.getByText(/connection to the daemon is lost/).waitFor();
  const next = new Agent("codex");
  await next.call("outline", {});
  await page.getByText("The daemon restarted. This page is connected again.").waitFor();
  await page.getByRole("row", { name: /outline/ }).first().waitFor();
  next.close();
});

await step("a killed daemon is noticed, and its work is there again", async () => {
  const { pid } = JSON.parse(tenon("status", "--json"));
  process.kill(pid, "SIGKILL");
  await page.getByText(/connection to the daemon is lost/).waitFor();
  const next = new Agent("codex");
  await next.call("outline", {});
  await page.getByText("The daemon restarted. This page is connected again.").waitFor();
  await go(page, "tasks");
  await sees(page, "Added in the browser");
  next.close();
});

await step("the workspace is trusted and the daemon stopped by keyboard", async () => {
  page.on("dialog", (dialog) => dialog.accept());
  await go(page, "");
  await press(page, button(page, "Trust this workspace"));
  await sees(page, "The workspace is trusted.");
  await sees(page, /The daemon still runs as/);
  await press(page, button(page, "Stop the daemon"));
  await page.getByText(/connection to the daemon is lost/).waitFor();
  const next = new Agent("codex");
  await next.call("outline", {});
  await page.getByText("The daemon restarted. This page is connected again.").waitFor();
  await page.locator(".state-trusted").waitFor();
  await page.getByText(/The daemon still runs as/).waitFor({ state: "detached" });
  next.close();
});

assert.deepEqual(problems, [], "errors in the browser's console");
await browser.close();
rmSync(profile, { recursive: true, force: true });
console.log("all steps passed");
process.exit(0);
