"""Single rules of the reader, each where a planner could mislead it."""

import json
from pathlib import Path

import pytest

from mimir.errors import PlanError
from mimir.planning import parser
from mimir.planning.check_json import json_shape
from mimir.planning.parser import ParsedPlan
from mimir.planning.renderer import render

TASK = "**Role:** R\n**Prompt:** do {0}\n**Dependencies:** {1}\n**Criteria:**\n- works\n"


def codes(parsed: ParsedPlan) -> list[tuple[str, int]]:
    return [(one.code, one.line) for one in parsed.findings]


@pytest.mark.parametrize(
    ("heading", "id", "title"),
    [
        ("### Task 1.1: Foo", "task-1.1", "Foo"),
        ("#### Task 2.1 - Foo", "task-2.1", "Foo"),
        ("### **task-1.1: Foo**", "task-1.1", "Foo"),
        ("### 🔧 Task 3: Foo (core)", "task-3", "Foo (core)"),
        ("## TASK-7: Foo", "TASK-7", "Foo"),
        ("### Task ID: x-1", "x-1", "x-1"),
        ("### Task ID: `x-1` — Foo", "x-1", "Foo"),
        ("### [Task 1.1] Foo", "task-1.1", "Foo"),
        ("### 2. Task 1.1.3: Foo", "task-1.1.3", "Foo"),
        ("### Phase 1: Task 1.2: Foo", "task-1.2", "Foo"),
        ("### setup-db: Foo", "setup-db", "Foo"),
        ("### Foo (`task-1.1`)", "task-1.1", "Foo"),
        ("### 3. Foo [Task 1.1]", "task-1.1", "3. Foo"),
        ("### Task setup-db: Foo", "setup-db", "Foo"),
        ("### 1.4 Foo", "task-1.4", "Foo"),
        ("**Task 1.1: Foo**", "task-1.1", "Foo"),
        ("2. **Task 1.1: Foo** (5 min)", "task-1.1", "Foo"),
        ("**Task 1.1:** Foo", "task-1.1", "Foo"),
        ("**Task ID:** a.b\n**Title:** Foo", "a.b", "Foo"),
        ("* **Task ID**: `a`\n* **Title**: Foo", "a", "Foo"),
        ("**Title:** Foo\n**Task ID:** a", "a", "Foo"),
        ("**Task ID: a**\n**Title:** Foo", "a", "Foo"),
        ("#### Task ID\na\n#### Title\nFoo\n", "a", "Foo"),
        ("Task ID: a\n**Title:** Foo", "a", "Foo"),
        ("### task-1: Foo\n\n- Title: Foo", "task-1", "Foo"),
        ("### T1: Foo\n**Task ID:** T1", "T1", "Foo"),
        ("### 1. Foo\n**Task ID:** t-1", "t-1", "Foo"),
    ],
)
def test_an_id_and_a_title_are_found_in_every_heading(heading: str, id: str, title: str):
    parsed = parser.parse_plan(f"# P\n\n## Tasks\n\n{heading}\n{TASK.format('it', 'None')}")
    assert [(t.id, t.title, t.prompt) for t in parsed.plan.tasks] == [(id, title, "do it")]
    assert codes(parsed) == []


@pytest.mark.parametrize(
    "heading",
    [
        "## Task Breakdown",
        "## Task Graph",
        "### Tasks 1-3: overview",
        "### Task 1-3: overview",
        "## Task-based thinking",
        "### Phase 1: Context",
        "### Note: this",
        "# Plan: tasks",
    ],
)
def test_a_heading_that_names_no_task_begins_none(heading: str):
    text = f"{heading}\n\nwords\n\n**Task ID:** a\n{TASK.format('it', 'None')}"
    assert [t.id for t in parser.parse_plan(text).plan.tasks] == ["a"]


def test_a_heading_without_fields_that_is_given_elsewhere_is_no_second_task():
    text = f"### Task 1: A\nabout it\n\n### Task 1: A\n{TASK.format('it', 'None')}"
    parsed = parser.parse_plan(text)
    assert [t.id for t in parsed.plan.tasks] == ["task-1"]
    assert "about it" in parsed.plan.notes


def test_a_heading_without_fields_that_is_given_nowhere_is_a_task_without_a_prompt():
    text = f"### Task 1: A\nabout it\n\n### Task 2: B\n{TASK.format('it', 'task-1')}"
    assert [(t.id, t.prompt) for t in parser.parse_plan(text).plan.tasks] == [
        ("task-1", ""),
        ("task-2", "do it"),
    ]


def test_several_tasks_below_one_heading_are_several():
    blocks = [f"**Task ID:** {id}\n{TASK.format(id, 'None')}" for id in "abc"]
    assert [
        t.id for t in parser.parse_plan("### Task 1: group\n" + "\n".join(blocks)).plan.tasks
    ] == [
        "a",
        "b",
        "c",
    ]


def test_dependency_may_name_a_heading_or_a_task_id():
    text = f"### Task 1: A\n**Task ID:** setup-db\n{TASK.format('it', 'None')}\n### Task 2: B\n{TASK.format('it', 'Task 1')}"
    assert parser.parse_plan(text).plan.task("task-2").dependencies == ("setup-db",)


