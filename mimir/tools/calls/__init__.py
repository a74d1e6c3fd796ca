"""Parsing of calls and wording of results.

Strict arguments and their schema, quoted text, pages of long text. For `mimir.tools` only.
"""
