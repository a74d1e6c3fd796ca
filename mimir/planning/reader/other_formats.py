"""Recognition of other formats of task lists, which name no prompts and criteria. Pure."""

import json
import re
from collections.abc import Sequence

from mimir.domain.finding import Finding
from mimir.domain.json_value import is_object
from mimir.domain.plan import Task
from mimir.planning.format.diagnostics import make_finding

_FORMATS = (
    ("a spec-kit task file", re.compile(r"^[ \t]*- \[[ xX]\] T\d{3,4}\b", re.MULTILINE)),
    (
        "a tagged task list",
        re.compile(r"^[ \t]*<(?:task|todo|item|step)\b[^>\n]{0,200}>", re.MULTILINE),
    ),
    (
        "an implementation plan of steps with boxes",
        re.compile(r"^[ \t]*- \[[ xX]\] \*\*Step \d", re.MULTILINE),
    ),
    ("a list of boxes", re.compile(r"^[ \t]*[-*] \[[ xX]\] \S", re.MULTILINE)),
)
_PLAN = re.compile(r"^[ \t]*\*\*Task ID:", re.MULTILINE)
"""A field of this format: notes next to it may hold boxes."""
_LOOKED_AT = 200_000
"""Characters in which a format is looked for."""


def find_other_format(text: str, tasks: Sequence[Task]) -> Finding | None:
    """Return the finding that a text has another format; None: it has the form of a plan.

    Such a text would cause several findings for each of its tasks.
    """
    if any(task.prompt.strip() or task.criteria for task in tasks):
        return None
    text = text[:_LOOKED_AT]
    name = "" if _PLAN.search(text) else _name_of(text)
    if not name:
        return None
    return make_finding(
        "plan-format",
        f"The text is {name}: its tasks have neither prompts nor criteria.",
        suggestion="Make a plan of it: mimir chain 'Carry out the tasks of FILE'",
    )


def _name_of(text: str) -> str:
    if _is_json_lines(text):
        return "JSON Lines"
    return next((name for name, form in _FORMATS if form.search(text)), "")


def _is_json_lines(text: str) -> bool:
    lines = [line for line in text.split("\n") if line.strip()][:3]
    if len(lines) < 2:
        return False
    try:
        return all(is_object(json.loads(line)) for line in lines)
    except (ValueError, RecursionError):
        return False
