"""Plans in the real layouts of planners, with all text around the tasks: nothing is lost and nothing invented."""

from pathlib import Path

import pytest

from mimir.domain.plan import Plan, Task
from mimir.planning import parser

SAMPLES = Path(__file__).with_name("samples")

GRAPHS: dict[str, dict[str, tuple[str, ...]]] = {
    "bold_blocks.md": {"task-0": (), "task-1.1": ("task-0",), "task-1.2": ("task-1.1",)},
    "bullets.md": {"task-1.1": (), "task-2.1": ("task-1.1",)},
    "details_whole.md": {"task-1": (), "task-2": ("task-1",)},
    "heading_fields.md": {
        "task-1.1": (),
        "task-1.2": ("task-1.1",),
        "task-1.3": ("task-1.1", "task-1.2"),
    },
    "list_in_fence.md": {"a": (), "b": ("a",)},
    "nested_bullets.md": {"task-1": (), "task-2": ("task-1",)},
    "phases_global_qc.md": {
        "task-1.1": (),
        "task-2.1": ("task-1.1",),
        "task-2.2": ("task-1.1", "task-2.1"),
    },
    "plain_labels.md": {"task-1": (), "task-2": ("task-1",)},
    "plan.json": {"task-0": (), "task-1.1": ("task-0",)},
    "titled_headings.md": {
        "task-1.1": (),
        "task-1.1.2": ("task-1.1",),
        "setup-db": ("task-1.1", "task-1.1.2"),
        "task-2.1": ("task-1.1", "task-1.1.2", "setup-db"),
    },
    "wrapped.md": {"task-1.1": (), "task-1.2": ("task-1.1",)},
}


def plan(name: str) -> Plan:
    return parser.parse_document(SAMPLES / name).plan


def task(name: str, id: str) -> Task:
    return plan(name).task(id)


def test_every_sample_is_looked_at():
    assert {path.name for path in SAMPLES.iterdir()} == set(GRAPHS)


@pytest.mark.parametrize("name", GRAPHS)
def test_tasks_and_dependencies_of_a_sample(name: str):
    parsed = parser.parse_document(SAMPLES / name)
    assert {t.id: t.dependencies for t in parsed.plan.tasks} == GRAPHS[name]
    assert [one for one in parsed.findings if one.severity == "error"] == []
    assert set(parsed.lines) == set(GRAPHS[name])


@pytest.mark.parametrize("name", GRAPHS)
def test_every_line_of_a_prompt_is_in_the_document(name: str):
    text = (SAMPLES / name).read_text(encoding="utf-8")
    for one in plan(name).tasks:
        assert one.prompt.strip()
        lines = [line.strip() for line in one.prompt.split("\n")]
        assert name.endswith(("json", "fence.md")) or all(line in text for line in lines)


def test_a_bare_prompt_keeps_rules_headings_and_labels_that_are_not_the_tasks():
    assert task("bold_blocks.md", "task-0").prompt.endswith("\n\n---\n\n2. Say what is missing.")
    assert task("bold_blocks.md", "task-1.1").prompt == (
        "Write `clock/store.py`.\n\n# Notes on the format\n"
        "A heading inside the prompt, and more behind it.\n\n"
        "**Context:**\n- one record a minute\n- **Time:** always UTC"
    )
    assert task("heading_fields.md", "task-1.3").prompt == (
        "Read it aloud.\n\n## A heading of the prompt itself\n\nAnd a last word."
    )
    assert task("titled_headings.md", "task-1.1.2").prompt.endswith(
        "\n\n#### Wording\nShort words."
    )
    assert task("plain_labels.md", "task-1").prompt.endswith("\n\nNote: heavy ones below.")


def test_a_prompt_below_a_bullet_loses_the_bullets_indent_and_nothing_else():
    assert task("bullets.md", "task-1.1").prompt == (
        "Collect the recipes of the repository.  \n"
        "- List every file with a recipe.\n"
        "- **Requires:** nothing but reading.\n"
        "- Output format:\n"
        "  ```\n  ## Recipes\n\n  - <file>: <one sentence>\n  ...\n  ```\n\n"
        "Stop when all are listed."
    )
    assert task("nested_bullets.md", "task-1").prompt == "Till it.\n\n- deep\n  - deeper"
    assert task("details_whole.md", "task-1").prompt == "Sand it.\n  Twice.\n"


def test_numbers_and_groups_of_the_samples():
    zero, first, second = plan("bold_blocks.md").tasks
    assert (zero.estimated_minutes, zero.estimated_tool_calls, zero.max_retries) == (10, 12, 0)
    assert (zero.parallel_group, first.parallel_group, second.parallel_group) == ("", "1", "")
    assert (first.estimated_minutes, first.estimated_tool_calls, first.max_retries) == (90, 15, 3)
    assert second.max_retries == 1
    assert task("bullets.md", "task-2.1").parallel_group == "2"
    assert task("plan.json", "task-0").estimated_tool_calls == 15
    assert task("plan.json", "task-0").max_retries == 0
    assert task("plan.json", "task-1.1").max_retries == 2


def test_one_qc_role_for_all_tasks_holds_for_each():
    roles = {t.qc_role for t in plan("phases_global_qc.md").tasks}
    assert roles == {"Senior baker who tastes everything."}


def test_text_after_the_last_task_belongs_to_the_plan():
    for name in ("bold_blocks.md", "bullets.md", "phases_global_qc.md", "titled_headings.md"):
        last = plan(name).tasks[-1]
        whole = f"{last.prompt}{last.notes}{last.criteria}{last.tool_execution}"
        assert not any(
            word in whole for word in ("Summary", "mermaid", "Risk", "taste", "Hand-off")
        )
    assert "## Risk\n\n- darkness" in plan("titled_headings.md").notes
    assert "graph LR" in plan("bold_blocks.md").notes
    assert plan("nested_bullets.md").notes == "Rain is needed."


def test_unknown_label_becomes_notes_and_a_warning():
    parsed = parser.parse_document(SAMPLES / "bullets.md")
    assert parsed.plan.task("task-2.1").notes == "- **Edge Cases:** two recipes of one name"
    assert [(f.code, f.line) for f in parsed.findings] == [("label-unknown", 58)]


def test_reasoning_is_the_plans_alone():
    read = plan("bold_blocks.md")
    assert read.reasoning.startswith("## Requirements")
    assert "### Task 7.7: only thought about" in read.reasoning
    assert plan("plan.json").reasoning == (
        "requirementsAnalysis:\nDogs bark.\n\ndecompositionStrategy:\nFirst listen."
    )


def test_a_commented_task_is_no_task():
    assert "not any more" in task("details_whole.md", "task-1").notes
