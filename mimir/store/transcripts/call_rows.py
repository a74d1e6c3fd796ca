"""Rows of a transcript's calls: their form, hashes and writes.

A run's budget is computed from these rows: its spent part is its outcomes and its open intents.
"""

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Literal, NamedTuple, cast

from mimir.domain import ids, money
from mimir.domain.call_outcome import CallOutcome
from mimir.domain.event import EventKind
from mimir.domain.json_value import as_text
from mimir.domain.text_hash import hash_texts
from mimir.domain.usage import ChargedUsage, TokenUsage, read_cached_tokens
from mimir.domain.value_class import value_class
from mimir.store.operations import budget, claims, runs
from mimir.store.protocol import ReadOps, Row, Value, WriteOps
from mimir.store.row_fields import bool_field, int_field, json_field, text_field
from mimir.store.schema import NodeLabel, pack, unpack
from mimir.store.transcripts import shared_texts

CallKind = Literal["model", "tool"]


@value_class
class TranscriptKey:
    """Owner and fence of a transcript."""

    run: str
    task: str
    attempt: int
    role: str
    fence: int | None
    """None: no task, so no check."""
    lane: str


@value_class
class CallRequest:
    """One call as the agent requested it."""

    seq: int
    kind: CallKind
    hash: str
    """Of the whole request."""
    delta: str
    """Whole delta, JSON."""
    kept: str
    """Stored delta, JSON; `shared_texts.delta_of` returns the whole one."""
    tool: str
    """Name of the tool; empty for a model."""
    title: str
    """For users; of a model call, the name of the model, which decides its price."""
    bound: TokenUsage
    """Most tokens that a call may use; none for tools but programs."""
    named: Mapping[str, str] = field(default_factory=dict[str, str])
    """Shared texts of the delta, by SHA-256."""

    @classmethod
    def from_arguments(
        cls,
        seq: int,
        kind: CallKind,
        request: Mapping[str, object],
        delta: Mapping[str, object],
        *,
        reserve: int,
        of_answer: int,
        title: str,
    ) -> "CallRequest":
        """Return the request of a call."""
        tokens = max(0, reserve)
        answer = min(max(0, of_answer), tokens)
        name = request.get("tool") or request.get("name") or ""
        folded = shared_texts.fold(delta)
        return cls(
            seq=seq,
            kind=kind,
            hash=hash_texts((folded.whole if request is delta else pack(request),)),
            delta=folded.whole,
            kept=folded.kept,
            named=folded.named,
            tool=str(name) if kind == "tool" else "",
            title=title,
            bound=TokenUsage(input_tokens=tokens - answer, output_tokens=answer),
        )

    @property
    def is_charged(self) -> bool:
        """Whether its tokens count: those of a model, and of a program of an agent."""
        return self.kind == "model" or self.bound.total > 0

    def is_recorded_in(self, row: Row) -> bool:
        """Return whether the row holds this call."""
        return row.get("kind") == self.kind and row.get("requestHash") == self.hash


class StoredCall(NamedTuple):
    """One call with its outcome, as a replay returns it."""

    asked: CallRequest
    outcome: CallOutcome
    """Decoded from JSON, so that live and replayed calls are equal."""
    value: str
    """Value of the outcome as JSON."""

    @classmethod
    def of(cls, asked: CallRequest, outcome: CallOutcome) -> "StoredCall":
        """Return the stored form of an outcome."""
        text = pack(outcome.value)
        value = cast("Mapping[str, object]", unpack(text))
        return cls(asked, CallOutcome(value=value, tree=outcome.tree, usage=outcome.usage), text)


@value_class
class CompletedCall:
    """One call with its outcome and hash."""

    asked: CallRequest
    outcome: CallOutcome
    value: str
    """Value of the outcome as JSON."""
    hash: str
    """Hash of the transcript up to this call; it covers no time and no commit id."""
    number: int
    """Tool calls of the transcript up to this call."""

    @classmethod
    def after(cls, before: str, had: StoredCall, number: int) -> "CompletedCall":
        """Return the call with its hash; `before` is the hash of the transcript without it."""
        asked, outcome, value = had
        usage = _usage_text(outcome.usage)
        hash = hash_texts((before, asked.kind, asked.hash, asked.delta, value, outcome.tree, usage))
        return cls(asked=asked, outcome=outcome, value=value, hash=hash, number=number)

    @property
    def charge(self) -> TokenUsage:
        """Tokens that count: those used, or those reserved if unknown."""
        # A provider that counts no tokens must not make a call free.
        usage = self.outcome.usage or self.asked.bound
        reported = None
        if self.asked.kind == "tool" and self.asked.is_charged:
            reported = money.read_amount(as_text(self.outcome.value.get("cost")))
        if self.outcome.usage is None and reported is None:
            return usage
        return ChargedUsage(
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            cached_tokens=read_cached_tokens(self.outcome.value),
            reported_cost=reported,
        )


