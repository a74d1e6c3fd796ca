"""A call that asks: question and intent are one transaction, answer and outcome another."""

import asyncio
from functools import partial

import pytest

from mimir.domain.call_outcome import CallOutcome, encode_result
from mimir.domain.event import EventKind
from mimir.domain.message import ToolResult
from mimir.domain.question import NewQuestion, QuestionClosing, QuestionForm, QuestionLimits
from mimir.errors import LeaseLost, Waiting
from mimir.store.operations import claims, runs
from mimir.store.questions import question_rows
from mimir.store.transcripts.waiting_calls import close_question
from tests.support.transcripts import ask, edit, look, opened

LIMITS = QuestionLimits(open_per_task=1, open_per_run=1, expire_days=7)
REQUEST = {"tool": "ask_user", "arguments": "{}"}


def question(*, is_blocking: bool = True, limits: QuestionLimits = LIMITS) -> NewQuestion:
    return NewQuestion(
        title="Which region?",
        text="Where?",
        form=QuestionForm(),
        default={"answer": "eu"},
        is_blocking=is_blocking,
        limits=limits,
    )


def close(store, id: str, text: str):
    closing = QuestionClosing(
        state="answered", values={"answer": text}, by="user", transport="terminal"
    )
    outcome = CallOutcome(value=encode_result(ToolResult(text=text)))
    return store.write(partial(close_question, id=id, closing=closing, outcome=outcome))


async def open_questions(store):
    return await store.read(lambda reads: question_rows.load_open(reads, "r1"))


async def converse(store, world, fence: int):
    """Run the worker up to its question, and the turn after it."""
    lane = await opened(store, fence=fence)
    await ask(lane, world, "m0")
    await edit(lane, world, "e1")
    await look(lane, world, "l2")
    outcome = await lane.ask(REQUEST, question(), title="ask_user Which region?")
    await ask(lane, world, "m4")
    return lane, outcome


async def claimed(store):
    return await store.write(lambda ops: claims.claim(ops, "r1", "w2", lease_seconds=300))


async def test_task_with_a_question_waits_without_a_lease_until_the_answer(store, run, world):
    with pytest.raises(Waiting):
        await converse(store, world, 1)

    # It can be neither claimed nor released nor continued by its holder
    (asked,) = await open_questions(store)
    row = await store.read(lambda reads: reads.get("Task", "r1/a"))
    assert (row["claimState"], row["waitsFor"]) == ("waiting", asked.id)
    assert row.get("lockedBy") is None
    assert await claimed(store) == []
    assert not await store.write(lambda ops: claims.release_claim(ops, "r1", "a", 1))
    with pytest.raises(LeaseLost):
        await store.write(lambda ops: claims.wait(ops, "r1", "a", 1, "q-other"))

    # The answer is the outcome of the call, and frees the task
    assert (await close(store, asked.id, "us")) is not None
    (claim,) = await claimed(store)
    assert (claim.fence, claim.fresh, claim.record.deaths) == (2, False, 0)
    lane, outcome = await converse(store, world, 2)
    assert outcome.value["text"] == "us"
    assert world.made == ["m0", "e1", "l2", "m4"]
    assert (lane.replayed, lane.tree) == (4, "tree of e1")
    await lane.flush()


async def test_of_two_answers_at_once_one_counts_and_nothing_else_changes(store, run, world):
    with pytest.raises(Waiting):
        await converse(store, world, 1)
    (asked,) = await open_questions(store)

    ends = await asyncio.gather(*(close(store, asked.id, text) for text in ("eu", "us", "uk")))

    (first,) = [end for end in ends if end is not None]
    stored = await store.read(lambda reads: question_rows.load(reads, asked.id))
    assert stored.values == first.values
    events = await store.read(lambda reads: runs.events(reads, "r1"))
    ended = [e for e in events if e.kind is EventKind.QUESTION_CLOSED]
    assert [e.data["answer"] for e in ended] == [first.values]
    assert len(await claimed(store)) == 1


async def test_non_blocking_question_is_asked_once(store, run, world):
    lane = await opened(store)
    await ask(lane, world, "m0")
    outcome = await lane.ask(REQUEST, question(is_blocking=False))
    assert "eu" in str(outcome.value["text"])

    # A second one is beyond the limit, and no task waits
    further = await lane.ask({**REQUEST, "arguments": "{ }"}, question())
    assert str(further.value["text"]).startswith("not asked: the limit of open questions of a task")
    (asked,) = await open_questions(store)
    assert (await close(store, asked.id, "us")) is not None

    again = await opened(store)
    await ask(again, world, "m0")
    assert await again.ask(REQUEST, question(is_blocking=False)) == outcome
