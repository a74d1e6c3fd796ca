"""What is wrong with a plan: findings, each with a stable code, a place and what to do. One table of codes."""

from dataclasses import dataclass
from typing import Literal

Severity = Literal["error", "warning"]

CODES: dict[str, tuple[Severity, str]] = {
    # Reading.
    "json-unreadable": (
        "error",
        "the text is meant to be JSON and is not: syntax, duplicate key, NaN, nested too deep",
    ),
    "json-shape": ("error", "the JSON is no plan: no list of tasks, or a task that is no object"),
    "block-unclosed": (
        "error",
        "`<prompt>`, `<text>`, `<reasoning>`, `<details>` or a code fence is never closed",
    ),
    "block-stray": (
        "error",
        "a closing `</prompt>` without its opening: the prompt ended too early",
    ),
    "label-unknown": (
        "warning",
        "a field of a task that the reader does not know; kept as notes, no agent sees it",
    ),
    "label-misspelt": ("error", "a field whose label is nearly one that the reader knows"),
    "label-in-prompt": ("error", "dependencies or criteria that stand inside an unmarked prompt"),
    "field-second": (
        "warning",
        "a text beside the one that is meant, such as a description beside the prompt; kept as notes",
    ),
    "field-outside": (
        "error",
        "a prompt, dependencies or criteria behind the end of a task that has none",
    ),
    "field-repeated": ("error", "a field is given twice in one task, with different values"),
    "value-unreadable": ("error", "a number, duration, list or choice that cannot be read"),
    "task-in-fence": ("warning", "a task inside a code fence was not read"),
    "task-id-missing": ("error", "a task without an id"),
    "task-id-unreadable": ("error", "an id that is no id: letters, digits, `.`, `-` and `_` only"),
    "dependency-unreadable": ("error", "a dependency that names no task"),
    "criterion-unreadable": ("error", "a criterion without text, or of the wrong shape"),
    "checks-unreadable": (
        "error",
        "checks that are no YAML list: syntax, alias, duplicate key, wrong type",
    ),
    # Checking.
    "plan-empty": ("error", "no task"),
    "plan-cycle": ("error", "tasks that wait for each other"),
    "task-duplicate": ("error", "two tasks of one id"),
    "prompt-missing": ("error", "a task without a prompt"),
    "criteria-missing": ("error", "a task without a criterion"),
    "criterion-duplicate": ("error", "two criteria of one id in a task"),
    "criterion-points": ("error", "points below zero"),
    "dependency-unknown": ("error", "a dependency on a task that is not in the plan"),
    "dependency-self": ("error", "a task that depends on itself"),
    "check-duplicate": ("error", "two checks of one id in a task"),
    "check-criterion-unknown": ("error", "a check for a criterion that the task does not have"),
    "check-without-criterion": ("error", "a required check that decides no criterion"),
    "check-vacuous": ("error", "a check that cannot fail, or whose failure is thrown away"),
    "check-command": ("error", "a command line that cannot be split: a quote is not closed"),
    "tool-unknown": ("error", "a name in `Tools` that is no tool"),
    "path-outside": ("error", "a path or glob that leaves the workspace"),
    "path-protected": ("error", "an existing path that the task both protects and writes"),
    "number-out-of-range": ("error", "a negative or zero limit, estimate or timeout"),
    "task-0-missing": ("warning", "no task 0 that validates the environment"),
    "task-0-skipped": ("warning", "a task that depends on nothing, not even on task 0"),
    "role-missing": ("warning", "a task without a worker role"),
    "qc-role-missing": ("warning", "a task without a QC role; one is derived from the worker role"),
    "estimate-missing": ("warning", "no estimated tool calls; the limit is 50"),
    "tool-unlikely": (
        "warning",
        "a name in `Tool-Based Execution` that is no tool, but nearly one",
    ),
    "files-overlap": ("warning", "two tasks that may run at the same time write the same files"),
    "context-files-many": ("warning", "more than 10 context files"),
    "points-sum": ("warning", "points that do not sum to 100; they are scaled"),
    "check-missing": (
        "warning",
        "no criterion of the task has a required check; all are judged by QC",
    ),
}
"""Code → severity and meaning. Codes are stable: scripts rely on them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourcePosition:
    """A place in the text of a plan."""

    line: int = 1
    """1-based."""
    column: int = 1
    """1-based, in characters."""


START = SourcePosition()


class SourceMap:
    """Where the fields of tasks stand: by the task's number in the plan, the field, and the item's number in a list."""

    def __init__(self) -> None:
        """Know no place yet."""
        self._places: dict[tuple[int, str, int], SourcePosition] = {}

    def put(self, task: int, field: str, place: SourcePosition, item: int = -1) -> None:
        """Remember a place; `item` -1: of the field itself."""
        self._places[task, field, item] = place

    def position_of(self, task: int, field: str = "", item: int = -1) -> SourcePosition:
        """Return the place of an item, else of its field, else of the task, else the start of the file."""
        for key in ((task, field, item), (task, field, -1), (task, "", -1)):
            if key in self._places:
                return self._places[key]
        return START


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanFinding:
    """One thing that is wrong with a plan."""

    code: str
    severity: Severity
    message: str
    suggestion: str
    """What to do; empty: the message says it."""
    line: int
    column: int

    def render(self, file: str) -> str:
        """Return `file:line:column: severity CODE: message` and the suggestion, on one line."""
        line = f"{file}:{self.line}:{self.column}: {self.severity} {self.code}: {self.message}"
        return f"{line} {self.suggestion}".rstrip()


def make_finding(
    code: str, message: str, at: SourcePosition = START, *, suggestion: str = ""
) -> PlanFinding:
    """Make a finding of a known code; line breaks in its texts become spaces."""
    severity, _ = CODES[code]
    return PlanFinding(
        code=code,
        severity=severity,
        message=" ".join(message.split()),
        suggestion=" ".join(suggestion.split()),
        line=at.line,
        column=at.column,
    )


def quote_excerpt(text: str, limit: int = 60) -> str:
    """Return a piece of the plan's text for a message: on one line, shortened, in quotes."""
    flat = " ".join(text.split())
    return repr(flat if len(flat) <= limit else flat[: limit - 1] + "…")


def code_table() -> str:
    """Return the codes as a markdown table, for the documentation."""
    rows = [f"| `{code}` | {severity} | {meaning} |" for code, (severity, meaning) in CODES.items()]
    return "\n".join(["| code | severity | when |", "|---|---|---|", *rows])