def rows(reads: ReadOps, lane: str) -> list[Row]:
    """Return the calls of a transcript in order."""
    return reads.find(NodeLabel.CALL, {"lane": lane}, order=("seq",))


def seq_of(row: Row) -> int:
    """Return the number of a call in its transcript."""
    return int_field(row, "seq")


def first_open(recorded: Mapping[int, Row]) -> int:
    """Return the number of the first call without an outcome."""
    seq = 0
    while seq in recorded and bool_field(recorded[seq], "done"):
        seq += 1
    return seq


def hash_before(lane: str, recorded: Mapping[int, Row], seq: int) -> str:
    """Return the hash of the transcript before a call; at the beginning, of its name."""
    if seq == 0:
        return hash_texts(("mimir.lane", lane))
    return text_field(recorded[seq - 1], "hash")


def tools_before(recorded: Mapping[int, Row], seq: int) -> int:
    """Return the number of tool calls before a call."""
    return sum(1 for earlier in range(seq) if recorded[earlier].get("kind") == "tool")


def tree_before(recorded: Mapping[int, Row], seq: int) -> str:
    """Return the last recorded tree before a call; empty if there is none."""
    for earlier in range(seq - 1, -1, -1):
        if tree := text_field(recorded[earlier], "tree"):
            return tree
    return ""


def outcome_of(row: Row) -> CallOutcome:
    """Return the recorded outcome of a call."""
    usage = None
    value = json_field(row, "valueJson")
    if row.get("inputTokens") is not None:
        usage = TokenUsage(
            input_tokens=int_field(row, "inputTokens"),
            output_tokens=int_field(row, "outputTokens"),
        )
    return CallOutcome(value=value, tree=text_field(row, "tree"), usage=usage)


def write_intent(
    ops: WriteOps,
    place: TranscriptKey,
    asked: CallRequest,
    done: Sequence[CompletedCall],
    *,
    may_stand: bool = True,
) -> None:
    """Write the waiting outcomes, then the intent; a model call reserves its budget.

    Without `may_stand`, the intent was never written, so it is not looked for.

    Raises:
        LeaseLost: The fence is old.
        Paused: The budget is exhausted; the waiting outcomes are not written either.
    """
    write_outcomes(ops, place, done)
    shared_texts.save_text(ops, place.run, asked.named)
    name = ids.call_id(place.lane, asked.seq)
    before = ops.get(NodeLabel.CALL, name) if may_stand else None
    cost = None
    if asked.is_charged:
        is_model = asked.kind == "model"
        cost = budget.reserve(ops, place.run, asked.title, asked.bound, before, is_model=is_model)
    tries = int_field(before, "tries") if before else 0
    begun = {"done": False, "tries": tries + 1, "startedAt": ops.now(), "cost": cost}
    ops.upsert(NodeLabel.CALL, [{**_asked_row(place, asked), **begun}])


def write_outcomes(ops: WriteOps, place: TranscriptKey, done: Sequence[CompletedCall]) -> None:
    """Write outcomes with their events; existing ones stay.

    Raises:
        LeaseLost: The fence is old.
    """
    # A retried transaction may find its outcomes written.
    there = [ops.get(NodeLabel.CALL, ids.call_id(place.lane, d.asked.seq)) for d in done]
    fresh = [(d, row) for d, row in zip(done, there, strict=True) if not _stands(row, d)]
    if place.fence is not None:
        _gain(ops, place, place.fence, [d for d, _ in fresh])
    if not fresh:
        return
    charges = [(d.asked.title, d.asked.bound, d.charge) for d, _ in fresh if d.asked.is_charged]
    run = budget.spend(ops, place.run, charges)
    _write(ops, place, fresh, run)
    events = [_event(place, d, run) for d, _ in fresh]
    runs.emit_all(ops, place.run, events, known=run or None)


def _gain(ops: WriteOps, place: TranscriptKey, fence: int, fresh: Sequence[CompletedCall]) -> None:
    worker = place.role == "worker"
    claims.record_progress(
        ops,
        place.run,
        place.task,
        fence,
        len(fresh),
        tokens=sum(d.charge.total for d in fresh if d.asked.is_charged),
        tool_calls=sum(worker and d.asked.kind == "tool" for d in fresh),
    )


def is_cut(recorded: Mapping[int, Row], asked: CallRequest) -> bool:
    """Return whether rows from this call on no longer hold."""
    here = recorded.get(asked.seq)
    other = here is not None and not asked.is_recorded_in(here)
    return other or any(seq > asked.seq for seq in recorded)