def test_a_task_without_any_id_is_named():
    parsed = parser.parse_plan(f"## Tasks\n### Make the schema\n{TASK.format('it', 'None')}")
    assert [t.id for t in parsed.plan.tasks] == [""]
    assert codes(parsed) == [("task-id-missing", 2)]


def test_dependencies_in_another_form_inside_a_bare_prompt_are_named():
    text = "**Task ID:** a\n**Prompt:**\ndo it\n\n- **Dependencies:** task-9\n- **Acceptance Criteria:**\n  - works\n"
    parsed = parser.parse_plan(text)
    assert codes(parsed) == [("label-in-prompt", 5)]
    assert "line 6" in parsed.findings[0].message
    assert "task-9" in parsed.plan.tasks[0].prompt


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("**Task ID:** a\n**Prompt:** x\n**Role:** R\n\n### More\n**Dependencies:** b\n", 6),
        ("## Task 1: A\n**Role:** R\n\n## Prompt\ndo it\n", 4),
    ],
)
def test_a_field_behind_the_end_of_its_task_is_named(text: str, line: int):
    assert codes(parser.parse_plan(text)) == [("field-outside", line)]


def test_a_section_behind_a_task_that_has_the_field_is_no_fault():
    text = f"### Task 1: A\n{TASK.format('it', 'None')}\n## Dependencies\ntask-1 is all.\n"
    assert codes(parser.parse_plan(text)) == []


def test_a_task_in_a_fence_outside_prompts_is_named_but_not_read():
    text = f"Example:\n```markdown\n### Task 9.9: fake\n```\n**Task ID:** a\n{TASK.format('it', 'None')}"
    parsed = parser.parse_plan(text)
    assert [t.id for t in parsed.plan.tasks] == ["a"]
    assert codes(parsed) == [("task-in-fence", 3)]


def test_a_yaml_file_with_tasks_inside_a_prompt_is_no_plan():
    taskfile = "Write:\n```yaml\ntasks:\n  build:\n    prompt: no\n```"
    for heading in ("### Task 1: Foo", "**Task ID:** task-1"):
        (task,) = parser.parse_plan(f"# P\n\n{heading}\n{TASK.format(taskfile, 'None')}").plan.tasks
        assert (task.id, task.prompt) == ("task-1", f"do {taskfile}")


def test_prompt_without_a_label_is_between_its_tags():
    parsed = parser.parse_plan(
        "### Task 1: A\n**Role:** R\n\n<prompt>\ndo it\n</prompt>\n\n**Criteria:** works"
    )
    assert parsed.plan.tasks[0].prompt == "do it"


def test_a_numbered_tag_holds_the_plain_one():
    text = "**Task ID:** a\n**Prompt:**\n<prompt-2>\n<prompt>\nx\n</prompt>\n</prompt-2>\n**Criteria:** y"
    assert parser.parse_plan(text).plan.tasks[0].prompt == "<prompt>\nx\n</prompt>"


def test_description_next_to_the_prompt_is_not_the_prompt():
    text = "**Task ID:** a\n**Description:** in short\n**Prompt:**\nat length\n**Criteria:** y"
    task = parser.parse_plan(text).plan.tasks[0]
    assert (task.prompt, task.notes) == ("at length", "Description: in short")


@pytest.mark.parametrize(
    "text", ["", "\n\n", "\0", "\ufeff", "words", "---", "[", "{", "```", "<prompt>"]
)
def test_text_without_a_task_has_no_task(text: str):
    assert parser.parse_plan(text).plan.tasks == ()


def test_a_byte_order_mark_and_carriage_returns_do_not_matter_and_prompts_keep_theirs():
    text = "**Task ID:** a\n**Prompt:**\n<prompt>\none\n two\n</prompt>\n**Criteria:**\n- works\n"
    task = parser.parse_plan("\ufeff" + text.replace("\n", "\r\n")).plan.tasks[0]
    assert task.prompt == "one\r\n two"
    assert [c.text for c in task.criteria] == ["works"]


# JSON.


def test_json_that_is_none_is_named_with_its_place():
    parsed = parser.parse_plan('{"tasks": [\n  {"id": "a", "id": "b"}\n]}')
    assert codes(parsed) == [("json-unreadable", 2)]
    assert parsed.findings[0].column == 15


@pytest.mark.parametrize(
    "text",
    [
        '{"tasks": [{"id": "a", "maxRetries": NaN}]}',
        '{"tasks": [{"id": "a", "maxRetries": Infinity}]}',
        '{"tasks": [{"id": "a",}]}',
        '{"tasks": [{"id": "\\ud800"}]}',
        '{"tasks": ' + "[" * 100_000,
        '{"tasks": [{"id": "a"}]} trailing',
        "[{'id': 'a'}]",
    ],
)
def test_strict_json_or_none(text: str):
    assert [code for code, _ in codes(parser.parse_plan(text))] in (["json-unreadable"], [])
    assert parser.parse_plan(text).plan.tasks == ()


