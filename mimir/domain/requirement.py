"""Requirements of a specification: their form, their ids, and texts that name them. Pure."""

import re
from collections.abc import Sequence

from mimir.domain.value_class import value_class

REQUIREMENTS_TEXT = "requirements"
"""Name of the stored text with the requirements of an approved specification."""
SECTIONS = ("Goal", "Out of scope", "Requirements", "Assumptions", "Open points")
MAX_REQUIREMENTS = 200
_ITEM = re.compile(r"^\s*[-*]\s+\**(R\d{1,4})\**\s*[:.]\**\s*(.*)$", re.IGNORECASE)
_NAMED = re.compile(r"\bR\d{1,4}\b")
_SHALL = re.compile(r"\bwhen\b.*\bshall\b", re.IGNORECASE | re.DOTALL)


@value_class
class Requirement:
    """One behaviour that the user approved."""

    id: str
    """R1, R2 …"""
    text: str


@value_class
class SpecificationReading:
    """Requirements of a specification, and the faults of its form."""

    requirements: tuple[Requirement, ...]
    problems: tuple[str, ...]


def read_specification(text: str) -> SpecificationReading:
    """Read a specification; its requirements are the items `- R1: …` of their section."""
    sections = _split(text)
    problems = [f"the section '## {name}' is missing" for name in SECTIONS if name not in sections]
    found: list[Requirement] = []
    for line in sections.get("Requirements", ()):
        if item := _ITEM.match(line):
            found.append(Requirement(id=item[1].upper(), text=item[2].strip()))
        # A wrapped line belongs to the item above it.
        elif found and line.strip():
            last = found.pop()
            found.append(Requirement(id=last.id, text=f"{last.text} {line.strip()}".strip()))
    ids = [one.id for one in found]
    problems += [f"{id} occurs twice" for id in dict.fromkeys(ids) if ids.count(id) > 1]
    problems += [
        f"{one.id} does not have the form 'when … then … shall …'"
        for one in found
        if not _SHALL.search(one.text)
    ]
    if not found:
        problems.append("there is no requirement of the form '- R1: when … then … shall …'")
    if len(found) > MAX_REQUIREMENTS:
        problems.append(f"there are {len(found)} requirements; at most {MAX_REQUIREMENTS} are read")
    # Of two with one id the first counts; the second is a problem that is named.
    unique = {one.id: one for one in reversed(found[:MAX_REQUIREMENTS])}
    kept = sorted(unique.values(), key=lambda one: int(one.id[1:]))
    return SpecificationReading(requirements=tuple(kept), problems=tuple(problems))


def find_named(text: str) -> frozenset[str]:
    """Return the ids of requirements that a text names."""
    return frozenset(_NAMED.findall(text))


def find_lost(requirements: Sequence[Requirement], criteria: Sequence[str]) -> list[Requirement]:
    """Return the requirements that no criterion names."""
    named = frozenset[str]().union(*map(find_named, criteria))
    return [one for one in requirements if one.id not in named]


def _split(text: str) -> dict[str, list[str]]:
    """Return the lines of each section, by the name of its heading."""
    known = {name.casefold(): name for name in SECTIONS}
    sections: dict[str, list[str]] = {}
    here: list[str] = []
    for line in text.splitlines():
        if line.startswith("## "):
            title = line[3:].strip().rstrip(":")
            here = sections.setdefault(known.get(title.casefold(), title), [])
        else:
            here.append(line)
    return sections
