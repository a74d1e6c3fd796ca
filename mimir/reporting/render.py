"""The report as markdown and as its JSON twin: the same summary and prose give the same bytes. Pure.

Prose of models stands in sections of its own, whose headings say so; taking them out leaves the report that there is without them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import cast

from mimir.reporting.prose import Prose
from mimir.reporting.summary import Summary
from mimir.reporting.words import figures, sections
from mimir.reporting.words.plain import clean, code, fenced

SCHEMA = 1
"""Of the JSON twin; grows with every change that could break a script."""

_BY_A_MODEL = (
    "Written by a model from the numbers of this report. It proves nothing, and decides nothing."
)


def markdown(summary: Summary, prose: Prose, link: sections.Link | None = None) -> str:
    """Return `execution-report.md`; `link` makes links to the store's nodes, if they have any."""
    return "".join(pieces(summary, prose, link))


def pieces(summary: Summary, prose: Prose, link: sections.Link | None = None) -> Iterator[str]:
    """Yield what `markdown` returns, a few lines at a time: the report of thousands of tasks is megabytes."""
    begun = False
    for section in _sections(summary, prose, link):
        apart = "\n\n" if begun else ""
        for line in section:
            yield apart
            yield line
            apart, begun = "\n", True
    yield "\n"


def _sections(
    summary: Summary, prose: Prose, link: sections.Link | None
) -> Iterator[Iterable[str]]:
    """Yield each section as its lines; one that has none is left out."""
    yield _one(sections.outcome(summary))
    yield _prose("## In the words of the PM (model)", prose.run)
    yield sections.tasks(summary)
    yield sections.proof(summary)
    yield sections.files(summary)
    yield _one(sections.failures(summary))
    for report in summary.failures:
        yield _one(sections.failure(report))
        heading = f"#### {code(report.task)} in the words of the reporter (model)"
        yield _prose(heading, prose.tasks.get(report.task, ""))
    yield sections.reasoning(summary)
    yield _one(sections.decided(summary))
    yield _one(sections.warned(summary))
    yield _one(figures.metrics(summary))
    yield figures.receipts(summary)
    yield sections.nodes(summary, link)
    yield _one(sections.next_steps(summary))


def _one(text: str) -> Iterable[str]:
    return (text,) if text else ()


def as_json(summary: Summary, prose: Prose) -> dict[str, object]:
    """Return the report as JSON values; `docs/report.md` says what each member means."""
    words = {"run": clean(prose.run), "tasks": {t: clean(text) for t, text in prose.tasks.items()}}
    return {"schema": SCHEMA, **_members(summary), "prose": words}


def _prose(heading: str, text: str) -> Iterable[str]:
    return _one(f"{heading}\n\n{_BY_A_MODEL}\n\n{fenced(text)}" if text.strip() else "")


def _members(value: object) -> dict[str, object]:
    return {f.name: _plain(getattr(value, f.name)) for f in fields(cast("Summary", value))}


def _plain(value: object) -> object:
    """Return a value of a summary as JSON; texts without control characters, as in the markdown."""
    match value:
        case Enum():
            return cast("object", value.value)
        case str():
            return clean(value)
        case Mapping():
            given = cast("Mapping[str, object]", value)
            return {clean(name): _plain(item) for name, item in given.items()}
        case tuple() | list():
            return [_plain(item) for item in cast("Sequence[object]", value)]
        case _ if is_dataclass(value):
            return _members(value)
        case _:
            return value
