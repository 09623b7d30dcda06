// A model on loopback that follows a script: it calls each tool of the script once, then says that it is done.
//
// Speaks the wire formats of the agents under test: Anthropic messages, OpenAI responses and chat completions, Gemini.
// Writes every request as a line of JSON to $MODEL_LOG, and its port to stdout.

import { appendFileSync } from "node:fs";
import { createServer } from "node:http";

const { MODEL_LOG, MODEL_CALLS } = process.env;
const calls = JSON.parse(MODEL_CALLS);

// The tools of a request, with the namespace that Codex puts them in.
const toolsOf = (body) =>
  (body.tools ?? []).flatMap((tool) => {
    if (tool.functionDeclarations) return tool.functionDeclarations.map(({ name }) => ({ name }));
    if (tool.type === "namespace") return tool.tools.map(({ name }) => ({ name, namespace: tool.name }));
    return [{ name: tool.name ?? tool.function?.name ?? "" }];
  });

// How many tool results the conversation has.
const resultsIn = (body) => {
  const messages = body.messages ?? body.input ?? body.contents ?? [];
  const parts = messages.flatMap((one) => (Array.isArray(one.content) ? [one, ...one.content] : [one, ...(one.parts ?? [])]));
  const isResult = (part) =>
    part.type === "tool_result" || part.type === "function_call_output" || part.role === "tool" || part.functionResponse;
  return parts.filter(isResult).length;
};

const stream = (response, events) => {
  response.writeHead(200, { "content-type": "text/event-stream" });
  for (const data of events) {
    const name = data.type ? `event: ${data.type}\n` : "";
    response.write(`${name}data: ${typeof data === "string" ? data : JSON.stringify(data)}\n\n`);
  }
  response.end();
};

const anthropic = (call) => [
  {
    type: "message_start",
    message: {
      id: "msg_1", type: "message", role: "assistant", model: "scripted", content: [],
      stop_reason: null, stop_sequence: null, usage: { input_tokens: 1, output_tokens: 1 },
    },
  },
  {
    type: "content_block_start",
    index: 0,
    content_block: call ? { type: "tool_use", id: call.id, name: call.name, input: {} } : { type: "text", text: "" },
  },
  {
    type: "content_block_delta",
    index: 0,
    delta: call ? { type: "input_json_delta", partial_json: call.text } : { type: "text_delta", text: "done" },
  },
  { type: "content_block_stop", index: 0 },
  {
    type: "message_delta",
    delta: { stop_reason: call ? "tool_use" : "end_turn", stop_sequence: null },
    usage: { output_tokens: 1 },
  },
  { type: "message_stop" },
];

const responses = (call) => [
  { type: "response.created", response: { id: "response" } },
  {
    type: "response.output_item.done",
    item: call
      ? { type: "function_call", id: `item-${call.id}`, call_id: call.id, name: call.name, namespace: call.namespace, arguments: call.text }
      : { type: "message", id: "item", role: "assistant", content: [{ type: "output_text", text: "done" }] },
  },
  {
    type: "response.completed",
    response: {
      id: "response",
      usage: { input_tokens: 1, input_tokens_details: null, output_tokens: 1, output_tokens_details: null, total_tokens: 2 },
    },
  },
];

const chat = (call) => {
  const chunk = (delta, finish_reason) => ({
    id: "chat", object: "chat.completion.chunk", created: 1, model: "scripted", choices: [{ index: 0, delta, finish_reason }],
  });
  const asked = call && [{ index: 0, id: call.id, type: "function", function: { name: call.name, arguments: call.text } }];
  const delta = call ? { role: "assistant", tool_calls: asked } : { role: "assistant", content: "done" };
  return [chunk(delta, null), chunk({}, call ? "tool_calls" : "stop"), "[DONE]"];
};

const gemini = (call) => ({
  candidates: [
    {
      content: { role: "model", parts: call ? [{ functionCall: { id: call.id, name: call.name, args: call.arguments } }] : [{ text: "done" }] },
      finishReason: "STOP",
      index: 0,
    },
  ],
  usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 },
});

const server = createServer((request, response) => {
  let text = "";
  request.on("data", (bytes) => (text += bytes));
  request.on("end", () => {
    const path = request.url.split("?")[0];
    const body = text.startsWith("{") ? JSON.parse(text) : {};
    const tools = toolsOf(body);
    appendFileSync(MODEL_LOG, `${JSON.stringify({ path, tools: tools.map(({ name }) => name), body })}\n`);
    const index = resultsIn(body);
    const wanted = calls[index];
    // Agents put their own prefix before the name.
    const tool = wanted && tools.find(({ name }) => name === wanted.tool || name.endsWith(`_${wanted.tool}`));
    const call = tool && { ...tool, id: `call_${index}`, arguments: wanted.arguments, text: JSON.stringify(wanted.arguments) };
    if (path.endsWith("/messages")) return stream(response, anthropic(call));
    if (path.endsWith("/responses")) return stream(response, responses(call));
    if (path.endsWith("/chat/completions")) return stream(response, chat(call));
    if (path.endsWith(":streamGenerateContent")) return stream(response, [gemini(call)]);
    const known = path.endsWith(":generateContent") ? gemini(call) : { totalTokens: 1, input_tokens: 1, data: [], models: [] };
    response.writeHead(200, { "content-type": "application/json" });
    response.end(JSON.stringify(known));
  });
});

server.listen(0, "127.0.0.1", () => console.log(server.address().port));
