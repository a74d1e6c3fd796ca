"""Table of labels, shared by the PM's instructions, reader and renderer. Pure.

Labels are compared by their words: `**Max Retries:**`, `#### max retries` and the JSON key
`maxRetries` are one label. Text in parentheses is an aside: `Estimated Duration (hours)`.
"""

import re
import unicodedata
from dataclasses import KW_ONLY, dataclass, replace
from difflib import get_close_matches
from functools import lru_cache
from typing import Literal

from mimir.domain.value_class import value_class

TextKey = Literal[
    "title", "worker_role", "agent", "qc_role", "prompt", "model", "tool_execution", "notes"
]
ListKey = Literal["tools", "files", "context_files"]
NumberKey = Literal[
    "estimated_minutes", "time_limit_minutes", "estimated_tool_calls", "max_retries"
]
Key = Literal[
    TextKey, ListKey, NumberKey, "id", "dependencies", "parallel_group", "criteria", "checks"
]
PlanKey = Literal["title", "request", "goal", "reasoning", "notes"]


@dataclass(frozen=True, slots=True)
class TaskField:
    """A field of a task with its label and synonyms."""

    key: Key
    """Attribute of `Task`."""
    label: str
    """As rendered."""
    _: KW_ONLY
    synonyms: tuple[str, ...] = ()
    json_names: tuple[str, ...] = ()
    """Keys in JSON only: as a bold word in a prompt they would be ambiguous."""
    counts_attempts: tuple[str, ...] = ()
    """Synonyms whose number is one higher: they count attempts, not retries."""
    example: str
    """Value in the PM's example; one that begins with a line break is a block below the label."""
    advice: str = ""
    """Instruction for the PM; empty: the example suffices."""


