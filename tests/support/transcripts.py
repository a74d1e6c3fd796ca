"""Calls of a transcript for tests of the journal: their executions are counted, and may crash."""

# Hashes are recomputed with the private functions that wrote them.
# pyright: reportPrivateUsage=false

import asyncio
from collections.abc import Mapping
from typing import Any

from mimir.domain.call_outcome import CallOutcome, Transcript
from mimir.domain.event import Event, EventKind
from mimir.domain.text_hash import hash_texts
from mimir.domain.usage import TokenUsage
from mimir.errors import StoreError
from mimir.store import row_fields
from mimir.store.operations import runs
from mimir.store.protocol import ReadOps, Row, Transactions, Value
from mimir.store.records.call_records import CallRecord
from mimir.store.schema import pack
from mimir.store.transcripts import call_rows, shared_texts
from mimir.store.transcripts.stored_transcript import StoredTranscript, Work


class Crash(BaseException):
    """The process is dead."""


class World:
    """The effects of calls: counted, and crashing where the test demands it."""

    def __init__(self) -> None:
        self.made: list[str] = []
        self.crash_in: str | None = None

    def work(
        self,
        name: str,
        value: Mapping[str, object] | None = None,
        tree: str = "",
        usage: TokenUsage | None = None,
    ) -> Work:
        """Return the work of a call of this name."""

        async def do() -> CallOutcome:
            self.made.append(name)
            await asyncio.sleep(0)
            if self.crash_in == name:
                raise Crash(name)
            return CallOutcome(
                value=value if value is not None else {"said": name}, tree=tree, usage=usage
            )

        return do


async def opened(store: Transactions, fence: int | None = 1, **how: Any) -> StoredTranscript:
    """Open the worker's lane of task "a" of run "r1"."""
    values: dict[str, Any] = {
        "run": "r1",
        "task": "a",
        "attempt": 1,
        "role": "worker",
        "fence": fence,
        **how,
    }
    return await StoredTranscript.open(store, **values)


async def ask(lane: Transcript, world: World, name: str, **how: Any) -> CallOutcome:
    """A model call."""
    request = how.pop("request", {"ask": name})
    reserve = how.pop("reserve", 0)
    return await lane.call(
        "model",
        request,
        {"new": name},
        world.work(name, **how),
        effectful=True,
        reserve=reserve,
        title=name,
    )


async def edit(lane: Transcript, world: World, name: str, **how: Any) -> CallOutcome:
    """A tool call with an effect."""
    request = how.pop("request", {"tool": "edit", "of": name})
    how = {"tree": f"tree of {name}", **how}
    return await lane.call(
        "tool", request, request, world.work(name, **how), effectful=True, title=name
    )


async def look(lane: Transcript, world: World, name: str, **how: Any) -> CallOutcome:
    """A tool call that reads."""
    request = how.pop("request", {"tool": "look", "of": name})
    return await lane.call(
        "tool", request, request, world.work(name, **how), effectful=False, title=name
    )


async def recorded(store: Transactions) -> list[tuple[Value, Value, Value]]:
    """Return (number, kind, done) of the worker's calls."""
    rows = await store.read(lambda r: call_rows.rows(r, "r1/a/1/worker"))
    return [(row["seq"], row["kind"], row["done"]) for row in rows]


async def events_of_kind(store: Transactions, *kinds: EventKind) -> list[Event]:
    """Return the run's events of these kinds."""
    return [e for e in await store.read(lambda r: runs.events(r, "r1")) if e.kind in kinds]


async def three(lane: Transcript, world: World) -> list[CallOutcome]:
    """A model call, an edit, a model call."""
    return [
        await ask(lane, world, "m0"),
        await edit(lane, world, "e1"),
        await ask(lane, world, "m2"),
    ]


def find_broken_link(reads: ReadOps, lane: str) -> list[str]:
    """Return the ids of calls whose hash is not that of their content and the calls before."""
    wrong: list[str] = []
    before = call_rows.hash_before(lane, {}, 0)
    for row in call_rows.rows(reads, lane):
        if not row_fields.bool_field(row, "done"):
            continue
        if row_fields.text_field(row, "hash") != _hash_of(reads, row, before):
            wrong.append(str(row["id"]))
        before = row_fields.text_field(row, "hash")
    return wrong


def _hash_of(reads: ReadOps, row: Row, before: str) -> str:
    """Return the right hash of a call; empty if a text that it names is absent or changed."""
    try:
        delta = encode_delta(reads, row)
    except StoreError:
        return ""
    kind, asked = row_fields.text_field(row, "kind"), row_fields.text_field(row, "requestHash")
    value, tree = row_fields.text_field(row, "valueJson"), row_fields.text_field(row, "tree")
    usage = call_rows._usage_text(call_rows.outcome_of(row).usage)
    return hash_texts((before, kind, asked, delta, value, tree, usage))


def encode_delta(reads: ReadOps, call: Row) -> str:
    """Return the whole delta of a call as it is hashed."""
    whole = shared_texts.delta_of(reads, CallRecord.from_row(call))
    kept = row_fields.json_field(call, "deltaJson")
    return row_fields.text_field(call, "deltaJson") if whole == kept else pack(whole)
