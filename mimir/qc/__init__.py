"""Deliverable to verdict: what the engine ran, what QC says of it, and what of that counts.

Promises: nothing passes but by the pure rules here (`rule`, `quotes`, `score`), which fail closed; what was seen can be
sealed (`bodies`, `seal`) and is found again if anyone changes it. Doors: `checks.Checks` runs a task's checks before and after
the work, `judge.judge` holds QC to one valid verdict and rules on it, `diagnose` says why a task failed. Entered by attempts,
scheduling and reporting; it knows agents and the workspace, never the store.
"""