FIELDS: tuple[TaskField, ...] = (
    TaskField(
        "id",
        "Task ID",
        synonyms=("ID", "Task Identifier"),
        example="task-1.1",
        advice="letters, digits, `.`, `-` and `_`; each once in the plan; `task-0` validates the environment.",
    ),
    TaskField(
        "title", "Title", synonyms=("Task Title",), json_names=("Name",), example="Token bucket"
    ),
    TaskField(
        "worker_role",
        "Agent Role Description",
        synonyms=(
            "Worker Role",
            "Agent Role",
            "Role Description",
            "Role",
            "Worker Role Description",
        ),
        example="Python engineer who knows concurrency",
        advice="one sentence; the same words in all tasks that need the same expertise.",
    ),
    TaskField("agent", "Agent", synonyms=("Agent Definition",), example="reviewer"),
    TaskField("model", "Recommended Model", json_names=("Model",), example="default"),
    TaskField(
        "prompt",
        "Prompt",
        synonyms=("Optimized Prompt", "Task Description", "Description", "Instructions", "Work"),
        example="\n<prompt>\nWrite the class TokenBucket in limiter.py. …\n</prompt>",
        advice="all that the worker needs to know, between `<prompt>` and `</prompt>`, each on a line of its own; "
        "if the text itself holds these tags, use `<prompt-2>` and `</prompt-2>`.",
    ),
    TaskField(
        "tools",
        "Tools",
        synonyms=("Allowed Tools",),
        example="read_file, write_file, edit_file, run",
        advice="names only; leave the line out for all tools of the role.",
    ),
    TaskField(
        "tool_execution",
        "Tool-Based Execution",
        synonyms=("Tool Execution",),
        example="Use read_file on api.py first, then write_file, then run the tests.",
    ),
    TaskField(
        "context_files",
        "Context Files",
        synonyms=("Files Read",),
        example="api.py, docs/limits.md",
        advice="at most 10 files that the worker sees before it starts.",
    ),
    TaskField(
        "files",
        "Files",
        synonyms=(
            "Files Written",
            "Files To Write",
            "Files To Change",
            "Files To Modify",
            "Files To Create",
            "Files To Edit",
            "Files To Modify Create",
            "Files To Create Modify",
        ),
        example="limiter.py",
        advice="globs of the files that the task may write, inside the project: for every task with checks. A test, data or helpers "
        "of tests, or settings of a runner or linter that are there already and that the task is to change must be named by their own paths.",
    ),
    TaskField(
        "dependencies",
        "Dependencies",
        synonyms=("Dependency", "Depends On", "Requires", "After"),
        example="task-0, task-1.0",
        advice="ids of tasks that must be completed first, separated by commas, or `None`.",
    ),
    TaskField(
        "estimated_minutes",
        "Estimated Duration",
        synonyms=("Duration", "Time", "Estimate", "Estimated Time", "Estimated Minutes"),
        example="15 minutes",
    ),
    TaskField(
        "time_limit_minutes", "Time Limit", synonyms=("Time Limit Minutes",), example="30 minutes"
    ),
    TaskField(
        "estimated_tool_calls",
        "Estimated Tool Calls",
        synonyms=("Tool Calls", "Tool Call Estimate", "Expected Tool Calls"),
        example="8",
        advice="the worker is stopped at one and a half times this number.",
    ),
    TaskField(
        "parallel_group",
        "Parallel Group",
        synonyms=("Parallel", "Group"),
        example="1",
        advice="a hint only; `N/A` for none.",
    ),
    TaskField(
        "qc_role",
        "QC Agent Role Description",
        synonyms=(
            "QC Agent Role",
            "QC Role",
            "Verification Role",
            "Reviewer",
            "QC Role Description",
        ),
        example="Reviewer of concurrent Python",
    ),
    TaskField(
        "criteria",
        "Verification Criteria",
        synonyms=("Criteria", "Acceptance Criteria", "Success Criteria"),
        example="\n- [ ] (60 pts) [critical] c1: refills at the configured rate\n"
        "- [ ] (40 pts) c2: safe under 8 threads",
        advice="required properties of the result, each with an id; points sum to 100; `[critical]` marks those that may not fail.",
    ),
    TaskField(
        "checks",
        "Checks",
        synonyms=("Verification Checks", "Automated Checks", "Engine Checks"),
        example="""
```yaml
- id: unit
  criteria: [c1, c2]
  run: [python, -m, pytest, -q, tests/test_limiter.py]
  kind: flip
  tests: [tests/test_limiter.py]
  protect: [tests/test_limiter.py]
  required: true
```""",
        advice="commands that the engine runs to decide criteria, in a YAML fence. `run` is a list of arguments, or a "
        "command line; its exit code decides, so it must be able to fail (no `|| true`, no `echo`). `kind: flip` fails "
        "before the work and passes after it, `hold` passes before and after; left out: inferred. `timeout_seconds` (default: 300) ends a hang. `tests` are the files "
        "that make up the check, `protect` those that this task may not change. Every task should have a required check.",
    ),
    TaskField(
        "max_retries",
        "Max Retries",
        synonyms=("Retries",),
        counts_attempts=("Max Attempts", "Attempts"),
        example="2",
    ),
    TaskField("notes", "Notes", example="kept in the plan; no agent sees them"),
)

PLAN_LABELS: dict[PlanKey, tuple[str, ...]] = {
    "title": ("Plan Title", "Title"),
    "request": ("Request", "User Request", "Original Request", "Customer Request"),
    "goal": ("Goal", "Project Goal", "Objective"),
    "reasoning": ("Reasoning",),
    "notes": ("Notes",),
}
"""Labels and headings outside tasks; the first one is rendered."""

TASKS_HEADING = "Tasks"

BY_KEY: dict[Key, TaskField] = {field.key: field for field in FIELDS}


@value_class
class LabelMatch:
    """Meaning of a label."""

    field: TaskField
    for_all: bool = False
    """True: the label has the suffix "for all tasks"."""
    counts_attempts: bool = False
    aside: str = ""
    """The text in parentheses, as words."""
    rank: int = 0
    """Position among the field's names, 0 for its own label: the lowest rank wins."""