def truncate_transcript(ops: WriteOps, place: TranscriptKey, asked: CallRequest) -> None:
    """Delete the calls from here on; their cost stays spent.

    Raises:
        LeaseLost: The fence is old.
    """
    # The tokens were spent; only the answers are no longer used.
    if place.fence is not None:
        claims.record_progress(ops, place.run, place.task, place.fence, 0)
    here = ops.get(NodeLabel.CALL, ids.call_id(place.lane, asked.seq))
    stays = here is not None and asked.is_recorded_in(here) and not bool_field(here, "done")
    first = asked.seq + 1 if stays else asked.seq
    gone = ops.find(NodeLabel.CALL, {"lane": place.lane, "seq": (">=", first)})
    if not gone:
        return
    ops.delete(NodeLabel.CALL, [str(row["id"]) for row in gone])
    budget.forfeit(ops, place.run, [row for row in gone if not bool_field(row, "done")])
    data = {
        "lane": place.lane,
        "role": place.role,
        "seq": asked.seq,
        "removed": len(gone),
        "answered": sum(bool_field(row, "done") for row in gone),
        "recorded": _short(here),
        "asked": f"{asked.kind} {asked.hash[:12]}",
    }
    runs.append_event(
        ops, place.run, EventKind.LANE_CUT, task=_task(place), attempt=place.attempt, data=data
    )


def delete_open_calls(ops: WriteOps, transcript: str) -> None:
    """Delete the calls of a transcript that have no outcome."""
    # A replay repeats the interruption of the recorded run.
    rows = ops.find(NodeLabel.CALL, {"lane": transcript, "done": False})
    ops.delete(NodeLabel.CALL, [str(row["id"]) for row in rows])


def _stands(row: Row | None, done: CompletedCall) -> bool:
    return row is not None and row.get("hash") == done.hash and bool_field(row, "done")


def _write(
    ops: WriteOps, place: TranscriptKey, fresh: Sequence[tuple[CompletedCall, Row | None]], run: Row
) -> None:
    """Write outcomes to their intents, or as whole rows if there is no intent."""
    whole: list[Row] = []
    for done, intent in fresh:
        outcome = _outcome_row(ops, done, run)
        if intent is not None and done.asked.is_recorded_in(intent):
            ops.patch(NodeLabel.CALL, str(intent["id"]), {**outcome, "fence": place.fence})
        else:
            whole.append({**_asked_row(place, done.asked), **outcome})
    if whole:
        ops.upsert(NodeLabel.CALL, whole)


def _asked_row(place: TranscriptKey, asked: CallRequest) -> dict[str, Value]:
    return {
        "id": ids.call_id(place.lane, asked.seq), "name": asked.title or asked.tool or asked.kind,
        "runId": place.run, "lane": place.lane, "seq": asked.seq, "kind": asked.kind, "task": place.task,
        "attempt": place.attempt, "role": place.role, "fence": place.fence, "requestHash": asked.hash,
        "deltaJson": asked.kept, "tool": asked.tool, "reserved": asked.bound.total,
    }  # fmt: skip


def _outcome_row(ops: WriteOps, done: CompletedCall, run: Row) -> Row:
    usage = done.outcome.usage
    return {
        "done": True, "valueJson": done.value,
        "tree": done.outcome.tree or None, "inputTokens": usage.input_tokens if usage else None,
        "outputTokens": usage.output_tokens if usage else None, "hash": done.hash, "finishedAt": ops.now(),
        "cost": _cost(done, run),
    }  # fmt: skip


def _cost(done: CompletedCall, run: Row) -> int | None:
    """Return the cost of a call in units of money; None without a price."""
    asked = done.asked
    return budget.cost_of(run, asked.title, done.charge) if asked.is_charged else None


def _event(place: TranscriptKey, done: CompletedCall, run: Row) -> runs.NewEvent:
    asked, cost = done.asked, _cost(done, run)
    model = asked.kind == "model"
    kind = EventKind.TOOL_DENIED if done.outcome.value.get("denied") else EventKind.TOOL_CALLED
    data: dict[str, object] = {
        "role": place.role,
        "seq": asked.seq,
        "tool": asked.tool,
        "title": asked.title,
        "tokens": done.charge.total if asked.is_charged else 0,
        "calls": int_field(run, "callsUsed") if model else done.number,
    }
    if cost is not None:
        data["cost"] = money.format_money(cost)
    return runs.NewEvent(
        kind=EventKind.MODEL_CALLED if model else kind,
        task=_task(place),
        attempt=place.attempt,
        data=data,
    )


def _task(place: TranscriptKey) -> str:
    """Return the task of an event; empty for a run's own agents."""
    return "" if place.fence is None else place.task


def _short(row: Row | None) -> str:
    if row is None:
        return ""
    return f"{text_field(row, 'kind')} {text_field(row, 'requestHash')[:12]}"


def _usage_text(usage: TokenUsage | None) -> str:
    return "" if usage is None else f"{usage.input_tokens} {usage.output_tokens}"
