import json
from collections.abc import Awaitable, Callable, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimir.domain.call_outcome import CallOutcome
from mimir.domain.message import Answer, Message, ModelRequest, ToolCall
from mimir.domain.usage import TokenUsage
from mimir.errors import StoreError
from mimir.llm import codec
from mimir.llm.wrappers.journaled_model import JournaledModel
from tests.support.model_requests import (
    READ_FILE,
    Troubled,
    assistant_message,
    question,
    result,
    trouble,
)


class Row:
    def __init__(
        self, request: Mapping[str, object], delta: Mapping[str, object], reserve: int, title: str
    ) -> None:
        self.request = json.dumps(request)
        self.delta = delta
        self.size = len(json.dumps(delta))
        self.reserve = reserve
        self.title = title
        self.outcome: CallOutcome | None = None


class Tape:
    """A lane in memory; `rewound` replays it."""

    def __init__(self, rows: list[Row] | None = None) -> None:
        self.rows = rows or []
        self.at = 0

    def rewound(self) -> "Tape":
        return Tape(self.rows)

    async def call(
        self,
        kind: str,
        request: Mapping[str, object],
        delta: Mapping[str, object],
        work: Callable[[], Awaitable[CallOutcome]],
        *,
        effectful: bool,
        reserve: int = 0,
        of_answer: int = 0,
        title: str = "",
    ) -> CallOutcome:
        assert kind == "model"
        assert effectful
        at, self.at = self.at, self.at + 1
        if at < len(self.rows):
            row = self.rows[at]
            assert row.request == json.dumps(request), f"row {at} differs"
        else:
            row = Row(request, delta, reserve, title)
            self.rows.append(row)
        if row.outcome is None:
            made = await work()
            row.outcome = CallOutcome(value=json.loads(json.dumps(made.value)), usage=made.usage)
        return row.outcome


CALL = ToolCall(id="c1", name="read_file", arguments="{}")


class Echo:
    """Answers with the last message of its request."""

    def __init__(self) -> None:
        self.asked = 0

    async def ask(self, request: ModelRequest) -> Answer:
        self.asked += 1
        return Answer(
            message=assistant_message(f"re: {request.messages[-1].text}"),
            usage=TokenUsage(input_tokens=5, output_tokens=2),
            model="echo",
        )


async def talk(model: JournaledModel, rounds: int) -> list[Answer]:
    answers, history = [], question().messages
    for n in range(rounds):
        answer = await model.ask(ModelRequest(messages=history, tools=(READ_FILE,)))
        answers.append(answer)
        history = (*history, answer.message, Message(role="user", text=f"round {n}"))
    return answers


async def test_replayed_transcript_answers_without_the_model():
    tape, model = Tape(), Echo()
    first = await talk(JournaledModel(model, tape), 5)
    again = await talk(JournaledModel(model, tape.rewound()), 5)
    assert again == first
    assert model.asked == 5
    assert first[0].model == "echo"


async def test_journaled_model_continues_live_at_the_end_of_its_transcript():
    tape, model = Tape(), Echo()
    await talk(JournaledModel(model, tape), 3)
    await talk(JournaledModel(model, tape.rewound()), 5)
    assert model.asked == 5


async def test_each_row_records_new_messages_only():
    tape = Tape()
    await talk(JournaledModel(Echo(), tape), 40)
    sizes = [row.size for row in tape.rows]
    assert max(sizes[1:]) < 400
    assert sizes[0] > sizes[1], "the settings stand in the first row only"
    assert sum(len(row.request) for row in tape.rows) < 40 * 600


async def test_the_conversation_can_be_rebuilt_from_the_deltas():
    tape = Tape()
    await talk(JournaledModel(Echo(), tape), 4)
    history: list[Message] = []
    for row in tape.rows:
        history = history[: row.delta["kept"]] + [
            codec.read_message(m) for m in row.delta["messages"]
        ]
    assert [m.text for m in history if m.role == "user"][1:] == ["round 0", "round 1", "round 2"]


@given(st.data())
async def test_any_change_of_a_message_changes_the_request_hash(data):
    history = question(assistant_message("x", CALL), result(CALL, "r")).messages
    at = data.draw(st.integers(0, len(history) - 1))
    changed = list(history)
    changed[at] = Message(
        role=history[at].role,
        text=history[at].text + "!",
        calls=history[at].calls,
        call_id=history[at].call_id,
        tool=history[at].tool,
    )
    one, two = Tape(), Tape()
    await JournaledModel(Echo(), one).ask(ModelRequest(messages=history))
    await JournaledModel(Echo(), two).ask(ModelRequest(messages=tuple(changed)))
    assert one.rows[0].request != two.rows[0].request


@pytest.mark.parametrize(
    "change",
    [
        {"model": "b"},
        {"max_tokens": 1},
        {"temperature": None},
        {"tools": (READ_FILE,)},
        {"tool_choice": "none"},
        {"schema": {"type": "object"}},
    ],
)
async def test_any_change_of_the_settings_changes_the_hash(change):
    one, two = Tape(), Tape()
    await JournaledModel(Echo(), one).ask(question())
    await JournaledModel(Echo(), two).ask(question(**change))
    assert one.rows[0].request != two.rows[0].request


async def test_the_tree_of_a_result_is_recorded_but_enters_no_hash():
    one, two = Tape(), Tape()
    for tape, tree in ((one, "t1"), (two, "t2")):
        message = Message(role="tool", text="ok", call_id="c1", tool="run", tree=tree)
        await JournaledModel(Echo(), tape).ask(question(assistant_message("", CALL), message))
    assert one.rows[0].request == two.rows[0].request
    assert one.rows[0].delta != two.rows[0].delta


async def test_a_conversation_that_was_cut_is_recorded_from_the_cut():
    tape = Tape()
    model = JournaledModel(Echo(), tape)
    await model.ask(question(assistant_message("a"), Message(role="user", text="b")))
    await model.ask(question(Message(role="user", text="c")))
    assert tape.rows[1].delta["kept"] == 2
    assert len(tape.rows[1].delta["messages"]) == 1


async def test_the_reserve_covers_prompt_tools_and_answer():
    tape = Tape()
    await JournaledModel(Echo(), tape).ask(
        question(text="x" * 3500, max_tokens=50, tools=(READ_FILE,))
    )
    assert 1050 < tape.rows[0].reserve < 1300


async def test_failed_call_has_no_outcome():
    tape = Tape()
    model = Troubled(trouble())
    journaled = JournaledModel(model, tape)
    with pytest.raises(type(trouble())):
        await journaled.ask(question())
    assert tape.rows[0].outcome is None
    assert (await JournaledModel(model, tape.rewound()).ask(question())).message.text == "done"


async def test_a_record_that_is_no_answer_is_refused():
    tape = Tape()
    await JournaledModel(Echo(), tape).ask(question())
    tape.rows[0].outcome = CallOutcome(value={"message": "gone"})
    with pytest.raises(StoreError, match="cannot be read"):
        await JournaledModel(Echo(), tape.rewound()).ask(question())
