"""Schema of every store: labels, edge types, properties, and the one form of JSON."""

import json
import re
from collections.abc import Mapping
from enum import StrEnum
from functools import lru_cache
from typing import Any

import orjson

from mimir.domain.json_value import as_texts, is_array
from mimir.errors import StoreError
from mimir.store.protocol import Row, Value

# Grows with every change that an older mimir cannot read; older stores are read as they are. 2: texts that many
# calls of a run repeat are stored once.
SCHEMA_VERSION = 2

# Characters from which an adapter may store a text separately, so that a small change does not rewrite it.
LONG_TEXT = 1000

# Characters of an id.
MAX_ID = 4000


class NodeLabel(StrEnum):
    """Label of a node."""

    PROJECT = "Project"
    RUN = "Run"
    TASK = "Task"
    ATTEMPT = "Attempt"
    VERDICT = "Verdict"
    EVIDENCE = "Evidence"
    ARTIFACT = "Artifact"
    PREAMBLE = "Preamble"
    MEMORY = "Memory"
    CALL = "Call"
    EVENT = "Event"
    QUESTION = "Question"
    SESSION = "Session"


class EdgeType(StrEnum):
    """Type of an edge. Calls and events have no edges; they are found by property."""

    HAS_RUN = "HAS_RUN"
    """Project → Run."""
    HAS_TASK = "HAS_TASK"
    """Run → Task."""
    DEPENDS_ON = "DEPENDS_ON"
    """Task → task that must be completed before it."""
    HAS_ATTEMPT = "HAS_ATTEMPT"
    """Task → Attempt."""
    HAS_VERDICT = "HAS_VERDICT"
    """Attempt → Verdict."""
    BACKED_BY = "BACKED_BY"
    """Attempt or Run → Evidence."""
    PRODUCED = "PRODUCED"
    """Attempt or Run → Artifact."""
    USED_PREAMBLE = "USED_PREAMBLE"
    """Attempt → Preamble."""
    ABOUT = "ABOUT"
    """Memory → its subject."""
    FOLLOWS = "FOLLOWS"
    """Run → run that it was made from."""
    ASKED = "ASKED"
    """Attempt or planning run → Question."""


# Label → property that full-text search reads.
SEARCHED: Mapping[str, str] = {NodeLabel.MEMORY: "text"}

PROMOTED_TEXT = (
    "runId", "projectId", "lane", "chain", "status", "claimState", "kind", "createdAt"
)  # fmt: skip
PROMOTED_NUMBER = ("seq", "priority")
# Properties of most queries and orders: each adapter has an index for them, and each holds one type.
PROMOTED = (*PROMOTED_TEXT, *PROMOTED_NUMBER)

# Properties that each phase writes when the status changes: to the task, with a copy to the attempt. 1 created
# · 2 worker starts (the claim writes it) · 3 worker answered · 4 checks run · 5 QC starts · 6 verdict · 7 retry
# prepared · 8 completed · 9 failed · 10 integrated. Objects are JSON text, so their names end in `Json`.
PHASES: Mapping[int, tuple[str, ...]] = {
    1: ("taskCreatedAt", "workerRole", "qcRole", "verificationCriteria", "maxRetries", "attemptNumber"),
    2: ("attemptNumber", "workerStartTime", "isRetry", "retryReason"),
    3: (
        "workerOutput", "workerDuration", "workerTokens", "workerToolCalls", "workerMessageCount",
        "estimatedContextTokens", "workerCompletedAt",
    ),
    4: ("checksCompletedAt", "chainHash", "chainLength"),
    5: ("qcStartTime", "qcAttemptNumber"),
    6: (
        "qcScore", "qcPassed", "qcFeedback", "qcIssues", "qcRequiredFixes", "qcCompletedAt",
        "qcVerificationHistoryJson",
    ),
    7: ("nextAttemptNumber", "retryReason", "retryErrorContextJson", "retryPreparedAt"),
    8: (
        "qcScore", "qcPassed", "qcFeedback", "verifiedAt", "totalAttempts", "totalTokensUsed",
        "totalToolCalls", "qcFailuresCount", "retriesNeeded", "qcPassedOnAttempt", "qcAttemptMetricsJson",
    ),
    9: (
        "qcScore", "qcPassed", "qcFeedback", "qcFailureReportJson", "totalAttempts", "totalQCFailures",
        "qcFailureReportGenerated", "finalWorkerOutput", "improvementNeeded", "qcAttemptMetricsJson",
    ),
    10: ("integratedAt", "integratedCommit", "integrationRetries"),
}  # fmt: skip

