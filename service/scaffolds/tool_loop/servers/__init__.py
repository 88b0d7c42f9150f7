"""MCP servers as further tools: programs inside the sandbox, or behind gateway services."""
