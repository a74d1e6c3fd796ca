"""Todo lists: work that clients of the server share. No agent works on them.

Promise: a lock is a claim under a lease and a fence, and a todo that is done proves nothing. Importers: `mcp_server`.
"""
