"""`LEDGER.md`: the state of a run as text, and the edits that a user made to it. Pure."""

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from mimir.domain.value_class import value_class

SCHEMA = 1
_META = ("run", "session", "status", "phase", "progress", "updated", "schema")
_MARKS = {"completed": "x", "running": ">", "needs_input": ">", "stuck": ">", "pending": " "}
_PLAIN = ("needs_input", "stuck")
"""States whose detail has no brackets."""
_TASK = re.compile(
    r"- \[[ x>]\] (?P<id>\S+): (?P<title>.*): (?P<role>\S+) → (?P<state>\w+)"
    r"(?: \((?P<detail>[^()→]*)\)| (?P<plain>since \S+|\S+))?"
)
_FAILED = re.compile(r"- \[!\] (?P<id>\S+) → (?P<state>\w+): (?P<detail>.*)")
_LEARNING = re.compile(
    r"- (?P<kind>Pattern|Decision|Correction): (?P<text>.*) \((?P<id>m-\w+)(?:, from (?P<run>\S+))?\)"
)
_ARCHIVED = re.compile(
    r"- (?P<title>.*): (?P<outcome>\w+), (?P<date>\d{4}-\d\d-\d\d), (?P<run>\S+)"
)
_NEW = re.compile(r"- (?:(?P<kind>Pattern|Decision|Correction): )?(?P<text>\S.*)")


@value_class
class LedgerTask:
    """Line of one task; a failed, blocked or cancelled one has no title and no role."""

    id: str
    title: str = ""
    role: str = ""
    state: str
    """completed, running, needs_input, stuck, pending, failed, blocked or cancelled."""
    detail: str = ""
    """In brackets. Of a failed task its cause, of a waiting one its question."""


@value_class
class LedgerLearning:
    """Accepted note of the project's memory."""

    id: str
    """`m-` and a hash of the note's id."""
    kind: str
    """Pattern, Decision or Correction."""
    text: str
    run: str = ""


@value_class
class ArchivedRun:
    """Line of a run that has ended."""

    title: str
    outcome: str
    date: str
    run: str


@value_class
class Ledger:
    """State of a run as its ledger shows it; every text is one line."""

    run: str
    session: str = "-"
    status: str
    phase: str
    """A step of a pattern from 1 to 6, or `running`."""
    progress: str
    updated: str
    """ISO-8601 UTC."""
    title: str
    tasks: tuple[LedgerTask, ...] = ()
    direction: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()
    decisions: tuple[str, ...] = ()
    learnings: tuple[LedgerLearning, ...] = ()
    handoff: tuple[str, ...] = ()
    archive: tuple[ArchivedRun, ...] = ()


@value_class
class LedgerEdits:
    """Edits of a user since the file was written."""

    added: tuple[tuple[str, str], ...] = ()
    """New learnings: (kind, text)."""
    removed: tuple[LedgerLearning, ...] = ()
    handoff: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    """Other changed lines, as the file has them: the next write restores them."""

    @property
    def has_effect(self) -> bool:
        """Whether a synchronization would change the memory."""
        return bool(self.added or self.removed or self.handoff)


def one_line(text: str) -> str:
    """Return a text as one line without control characters."""
    # A line break in a text would begin a line of another meaning.
    printable = "".join(char if char.isprintable() else " " for char in text)
    return " ".join(printable.split())


def learning_id(node: str) -> str:
    """Return the short id of a note of the memory."""
    return f"m-{hashlib.sha256(node.encode()).hexdigest()[:12]}"


def render(ledger: Ledger, edits: LedgerEdits | None = None) -> str:
    """Return the text of a ledger; edits that wait for their synchronization stay in it."""
    pending = edits or LedgerEdits()
    removed = {learning.id for learning in pending.removed}
    known = {learning.text for learning in ledger.learnings}
    # The order of names and values is the order of the lines.
    values = (ledger.run, ledger.session, ledger.status, ledger.phase, ledger.progress)
    meta = zip(_META, (*values, ledger.updated, str(SCHEMA)), strict=True)
    sections: dict[str, Iterable[str]] = {
        "Direction": _bullets(ledger.direction),
        "Assumptions": _bullets(ledger.assumptions),
        "Decisions": _bullets(ledger.decisions),
        "Learnings": [
            *(_learning_line(one) for one in ledger.learnings if one.id not in removed),
            # Another process may have stored the note; it is listed once.
            *(f"- {kind}: {text}" for kind, text in pending.added if text not in known),
        ],
        "Handoff": [*_bullets(ledger.handoff), *_bullets(pending.handoff)],
        "Archive": [f"- {a.title}: {a.outcome}, {a.date}, {a.run}" for a in ledger.archive],
    }
    lines = ["# LEDGER", "", "## Meta", "", *(f"- {name}: {text}" for name, text in meta)]
    lines += ["", f"## Epic: {ledger.title}", "", *(_task_line(task) for task in ledger.tasks)]
    for name, body in sections.items():
        lines += ["", f"## {name}", *(["", *given] if (given := list(body)) else [])]
    return "\n".join(lines).rstrip() + "\n"


