"""The reporters' words: asked for once each, bounded, and never needed."""

from dataclasses import replace
from functools import partial

import pytest

from mimir.attempts.services import ModelChoice
from mimir.domain.message import Answer, Message, ModelRequest, ToolCall
from mimir.domain.usage import estimate
from mimir.errors import AnswerError, ModelError, Paused, PlanError, StoreError
from mimir.reporting.narrative import MOST_INPUT_TOKENS, MOST_TASKS, write_prose
from mimir.reporting.render.narrative import NO_PROSE, Narrative
from mimir.reporting.summary.run_loader import gather
from mimir.reporting.summary.summary import RunSummary, summarise
from tests.support.script_requests import caller
from tests.support.small_run import RUN


class Reporters:
    """Models by role; keeps the requests of each."""

    def __init__(self, said: str | Exception = "Words.", **answer: object) -> None:
        self._said = said
        self._answer = answer
        self.opened: list[tuple[str, int]] = []
        self.asked: list[ModelRequest] = []

    async def __call__(self, role: str, number: int) -> "Reporters":
        self.opened.append((role, number))
        return self

    async def ask(self, request: ModelRequest) -> Answer:
        self.asked.append(request)
        if isinstance(self._said, Exception):
            raise self._said
        message = Message(role="assistant", text=self._said)
        return Answer(**{"message": message, **self._answer})


@pytest.fixture
async def summary_of_run(whole) -> RunSummary:
    return summarise(await whole.store.read(partial(gather, run=RUN)))


async def test_each_failed_task_and_the_run_get_a_narrative(summary_of_run):
    reporters = Reporters()

    prose = await write_prose(summary_of_run, reporters, None)

    assert prose == Narrative(run="Words.", tasks={"task-2": "Words."})
    assert reporters.opened == [("qc_reporter", 1), ("pm_reporter", 1)]
    assert [request.max_tokens for request in reporters.asked] == [2000, 3000]
    systems = [request.messages[0].text for request in reporters.asked]
    assert systems[0].startswith("# Reporter of a failed task")
    assert systems[1].startswith("# Reporter of a run")
    assert all("Rules that always hold" in system for system in systems)


async def test_brief_of_a_reporter_has_the_computed_facts(summary_of_run):
    reporters = Reporters()
    await write_prose(summary_of_run, reporters, None)
    of_task, of_run = (request.messages[1].text for request in reporters.asked)
    assert of_task.startswith("Task: task-2\nAttempt 1 of 1\n")
    assert "failure report" in of_task
    assert "attempt 1: score 0, qc_rejected" in of_task
    assert of_run.startswith("Task: plan\nAttempt 1 of 1\n")
    assert "execution report" in of_run
    assert "Outcome: failed." in of_run
    assert "task-1, attempt 1: The worker claimed success" in of_run


async def test_model_server_recognises_each_reporter_without_a_header(summary_of_run):
    reporters = Reporters()
    await write_prose(summary_of_run, reporters, None)
    callers = [
        caller(
            {}, {"messages": [{"role": m.role, "content": m.text} for m in request.messages]}, {}
        )
        for request in reporters.asked
    ]
    assert [(c.name.role, c.name.task) for c in callers] == [
        ("qc_reporter", "task-2"), ("pm_reporter", "plan"),
    ]  # fmt: skip


async def test_question_is_the_same_after_a_resume(summary_of_run):
    """Else a killed run would ask its reporters twice."""
    later = replace(summary_of_run, ended="2031-01-01T00:00:00.000000Z", elapsed_seconds=9.0)
    resumed = [d for d in summary_of_run.decisions if d.task]
    first, second = Reporters(), Reporters()
    await write_prose(summary_of_run, first, None)
    await write_prose(replace(later, decisions=tuple(resumed)), second, None)
    assert first.asked == second.asked


