"""Findings of a plan, each with a stable code, a position and a suggestion. Pure."""

from mimir.domain.finding import START, Finding, Severity, SourcePosition

CODES: dict[str, tuple[Severity, str]] = {
    # Reading.
    "json-unreadable": ("error", "broken JSON: syntax, duplicate key, NaN, nesting too deep"),
    "json-shape": ("error", "JSON without a list of tasks, or a task that is not an object"),
    "block-unclosed": (
        "error",
        "a `<prompt>`, `<text>`, `<reasoning>`, `<details>` or code fence that is never closed",
    ),
    "block-stray": ("error", "a closing `</prompt>` without its opening: the prompt ended early"),
    "label-unknown": ("warning", "an unknown field of a task; kept as notes, no agent sees it"),
    "label-misspelt": ("error", "a label that is nearly a known one"),
    "label-in-prompt": ("error", "dependencies or criteria inside a prompt without tags"),
    "field-second": (
        "warning",
        "a second text for one field, such as a description and a prompt; kept as notes",
    ),
    "field-outside": (
        "error",
        "a prompt, dependencies or criteria after the end of a task that has none",
    ),
    "field-repeated": ("error", "a field that one task has twice, with different values"),
    "value-unreadable": ("error", "an unreadable number, duration, list or choice"),
    "item-in-prompt": ("warning", "a list item with a box inside a prompt without tags"),
    "criterion-nested": ("warning", "a list below a criterion, which is read as its text"),
    "criterion-beside": ("warning", "text between criteria, which is kept as notes"),
    "task-unread": ("error", "a line that begins a task in a form that is not read"),
    "task-in-fence": ("warning", "a task inside a code fence, which is not read"),
    "task-id-missing": ("error", "a task without an id"),
    "task-id-unreadable": ("error", "an id with other signs than letters, digits, `.`, `-`, `_`"),
    "dependency-unreadable": ("error", "a dependency that names no task"),
    "criterion-unreadable": ("error", "a criterion without text, or of the wrong shape"),
    "points-unread": ("warning", "a number in a criterion that may be its points"),
    "checks-unreadable": (
        "error",
        "checks that are not a YAML list: syntax, alias, duplicate key, wrong type",
    ),
    # Checking.
    "plan-empty": ("error", "no task"),
    "plan-format": ("error", "a task list of another format, without prompts and criteria"),
    "plan-cycle": ("error", "tasks that depend on each other"),
    "task-duplicate": ("error", "two tasks with one id"),
    "prompt-missing": ("error", "a task without a prompt"),
    "criteria-missing": ("error", "a task without a criterion"),
    "criterion-duplicate": ("error", "two criteria with one id in a task"),
    "criterion-points": ("error", "points below zero"),
    "dependency-unknown": ("error", "a dependency on a task that is not in the plan"),
    "dependency-self": ("error", "a task that depends on itself"),
    "check-duplicate": ("error", "two checks with one id in a task"),
    "check-criterion-unknown": ("error", "a check for a criterion that the task does not have"),
    "check-without-criterion": ("error", "a required check that decides no criterion"),
    "check-vacuous": ("error", "a check that cannot fail, or whose failure is discarded"),
    "check-command": ("error", "a command line with an unclosed quote"),
    "tool-unknown": ("error", "an unknown name in `Tools`"),
    "agent-unknown": ("error", "an agent that does not exist"),
    "agent-unusable": ("error", "an agent that may not or cannot do the task"),
    "requirement-lost": ("error", "an approved requirement that no criterion names"),
    "path-outside": ("error", "a path or glob outside the workspace"),
    "path-protected": ("error", "an existing path that the task both protects and writes"),
    "number-out-of-range": ("error", "a negative or zero limit, estimate or timeout"),
    "check-pipe": ("warning", "a pipe into `grep -q` or `head`, which may end first"),
    # Trying the checks on the base.
    "check-program-missing": ("error", "a check whose program the sandbox does not have"),
    "check-timed-out": ("error", "a check that exceeds its time limit before the work"),
    "check-needs-network": ("error", "a check that fails because commands have no network"),
    "check-module-missing": ("error", "a check that needs a module that is not installed"),
    "check-path-hidden": ("error", "a check that fails because commands do not see a system path"),
    "check-already-green": (
        "error",
        "a flip that passes before the work, and whose tests the task may not change",
    ),
    "check-green-before": ("warning", "a flip that passes before the work; new tests must fail"),
    "check-red-before": ("warning", "a hold that fails before the work"),
    "check-tests-red": ("warning", "a hold of which some tests fail before the work"),
    "check-without-tests": ("warning", "a check that selects no test"),
    "task-0-missing": ("warning", "no task 0 that validates the environment"),
    "task-0-skipped": ("warning", "a task without dependencies, not even on task 0"),
    "role-missing": ("warning", "a task without a worker role"),
    "qc-role-missing": ("warning", "a task without a QC role; the worker role implies one"),
    "estimate-missing": ("warning", "no estimated tool calls; the limit is 50"),
    "tool-unlikely": ("warning", "a name in `Tool-Based Execution` that is nearly a tool"),
    "files-overlap": ("warning", "two tasks that may run at the same time write the same files"),
    "files-missing": ("warning", "tasks that have checks, and no `Files`"),
    "files-broad": ("warning", "a glob of `Files` covers a test of another task's check"),
    "context-files-many": ("warning", "more than 10 context files"),
    "points-sum": ("warning", "points that do not sum to 100; they are scaled"),
    "check-missing": ("warning", "a task without a required check for any criterion; QC decides"),
}
"""Code → severity and meaning. Codes are stable: scripts rely on them."""


class SourceMap:
    """Positions of fields, by task number, field name and item number."""

    def __init__(self) -> None:
        self._places: dict[tuple[int, str, int], SourcePosition] = {}

    def set_position(self, task: int, field: str, place: SourcePosition, item: int = -1) -> None:
        """Set a position; item -1 means the field itself, an empty field the task."""
        self._places[task, field, item] = place

    def position_of(self, task: int, field: str = "", item: int = -1) -> SourcePosition:
        """Return the nearest known position: of the item, its field, its task or the file."""
        # A field that is missing has no position; the finding then points at the task.
        for key in ((task, field, item), (task, field, -1), (task, "", -1)):
            if key in self._places:
                return self._places[key]
        return START


def make_finding(
    code: str, message: str, at: SourcePosition = START, suggestion: str = ""
) -> Finding:
    """Return a finding of a known code; line breaks in its texts become spaces."""
    return Finding(
        code=code,
        severity=CODES[code][0],
        line=at.line,
        column=at.column,
        # A finding is one line of output, and its texts quote the plan, which may hold line breaks.
        message=" ".join(message.split()),
        suggestion=" ".join(suggestion.split()),
    )
