"""Execution of one claimed task: its preparation and its run.

Each step is stored, so another process can continue it. `mimir.orchestrator` and `mimir.recordings` import it.
"""
