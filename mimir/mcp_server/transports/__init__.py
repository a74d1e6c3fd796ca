"""The transports of the server.

They promise a principal with scopes for each call. Only `mcp_server` and `cli` may import them.
"""