@pytest.mark.parametrize(
    "error",
    [
        ModelError("401", scope="run"),
        ModelError("too long", scope="attempt"),
        AnswerError("empty"),
        Paused("The budget is used up.", reason="budget"),
        StoreError("gone"),
    ],
)
async def test_failed_reporter_gives_no_narrative(summary_of_run, error):
    assert await write_prose(summary_of_run, Reporters(error), None) == NO_PROSE


@pytest.mark.parametrize(
    "answer",
    [
        {"finish": "length"},
        {"finish": "content_filter"},
        {"message": Message(role="assistant", text="x", calls=(ToolCall(id="1", name="run", arguments="{}"),))},
        {"message": Message(role="assistant", text=" \n\x00\u200b")},
    ],
)  # fmt: skip
async def test_incomplete_answer_of_a_reporter_is_no_narrative(summary_of_run, answer):
    assert await write_prose(summary_of_run, Reporters(**answer), None) == NO_PROSE


async def test_one_reporter_that_fails_leaves_the_other(summary_of_run):
    class OnlyPm(Reporters):
        async def __call__(self, role: str, number: int) -> "Reporters":
            if role == "qc_reporter":
                raise PlanError("preambles/qc-failure.md cannot be read")
            return await super().__call__(role, number)

    assert await write_prose(summary_of_run, OnlyPm(), None) == Narrative(run="Words.")


async def test_narrative_is_bounded_and_without_control_characters(summary_of_run):
    prose = await write_prose(summary_of_run, Reporters("a\x1b[31mb\u202e" + "c" * 50_000), None)
    assert prose.run.startswith("abccc")
    assert len(prose.run) == 12_000


async def test_input_is_bounded_however_large_the_run_is(summary_of_run):
    many = tuple(
        replace(summary_of_run.tasks[2], id=f"task-{n}", feedback="x" * 5000) for n in range(3000)
    )
    said = tuple(f"Warning {n}: {'x' * 200}" for n in range(3000))
    reporters = Reporters()
    await write_prose(replace(summary_of_run, tasks=many, warnings=said), reporters, None)
    text = reporters.asked[-1].messages[1].text
    assert estimate(text) < MOST_INPUT_TOKENS + 200
    assert "further parts are left out here" in text


async def test_brief_of_a_large_run_has_open_tasks_first(summary_of_run):
    done = replace(summary_of_run.tasks[0], status="completed")
    many = [replace(done, id=f"task-{n}") for n in range(3000)]
    many[2500] = replace(done, id="task-2500", status="blocked")
    reporters = Reporters()
    await write_prose(replace(summary_of_run, tasks=tuple(many)), reporters, None)
    text = reporters.asked[-1].messages[1].text
    told_of = [row.split()[1] for row in text.splitlines() if ", criteria {" in row]
    assert told_of == [*(f"task-{n}" for n in range(MOST_TASKS - 1)), "task-2500"]
    assert "- and 2900 more tasks" in text


async def test_settings_of_a_role_are_used(summary_of_run):
    choices = {"pm_reporter": ModelChoice(model="big", temperature=None, max_tokens=77)}
    reporters = Reporters()
    await write_prose(summary_of_run, reporters, None, choices=choices)
    assert [(r.model, r.temperature, r.max_tokens) for r in reporters.asked] == [
        ("", 0.0, 2000), ("big", None, 77),
    ]  # fmt: skip


async def test_projects_own_preamble_is_used(summary_of_run):
    reporters = Reporters()
    await write_prose(
        summary_of_run, reporters, {"preambles/pm-report.md": "Write in rhymes.\n"}.get
    )
    assert reporters.asked[-1].messages[0].text.startswith("Write in rhymes.")


def test_narrative_is_stored_and_read_again():
    prose = Narrative(run="a\n`b`", tasks={"t": "ü"})
    assert Narrative.load(prose.dump()) == prose


@pytest.mark.parametrize(
    "text", ["", "x", "[]", "null", '{"run": 3, "tasks": []}', '{"tasks": {"t": 1}}', "[" * 100_000]
)
def test_unreadable_narrative_is_none(text):
    assert Narrative.load(text) == NO_PROSE
