"""Plans in any form: each task, dependency and criterion is read, or a finding names the line."""

import random
from pathlib import Path

import pytest

from mimir.planning import parser
from mimir.planning.lint import plan_check
from tests.support.plan_mutations import KINDS, mutate, silent_losses

SAMPLES = sorted(Path(__file__).with_name("samples").glob("*.md"))
SEEDS = 2

PLAN = """# Plan: limiter

## Tasks

### Task 0: Look
**Task ID:** task-0
**Prompt:**
<prompt>
Look.
</prompt>
**Verification Criteria:**
- [ ] (100 pts) c1: it is seen

---

### Task 1: Write
**Task ID:** task-1
**Prompt:**
<prompt>
Write it.
</prompt>
**Dependencies:** task-0
**Verification Criteria:**
- [ ] (60 pts) c1: it refills
- [ ] (40 pts) c2: it is safe
"""


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.stem)
def test_mutation_of_a_plan_loses_nothing_silently(sample: Path, kind: str) -> None:
    text = sample.read_text(encoding="utf-8")
    for seed in range(SEEDS):
        changed = mutate(text, kind, random.Random(f"{sample.stem}{kind}{seed}"))
        assert silent_losses(text, changed) == set(), changed


def codes(text: str) -> list[str]:
    found = plan_check.check(parser.parse_plan(text), tools=())
    return [one.code for one in found if one.severity == "error"]


def lost(text: str) -> bool:
    return not codes(text) and silent_losses(PLAN, text) != set()


@pytest.mark.parametrize(
    ("line", "form"),
    [
        ("### Task 1: Write\n**Task ID:** task-1", "###Task 1: Write"),
        ("### Task 1: Write\n**Task ID:** task-1", "###\u00a0Task 1: Write"),
        ("### Task 1: Write\n**Task ID:** task-1", "＃＃＃ Task 1: Write"),
        ("### Task 1: Write\n**Task ID:** task-1", "> **Task ID:** task-1"),
        ("### Task 1: Write\n**Task ID:** task-1", "**Task ID** = task-1"),
        ("**Dependencies:** task-0", "**Blocked By:** task-0"),
        ("**Dependencies:** task-0", "**Needs:** task-0"),
        ("**Dependencies:** task-0", "**Any name:** task-0"),
        ("**Dependencies:** task-0", "<b>Dependencies:</b> task-0"),
        ("**Dependencies:** task-0", "- Dependencies: task-0"),
        ("**Dependencies:** task-0", "> Dependencies: task-0"),
        ("**Dependencies:** task-0", "@DependsOn task-0"),
        ("**Dependencies:** task-0", "**Dependencies** task-0"),
        ("**Dependencies:** task-0", "<DependsOn>task-0</DependsOn>"),
        ("**Dependencies:** task-0", "  - **Abhängigkeiten:** Task 0"),
        ("**Dependencies:** task-0", "**Dependencies:** None, task-0"),
        ("**Dependencies:** task-0", "**Dependencies:**\n---\ntask-0"),
        ("**Dependencies:** task-0", "**Any name:** none; Task 0 (first)"),
        ("**Dependencies:** task-0", "# Dependencies: task-0 (first)"),
        ("**Dependencies:** task-0", "#### Dependencies； task-0"),
        ("**Dependencies:** task-0", "**Dependencies︰** task-0"),
        ("**Dependencies:** task-0", "```\n**Dependencies:** task-0\n```"),
        ("**Dependencies:** task-0", "**Time Limit:** 5 minutes · **After:** task-0"),
        ("**Verification Criteria:**\n- [ ] (60 pts)", "---\n\n- [ ] (60 pts)"),
        ("**Verification Criteria:**\n- [ ] (60 pts)", "- [ ] (60 pts)"),
    ],
)
@pytest.mark.parametrize("prompt", ["tagged", "bare", "fenced"])
def test_line_in_another_form_is_read_or_named(line: str, form: str, prompt: str) -> None:
    marks = {"tagged": ("<prompt>", "</prompt>"), "bare": ("", ""), "fenced": ("```", "```")}
    opening, closing = marks[prompt]
    assert line in PLAN
    text = PLAN.replace(line, form).replace("<prompt>", opening).replace("</prompt>", closing)
    assert not lost(text)


