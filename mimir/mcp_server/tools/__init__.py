"""The tools of the server: table, schemas and handlers, without the MCP library.

It promises a fixed order of the list. Only `mcp_server` may import it.
"""
