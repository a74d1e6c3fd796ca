"""Contexts: the text that each role is given, with a receipt of withheld parts. Pure.

Equal inputs give equal bytes, without I/O. Used by scheduling, qc and the orchestrator.
"""
