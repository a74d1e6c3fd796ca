"""The MCP server: translates between the protocol and the verbs, decides nothing.

It promises that every call returns within its time limit, that no text of a library or local path leaves it, and that runs survive it.
Only `cli` may import it, inside of its command.
"""