@pytest.mark.parametrize("mark", ["–", "—", "·", "◦", "✓", "a)", "(1)", "*", "3.", ">"])
def test_each_list_mark_begins_a_criterion(mark: str) -> None:
    text = PLAN.replace("- [ ] (60", f"{mark} (60").replace("- [ ] (40", f"{mark} (40")
    (_, task) = parser.parse_plan(text).plan.tasks
    assert [(one.text, one.points) for one in task.criteria] == [
        ("it refills", 60),
        ("it is safe", 40),
    ]


@pytest.mark.parametrize("heading", ["## Task Graph", "### Task ID Specification"])
def test_heading_about_tasks_is_no_task(heading: str) -> None:
    parsed = parser.parse_plan(PLAN.replace("### Task 0", f"{heading}\n\nSee below.\n\n### Task 0"))
    assert [task.id for task in parsed.plan.tasks] == ["task-0", "task-1"]


def test_full_width_punctuation_keeps_points_and_ids() -> None:
    text = PLAN.replace("(60 pts) c1:", "（60 pts）c1：").replace("Task ID:**", "Task ID：**")
    parsed = parser.parse_plan(text.replace("Task 1:", "Task 1："))
    assert silent_losses(PLAN, text) == set()
    assert parsed.plan.tasks[1].criteria[0].id == "c1"
    assert parsed.plan.tasks[1].title == "Write"


@pytest.mark.parametrize(
    "form", ["# c2: it is safe", "#### it is safe", "- [ ] 40% c2: it is safe"]
)
def test_criterion_as_heading_or_with_percents_is_read_or_named(form: str) -> None:
    text = PLAN.removeprefix("# Plan: limiter\n").replace("- [ ] (40 pts) c2: it is safe", form)
    parsed = parser.parse_plan(text)
    points = [one.points for one in parsed.plan.tasks[1].criteria]
    assert points == [60, 40] or parsed.findings


def test_equal_criteria_under_two_labels_keep_the_points() -> None:
    text = PLAN.replace(
        "**Dependencies:** task-0",
        "**Dependencies:** task-0\n**Acceptance Criteria:**\n- it refills",
    )
    (_, task) = parser.parse_plan(text).plan.tasks
    assert [one.points for one in task.criteria] == [60, 40]


def test_characters_of_texts_and_prompts_are_kept() -> None:
    text = PLAN.replace("it refills", "می\u200cخواهم（成功）").replace(
        "Write it.", "Write\u00a0it（now）."
    )
    (_, task) = parser.parse_plan(text).plan.tasks
    assert task.criteria[0].text == "می\u200cخواهم（成功）"
    assert task.prompt == "Write\u00a0it（now）."


def test_missing_task_id_has_at_most_three_findings() -> None:
    text = PLAN.replace("**Task ID:** task-1", "").replace("### Task 1: Write", "B")
    assert len(codes(text.replace("**", ""))) <= 3


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("JSON Lines", '{"id": "task-1", "prompt": "x"}\n{"id": "task-2", "prompt": "y"}\n'),
        (
            "a tagged task list",
            "# Tasks\n<task id='1'>\nWrite it.\n</task>\n<task id='2'>\n</task>",
        ),
        ("a spec-kit task file", "# Tasks: x\n\n## Phase 1\n- [ ] T001 [P] Set up\n- [ ] T002 Go"),
        (
            "an implementation plan of steps with boxes",
            "### Task 1: A\n\n**Files:**\n- Create: `a.py`\n\n- [ ] **Step 1: Test it**\n\n"
            "### Task 2: B\n\n- [ ] **Step 1: Test it**\n\nRun: `pytest`\n",
        ),
    ],
)
def test_other_format_is_named_once(name: str, text: str) -> None:
    (one,) = plan_check.check(parser.parse_plan(text), tools=())
    assert one.code == "plan-format"
    assert name in one.message
    assert "mimir chain" in one.suggestion
