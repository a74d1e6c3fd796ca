import re
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimir.agents.context.inputs import (
    ContextBudgets,
    DependencyView,
    EarlierAttempt,
    FailedCheck,
    FileView,
    RelatedTask,
)
from mimir.agents.context.task_context import AgentContext, get_task_context
from mimir.domain.plan import Criterion
from mimir.domain.usage import estimate
from tests.support.contexts import PM, QC, TASK, WORKER, qc, worker


def test_brief_begins_with_task_and_attempt():
    assert worker(attempt=2).text.startswith("Task: task-1.1\nAttempt 2 of 3\n")
    assert qc().text.startswith("Task: task-1.1\nAttempt 2 of 3\n")
    assert get_task_context("pm", PM).text.startswith("Task: plan\nAttempt 1 of 1\n")


def test_worker_gets_its_task_with_the_prompt_byte_for_byte():
    text = worker(tools=("read_file", "run")).text
    assert TASK.prompt in text
    for words in (
        "Title: Token bucket",
        "Your role: Python engineer",
        "Your tools: read_file, run.",
        "Use read_file on api.py first.",
        "You may write: limiter.py.",
        "- unit (decides c1): python -m pytest 'tests/a b.py' — fails before the work, "
        "must pass after it; you may not change tests/a b.py",
    ):
        assert words in text


@pytest.mark.parametrize("context", [worker(), qc()])
def test_each_criterion_is_one_line_with_its_share_of_100_points(context: AgentContext):
    lines = [line for line in context.text.splitlines() if line.startswith("- [")]
    assert lines == [
        "- [c1] (44.44 pts, critical) refills at the rate",
        "- [c2] (22.22 pts) safe",
        "- [c3] (33.33 pts) documented",
    ]


def test_integer_points_are_written_as_integers():
    even = replace(TASK, criteria=(Criterion(id="a", text="x"), Criterion(id="b", text="y")))
    assert "- [a] (50 pts) x" in worker(task=even).text


def test_system_message_is_the_same_for_every_attempt_and_task():
    first = worker().messages[0]
    other = worker(task=replace(TASK, id="task-2", prompt="Else."), attempt=3).messages[0]
    assert first == other
    assert (first.role, first.text) == ("system", "You work.")


def test_form_of_the_answer_closes_the_system_message():
    assert qc(form="One JSON object.").system == ("You judge.", "One JSON object.")
    planner = get_task_context("pm", replace(PM, form="Markdown."))
    assert planner.messages[0].text == "You plan.\n\nMarkdown."


def test_context_depends_on_its_inputs_but_not_on_the_transcript_name():
    one = get_task_context("worker", WORKER, lane="run-a/task/1/worker")
    two = get_task_context("worker", WORKER, lane="run-b/task/1/worker")
    assert one.messages == two.messages
    assert "run-a" not in one.text


def test_another_roles_input_is_refused():
    with pytest.raises(TypeError, match="QCInput is no input of the role 'worker'"):
        get_task_context("worker", QC)  # type: ignore[call-overload]


def test_small_context_file_is_complete_and_large_one_is_cut_with_a_mark():
    files = (
        FileView(path="api.py", size=13, text="def f(): ...\n"),
        FileView(path="docs/big.md", size=60_000, text="line of text\n" * 4000),
        FileView(path="gone.py", size=0, text=None, note="not there"),
    )
    context = worker(files=files)
    assert "api.py (13 bytes)\n```text\ndef f(): ...\n```" in context.text
    assert re.search(
        r"\[cut: the first \d+ of 52000 characters are shown; "
        r'read_file\("docs/big.md"\) gives the whole\]',
        context.text,
    )
    assert "gone.py (0 bytes): not there" in context.text
    assert context.receipt.withheld[0].name == "file:docs/big.md"
    assert context.receipt.withheld[0].reference == 'read_file("docs/big.md")'


def test_ten_context_files_are_shown_and_further_ones_named():
    files = tuple(FileView(path=f"f{n}.py", size=9, text=f"content{n}\n") for n in range(12))
    context = worker(files=files)
    assert "content9" in context.text
    assert "content10" not in context.text
    assert (
        'f11.py (9 bytes)\n[left out: 10 characters; read_file("f11.py") gives it]' in context.text
    )


def test_path_that_is_listed_twice_is_shown_once_and_the_merge_is_in_the_receipt():
    file = FileView(path="api.py", size=3, text="abc")
    context = worker(files=(file, replace(file, path="./api.py")))
    assert context.text.count("abc\n") == 1
    (merged,) = context.receipt.withheld
    assert (merged.why, merged.kept) == ("duplicate", "api.py")


def dependencies(n: int, answer: str = "I did it.\n" * 200) -> tuple[DependencyView, ...]:
    return tuple(
        DependencyView(
            id=f"task-0.{i}",
            title=f"Part {i}",
            answer=f"{i} {answer}",
            files=(f"part{i}.py", "shared.py"),
            artifact=f"task-0.{i}/answer",
        )
        for i in range(n)
    )


def test_dependency_is_shown_by_the_beginning_of_its_answer_and_a_way_to_the_rest():
    context = worker(dependencies=dependencies(2))
    assert (
        'task-0.1: Part 1 — the beginning of its answer; read_artifact("task-0.1/answer") gives the whole'
        in context.text
    )
    assert "- shared.py (task-0.0, task-0.1)" in context.text
    assert {w.reference for w in context.receipt.withheld} == {
        'read_artifact("task-0.0/answer")',
        'read_artifact("task-0.1/answer")',
    }


