"""Scheduling: from the task graph to running attempts, and to the end of the run.

Every status change outside an attempt happens here, by pure decisions and fenced writes. `orchestrator` and `recordings` import it.
"""
