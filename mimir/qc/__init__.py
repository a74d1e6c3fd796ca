"""Quality control: from a deliverable to a verdict.

Only the pure rules here (`decision_table`, `quotes`, `score`) accept a deliverable; they fail closed, and `seal` reveals later changes
of evidence. `checks.check_runner` runs checks, `judgement.judge` reviews, `judgement.diagnosis` explains failures. Attempts,
scheduling, reporting, orchestrator and recordings import this package. It knows agents, the workspace and the store's operations.
"""
