"""THE table of labels: what the PM is asked for, what the reader knows, what the renderer writes, in one place.

A label is compared by its words: case, punctuation, emphasis, numbering and camelCase do not matter, so that
`**Max Retries:**`, `#### max retries` and the JSON key `maxRetries` are one label. Text in parentheses after
a label is an aside (`Estimated Duration (hours)`).
"""

import re
import unicodedata
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from typing import Literal

Key = Literal[
    "id",
    "title",
    "worker_role",
    "model",
    "prompt",
    "tools",
    "tool_execution",
    "context_files",
    "files",
    "dependencies",
    "estimated_minutes",
    "time_limit_minutes",
    "estimated_tool_calls",
    "parallel_group",
    "qc_role",
    "criteria",
    "checks",
    "max_retries",
    "notes",
]
PlanKey = Literal["title", "request", "goal", "reasoning", "notes"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskField:
    """One field of a task: how it is written, how else it may be called."""

    key: Key
    """Name of the attribute of `Task`."""
    label: str
    """As rendered."""
    synonyms: tuple[str, ...] = ()
    json_names: tuple[str, ...] = ()
    """Read as keys in JSON only: as a bold word in a prompt they would be ambiguous."""
    counts_attempts: tuple[str, ...] = ()
    """Synonyms whose number is one more than the field's (attempts, not retries)."""
    example: str
    """A value as the PM is shown it; what starts with a line break is a block below the label."""
    advice: str = ""
    """What the PM is told about it; empty: the example says it."""


FIELDS: tuple[TaskField, ...] = (
    TaskField(
        key="id",
        label="Task ID",
        synonyms=("ID", "Task Identifier"),
        example="task-1.1",
        advice="letters, digits, `.`, `-` and `_`; each once in the plan; `task-0` validates the environment.",
    ),
    TaskField(
        key="title",
        label="Title",
        synonyms=("Task Title",),
        json_names=("Name",),
        example="Token bucket",
    ),
    TaskField(
        key="worker_role",
        label="Agent Role Description",
        synonyms=(
            "Worker Role",
            "Agent Role",
            "Role Description",
            "Role",
            "Worker Role Description",
        ),
        example="Python engineer who knows concurrency",
    ),
    TaskField(
        key="model",
        label="Recommended Model",
        json_names=("Model",),
        example="default",
    ),
    TaskField(
        key="prompt",
        label="Prompt",
        synonyms=("Optimized Prompt", "Task Description", "Description", "Instructions", "Work"),
        example="\n<prompt>\nWrite the class TokenBucket in limiter.py. …\n</prompt>",
        advice="all that the worker needs to know, between `<prompt>` and `</prompt>`, each on a line of its own; "
        "if the text itself holds these tags, use `<prompt-2>` and `</prompt-2>`.",
    ),
    TaskField(
        key="tools",
        label="Tools",
        synonyms=("Allowed Tools",),
        example="read_file, write_file, edit_file, run",
        advice="names only; leave the line out for all tools of the role.",
    ),
    TaskField(
        key="tool_execution",
        label="Tool-Based Execution",
        synonyms=("Tool Execution",),
        example="Use read_file on api.py first, then write_file, then run the tests.",
    ),
    TaskField(
        key="context_files",
        label="Context Files",
        synonyms=("Files Read",),
        example="api.py, docs/limits.md",
        advice="at most 10 files that the worker sees before it starts.",
    ),
    TaskField(
        key="files",
        label="Files",
        synonyms=("Files Written",),
        example="limiter.py",
        advice="globs of what the task may write, inside the project; leave the line out if unknown. A test, data or helpers "
        "of tests, or settings of a runner or linter that are there already and that the task is to change must be named by their own paths.",
    ),
    TaskField(
        key="dependencies",
        label="Dependencies",
        synonyms=("Dependency", "Depends On", "Requires", "After"),
        example="task-0, task-1.0",
        advice="ids of tasks that must be completed first, separated by commas, or `None`.",
    ),
    TaskField(
        key="estimated_minutes",
        label="Estimated Duration",
        synonyms=("Duration", "Time", "Estimate", "Estimated Time", "Estimated Minutes"),
        example="15 minutes",
    ),
    TaskField(
        key="time_limit_minutes",
        label="Time Limit",
        synonyms=("Time Limit Minutes",),
        example="30 minutes",
    ),
    TaskField(
        key="estimated_tool_calls",
        label="Estimated Tool Calls",
        synonyms=("Tool Calls", "Tool Call Estimate", "Expected Tool Calls"),
        example="8",
        advice="the worker is stopped at one and a half times this number.",
    ),
    TaskField(
        key="parallel_group",
        label="Parallel Group",
        synonyms=("Parallel", "Group"),
        example="1",
        advice="a hint only; `N/A` for none.",
    ),
    TaskField(
        key="qc_role",
        label="QC Agent Role Description",
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
        key="criteria",
        label="Verification Criteria",
        synonyms=("Criteria", "Acceptance Criteria", "Success Criteria"),
        example="\n- [ ] (60 pts) [critical] c1: refills at the configured rate\n"
        "- [ ] (40 pts) c2: safe under 8 threads",
        advice="what must be true of the result, each with an id; points sum to 100; `[critical]` marks what may not fail.",
    ),
    TaskField(
        key="checks",
        label="Checks",
        example="""
```yaml
- id: unit
  criteria: [c1, c2]
  run: [python, -m, pytest, -q, tests/test_limiter.py]
  kind: flip
  tests: [tests/test_limiter.py]
  protect: [tests/test_limiter.py]
  required: true
  timeout_seconds: 60
```""",
        advice="commands that the engine runs to decide criteria, in a YAML fence. `run` is a list of arguments, or a "
        "command line; its exit code decides, so it must be able to fail (no `|| true`, no `echo`). `kind: flip` fails "
        "before the work and passes after it, `hold` passes before and after; left out: inferred. `tests` are the files "
        "that make up the check, `protect` those that this task may not change. Every task should have a required check.",
    ),
    TaskField(
        key="max_retries",
        label="Max Retries",
        synonyms=("Retries",),
        counts_attempts=("Max Attempts", "Attempts"),
        example="2",
    ),
    TaskField(key="notes", label="Notes", example="kept in the plan; no agent sees them"),
)

PLAN_LABELS: dict[PlanKey, tuple[str, ...]] = {
    "title": ("Plan Title", "Title"),
    "request": ("Request", "User Request", "Original Request", "Customer Request"),
    "goal": ("Goal", "Project Goal", "Objective"),
    "reasoning": ("Reasoning",),
    "notes": ("Notes",),
}
"""Labels and headings outside tasks; the first is rendered."""

TASKS_HEADING = "Tasks"
FOR_ALL_TASKS = "for All Tasks"
"""After a label of `qc_role`, outside tasks: it holds for every task that names none."""

BY_KEY: dict[Key, TaskField] = {field.key: field for field in FIELDS}


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelMatch:
    """What a label means."""

    field: TaskField
    for_all: bool = False
    """The label says "for all tasks"."""
    counts_attempts: bool = False
    aside: str = ""
    """The text in parentheses, as words."""
    rank: int = 0
    """How far the name stands behind the field's own label: of two names for one text, the lower one is meant."""


_ASIDE = re.compile(r"[(\[]([^()\[\]]*)[)\]]")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_NOT_WORD = re.compile(r"[\W_]+")
_NUMBERING = re.compile(r"^\d+ (?=\D)")
_ALL = re.compile(r" ?(for|of)? ?(all|every|each) tasks?$")
_PER = re.compile(r" ?(per|by) task$")


def words(label: str) -> str:
    """Return the words of a label: folded, one space between, nothing else."""
    split = _CAMEL.sub(" ", unicodedata.normalize("NFKC", label))
    return _NUMBERING.sub("", _NOT_WORD.sub(" ", split.casefold()).strip())


@lru_cache(maxsize=4096)
def find(label: str) -> LabelMatch | None:
    """Return what a label of a task means; None if it is not known."""
    if len(label) > 100:
        return None
    asides = " ".join(words(aside) for aside in _ASIDE.findall(label))
    name = words(_ASIDE.sub(" ", label))
    if _PER.search(f" {asides}"):
        return None
    for_all = bool(asides and _ALL.search(f" {asides}")) or bool(_ALL.search(name))
    name = _ALL.sub("", name)
    if name not in _KNOWN:
        return None
    field, attempts = _KNOWN[name]
    rank = [words(one) for one in (field.label, *field.synonyms, *field.counts_attempts)].index(
        name
    )
    return LabelMatch(
        field=field, for_all=for_all, counts_attempts=attempts, aside=asides, rank=rank
    )


def find_json_key(key: str) -> LabelMatch | None:
    """Return what a key of a task means in JSON; None if it is not known."""
    return find(key) or find(_JSON_KEYS.get(words(key), ""))


@lru_cache(maxsize=4096)
def find_plan_label(label: str) -> PlanKey | None:
    """Return what a label outside tasks means; None if it is not known."""
    return _PLAN_KNOWN.get(words(label)) if len(label) <= 100 else None


def near(label: str) -> str:
    """Return the rendered label that `label` is probably a slip of; empty if none is near."""
    close = get_close_matches(words(label), _KNOWN, n=1, cutoff=0.84)
    return _KNOWN[close[0]][0].label if close else ""


def _known() -> dict[str, tuple[TaskField, bool]]:
    known: dict[str, tuple[TaskField, bool]] = {}
    for field in FIELDS:
        known.update({words(name): (field, False) for name in (field.label, *field.synonyms)})
        known.update({words(name): (field, True) for name in field.counts_attempts})
    return known


_KNOWN = _known()
_JSON_KEYS = {words(name): field.label for field in FIELDS for name in field.json_names}
_PLAN_KNOWN: dict[str, PlanKey] = {
    words(name): key for key, names in PLAN_LABELS.items() for name in names
}


def synonym_table() -> str:
    """Return the labels as a markdown table, for the documentation."""
    rows = ["| field | label | also read |", "|---|---|---|"]
    for field in FIELDS:
        other = [*field.synonyms, *(f"{name} (− 1)" for name in field.counts_attempts)]
        other += [f"`{name.casefold()}` in JSON" for name in field.json_names]
        rows.append(f"| `{field.key}` | {field.label} | {', '.join(other)} |")
    return "\n".join(rows)


def format_instructions() -> str:
    """Return how the PM must write a plan; part of its system message."""
    advice = "\n".join(f"- **{field.label}**: {field.advice}" for field in FIELDS if field.advice)
    return f"""## The form of the plan

Answer with the plan as markdown, in exactly this form, and nothing before or after it. Do not put it in a fence.

{example()}

The lines mean:

{advice}

Begin with a task `task-0` that validates the environment without changing anything; tasks that depend on nothing else depend on it.
Every task needs an id, a prompt and at least one criterion. A task sees its own prompt and what its dependencies delivered, and
nothing else of the plan. Tasks that may run at the same time should not write the same files. There may be no cycle."""


def example() -> str:
    """Return the example that the PM is shown: a plan head and one task with every field."""
    head = (
        "# Plan: Rate limiter for the API\n"
        f"**{PLAN_LABELS['request'][0]}:** the request, as given\n"
        f"**{PLAN_LABELS['goal'][0]}:** what is true when all is done\n\n"
        f"## {PLAN_LABELS['reasoning'][0]}\nwhy the work is cut this way; workers never see it\n\n"
        f"## {TASKS_HEADING}\n\n### task-1.1: Token bucket\n"
    )
    lines = [
        f"**{field.label}:**{field.example if field.example.startswith(chr(10)) else ' ' + field.example}"
        for field in FIELDS
        if field.key != "notes"
    ]
    return head + "\n".join(lines)
