"""Sections that worker and QC share: requirements, checks, required fixes. Pure."""

from collections.abc import Callable, Sequence
from fractions import Fraction

from mimir.agents.context import quotation
from mimir.agents.context.inputs import FileView
from mimir.agents.context.receipt import Importance
from mimir.agents.context.token_budget import ContextPiece
from mimir.domain.plan import Check, Criterion, Task, weights
from mimir.domain.quoted_text import list_path
from mimir.domain.usage import estimate

# A context file up to so many tokens is shown whole.
SMALL_FILE = 1_500
# Tokens shown of a larger one.
FILE_PART = 500

_KINDS = {
    "flip": "fails before the work, must pass after it",
    "hold": "passes before the work, must still pass after it",
    None: "must pass after the work",
}


def brief_header(task: Task, attempt: int, attempts: int, role: str) -> str:
    """Return the first lines of a brief; model scripts read the first two."""
    return (
        f"Task: {task.id}\nAttempt {attempt} of {attempts}\n"
        f"Title: {quotation.one_line(task.title)}\n{quotation.one_line(role)}"
    )


def requirements(task: Task) -> str:
    """Return the requirements of the deliverable: criteria and checks."""
    lines = ["## Criteria", "", *criteria_lines(task.criteria)]
    if task.checks:
        lines += ["", "The engine runs these checks on a clean checkout of your deliverable:", ""]
        lines += [check_line(check) for check in task.checks]
    return "\n".join(lines)


def criteria_lines(criteria: tuple[Criterion, ...]) -> list[str]:
    """Return a line for each criterion: `- [c1] (60 pts, critical) text`, points of 100."""
    share = weights(criteria)  # the plan's own numbers need not sum to 100
    return [
        f"- [{c.id}] ({points(share[c.id])} pts{', critical' if c.critical else ''}) {quotation.one_line(c.text)}"
        for c in criteria
    ]


def points(value: Fraction) -> str:
    """Return points or a score: whole, or with two decimals."""
    return str(value.numerator) if value.denominator == 1 else f"{float(value):.2f}"


def command(check: Check) -> str:
    """Return a check's command as a shell line."""
    return quotation.one_line(check.command_line)


def check_line(check: Check) -> str:
    """Return a line with a check's criteria, command and expected outcome."""
    decides = ", ".join(check.criteria) or "no criterion"
    files = ", ".join(map(list_path, check.protect))
    protect = f"; you may not change {files}" if files else ""
    shown = "" if check.required else "; shown, decides nothing"
    return (
        f"- {check.id} (decides {decides}): {command(check)} — {_KINDS[check.kind]}{protect}{shown}"
    )


def fixes(required: Sequence[str], words: str) -> str:
    """Return the numbered list of required fixes that worker and QC share."""
    lines = [f"{n}. {quotation.one_line(fix)}" for n, fix in enumerate(required, start=1)]
    return "\n".join(["## Required fixes", "", words, "", *lines])


def file_piece(
    file: FileView,
    importance: Importance,
    focus: Callable[[FileView], tuple[int, ...]] | None = None,
) -> ContextPiece:
    """Return a context file: whole if small, otherwise around `focus`, or its first lines."""
    title = f"{list_path(file.path)} ({file.size} bytes)"
    name = f"file:{file.path}"
    if file.text is None:
        return ContextPiece(
            name=name, title=f"{title}: {file.note or 'no text'}", content="", data=False
        )
    small = estimate(file.text) <= SMALL_FILE
    return ContextPiece(
        name=name,
        title=title,
        content=file.text,
        importance=importance,
        reference=f"read_file({quotation.quote_argument(file.path)})",
        most=None if small else FILE_PART,
        focus=focus(file) if focus and not small else (),
    )


def artifact(id: str) -> str:
    """Return the call that reads an artifact; empty: there is none."""
    return f"read_artifact({quotation.quote_argument(id)})" if id else ""
