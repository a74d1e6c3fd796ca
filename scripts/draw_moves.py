"""Generator of two diagrams in docs/architecture.md: `python -m scripts.draw_moves`.

Both come from `mimir.domain.task_states`: every legal status change of a task with its actor, and
the attempt machine, entered at the stored phase.
"""

import sys
from pathlib import Path

from mimir.domain.task_states import MOVES, NODES, TERMINAL, TaskStatus, TransitionActor, guard
from mimir.errors import IllegalMove

DOCUMENT = Path(__file__).resolve().parent.parent / "docs" / "architecture.md"


def movers(at: TaskStatus, to: TaskStatus) -> tuple[TransitionActor, ...]:
    """Return the actors that may change a task's status from one value to another, by `guard`."""
    allowed: list[TransitionActor] = []
    for mover in TransitionActor:
        try:
            guard(at, to, mover)
        except IllegalMove:
            continue
        allowed.append(mover)
    return tuple(allowed)


def moves() -> str:
    """Return the Mermaid diagram of every legal status change."""
    lines = ["stateDiagram-v2", f"    [*] --> {TaskStatus.PENDING.value}"]
    for at, to in ((at, to) for at in TaskStatus for to in TaskStatus):
        if allowed := movers(at, to):
            label = " or ".join(mover.value for mover in allowed)
            lines.append(f"    {at.value} --> {to.value}: {label}")
    lines += [f"    {status.value} --> [*]" for status in TaskStatus if status in TERMINAL]
    return "\n".join(lines)


def machine() -> str:
    """Return the Mermaid diagram of the attempt machine: nodes, entries and exits."""
    lines = ["stateDiagram-v2", *(f"    [*] --> {node.value}" for node in NODES)]
    reached = [
        (at, to)
        for at in NODES
        for to, mover in MOVES[at].items()
        if mover is TransitionActor.MACHINE
    ]
    lines += [f"    {at.value} --> {to.value}" for at, to in reached]
    exits = dict.fromkeys(to for _, to in reached if to not in NODES)
    return "\n".join([*lines, *(f"    {to.value} --> [*]" for to in exits)])


def put(document: str, name: str, diagram: str) -> str:
    """Return the document with the diagram between the marks of this name.

    Raises:
        ValueError: The document has no such pair of marks.
    """
    begin, end = f"<!-- {name}: drawn by scripts/draw_moves.py -->", f"<!-- {name}: end -->"
    before, opened, rest = document.partition(begin)
    _, closed, after = rest.partition(end)
    if not opened or not closed:
        raise ValueError(f"{DOCUMENT.name} lacks the marks {begin!r} and {end!r}.")
    return f"{before}{begin}\n```mermaid\n{diagram}\n```\n{end}{after}"


def draw(document: str) -> str:
    """Return the document with both diagrams."""
    return put(put(document, "moves", moves()), "machine", machine())


def main() -> int:
    """Write the diagrams; print whether anything changed."""
    old = DOCUMENT.read_text(encoding="utf-8")
    new = draw(old)
    DOCUMENT.write_text(new, encoding="utf-8")
    print(f"{DOCUMENT.name}: {'drawn anew' if new != old else 'nothing changed'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
