"""Completion: the steps after a verdict, from one transition to the outcome of the run.

The head of the run branch moves in the transaction that completes a task. `scheduling.execution` and `orchestrator` import it.
"""
