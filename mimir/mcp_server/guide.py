"""The delegation guide and the prompts of the server. Pure."""

from collections.abc import Mapping

DELEGATION_GUIDE = """\
# When to delegate work

Delegate for deep expertise, for several perspectives, for parallel work, and for analysis that needs more than half of your context window.

Do not delegate simple lookups, basic file operations, quick clarifications, tightly integrated work or urgent decisions. Do not delegate a task if
transferring its context costs more than the work.

Ask five questions:

1. Does the task need expertise that you lack?
2. Does it save a large part of your context?
3. Is quality worth the time?
4. Is the result easy to integrate?
5. Can parts of it run in parallel?

Three or more yes: delegate. Two: consider it. Fewer: do it yourself.

# How to delegate to mimir

1. Write a request that stands alone: the goal, the constraints, and how the result can be checked. An agent does not see this conversation.
2. Call `plan`, and show the tasks and their criteria to the user.
3. Call `execute` with the path of the plan. If it answers `working`, call `status` with `wait_seconds`, and do other work in between.
4. If it is paused for questions, call `answer`. Pass `answers` only with the words of the user.
5. Call `report`. Trust what was executed more than what was judged, and name what is unverified.

Validate output that seems incomplete or inconsistent, and output behind high-stakes, cross-domain or uncertain decisions.
"""

_REVIEW = """\
Review the result of run {run}. Read `mimir://runs/{run}/report` and `mimir://runs/{run}/diff`. For each criterion, say whether it was executed, judged or
unverified, and quote the proof. Name what a user would miss. Change nothing.
"""

_SDD = """\
Specify this request before it is planned: {request}

1. Call `plan` with the request and the pattern `sdd`. It stops for questions, for the specification and for the plan.
2. At each stop show the user the questions, or the file that is to be approved, and call `answer`. Pass `answers` only with the words of the user.
   An approval has no argument: the user gives it in the form of the client, or with `mimir inbox`.
3. Call `status` with `wait_seconds` until the next stop, and call `execute` with the path of the approved plan.
4. Call `report`, and say for each requirement whether it was executed, judged or unverified.
"""

PROMPTS: Mapping[str, tuple[str, str, str]] = {
    "delegate": (
        "Decide whether to delegate a task to mimir, and do it.",
        "task",
        DELEGATION_GUIDE + "\n# The task\n\n{task}\n",
    ),
    "sdd": ("Specify, plan and execute a request with approvals.", "request", _SDD),
    "review": ("Review the result of a run.", "run", _REVIEW),
}
"""Name → description, the required argument, and the text."""


def fill_prompt(name: str, value: str) -> str:
    """Return the text of a prompt with its argument."""
    _, argument, text = PROMPTS[name]
    # Not `format`: a value may hold braces.
    return text.replace(f"{{{argument}}}", value)