def parse(text: str) -> Ledger:
    """Return the ledger that `render` wrote; lines of no form are left out."""
    found = _split(text)
    meta = dict(line[2:].split(": ", 1) for line in found.lines("Meta") if ": " in line)
    return Ledger(
        run=meta.get("run", ""),
        session=meta.get("session", "-"),
        status=meta.get("status", ""),
        phase=meta.get("phase", ""),
        progress=meta.get("progress", ""),
        updated=meta.get("updated", ""),
        title=found.title,
        tasks=tuple(task for line in found.lines("Epic") if (task := _read_task(line))),
        direction=_texts(found.lines("Direction")),
        assumptions=_texts(found.lines("Assumptions")),
        decisions=_texts(found.lines("Decisions")),
        learnings=tuple(
            LedgerLearning(id=m["id"], kind=m["kind"], text=m["text"], run=m["run"] or "")
            for line in found.lines("Learnings")
            if (m := _LEARNING.fullmatch(line))
        ),
        handoff=_texts(found.lines("Handoff")),
        archive=tuple(
            ArchivedRun(title=m["title"], outcome=m["outcome"], date=m["date"], run=m["run"])
            for line in found.lines("Archive")
            if (m := _ARCHIVED.fullmatch(line))
        ),
    )


def find_edits(written: str, current: str) -> LedgerEdits:
    """Return the edits of a user: the differences of the file from the written text.

    Only new and removed bullets under Learnings and new text under Handoff have an effect.
    """
    before, now = _split(written), _split(current)
    known = {one.id: one for one in parse(written).learnings}
    kept = {m["id"] for line in now.lines("Learnings") if (m := _LEARNING.fullmatch(line))}
    # A line in the form of a stored note is a changed one: it never becomes a new note.
    fresh = [line for line in now.lines("Learnings") if line not in before.lines("Learnings")]
    added = [m for line in fresh if not _LEARNING.fullmatch(line) and (m := _NEW.fullmatch(line))]
    texts = set(before.lines("Handoff"))
    handoff = [line.removeprefix("- ") for line in now.lines("Handoff") if line not in texts]
    return LedgerEdits(
        added=tuple((m["kind"] or "Pattern", m["text"]) for m in added),
        removed=tuple(one for id, one in known.items() if id not in kept),
        handoff=tuple(handoff),
        others=tuple(_other_edits(before, now, known.keys() & kept)),
    )


@dataclass(slots=True)
class _Sections:
    """Lines of a ledger by section, without blank ones."""

    title: str = ""
    found: dict[str, list[str]] = field(default_factory=dict[str, list[str]])

    def lines(self, name: str) -> Sequence[str]:
        return self.found.get(name, ())


def _split(text: str) -> _Sections:
    sections = _Sections()
    body = sections.found.setdefault("", [])
    for raw in text.splitlines():
        line = raw.rstrip()
        if line.startswith("## "):
            name = line[3:]
            if name.startswith("Epic: "):
                sections.title, name = name[6:], "Epic"
            body = sections.found.setdefault(name, [])
        elif line.strip():
            body.append(line)
    return sections


def _other_edits(before: _Sections, now: _Sections, kept: Iterable[str]) -> Iterable[str]:
    """Yield the edited lines without an effect, as the file has them, and removed ones."""
    if before.title != now.title:
        yield f"## Epic: {now.title}"
    for name in dict.fromkeys((*before.found, *now.found)):
        old, new = before.lines(name), now.lines(name)
        if name == "Learnings":
            # A changed line of a known note: its text belongs to the memory.
            ids = tuple(f"({id}" for id in kept)
            yield from (line for line in new if line not in old and any(id in line for id in ids))
            continue
        changed = [line for line in new if line not in old] if name != "Handoff" else []
        yield from changed or (f"{line} (removed)" for line in old if line not in new)


def _bullets(texts: Iterable[str]) -> list[str]:
    return [f"- {text}" for text in texts]


def _texts(lines: Iterable[str]) -> tuple[str, ...]:
    return tuple(line[2:] for line in lines if line.startswith("- "))


def _learning_line(learning: LedgerLearning) -> str:
    origin = f", from {learning.run}" if learning.run else ""
    return f"- {learning.kind}: {learning.text} ({learning.id}{origin})"


def _task_line(task: LedgerTask) -> str:
    # Every other state has ended without a result.
    mark = _MARKS.get(task.state)
    if mark is None:
        return f"- [!] {task.id} → {task.state}: {task.detail}"
    detail = f" ({task.detail})" if task.detail else ""
    if task.state in _PLAIN:
        detail = f" {task.detail}"
    return f"- [{mark}] {task.id}: {task.title}: {task.role} → {task.state}{detail}"


def _read_task(line: str) -> LedgerTask | None:
    if m := _FAILED.fullmatch(line):
        return LedgerTask(id=m["id"], state=m["state"], detail=m["detail"])
    if m := _TASK.fullmatch(line):
        detail = m["detail"] or m["plain"] or ""
        return LedgerTask(
            id=m["id"], title=m["title"], role=m["role"], state=m["state"], detail=detail
        )
    return None
