"""Patterns of work with a user: the ledger of a run.

Imported by `bootstrap` and `orchestrator`.
"""
