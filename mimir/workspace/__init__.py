"""Workspaces: safe paths, the hidden git history, the sandbox, apply.

Nothing in a workspace configures the engine. No command runs outside the sandbox unless the user
chose that by name. The user's directory changes only through `apply`.
"""
