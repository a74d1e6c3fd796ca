"""`mimir mcp` and its commands: the server, its tokens and the set-up of clients.

They promise to import the server only when it is started. Only `cli.command_table` names them.
"""
