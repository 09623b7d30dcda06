//! What the tests share: hermetic environments, tool folders and a consuming MCP client.
