"""Format of a plan: the table of labels, the finding codes and source positions. Pure.

No text is read twice in different ways: reader, renderer and PM prompt share these tables. Only
`planning` and the orchestrator import this package.
"""
