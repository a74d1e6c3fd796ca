"""Where work happens: paths that cannot escape, hidden git history, the sandbox, apply.

Promises: nothing inside a workspace configures what the engine does to it, no command runs outside the
sandbox unless the person said so by name, and the user's directory changes only through `apply`. Entered
by tools, qc, attempts, scheduling and app; it knows only values and errors.
"""
