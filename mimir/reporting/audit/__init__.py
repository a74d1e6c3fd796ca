"""Audit of a run: evidence chains recomputed, claims compared with records, git objects.

Each problem is one line that begins with the id of its record or node. The audit changes nothing. `verify` is the entry point.
"""
