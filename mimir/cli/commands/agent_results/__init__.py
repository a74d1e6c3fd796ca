"""Commands on results of invoked agents: validation, decisions about proposals.

Only the command table imports them.
"""
