"""Checks of a task: their execution, and the decision on what they prove.

A check proves something only through `decision_table`. Attempts, scheduling, orchestrator and recordings import these modules.
"""
