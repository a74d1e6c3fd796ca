"""Runs: creation, execution, joining by further processes, lookup and inspection.

A run is resumable after any crash, because each module works from the store. The orchestrator and bootstrap import these modules.
"""
