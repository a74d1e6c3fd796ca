"""Tools of sessions: handles of callers, the state of a session, its end.

Promise: limits are decided in the store, in the transaction that creates something. Importers: `mcp_server.tools`.
"""
