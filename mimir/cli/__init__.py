"""Command line: arguments in; text, JSON and an exit code out.

It decides nothing: it opens a project with `mimir.bootstrap.app` and calls `orchestrator.api.Mimir`. Text of models and files passes
`console.clean` before it is printed. Heavy libraries are imported inside command bodies only. No package imports this one.
"""
