"""Request to plan: Ecko and the PM ask, `chain` reads, `check` judges, `render` writes; `labels` is the one table of the format.

It promises that a plan is read whole or its faults are named with their places, and that nothing is invented for what is missing.
Entered by the orchestrator, and by the command line for `mimir check`.
"""
