"""Cypher of `queries.cypher` by name: pieces of closed sets, values as parameters."""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from mimir.domain.task_states import RunStatus, TaskStatus
from mimir.errors import StoreError
from mimir.store.query_file import load_queries
from mimir.store.schema import PROMOTED, SEARCHED, EdgeType, NodeLabel

_HOLE = re.compile(r"<([a-z]+)>")
_OWN = re.compile(r"\$(is_\w+|others)\b")
_PLANNED_ONCE = "CYPHER replan=skip "
_PLACE = re.compile(r"w\d{1,4}")


class CypherText(str):
    """Text that may be part of a query; only this module creates it."""

    __slots__ = ()


def status_label(status: str) -> str:
    """Return the label that shows a status: `qc_executing` is `QcExecuting`."""
    return "".join(part.capitalize() for part in status.split("_"))


# Label → status → second label that shows it.
STATUS_LABELS: Mapping[str, Mapping[str, str]] = {
    NodeLabel.TASK: {status.value: status_label(status.value) for status in TaskStatus},
    NodeLabel.RUN: {status.value: status_label(status.value) for status in RunStatus},
}

_NAMES = frozenset(
    {
        "id", *PROMOTED, *SEARCHED.values(), *(label.value for label in NodeLabel), *(edge.value for edge in EdgeType),
        *(shown for by_status in STATUS_LABELS.values() for shown in by_status.values()), "MimirDoor",
    }
)  # fmt: skip


def query(name: str, **pieces: str) -> CypherText:
    """Return a query with its holes filled.

    Raises:
        StoreError: A piece is neither the name of a closed set nor text of this module.
    """
    for piece in pieces.values():
        if (
            not isinstance(piece, CypherText)
            and piece not in _NAMES
            and not _PLACE.fullmatch(piece)
        ):
            raise StoreError(f"{piece[:80]!r} cannot stand in a query.")
    return _fill_query(name, tuple(pieces.items()))


def join_texts(pieces: Iterable[CypherText], between: str) -> CypherText:
    """Join texts with a separator of the language."""
    if between not in ("", ", ", "|", ":", "\n"):
        raise StoreError(f"{between!r} cannot stand in a query.")
    return CypherText(between.join(pieces))


def combine_queries(questions: Sequence[CypherText]) -> CypherText:
    """Return one statement for several queries; the n-th has the parameters `q<n>_…`."""
    asked = (
        _OWN.sub(rf"$q{n}_\1", one.removeprefix(_PLANNED_ONCE)) for n, one in enumerate(questions)
    )
    return CypherText(_PLANNED_ONCE + "\nUNION ALL ".join(asked))


def names(of: Iterable[str], *, between: str = "|") -> CypherText:
    """Join names of closed sets, as in `Task|Run`."""
    return join_texts([_name(name) for name in of], between)


def types(of: Iterable[str]) -> CypherText:
    """Return `:A|B` for edge types; empty: any."""
    wanted = names(of)
    return CypherText(f":{wanted}" if wanted else "")


@lru_cache(maxsize=4096)
def _fill_query(name: str, pieces: tuple[tuple[str, str], ...]) -> CypherText:
    given = dict(pieces)
    text = load_queries(__package__ or "", "queries.cypher", "//")[name]
    return CypherText(_HOLE.sub(lambda hole: given[hole[1]], text))


def _name(name: str) -> CypherText:
    # Names are part of the text, so only names of closed sets are allowed.
    if name not in _NAMES:
        raise StoreError(f"{name[:80]!r} cannot stand in a query.")
    return CypherText(str(name))
