"""Ids of tasks, attempts, transcripts, calls and events, unique across runs. Pure."""

# Task part of the transcript ids of a planning run and of a run's own agents.
PLAN_TASK = "plan"
PROJECT_PREFIX = "project:"
"""Start of the address of an agent definition of the project, trusted or not."""


def task_id(run: str, task: str) -> str:
    """Return the id of a task of a run."""
    return f"{run}/{task}"


def attempt_id(run: str, task: str, attempt: int) -> str:
    """Return the id of an attempt; `attempt` is 1-based."""
    return f"{run}/{task}/{attempt}"


def lane_id(run: str, task: str, attempt: int, role: str) -> str:
    """Return the id of the transcript of one agent in one attempt."""
    return f"{run}/{task}/{attempt}/{role}"


def call_id(lane: str, seq: int) -> str:
    """Return the id of a call; `seq` is 0-based, text order is call order."""
    # Fixed width makes text order equal to call order.
    return f"{lane}#{seq:05d}"


def event_id(run: str, seq: int) -> str:
    """Return the id of an event; `seq` is 1-based, text order is event order."""
    return f"{run}#{seq:08d}"


def branch(run: str) -> str:
    """Return the name of the branch that holds a run's result."""
    return f"mimir/{run}"
