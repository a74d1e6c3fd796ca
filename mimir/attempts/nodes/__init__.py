"""Nodes of the attempt machine: work, check and judge.

Each node ends with one fenced transaction that changes the status. `mimir.attempts.machine` and `mimir.scheduling` import them.
"""
