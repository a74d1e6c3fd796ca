"""Shared texts: texts that many calls of a run repeat, stored once per run.

A delta names such a text by `{"sha256": …}`; the text is an artifact of the run. The hash of a transcript covers the whole texts.
"""

import hashlib
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple

from mimir.domain import json_value
from mimir.domain.json_value import JsonObject
from mimir.errors import StoreError
from mimir.store.operations import evidence
from mimir.store.protocol import ReadOps, WriteOps
from mimir.store.records.call_records import CallRecord
from mimir.store.schema import pack, unpack, well_formed

# Characters from which a text is stored separately.
LEAST = 500
KIND = "text"


class RequestDelta(NamedTuple):
    """Difference of a request from the one before, as JSON."""

    whole: str
    """Whole JSON; the hash covers it."""
    kept: str
    """Stored JSON, without shared texts."""
    named: Mapping[str, str]
    """Shared texts by SHA-256."""


def fold(delta: JsonObject) -> RequestDelta:
    """Separate the shared texts of a delta: system messages and settings of a model call."""
    # Only texts that repeat: a user's message is stored in place.
    found: dict[str, str] = {}
    folded = dict(delta)
    settings = delta.get("settings")
    if json_value.is_object(settings):
        folded["settings"] = _name_text(pack(settings), found) or settings
    if json_value.is_array(messages := delta.get("messages")):
        folded["messages"] = [
            _fold_message(message, found) for message in json_value.as_objects(messages)
        ]
    whole = pack(delta)
    return RequestDelta(whole, pack(folded) if found else whole, found)


@lru_cache(maxsize=16)
def name_of(text: str) -> str | None:
    """Return the SHA-256 of a shared text; None if the text is stored in place."""
    if len(text) < LEAST or well_formed(text) != text:
        return None
    return hashlib.sha256(text.encode()).hexdigest()


def save_text(ops: WriteOps, run: str, texts: Mapping[str, str]) -> None:
    """Store texts of a run by their SHA-256, unless they exist."""
    # Several agents of a run write the same text.
    if not texts:
        return
    wanted = {_id(run, sha256): text for sha256, text in texts.items()}
    known = ops.labels_of(list(wanted))
    for id, text in wanted.items():
        if id not in known:
            evidence.put_artifact(ops, id, run, KIND, text)


def carry(ops: WriteOps, source: str, run: str, names: Iterable[str]) -> None:
    """Copy texts of another run that a run names too."""
    save_text(ops, run, {sha256: get(ops, source, sha256) for sha256 in names})


def get(reads: ReadOps, run: str, sha256: str) -> str:
    """Return a text of a run.

    Raises:
        StoreError: It is absent or was changed.
    """
    text = evidence.artifact(reads, _id(run, sha256))
    if text is None:
        raise StoreError(f"Run {run} names a text that is not there: {sha256}.")
    if hashlib.sha256(text.encode()).hexdigest() != sha256:
        raise StoreError(f"Text {sha256} of run {run} was changed.")
    return text


def delta_of(reads: ReadOps, call: CallRecord) -> JsonObject:
    """Return the difference of a call's request from the calls before, with its shared texts.

    Raises:
        StoreError: A text that it names is absent or was changed.
    """
    run, folded = call.run_id, call.delta.mapping()
    delta = dict(folded)
    if sha256 := _name(folded.get("settings")):
        delta["settings"] = unpack(get(reads, run, sha256))
    if json_value.is_array(messages := folded.get("messages")):
        delta["messages"] = [
            _whole(reads, run, message) for message in json_value.as_objects(messages)
        ]
    return delta


def _fold_message(message: JsonObject, found: dict[str, str]) -> JsonObject:
    text = message.get("text")
    if message.get("role") != "system" or not isinstance(text, str):
        return message
    named = _name_text(text, found)
    return {**message, "text": named} if named else message


def _name_text(text: str, found: dict[str, str]) -> JsonObject | None:
    sha256 = name_of(text)
    if sha256 is None:
        return None
    found[sha256] = text
    return {"sha256": sha256}


def _whole(reads: ReadOps, run: str, message: JsonObject) -> JsonObject:
    sha256 = _name(message.get("text"))
    return {**message, "text": get(reads, run, sha256)} if sha256 else message


def _name(value: object) -> str:
    """Return the SHA-256 that names a text here; empty if none does."""
    named = json_value.as_object(value)
    sha256 = named.get("sha256")
    return sha256 if len(named) == 1 and isinstance(sha256, str) else ""


def _id(run: str, sha256: str) -> str:
    return f"{run}#{KIND}-{sha256}"
