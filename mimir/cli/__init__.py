"""The command line: translates, never decides. Nobody enters; it goes in by `mimir.bootstrap.app` and comes out as text, JSON and an exit code.

Everything that a model or a file wrote passes `console.clean` before it reaches a terminal. Heavy libraries are imported inside
command bodies only.
"""
