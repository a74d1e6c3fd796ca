"""The model script of the demo: its answers follow from the texts that its models get."""

import pytest

from mimir.agents.preambles.agentinator import accept_generated
from mimir.demo.setup import HERE, PLAY
from mimir.domain.agent import ALL_TOOLS
from mimir.domain.message import Answer, Message
from mimir.llm.scripted.loader import load_script
from mimir.llm.scripted.script import ModelScript, ScriptedTurn, ScriptRequest, choose_turn
from mimir.planning import parser
from mimir.planning.lint.plan_check import check


@pytest.fixture(scope="module")
def play() -> ModelScript:
    return load_script(PLAY)


def turn(play: ModelScript, task: str, attempt: int, brief: str) -> ScriptedTurn:
    """Return the first turn of a worker."""
    scene = ScriptRequest(
        role="worker", task=task, attempt=attempt, lane="worker", brief=brief, last="", turn=0
    )
    return choose_turn(play, scene)


@pytest.mark.parametrize(
    ("task", "failure"),
    [
        ("task-1.1", "E  ValueError: invalid literal for int() with base 10: '-'"),
        ("task-1.4", "FAILED tests/test_markdown.py::test_a_bar_in_a_cell_does_not_end_it"),
    ],
)
def test_second_scripted_attempt_repairs_only_a_shown_failure(
    play: ModelScript, task: str, failure: str
):
    told = turn(play, task, 2, f"Attempt 2 of 3\n{failure}\n")
    untold = turn(play, task, 2, "Attempt 2 of 3\n")
    assert told.calls[0].tool == "edit_file"
    assert not [call for call in untold.calls if call.tool != "read_file"]


def test_the_plan_of_the_demo_has_no_fault(play: ModelScript):
    manager = next(part for part in play.parts if part.role == "pm")
    parsed = parser.parse_plan(manager.turns[-1].text or "")
    there = {p.relative_to(HERE / "project").as_posix() for p in (HERE / "project").rglob("*")}
    found = check(parsed, tools=ALL_TOOLS, exists=lambda path: path in there)
    # Two tasks change one file at the same time, so they name no files.
    assert [one.code for one in found] == ["files-missing"]
    assert 6 <= len(parsed.plan.tasks) <= 8


def test_every_preamble_of_the_demo_would_be_accepted_of_a_model(play: ModelScript):
    texts = [part.turns[0].text or "" for part in play.parts if part.role == "agentinator"]
    assert len(texts) == 5
    for text in texts:
        message = Message(role="assistant", text=text)
        assert accept_generated(Answer(message=message, finish="stop", usage=None, model="play"))
