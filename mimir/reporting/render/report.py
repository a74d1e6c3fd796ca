"""The report as markdown and as its JSON twin: the same summary and prose give the same bytes. Pure.

Prose of models stands in sections of its own, whose headings say so; taking them out leaves the report that there is without them.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from typing import cast

from mimir.reporting.render import metric_sections, sections
from mimir.reporting.render.markdown_escape import clean, code, fenced
from mimir.reporting.render.narrative import Prose
from mimir.reporting.summary.summary import Summary

SCHEMA = 1
"""Of the JSON twin; grows with every change that could break a script."""

_BY_A_MODEL = (
    "Written by a model from the numbers of this report. It proves nothing, and decides nothing."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Words:
    """A place for words of a model."""

    heading: str
    of: Callable[[Prose], str]


class Draft:
    """A report with places for the words of models: it can be written while they are waited for. Of thousands of tasks it is megabytes, held once."""

    def __init__(self, summary: Summary, link: sections.Link | None = None) -> None:
        """Write all but those words; `link` makes links to the store's nodes, if they have any."""
        self._text = bytearray()
        self._places: list[tuple[int, _Words]] = []
        for section in _sections(summary, link):
            if isinstance(section, _Words):
                self._places.append((len(self._text), section))
                continue
            apart = "\n\n" if self._text else ""
            for line in section:
                self._text += f"{apart}{line}".encode()
                apart = "\n"
        self._text += b"\n"

    def filled(self, prose: Prose) -> bytearray:
        """Put the words in, once; the whole report."""
        for place, words in reversed(self._places):
            said = words.of(prose)
            if said.strip():
                text = f"\n\n{words.heading}\n\n{_BY_A_MODEL}\n\n{fenced(said)}"
                self._text[place:place] = text.encode()
        self._places.clear()
        return self._text


def markdown(summary: Summary, prose: Prose, link: sections.Link | None = None) -> str:
    """Return `execution-report.md`; `link` makes links to the store's nodes, if they have any."""
    return Draft(summary, link).filled(prose).decode()


def _sections(summary: Summary, link: sections.Link | None) -> Iterator[Iterable[str] | _Words]:
    """Yield each section as its lines; one that has none is left out. The first one always has some."""
    yield _one(sections.outcome(summary))
    yield _Words(heading="## In the words of the PM (model)", of=lambda prose: prose.run)
    yield sections.tasks(summary)
    yield sections.proof(summary)
    yield sections.files(summary)
    yield _one(sections.failures(summary))
    for report in summary.failures:
        yield _one(sections.failure(report))
        yield _words_on(report.task)
    yield sections.reasoning(summary)
    yield _one(sections.decided(summary))
    yield _one(sections.warned(summary))
    yield _one(metric_sections.metrics(summary))
    yield metric_sections.receipts(summary)
    yield sections.nodes(summary, link)
    yield _one(sections.next_steps(summary))


def _words_on(task: str) -> _Words:
    heading = f"#### {code(task)} in the words of the reporter (model)"
    return _Words(heading=heading, of=lambda prose: prose.tasks.get(task, ""))


def _one(text: str) -> Iterable[str]:
    return (text,) if text else ()


def as_json(summary: Summary, prose: Prose) -> dict[str, object]:
    """Return the report as JSON values; `docs/report.md` says what each member means."""
    words = {"run": clean(prose.run), "tasks": {t: clean(text) for t, text in prose.tasks.items()}}
    return {"schema": SCHEMA, **_members(summary), "prose": words}


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