_ASIDE = re.compile(r"[(\[]([^()\[\]]*)[)\]]")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_NOT_WORD = re.compile(r"[\W_]+")
_NUMBERING = re.compile(r"^\d+ (?=\D)")
_ALL = re.compile(r" ?(for|of)? ?(all|every|each) tasks?$")
_PER = re.compile(r" ?(per|by) task$")


def words(label: str) -> str:
    """Return the words of a label in lower case, with single spaces."""
    # NFKC turns full-width letters and colons into the usual ones.
    split = _CAMEL.sub(" ", unicodedata.normalize("NFKC", label))
    return _NUMBERING.sub("", _NOT_WORD.sub(" ", split.casefold()).strip())


@lru_cache(maxsize=4096)
def find(label: str) -> LabelMatch | None:
    """Return the meaning of a task's label; None if it is unknown."""
    # Bold text of any length can look like a label; a long one is prose and would fill the cache.
    if len(label) > 100:
        return None
    asides = " ".join(words(aside) for aside in _ASIDE.findall(label))
    name = words(_ASIDE.sub(" ", label))
    for_all = bool(_ALL.search(f" {asides}") or _ALL.search(name))
    name = _ALL.sub("", name)
    # "Verification Criteria (per task)" describes the format; it begins no field.
    if name not in _KNOWN or _PER.search(f" {asides}"):
        return None
    return replace(_KNOWN[name], for_all=for_all, aside=asides)


def find_json_key(key: str) -> LabelMatch | None:
    """Return the meaning of a task's JSON key; None if it is unknown."""
    # A label wins over a name that only JSON may use.
    return find(key) or find(_JSON_KEYS.get(words(key), ""))


def find_plan_label(label: str) -> PlanKey | None:
    """Return the meaning of a label outside tasks; None if it is unknown."""
    return _PLAN_KNOWN.get(words(label)) if len(label) <= 100 else None


def nearest_label(label: str) -> str:
    """Return the label that `label` probably misspells; empty if none is near."""
    # At 0.84 one or two wrong letters match, but no other word: a match makes the finding an error.
    close = get_close_matches(words(label), _KNOWN, n=1, cutoff=0.84)
    return _KNOWN[close[0]].field.label if close else ""


_KNOWN = {
    words(name): LabelMatch(field=field, rank=rank, counts_attempts=name in field.counts_attempts)
    for field in FIELDS
    for rank, name in enumerate((field.label, *field.synonyms, *field.counts_attempts))
}
_JSON_KEYS = {words(name): field.label for field in FIELDS for name in field.json_names}
_PLAN_KNOWN: dict[str, PlanKey] = {
    words(name): key for key, names in PLAN_LABELS.items() for name in names
}


def format_instructions() -> str:
    """Return the PM's instructions for the form of a plan; part of its system message."""
    advice = "\n".join(f"- **{field.label}**: {field.advice}" for field in FIELDS if field.advice)
    return f"""## The form of the plan

Answer with the plan as markdown, in exactly this form, and nothing before or after it. Do not put it in a fence.

{example()}

Meaning of the lines:

{advice}

Begin with a task `task-0` that validates the environment without changing anything; tasks that depend on nothing else depend on it.
Every task needs an id, a prompt and at least one criterion. A task sees its own prompt and the results of its dependencies, and
nothing else of the plan. Tasks that may run at the same time should not write the same files. There may be no cycle."""


def example() -> str:
    """Return the PM's example: a plan head and one task with every field."""
    head = (
        "# Plan: Rate limiter for the API\n"
        f"**{PLAN_LABELS['request'][0]}:** the request, as given\n"
        f"**{PLAN_LABELS['goal'][0]}:** the state after all tasks\n\n"
        f"## {PLAN_LABELS['reasoning'][0]}\nthe reasons for this decomposition; workers never see it\n\n"
        f"## {TASKS_HEADING}\n\n### task-1.1: Token bucket\n"
    )
    lines = [
        f"**{field.label}:**{field.example if field.example.startswith(chr(10)) else ' ' + field.example}"
        for field in FIELDS
        # The PM does not know the definitions of this machine.
        if field.key not in ("notes", "agent")
    ]
    return head + "\n".join(lines)