_NAME = re.compile(r"[a-z][A-Za-z0-9_]{0,99}", re.ASCII)
_HALVES = re.compile("[\ud800-\udfff]")
_LARGEST = 2**63 - 1


def pack(value: object) -> str:
    """Return a JSON value in its one form: sorted keys, no blanks.

    Raises:
        StoreError: It is not a JSON value; NaN and Infinity are none.
    """
    # Half surrogates are written as escapes, so that nothing is lost.
    quick = _pack_fast(value)
    if quick is not None:
        return quick
    try:
        text = _WRITER.encode(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise StoreError(f"A value cannot be written as JSON: {error}") from error
    return _HALVES.sub(lambda half: f"\\u{ord(half[0]):04x}", text)


# Defines the one form: hashes of stores and recordings cover it.
_WRITER = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
)
_QUICK = orjson.OPT_SORT_KEYS | orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME
# Within these limits, and for 0, both writers write a float alike.
_SMALL, _LARGE = 1e-4, 1e16


def _pack_fast(value: object) -> str | None:
    """Return a JSON value in its one form by the fast writer; None if the writers may differ."""
    try:
        text = orjson.dumps(value, option=_QUICK).decode()
    except orjson.JSONEncodeError:
        return None
    return text if _is_plain(value) else None


# Types that both writers write alike.
_PLAIN_KINDS = frozenset((str, int, bool, type(None)))


def _is_plain(value: object) -> bool:
    """Return whether both writers write a value alike."""
    # They differ in floats with an exponent; NaN would become null.
    held: list[Any] = [value]
    for each in held:  # the loop appends the members of each
        kind: type[object] = type(each)  # pyright: ignore[reportUnknownVariableType]
        if kind is dict or kind is list or kind is tuple:
            for one in each.values() if kind is dict else each:
                if type(one) not in _PLAIN_KINDS:
                    held.append(one)  # noqa: PERF401  before Python 3.12 a comprehension is a call
        elif kind is float:
            if each != 0 and not _SMALL <= abs(each) < _LARGE:
                return False
        elif kind not in _PLAIN_KINDS and not isinstance(each, str):
            return False
    return True


def unpack(text: str) -> object:
    """Return the value that `pack` wrote.

    Raises:
        StoreError: It is not JSON.
    """
    try:
        written = text.encode()
        if _LONG_NUMBER not in written.translate(_ALL_DIGITS_0):
            return orjson.loads(written)
    except ValueError:
        pass  # orjson refuses half surrogates, which mimir stores
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise StoreError(f"Stored JSON cannot be read: {error}") from error


# The fast reader reads a whole number of so many digits as a float; every other value is the same.
_LONG_NUMBER = b"0" * 19
_ALL_DIGITS_0 = bytes.maketrans(b"123456789", b"000000000")


def well_formed(text: str) -> str:
    """Return a text as UTF-8 can hold it: a half surrogate becomes U+FFFD."""
    return _HALVES.sub("\ufffd", text) if not text.isascii() else text


def accept(row: Row, *, partly: bool = False) -> dict[str, Value]:
    """Return a row as every store keeps it.

    Args:
        row: `id` and properties; if `partly`, properties alone.
        partly: True: it changes a node that has its id already.

    Raises:
        StoreError: A name is not camelCase ASCII, a value has a wrong type, or the id is invalid.
    """
    clean: dict[str, Value] = {}
    for name, given in row.items():
        if type(given) is str:
            is_plain = given.isascii()
        elif type(given) is int:
            is_plain = -_LARGEST - 1 <= given <= _LARGEST
        else:
            is_plain = True
        # Each write brings dozens of values: those that nothing can be wrong with are let through at a glance.
        known = is_plain and type(given) in _plain_kinds(name)
        clean[name] = given if known else _accept_value(name, given)
    if not partly:
        node_id(row.get("id"))
    elif "id" in row:
        raise StoreError("The id of a node cannot be changed.")
    return clean