def test_five_dependencies_are_shown_and_further_ones_named():
    text = worker(dependencies=dependencies(7, answer="short")).text
    assert "task-0.4: Part 4 — its answer" in text
    assert '- task-0.6: Part 6 — read_artifact("task-0.6/answer")' in text
    assert "6 short" not in text


def test_summary_of_two_dependencies_is_given_once():
    one, two = dependencies(2, answer="")
    context = worker(dependencies=(replace(one, answer="Same."), replace(two, answer="Same.")))
    assert context.text.count("Same.") == 1
    assert "(the same as of task-0.0)" in context.text
    assert [w.why for w in context.receipt.withheld] == ["duplicate"]


@pytest.mark.parametrize("role", ["worker", "qc"])
def test_size_hardly_grows_with_fan_in(role: str):
    def size(n: int) -> int:
        if role == "worker":
            return estimate(worker(dependencies=dependencies(n)).text)
        related = tuple(
            RelatedTask(
                id=f"t{i}", title="T" * 90, status="completed", distance=1, relation="needs"
            )
            for i in range(n)
        )
        return estimate(qc(related=related).text)

    assert size(1000) <= 2 * size(100)


EARLIER = (
    EarlierAttempt(
        number=1,
        reason="qc_failure",
        score=Fraction(125, 2),
        issues=("No lock around the counter", "line 13 is wrong"),
        tripped="6 of 6 tool calls used",
    ),
    EarlierAttempt(
        number=2,
        reason="qc_failure",
        score=Fraction(70),
        issues=("line 14 is  wrong", "Docs missing"),
        checks=(
            FailedCheck(
                id="unit", command="pytest", outcome="exit code 1", output="E  assert 1 == 2\n"
            ),
        ),
        answer="I am done.",
        artifact="task-1.1/2/answer",
        diff="-old\n+new\n",
        note="api.py holds conflict markers",
    ),
)


def test_brief_of_a_retry_has_all_earlier_attempts_and_fixes():
    fixes = ("Take the lock", "Write\nthe docs")
    text = worker(attempt=3, earlier=EARLIER, required_fixes=fixes).text
    for words in (
        "- Attempt 1: score 62.50, tried again because of qc_failure; "
        "its tools were ended: 6 of 6 tool calls used",
        "- Attempt 2: score 70, tried again because of qc_failure; api.py holds conflict markers",
        "I am done.",
        "-old\n+new\n",
        "Check unit of attempt 2: pytest — exit code 1\n```text\nE  assert 1 == 2\n",
        "- (attempt 1) No lock around the counter",
        "1. Take the lock\n2. Write the docs",
    ):
        assert words in text
    assert text.rstrip().endswith("2. Write the docs")


def test_similar_issues_are_one_line_and_no_number_is_lost():
    context = worker(attempt=3, earlier=EARLIER)
    assert "- (attempt 1, attempt 2) line 14 is wrong — also with 13" in context.text
    (merged,) = [w for w in context.receipt.withheld if w.why == "similar"]
    assert merged.text == "line 13 is wrong"


def test_required_fixes_have_the_same_numbers_for_worker_and_qc():
    fixes = ("Take the lock", "Write the docs")
    checklist = "1. Take the lock\n2. Write the docs"
    assert checklist in worker(attempt=2, earlier=EARLIER[:1], required_fixes=fixes).text
    assert checklist in qc(required_fixes=fixes).text


def test_critical_pieces_are_never_cut():
    huge = "word " * 100_000
    fixes = tuple(f"{huge}{n}" for n in range(2))
    none = ContextBudgets(**dict.fromkeys(ContextBudgets.__dataclass_fields__, 0))
    context = worker(
        task=replace(TASK, prompt=huge),
        attempt=2,
        earlier=(replace(EARLIER[1], issues=(huge,)),),
        required_fixes=fixes,
        budgets=none,
    )
    assert huge in context.text
    for fix in fixes:
        assert fix in context.text
    assert context.text.count("word ") >= 400_000 - 10
    assert "I am done." not in context.text
    assert all(piece.whole for piece in context.receipt.given)


@given(st.integers(0, 3000), st.integers(0, 40), st.integers(0, 6000))
def test_parts_keep_their_budgets(budget: int, files: int, length: int):
    """Of cuttable content, the context has no more than the budget and one line for each referenced piece."""
    views = tuple(FileView(path=f"{n}.py", size=length, text="x" * length) for n in range(files))
    shown = worker(files=views, budgets=ContextBudgets(files=budget)).text.count("x")
    assert shown <= budget * 3.5 + 3 * files + 40


def test_budgets_follow_the_context_of_the_model():
    assert ContextBudgets.within(None) == ContextBudgets.within(200_000) == ContextBudgets()
    small = ContextBudgets.within(16_000)
    qc = small.answer + small.checks + small.changed + small.related
    assert qc <= 8_000
    assert small.files > 2_000


def test_smaller_budgets_give_a_smaller_context():
    given = replace(WORKER, files=(FileView(path="a", size=1, text="x\n" * 2000),) * 1)
    files = tuple(replace(given.files[0], path=f"f{n}") for n in range(9))
    large = worker(files=files, budgets=ContextBudgets(files=6000))
    small = worker(files=files, budgets=ContextBudgets(files=6000).smaller())
    assert estimate(small.text) < estimate(large.text) / 2
