"""Agent definitions: files of five formats, read into frozen values of `domain`.

A file only requests. Errors of a file are findings with line and column; no file raises an exception, and none extends a permission.
Used by `orchestrator` and `bootstrap`.
"""