def node_id(value: object) -> str:
    """Return an id that a node may have.

    Raises:
        StoreError: It is empty, too long or not plain text.
    """
    # Ids are part of file names and of queries for users.
    if not isinstance(value, str) or not 0 < len(value) <= MAX_ID or not is_id(value):
        raise StoreError(f"{str(value)[:80]!r} cannot be the id of a node.")
    return value


def is_id(value: str) -> bool:
    """Return whether a node can have this id; a model may have invented it."""
    return "\0" not in value and (value.isascii() or not _HALVES.search(value))


@lru_cache(maxsize=1024)
def property_name(name: str) -> str:
    """Return the name of a property, checked.

    Raises:
        StoreError: It is not camelCase ASCII.
    """
    if not _NAME.fullmatch(name):
        raise StoreError(f"{name[:80]!r} cannot be the name of a property.")
    return name


def label_name(label: str) -> str:
    """Return a label that exists.

    Raises:
        StoreError: There is no such label.
    """
    return _member(_LABELS, label, "label")


def edge_name(type: str) -> str:
    """Return an edge type that exists.

    Raises:
        StoreError: There is no such type.
    """
    return _member(_EDGES, type, "kind of edge")


def value(given: object) -> Value:
    """Return a value of a property as every store keeps it.

    Raises:
        StoreError: It has a wrong type, or is a number of more than 64 bits.
    """
    if given is None or isinstance(given, bool):
        return given
    if isinstance(given, str):
        return well_formed(str(given))
    if isinstance(given, int | float):
        return _number(given)
    texts = _texts(given)
    if texts is None:
        raise StoreError(f"A property cannot hold a {type(given).__name__}: {str(given)[:80]!r}.")
    return texts


def _texts(given: object) -> list[str] | None:
    """Return a list of texts; None if it is not one."""
    if not is_array(given):
        return None
    texts = [well_formed(str.__str__(part)) for part in as_texts(given)]
    return texts if len(texts) == len(given) else None


def _number(given: float) -> int | float:
    # Bool is excluded before; SQLite and Neo4j hold 64 bits.
    if isinstance(given, int):
        given = int(given)
        if not -_LARGEST - 1 <= given <= _LARGEST:
            raise StoreError("A property cannot hold a whole number of more than 64 bits.")
    elif given != given or given in (float("inf"), float("-inf")):
        raise StoreError(f"A property cannot hold {given!r}.")
    else:
        given = float(given)
    return given


@lru_cache(maxsize=1024)
def _plain_kinds(name: str) -> frozenset[type]:
    """Return the types of which a property may hold any plain value.

    Raises:
        StoreError: The name is not camelCase ASCII.
    """
    if name in PROMOTED_NUMBER:
        return frozenset((int, type(None)))
    if name == "id" or name in PROMOTED_TEXT:
        return frozenset((str, type(None)))
    property_name(name)
    return frozenset((str, int, bool, type(None)))


def _accept_value(name: str, given: object) -> Value:
    clean = value(given)
    if name == "id":
        return clean
    property_name(name)
    wanted = _PROMOTED_TYPES.get(name)
    if clean is None or wanted is None:
        return clean
    if isinstance(clean, bool) or not isinstance(clean, wanted):
        raise StoreError(f"Property {name!r} cannot hold {str(clean)[:80]!r}.")
    return clean


_PROMOTED_TYPES: Mapping[str, tuple[type, ...]] = {
    **dict.fromkeys(PROMOTED_TEXT, (str,)),
    **dict.fromkeys(PROMOTED_NUMBER, (int, float)),
}


def _member(kinds: Mapping[str, str], name: str, noun: str) -> str:
    # The message cuts the name: it may come from a model.
    found = kinds.get(name)
    if found is None:
        raise StoreError(f"There is no {noun} {str(name)[:80]!r}.")
    return found


# Each write asks for a dozen of them: looked up, not searched for.
_LABELS: Mapping[str, str] = {kind.value: kind.value for kind in NodeLabel}
_EDGES: Mapping[str, str] = {kind.value: kind.value for kind in EdgeType}
