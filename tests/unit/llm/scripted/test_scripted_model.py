from pathlib import Path

import pytest

from mimir.errors import ModelError
from mimir.llm.scripted.loader import parse
from mimir.llm.scripted.scripted_model import ScriptedEndpoint, TranscriptName
from tests.support.clock import FrozenClock
from tests.support.model_requests import Sleeper, assistant_message, question, result


def lane(text: str, name: str = "run/task-1/1/worker", **more: object):
    return ScriptedEndpoint(parse(text), **more).for_lane(name)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("run-1/task-1.2/3/worker", ("task-1.2", 3, "worker", "worker")),
        ("r/plan/1/qc_reporter", ("plan", 1, "qc_reporter", "qc_reporter")),
        ("r/t/2/qc-2", ("t", 2, "qc", "qc-2")),
        ("r/t/2/qc@merged", ("t", 2, "qc", "qc@merged")),
        ("odd", ("", 0, "odd", "odd")),
        ("", ("", 0, "", "")),
    ],
)
def test_transcript_name_is_parsed(name: str, parts: tuple[str, int, str, str]):
    found = TranscriptName.parse(name)
    assert (found.task, found.attempt, found.role, found.last) == parts


TWO = "parts: [{role: worker, turns: [{calls: [{tool: run, arguments: {a: 1}}]}, {text: done}]}]"


async def test_restarted_scripted_model_continues_at_its_turn():
    first = await lane(TWO).ask(question())
    later = question(first.message, result(first.message.calls[0], "ok"))
    assert (await lane(TWO).ask(later)).message.text == "done"


async def test_the_same_question_gets_the_same_answer():
    model = lane(TWO)
    assert await model.ask(question()) == await model.ask(question())


async def test_usage_is_estimated_given_or_absent():
    assert (await lane("default: [x]").ask(question())).usage is not None
    given = await lane("default: [{text: x, usage: {input: 9, output: 4}}]").ask(question())
    assert given.usage is not None
    assert given.usage.total == 13
    assert (await lane("default: [{text: x, usage: none}]").ask(question())).usage is None


async def test_a_delay_is_slept():
    sleep = Sleeper(FrozenClock())
    await lane("default: [{text: x, delay_seconds: 2.5}]", sleep=sleep).ask(question())
    assert sleep.slept == [2.5]


async def test_scripted_fault_occurs_as_often_as_configured():
    model = lane("default: [{text: x, fault: {name: server_error, times: 2}}]")
    for _ in range(2):
        with pytest.raises(ModelError):
            await model.ask(question())
    assert (await model.ask(question())).message.text == "x"


async def test_scripted_fault_is_counted_per_transcript_and_turn():
    endpoint = ScriptedEndpoint(parse("default: [{text: x, fault: reset, repeat: 2}]"))
    for name in ("r/a/1/worker", "r/b/1/worker"):
        with pytest.raises(ModelError):
            await endpoint.for_lane(name).ask(question())
        assert await endpoint.for_lane(name).ask(question())
        with pytest.raises(ModelError):
            await endpoint.for_lane(name).ask(question(assistant_message("x")))


async def test_a_fault_lasts_as_long_as_a_file_is_there(tmp_path: Path):
    down = tmp_path / "down"
    down.touch()
    model = lane(f"default: [{{text: x, fault: {{name: refused, while_file: {down}}}}}]")
    for _ in range(3):
        with pytest.raises(ModelError):
            await model.ask(question())
    down.unlink()
    assert (await model.ask(question())).message.text == "x"


async def test_a_hundred_calls_and_repeated_calls_have_ids_of_their_own():
    many = (await lane("default: [{fault: hundred_calls}]").ask(question())).message.calls
    assert len({c.id for c in many}) == 100
    three = (
        await lane("default: [{calls: [{tool: a, id: x, times: 3}]}]").ask(question())
    ).message.calls
    assert len({c.id for c in three}) == 3
