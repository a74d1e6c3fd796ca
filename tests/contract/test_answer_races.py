"""Answers to one question at the same moment, from processes of one store: the first one counts."""

import asyncio
from collections import Counter
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest

from mimir.domain.ids import lane_id
from mimir.domain.question import NewQuestion, QuestionForm, QuestionLimits
from mimir.errors import MimirError, UsageError
from mimir.orchestrator.questions.answering import (
    Answerer,
    AnswerResult,
    GivenAnswer,
    give_answer,
)
from mimir.store.operations import claims, runs
from mimir.store.operations.claims import Claim
from mimir.store.protocol import GraphStore, WriteOps
from mimir.store.transcripts import call_rows, waiting_calls
from mimir.store.transcripts.call_rows import CallRequest, TranscriptKey
from tests.support.clock import FrozenClock
from tests.support.stored_run import start, task
from tests.support.stores import EACH_KIND, KINDS, opened

TASKS = "abcdefghij"
ROUNDS = 10
"""Each task asks once in a round, so that there are a hundred races."""
ASKED = NewQuestion(
    title="Which region?",
    text="Where?",
    form=QuestionForm(),
    default=None,
    is_blocking=True,
    limits=QuestionLimits(open_per_run=len(TASKS)),
)


def claim_and_ask(ops: WriteOps, number: int) -> list[str]:
    """Claim every task, and let each wait for a question; return the questions."""
    return [
        ask(ops, claim, number)
        for claim in claims.claim(ops, "r1", "w1", lease_seconds=300, limit=len(TASKS))
    ]


def ask(ops: WriteOps, claim: Claim, number: int) -> str:
    """Let a claimed task wait for a question; return it."""
    lane = lane_id("r1", claim.task, 1, "worker")
    place = TranscriptKey(
        run="r1", task=claim.task, attempt=1, role="worker", fence=claim.fence, lane=lane
    )
    request = {"tool": "ask_user", "arguments": "{}"}
    asked = CallRequest.from_arguments(
        number, "tool", request, request, reserve=0, of_answer=0, title="ask_user"
    )
    id, refusal = waiting_calls.write_question(ops, place, asked, ASKED)
    assert not refusal
    return id


async def give(store: GraphStore, id: str, transport: str) -> AnswerResult | MimirError:
    answerer = Answerer(project_id="p1", by="user", transport=transport, redact=str, project=Path())
    try:
        return await give_answer(store, id, GivenAnswer(text=f"from {transport}"), answerer)
    except MimirError as error:
        return error


@pytest.mark.parametrize("kind", EACH_KIND)
async def test_one_of_several_concurrent_answers_counts(
    kind: str, tmp_path: Path, frozen_clock: FrozenClock
):
    make = partial(KINDS[kind], tmp_path, frozen_clock)
    async with opened(make()) as one, opened(make()) as other:
        await start(one, *map(task, TASKS))
        for number in range(ROUNDS):
            asked = await one.write(partial(claim_and_ask, number=number))
            assert len(asked) == len(TASKS)
            # Each store begins half of the races, so that none is always first.
            races = [race(one, other, id) for id in asked[::2]]
            races += [race(other, one, id) for id in asked[1::2]]
            await asyncio.gather(*races)
        # Each conversation has one outcome for each question
        for name in TASKS:
            lane = lane_id("r1", name, 1, "worker")
            rows = await one.read(partial(call_rows.rows, lane=lane))
            assert [row["done"] for row in rows] == [True] * ROUNDS
        events = await one.read(partial(runs.events, run="r1"))
    # One row for each answer
    made = Counter(event.kind.value for event in events)
    assert made["QuestionClosed"] == ROUNDS * len(TASKS)
    assert made["AnswerRefused"] == 2 * ROUNDS * len(TASKS)


async def race(one: GraphStore, other: GraphStore, id: str) -> None:
    """Answer a question from three places at once."""
    places = {"terminal": one, "file": other, "form": one}
    ends = await asyncio.gather(*(give(store, id, name) for name, store in places.items()))
    (won,) = [end for end in ends if isinstance(end, AnswerResult)]
    winner = won.answer.removeprefix("from ")
    late = [str(end) for end in ends if isinstance(end, MimirError)]
    said = f'by user ({winner}): "{won.answer}". Nothing changed.'
    assert [f"{id} was answered at" in one and said in one for one in late] == [True, True]


@pytest.mark.parametrize("hours", [-1, 1])
@pytest.mark.parametrize("kind", EACH_KIND)
async def test_an_answer_by_a_clock_an_hour_apart_continues_the_task_once(
    kind: str, hours: int, tmp_path: Path, frozen_clock: FrozenClock
):
    apart = FrozenClock(frozen_clock.now() + timedelta(hours=hours))
    make = partial(KINDS[kind], tmp_path)
    async with opened(make(frozen_clock)) as one, opened(make(apart)) as other:
        await start(one, *map(task, TASKS))
        asked = await one.write(partial(claim_and_ask, number=0))

        # The beginning of several ids names none of them
        unclear = await give(other, "q-", "terminal")
        assert isinstance(unclear, UsageError)
        assert str(unclear) == f"{len(TASKS)} questions begin with 'q-'."
        first = await give(other, asked[0], "terminal")
        late = await give(one, asked[0], "terminal")

        assert isinstance(first, AnswerResult)
        assert "Nothing changed." in str(late)
        claimed = await one.write(lambda ops: claims.claim(ops, "r1", "w1", lease_seconds=300))
    assert [claim.task for claim in claimed] == [first.task]
