"""Task graph of a run as a Mermaid diagram, coloured by status. Pure.

Titles may come from a model: labels have no character that Mermaid or a page reads as markup.
"""

import re
from collections.abc import Sequence

from mimir.domain.task_states import TaskStatus
from mimir.domain.value_class import value_class
from mimir.reporting.render.markdown_escape import escape_text

MOST_CHARS = 60
"""Characters of a title."""

_COLOURS = {
    TaskStatus.COMPLETED: ("completed", "#c8e6c9", "#2e7d32"),
    TaskStatus.FAILED: ("failed", "#ffcdd2", "#c62828"),
    TaskStatus.BLOCKED: ("blocked", "#ffe0b2", "#ef6c00"),
    TaskStatus.CANCELLED: ("cancelled", "#cfd8dc", "#546e7a"),
    TaskStatus.PENDING: ("pending", "#eceff1", "#90a4ae"),
}
"""Status → class, fill, line; `_AT_WORK` for any other."""
_AT_WORK = ("working", "#bbdefb", "#1565c0")
_PLAIN = re.compile(r"[^\w .,;:!?+*/()=-]")
"""Characters that Mermaid or a page could read as markup."""


@value_class
class DiagramNode:
    """One task of the diagram."""

    id: str
    """In the plan."""
    title: str
    status: TaskStatus
    dependencies: tuple[str, ...] = ()
    """Ids in the plan."""


def diagram(name: str, tasks: Sequence[DiagramNode]) -> list[str]:
    """Return the lines of the diagram of a run; arrows lead to dependent tasks."""
    # Ids of tasks may have characters that Mermaid does not accept.
    numbers = {task.id: n for n, task in enumerate(tasks)}
    lines = ["flowchart TD", f"    %% {_label(name)}"]
    for task in tasks:
        label = f"{_label(task.id)}<br/>{_label(task.title)}<br/>{_label(task.status.value)}"
        lines.append(f'    t{numbers[task.id]}["{label}"]:::{_colour(task.status)[0]}')
    for task in tasks:
        known = [numbers[id] for id in task.dependencies if id in numbers]
        lines += [f"    t{n} --> t{numbers[task.id]}" for n in known]
    # Sorted: equal runs give equal bytes.
    used = sorted({_colour(task.status) for task in tasks})
    return lines + [f"    classDef {c} fill:{fill},stroke:{line}" for c, fill, line in used]


def _colour(status: TaskStatus) -> tuple[str, str, str]:
    return _COLOURS.get(status, _AT_WORK)


def _label(text: str) -> str:
    """Return a text on one line; markup characters are written as their numbers."""
    line = " ".join(escape_text(text).split())
    short = line if len(line) <= MOST_CHARS else f"{line[: MOST_CHARS - 1]}…"
    return _PLAIN.sub(lambda found: f"#{ord(found[0])};", short)
