"""One table of labels: the PM's form, the reader and the documentation agree."""

from pathlib import Path

import pytest

from mimir.domain.plan import Task
from mimir.planning import parser
from mimir.planning.format import labels
from mimir.planning.format.diagnostics import CODES
from mimir.planning.lint.plan_check import check

DOCUMENT = Path(__file__).resolve().parents[4] / "docs" / "plan-format.md"


def test_the_example_that_the_pm_sees_is_a_plan():
    parsed = parser.parse_plan(labels.example())
    assert parsed.findings == ()
    (task,) = parsed.plan.tasks
    assert parsed.plan.title == "Rate limiter for the API"
    assert parsed.plan.reasoning
    assert parsed.plan.goal
    assert parsed.plan.request
    empty = Task(id="", title="", prompt="", worker_role="")
    same = [f.key for f in labels.FIELDS if getattr(task, f.key) == getattr(empty, f.key)]
    # The PM does not know the agents of the machine.
    assert same == ["agent", "time_limit_minutes", "max_retries", "notes"]
    errors = [one for one in check(parsed, tools=task.tools) if one.severity == "error"]
    assert [one.code for one in errors] == ["dependency-unknown", "dependency-unknown"]


def test_the_instructions_name_every_label():
    text = labels.format_instructions()
    assert all(
        f"**{field.label}:**" in text
        for field in labels.FIELDS
        if field.key not in ("notes", "agent")
    )
    assert all(field.advice in text for field in labels.FIELDS)
    assert labels.example() in text


def test_no_name_means_two_fields():
    names = [
        labels.words(name)
        for field in labels.FIELDS
        for name in (field.label, *field.synonyms, *field.counts_attempts)
    ]
    assert len(names) == len(set(names))


def test_every_field_is_an_attribute_of_a_task():
    task = Task(id="", title="", prompt="", worker_role="")
    assert all(hasattr(task, field.key) for field in labels.FIELDS)


@pytest.mark.parametrize(
    ("label", "key"),
    [
        ("Worker Role", "worker_role"),
        ("workerRole", "worker_role"),
        ("agentRoleDescription", "worker_role"),
        ("qcAgentRoleDescription", "qc_role"),
        ("🎯 Optimized  prompt", "prompt"),
        ("3. Depends on", "dependencies"),
        ("max_retries", "max_retries"),
        ("MAX ATTEMPTS", "max_retries"),
        ("Estimated Duration (hours)", "estimated_minutes"),
        ("Tool–Based Execution", "tool_execution"),
        ("Time", "estimated_minutes"),
        ("Time Limit", "time_limit_minutes"),
    ],
)
def test_a_label_is_found_by_its_words(label: str, key: str):
    found = labels.find(label)
    assert found is not None
    assert found.field.key == key


@pytest.mark.parametrize(
    "label", ["", "Edge Cases", "Verification Criteria (per task)", "x" * 200, "Prompts"]
)
def test_other_labels_are_not_known(label: str):
    assert labels.find(label) is None


def test_some_names_are_keys_in_json_only():
    for name, key in (("name", "title"), ("model", "model"), ("workerRole", "worker_role")):
        found = labels.find_json_key(name)
        assert found is not None
        assert found.field.key == key
    assert labels.find("Name") is None
    assert labels.find("Model") is None


def test_label_for_all_tasks_is_recognised():
    found = labels.find("QC Agent Role for All Tasks")
    assert found is not None
    assert found.for_all
    aside = labels.find("QC Role (all tasks)")
    assert aside is not None
    assert aside.for_all


def test_misspelt_label_is_near_its_label():
    assert labels.nearest_label("Dependecies") == "Dependencies"
    assert labels.nearest_label("Weather") == ""


def synonym_table() -> str:
    """Return the labels as the markdown table of the documentation."""
    rows = ["| field | label | also read |", "|---|---|---|"]
    for field in labels.FIELDS:
        other = [*field.synonyms, *(f"{name} (− 1)" for name in field.counts_attempts)]
        other += [f"`{name.casefold()}` in JSON" for name in field.json_names]
        rows.append(f"| `{field.key}` | {field.label} | {', '.join(other)} |")
    return "\n".join(rows)


def code_table() -> str:
    """Return the codes as the markdown table of the documentation."""
    rows = [f"| `{code}` | {severity} | {meaning} |" for code, (severity, meaning) in CODES.items()]
    return "\n".join(["| code | severity | when |", "|---|---|---|", *rows])


@pytest.mark.parametrize("table", [synonym_table(), code_table()], ids=["labels", "codes"])
def test_the_documentation_holds_the_tables(table: str):
    assert table in DOCUMENT.read_text(encoding="utf-8")


def test_the_plan_in_the_documentation_is_whole():
    text = DOCUMENT.read_text(encoding="utf-8")
    start = text.index("````markdown\n") + len("````markdown\n")
    parsed = parser.parse_plan(text[start : text.index("\n````", start)])
    found = check(parsed, tools=("read_file", "write_file", "edit_file", "run"))
    assert [one.render("doc") for one in found] == []
    assert len(parsed.plan.tasks) == 2
