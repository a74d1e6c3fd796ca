"""Report as markdown and as JSON: equal summaries and narratives give equal bytes. Pure.

The narrative is in sections of its own, marked in their headings. Without them the rest is unchanged.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields, is_dataclass
from enum import Enum
from fractions import Fraction
from typing import TYPE_CHECKING

from mimir.domain.json_value import is_array, is_object
from mimir.domain.value_class import value_class
from mimir.reporting.render import metric_sections, sections
from mimir.reporting.render.markdown_escape import code, escape_text, fence_text
from mimir.reporting.render.narrative import Narrative
from mimir.reporting.summary.summary import RunSummary

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

SCHEMA = 1
"""Schema of the JSON twin; grows with every change that could break a script."""

_IF_KNOWN = ("prices_as_of", "questions", "triangle", "requirements")
"""Members that are left out while they are empty."""
_BY_A_MODEL = (
    "Written by a model from the facts of this report. It proves nothing and decides nothing."
)


@value_class
class _NarrativeSlot:
    """Place for a text of the narrative."""

    heading: str
    of: Callable[[Narrative], str]


class ReportDraft:
    """Report with places for the narrative, so that it can be rendered while reporters work."""

    def __init__(self, summary: RunSummary, link: sections.Link | None = None) -> None:
        """Render all but the narrative; `link` makes links to nodes of the store that have pages."""
        # A report of thousands of tasks is megabytes: its text is held once.
        self._text = bytearray()
        self._places: list[tuple[int, _NarrativeSlot]] = []
        for section in _sections(summary, link):
            if isinstance(section, _NarrativeSlot):
                self._places.append((len(self._text), section))
                continue
            apart = "\n\n" if self._text else ""
            for line in section:
                self._text += f"{apart}{line}".encode()
                apart = "\n"
        self._text += b"\n"

    def with_narrative(self, prose: Narrative) -> bytearray:
        """Insert the narrative, once, and return the whole report."""
        # From the end, so that earlier places stay where they are.
        for place, words in reversed(self._places):
            section_text = words.of(prose)
            if section_text.strip():
                text = f"\n\n{words.heading}\n\n{_BY_A_MODEL}\n\n{fence_text(section_text)}"
                self._text[place:place] = text.encode()
        self._places.clear()
        return self._text


def markdown(summary: RunSummary, prose: Narrative, link: sections.Link | None = None) -> str:
    """Return `execution-report.md`; `link` as in `ReportDraft`."""
    return ReportDraft(summary, link).with_narrative(prose).decode()


def _sections(
    summary: RunSummary, link: sections.Link | None
) -> Iterator[Iterable[str] | _NarrativeSlot]:
    """Yield each section as its lines; only the first one always has some."""
    yield _one(sections.outcome(summary))
    yield _NarrativeSlot(heading="## Narrative of the PM (model)", of=lambda prose: prose.run)
    yield sections.requirements_section(summary)
    yield sections.tasks_section(summary)
    yield sections.proof(summary)
    yield sections.files_section(summary)
    yield _one(sections.failures(summary))
    for report in summary.failures:
        yield _one(sections.failure(report))
        yield _words_on(report.task)
    yield sections.reasoning_section(summary)
    yield _one(sections.decisions_section(summary))
    yield sections.questions_section(summary)
    yield _one(sections.triangle_section(summary))
    yield _one(sections.warnings_section(summary))
    yield _one(metric_sections.metrics(summary))
    yield metric_sections.receipts_section(summary)
    yield sections.nodes(summary, link)
    yield _one(sections.next_steps(summary))


def _words_on(task: str) -> _NarrativeSlot:
    heading = f"#### Narrative of {code(task)} (model)"
    return _NarrativeSlot(heading=heading, of=lambda prose: prose.tasks.get(task, ""))


def _one(text: str) -> Iterable[str]:
    return (text,) if text else ()


def as_json(summary: RunSummary, prose: Narrative) -> dict[str, object]:
    """Return the report as JSON values; `docs/report.md` describes the members."""
    words = {
        "run": escape_text(prose.run),
        "tasks": {t: escape_text(text) for t, text in prose.tasks.items()},
    }
    return {"schema": SCHEMA, **_members(summary), "prose": words}


def _members(value: "DataclassInstance") -> dict[str, object]:
    # In the order of the fields, which is a part of the schema.
    members = {f.name: _plain(getattr(value, f.name)) for f in fields(value)}
    # Reports of older versions have no such date.
    return {
        name: one
        for name, one in members.items()
        if one not in ("", [], None) or name not in _IF_KNOWN
    }


def _plain(value: object) -> object:
    """Return a value of a summary as JSON; its texts have no control characters."""
    match value:
        case Enum():
            member: object = value.value
            return member
        case Fraction():
            return str(value)  # exact: `60`, `200/3`
        case str():
            return escape_text(value)
        case _ if is_object(value):
            return {escape_text(name): _plain(item) for name, item in value.items()}
        case _ if is_array(value):
            return [_plain(item) for item in value]
        case _ if is_dataclass(value) and not isinstance(value, type):
            return _members(value)
        case _:
            return value
