// Written by `tenon connect opencode`. `tenon connect opencode --undo` removes this file.
import { spawn } from "node:child_process"

const PROGRAM = "@PROGRAM@"
const TIMEOUT_MS = 30_000

// The tools that edit files, with the names and arguments of the events that `tenon hook` reads.
const TOOLS = {
  edit: (args) => ["Edit", { file_path: args.filePath }],
  write: (args) => ["Write", { file_path: args.filePath }],
  multiedit: (args) => ["MultiEdit", { file_path: args.filePath }],
  apply_patch: (args) => ["apply_patch", { command: args.patchText }],
  patch: (args) => ["apply_patch", { command: args.patchText }],
  bash: () => ["Bash", {}],
}

// The hook's answer; undefined if it has none. Never fails.
const hook = (name, event) =>
  new Promise((resolve) => {
    const child = spawn(PROGRAM, ["hook", name], { stdio: ["pipe", "pipe", "ignore"], timeout: TIMEOUT_MS })
    let output = ""
    child.stdout.on("data", (bytes) => (output += bytes))
    child.on("error", () => resolve(undefined))
    child.on("close", () => {
      try {
        resolve(JSON.parse(output))
      } catch {
        resolve(undefined)
      }
    })
    child.stdin.on("error", () => {})
    child.stdin.end(JSON.stringify(event))
  })

export const Tenon = async ({ client, directory }) => {
  // Sessions that continue because of this plugin.
  const active = new Set()
  return {
    "tool.execute.after": async (input, output) => {
      const tool = TOOLS[input.tool]
      if (!tool) return
      const [tool_name, tool_input] = tool(input.args ?? {})
      const event = { hook_event_name: "PostToolUse", cwd: directory, tool_name, tool_input }
      const text = (await hook("post-edit", event))?.hookSpecificOutput?.additionalContext
      if (text) output.output = `${output.output}\n\n${text}`
    },
    event: async ({ event }) => {
      if (event.type !== "session.idle") return
      const id = event.properties.sessionID
      const session = await client.session.get({ path: { id } })
      // A subagent's turn ends inside its parent's turn.
      if (session.data?.parentID) return
      const stop_hook_active = active.delete(id)
      const text = (await hook("stop", { hook_event_name: "Stop", cwd: directory, stop_hook_active }))?.reason
      if (!text) return
      active.add(id)
      await client.session.promptAsync({ path: { id }, body: { parts: [{ type: "text", text }] } })
    },
  }
}
