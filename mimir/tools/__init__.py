"""The door to tools: one gateway, its wrappers, the tools behind it."""
