"""How things are named: `run/task/attempt`, lanes, events. Two runs never share a name."""

from typing import Literal

Role = Literal["ecko", "pm", "agentinator", "worker", "qc", "qc_reporter", "pm_reporter"]

PLAN_TASK = "plan"
"""Stands for the task in the lanes of a planning run and of a run's own agents."""


def task_id(run: str, task: str) -> str:
    """Name a task of a run."""
    return f"{run}/{task}"


def attempt_id(run: str, task: str, attempt: int) -> str:
    """Name an attempt; `attempt` is 1-based."""
    return f"{run}/{task}/{attempt}"


def lane_id(run: str, task: str, attempt: int, role: str) -> str:
    """Name the lane of one agent in one attempt."""
    return f"{run}/{task}/{attempt}/{role}"


def call_id(lane: str, seq: int) -> str:
    """Name one call of a lane; `seq` is 0-based, text order is call order."""
    return f"{lane}#{seq:05d}"


def event_id(run: str, seq: int) -> str:
    """Name one event of a run; `seq` is 1-based, text order is event order."""
    return f"{run}#{seq:08d}"


def branch(run: str) -> str:
    """Name the branch that holds a run's result."""
    return f"mimir/{run}"
