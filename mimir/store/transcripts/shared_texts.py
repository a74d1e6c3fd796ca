"""Texts that many calls of a run repeat, kept once a run: what agents are told at the beginning, and their tools and settings.

Where such a text would stand, `{"sha256": …}` names it; the text is an Artifact of the run, written in the transaction that names it.
A lane is hashed over the whole texts: how they are kept changes no hash.
"""

import hashlib
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple, cast

from mimir.errors import StoreError
from mimir.store import row_fields
from mimir.store.operations import evidence
from mimir.store.protocol import ReadOps, Row, WriteOps
from mimir.store.records.call_records import CallRecord
from mimir.store.schema import pack, unpack, well_formed

LEAST = 500
"""Characters from which a text is kept apart."""
KIND = "text"

Json = Mapping[str, object]


class RequestDelta(NamedTuple):
    """What a request adds to the one before, as JSON."""

    whole: str
    """What is hashed."""
    kept: str
    """Without the texts that others repeat."""
    named: Mapping[str, str]
    """Those texts, by SHA-256."""


def fold(delta: Json) -> RequestDelta:
    """Take the texts that others repeat out of what a request adds to the one before.

    Args:
        delta: Of a call; of a model's, `messages` of the role `system` and `settings` are looked at.
    """
    found: dict[str, str] = {}
    folded = dict(delta)
    settings = delta.get("settings")
    if isinstance(settings, Mapping):
        folded["settings"] = _named(pack(cast("Json", settings)), found) or settings
    messages = delta.get("messages")
    if isinstance(messages, list):
        folded["messages"] = [_folded(message, found) for message in cast("list[Json]", messages)]
    whole = pack(delta)
    return RequestDelta(whole, pack(folded) if found else whole, found)


@lru_cache(maxsize=16)
def name_of(text: str) -> str | None:
    """Return the SHA-256 that stands for a text; None: it is kept where it stands."""
    if len(text) < LEAST or well_formed(text) != text:
        return None
    return hashlib.sha256(text.encode()).hexdigest()


def save_text(ops: WriteOps, run: str, texts: Mapping[str, str]) -> None:
    """Keep texts of a run that are not kept yet, by their SHA-256."""
    if not texts:
        return
    wanted = {_id(run, sha256): text for sha256, text in texts.items()}
    known = ops.labels_of(list(wanted))
    for id, text in wanted.items():
        if id not in known:
            evidence.put_artifact(ops, id, run, KIND, text)


def carry(ops: WriteOps, source: str, run: str, names: Iterable[str]) -> None:
    """Keep texts of an earlier run for another one that names them too."""
    save_text(ops, run, {sha256: get(ops, source, sha256) for sha256 in names})


def get(reads: ReadOps, run: str, sha256: str) -> str:
    """Return a text of a run.

    Raises:
        StoreError: It is not there, or not the one that the name was made of.
    """
    text = evidence.artifact(reads, _id(run, sha256))
    if text is None:
        raise StoreError(f"Run {run} names a text that is not there: {sha256}.")
    if hashlib.sha256(text.encode()).hexdigest() != sha256:
        raise StoreError(f"Text {sha256} of run {run} was changed.")
    return text


def delta_of(reads: ReadOps, call: CallRecord | Row) -> Json:
    """Return what the request of a call adds to the calls before, with its shared texts.

    Raises:
        StoreError: A text that it names is absent or was changed.
    """
    if not isinstance(call, CallRecord):
        call = CallRecord.from_row(call)
    run, folded = call.run_id, call.delta.mapping()
    delta = dict(folded)
    if sha256 := _name(folded.get("settings")):
        delta["settings"] = unpack(get(reads, run, sha256))
    messages = folded.get("messages")
    if isinstance(messages, list):
        rows = cast("list[Json]", messages)
        delta["messages"] = [_whole(reads, run, message) for message in rows]
    return delta


def encode_delta(reads: ReadOps, call: Row) -> str:
    """Return what a call added to the one before as it is hashed.

    Raises:
        StoreError: A text that it names is not there, or was changed.
    """
    whole = delta_of(reads, call)
    kept = row_fields.json_field(call, "deltaJson")
    return row_fields.text_field(call, "deltaJson") if whole == kept else pack(whole)


def _folded(message: Json, found: dict[str, str]) -> Json:
    text = message.get("text")
    if message.get("role") != "system" or not isinstance(text, str):
        return message
    named = _named(text, found)
    return {**message, "text": named} if named else message


def _named(text: str, found: dict[str, str]) -> Json | None:
    sha256 = name_of(text)
    if sha256 is None:
        return None
    found[sha256] = text
    return {"sha256": sha256}


def _whole(reads: ReadOps, run: str, message: Json) -> Json:
    sha256 = _name(message.get("text"))
    return {**message, "text": get(reads, run, sha256)} if sha256 else message


def _name(value: object) -> str:
    """Return the SHA-256 that stands here for a text; empty: none does."""
    if not isinstance(value, Mapping):
        return ""
    named = cast("Json", value)
    sha256 = named.get("sha256")
    return sha256 if len(named) == 1 and isinstance(sha256, str) else ""


def _id(run: str, sha256: str) -> str:
    return f"{run}#{KIND}-{sha256}"