@pytest.mark.parametrize("text", ["{}", '{"goal": "g"}', '{"tasks": 5}'])
def test_json_without_tasks_is_named(text: str):
    assert codes(parser.parse_plan(text)) == [("json-shape", 1)]


@pytest.mark.parametrize(
    ("key", "value", "code"),
    [
        ("prompt", 5, "value-unreadable"),
        ("prompt", {"a": 1}, "value-unreadable"),
        ("title", ["a"], "value-unreadable"),
        ("dependencies", {"a": 1}, "dependency-unreadable"),
        ("dependencies", [["a"]], "dependency-unreadable"),
        ("dependencies", True, "dependency-unreadable"),
        ("maxRetries", True, "value-unreadable"),
        ("maxRetries", -1, "value-unreadable"),
        ("maxRetries", "many", "value-unreadable"),
        ("estimatedToolCalls", 1e300, "value-unreadable"),
        ("criteria", [5], "criterion-unreadable"),
        ("checks", [{"id": "k", "run": {"a": 1}}], "checks-unreadable"),
        ("files", {"a": 1}, "value-unreadable"),
        ("workerRol", "R", "label-misspelt"),
        ("colour", "red", "label-unknown"),
    ],
)
def test_a_json_value_of_the_wrong_type_is_never_a_default(key: str, value: object, code: str):
    task = {"id": "a", "prompt": "p", "criteria": ["c"], key: value}
    assert [one for one, _ in codes(parser.parse_plan(json.dumps([task])))] == [code]


def test_json_output_of_check_can_be_read_as_a_plan():
    text = f"### Task 1: A\n{TASK.format('it', 'None')}**QC Role:** Q\n**Max Retries:** 0\n**Time Limit:** 5 min\n"
    plan = parser.parse_plan(text).plan
    again = parser.parse_plan(json.dumps(json_shape(plan, ()))).plan
    assert again.tasks == plan.tasks


# Files.


def test_a_plan_file_is_read_with_its_name(tmp_path: Path):
    path = tmp_path / "chain-output.md"
    path.write_bytes("### Task 1: A\n**Prompt:** ü\r\n".encode())
    parsed = parser.parse_document(path)
    assert parsed.file == str(path)
    assert parsed.plan.tasks[0].prompt == "ü"


def test_a_file_that_is_not_utf8_is_refused_with_line_and_byte(tmp_path: Path):
    path = tmp_path / "plan.md"
    path.write_bytes(b"# Plan\n\nab\xff\n")
    with pytest.raises(PlanError, match="byte 10 is 0xff") as raised:
        parser.parse_document(path)
    assert (raised.value.exit_code, raised.value.code) == (65, "plan-not-utf8")
    assert raised.value.at is not None
    assert (raised.value.at.line, raised.value.at.column) == (3, 3)


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path):
    with pytest.raises(PlanError, match="cannot be read"):
        parser.parse_document(tmp_path / "missing.md")
    with pytest.raises(PlanError, match="cannot be read"):
        parser.parse_document(tmp_path)


def test_a_file_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(parser, "MAX_BYTES", 10)
    path = tmp_path / "plan.md"
    path.write_text("x" * 11)
    with pytest.raises(PlanError, match="larger than"):
        parser.parse_document(path)


def test_rendered_plan_is_read_back_unchanged():
    for path in sorted(Path(__file__).with_name("samples").iterdir()):
        plan = parser.parse_document(path).plan
        assert parser.parse_plan(render(plan)).plan == plan


@pytest.mark.parametrize(
    "line",
    [
        'grep -q "autoclass:: Duration" docs/api.md && test -f a',
        "\"./run tests.sh\" && echo 'a: b'",
        "[ -f docs/x.md ] && grep -q y docs/x.md",
        '! grep -rq "TODO" src',
        '!grep -q "é: 😀" src',
        "`which python` -m pytest",
        "@make test",
        'grep -q "a # b" x',
        "python -c \"d = {'a': 1}; assert d['a'] == 1 # one: two\"",
        "&& true: x",
        "'it''s' && a: b",
    ],
)
def test_a_command_line_that_is_no_yaml_counts_as_it_is_written(line: str):
    text = f"## Tasks\n\n### task-1: Foo\n{TASK.format('it', 'None')}**Checks:**\n"
    for start, end in (("```yaml\n", "\n```\n"), ("", "\n")):
        checks = f"{start}- id: one\n  criteria: [c1]\n  run: {line}\n- run: [pytest,\n    -q]{end}"
        parsed = parser.parse_plan(text + checks)
        assert [one.run for one in parsed.plan.tasks[0].checks] == [line, ("pytest", "-q")]
        assert codes(parsed) == []


def test_a_fault_of_yaml_outside_of_a_command_line_is_named():
    text = f"## Tasks\n\n### task-1: Foo\n{TASK.format('it', 'None')}**Checks:**\n```yaml\n"
    for checks in ('- run: python -c "a: 1;\n    b"\n', "- run: grep 'a: b' x\n  id: a: b\n"):
        assert [one for one, _ in codes(parser.parse_plan(f"{text}{checks}```\n"))] == [
            "checks-unreadable"
        ]
