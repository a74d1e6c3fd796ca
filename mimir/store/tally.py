"""A task's criteria in numbers, as its row holds them: to show ten thousand tasks, no verdict has to be read. The seals vouch for them."""

from collections.abc import Iterable

from mimir.domain.counts import NO_CRITERIA, count
from mimir.store import fields
from mimir.store.protocol import Row

_WORDS = tuple(NO_CRITERIA.as_json())
NAMES = ("criteriaExecuted", "criteriaJudged", "criteriaUnverified", "criteriaFailed")
OPEN = "criteriaOpen"
"""How many did not pass: any makes a run one with gaps."""


def properties(criteria: Iterable[tuple[str, str]]) -> dict[str, int]:
    """Return the properties of a task whose criteria were judged, each given as (state, basis)."""
    found = count(criteria)
    return {**dict(zip(NAMES, found.as_json().values(), strict=True)), OPEN: found.open}


def of(row: Row) -> dict[str, int]:
    """Return what a task's row says of its criteria, as `Counts.as_json` gives it; zeros where none was judged yet."""
    if NAMES[0] not in row:
        return NO_CRITERIA.as_json()
    return {word: fields.whole(row, name) for word, name in zip(_WORDS, NAMES, strict=True)}
