"""Values are read by their meaning; an unreadable value is a finding, not a default."""

import pytest

from mimir.domain.finding import Finding
from mimir.planning.format import labels
from mimir.planning.reader import values
from mimir.planning.reader.task_references import TaskReferences, id_of
from mimir.planning.reader.values import RawField


def raw(label: str, text: str) -> RawField:
    found = labels.find(label)
    assert found is not None
    return RawField(found=found, name=label, text=text)


@pytest.mark.parametrize(
    ("text", "minutes"),
    [
        ("15 minutes", 15),
        ("45", 45),
        ("2-3 hours", 180),
        ("3–4 hours (with research)", 240),
        ("5-10 min", 10),
        ("1h 30m", 90),
        ("1.5 h", 90),
        ("~30 min", 30),
        ("about 2 hours", 120),
        ("30 minutes per file", 30),
        ("90 sec", 1.5),
        ("1 day", 480),
        ("**15 min**", 15),
        ("- 20 minutes", 20),
        ("1e-07 minutes", 1e-07),
        ("N/A", None),
        ("TBD", None),
        ("", None),
    ],
)
def test_a_duration_is_read_in_minutes(text: str, minutes: float | None):
    found: list[Finding] = []
    assert values.minutes(raw("Estimated Duration", text), found, default=None) == minutes
    assert found == []


@pytest.mark.parametrize(
    "text", ["a while", "two hours", "-5", "unlimited", "nan", "3 weeks", "1e999 h"]
)
def test_a_duration_that_cannot_be_read_is_named(text: str):
    found: list[Finding] = []
    assert values.minutes(raw("Time Limit", text), found, default=30) == 30
    assert [one.code for one in found] == ["value-unreadable"]


def test_label_may_contain_the_unit():
    assert values.minutes(raw("Estimated Duration (hours)", "2"), [], default=None) == 120


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("8", 8),
        ("0", 0),
        ("10-15", 15),
        ("8–12 (one a file)", 12),
        ("8 to 12", 12),
        ("~8", 8),
        ("15+", 15),
        ("<10", 10),
        ("1,200", 1200),
        ("7.5", 8),
        ("- 8", 8),
        ("approximately 20 calls", 20),
        ("N/A", None),
        ("None", None),
        ("unknown", None),
    ],
)
def test_a_count_takes_the_larger_number(text: str, number: int | None):
    found: list[Finding] = []
    assert values.count(raw("Estimated Tool Calls", text), found, default=None) == number
    assert found == []


@pytest.mark.parametrize(
    ("label", "text", "retries"),
    [
        ("Max Retries", "0", 0),
        ("Retries", "3 (default)", 3),
        ("Max Attempts", "3", 2),
        ("Attempts", "1", 0),
        ("Max Retries", "N/A", 2),
    ],
)
def test_attempts_are_one_more_than_retries(label: str, text: str, retries: int):
    found: list[Finding] = []
    assert values.count(raw(label, text), found, default=2) == retries
    assert found == []


@pytest.mark.parametrize(
    ("label", "text"),
    [
        ("Max Retries", "None"),
        ("Max Retries", "-1"),
        ("Max Retries", "unlimited"),
        ("Max Retries", "1e3"),
        ("Max Retries", "9" * 5000),
        ("Max Attempts", "0"),
        ("Retries", "some"),
    ],
)
def test_a_count_that_cannot_be_read_is_named(label: str, text: str):
    found: list[Finding] = []
    assert values.count(raw(label, text), found, default=2) == 2
    assert [one.code for one in found] == ["value-unreadable"]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a.py, b.py", ["a.py", "b.py"]),
        ("`a.py` (the API), b.py", ["a.py", "b.py"]),
        ("[src/a.ts, b.ts]", ["src/a.ts", "b.ts"]),
        ('["a,b", "c d"]', ["a,b", "c d"]),
        ("- a.py\n- `b.py` - the other", ["a.py", "b.py"]),
        ("src/{a,b}.py; c", ["src/{a,b}.py", "c"]),
        ("`a.py` and `b.py`", ["a.py", "b.py"]),
        ("- a.py & b.py", ["a.py", "b.py"]),
        ("[a.py](docs/a.py), [`b.py`](b.py)", ["a.py", "b.py"]),
        (
            "- Modify: `a.py`\n- Created b.py (new)\n- Add: `c d.py` - the other",
            ["a.py", "b.py", "c d.py"],
        ),
        ("```\na.py\nb.py\n```", ["a.py", "b.py"]),
        ("`a.py` `b.py`<br>“c.py”", ["a.py", "b.py", "c.py"]),
        ("a.py, and b.py.", ["a.py", "b.py"]),
        (
            "- Create:\n  - a.py\n- **b.py** — new\n- src/c.py - new\n- d.py  # new",
            ["a.py", "b.py", "src/c.py", "d.py"],
        ),
        ("**/*.py, docs/**", ["**/*.py", "docs/**"]),
        ("docs/a - b.md", ["docs/a - b.md"]),
        ("`salt and pepper.md`, new", ["salt and pepper.md", "new"]),
        ("None", []),
        ("N/A (any)", []),
    ],
)
def test_a_list_is_read_in_every_form(text: str, names: list[str]):
    assert [item.text for item in values.names(raw("Files", text), [])] == names


REFERENCES = TaskReferences(
    ["task-0", "task-1.1", "task-1.2", "task-1.3", "task-2.1", "setup-db", "docs"],
    {"task-9": "setup-db"},
)


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("task-1.1,1.2,2.1", ["task-1.1", "task-1.2", "task-2.1"]),
        ("task-1.1 and task-1.2", ["task-1.1", "task-1.2"]),
        ("tasks 1.1, 1.2 and 1.3", ["task-1.1", "task-1.2", "task-1.3"]),
        ("task-1.1 (nonessential)", ["task-1.1"]),
        ("task-1.1 (schema, seeds) and task-1.2", ["task-1.1", "task-1.2"]),
        ("Task 1.1, Task 2.1", ["task-1.1", "task-2.1"]),
        ("Task-1.1", ["task-1.1"]),
        ("`task-1.1`, **setup-db**", ["task-1.1", "setup-db"]),
        ("[task-1.1, task-1.2]", ["task-1.1", "task-1.2"]),
        ('["task-0"]', ["task-0"]),
        ("- task-1.1: the schema\n- docs", ["task-1.1", "docs"]),
        ("task-1.1 must be complete", ["task-1.1"]),
        ("Output of task-1.1", ["task-1.1"]),
        ("Schema (task-1.1)", ["task-1.1"]),
        ("task-1.1 task-1.2", ["task-1.1", "task-1.2"]),
        ("task-1.1/1.2", ["task-1.1", "task-1.2"]),
        ("tasks 1.1–1.3", ["task-1.1", "task-1.2", "task-1.3"]),
        ("task-1.1 through task-1.3", ["task-1.1", "task-1.2", "task-1.3"]),
        ("all previous tasks", ["task-0", "task-1.1", "task-1.2", "task-1.3"]),
        ("Task 9", ["setup-db"]),
        ("task-1.1, task-1.1", ["task-1.1"]),
        ("None", []),
        ("none (task 0 always runs first)", []),
        ("No dependencies", []),
        ("N/A", []),
        ("—", []),
        ("[]", []),
        ("task-7", ["task-7"]),
        ("Task 7.7", ["task-7.7"]),
        ("nowhere", ["nowhere"]),
    ],
)
def test_dependencies_are_read_as_meant(text: str, ids: list[str]):
    found: list[Finding] = []
    assert [id for id, _ in REFERENCES.read(raw("Dependencies", text), 4, found)] == ids
    assert found == []


@pytest.mark.parametrize(
    "text",
    [
        "either task-1.1 or task-1.2",
        "does not depend on task-1.1",
        "task-1.1 (not needed)",
        "task-1.1 unless task-1.2 is done",
        "task-1.1: uses task-1.2",
        "Python 3.11 installed",
        "after 2 reviews",
        "all Phase 1 tasks",
    ],
)
def test_unreadable_dependencies_are_a_finding(text: str):
    found: list[Finding] = []
    assert REFERENCES.read(raw("Dependencies", text), 4, found) == []
    assert [one.code for one in found] == ["dependency-unreadable"]


@pytest.mark.parametrize(
    ("text", "id"),
    [
        ("task-1.1", "task-1.1"),
        ("`task-1.1`", "task-1.1"),
        ("Task 1.1", "task-1.1"),
        ("1.1", "1.1"),
        ("task-1.1.2", "task-1.1.2"),
        ("**setup-db**", "setup-db"),
        ("TASK-848", "TASK-848"),
        ("task-1.1 (core)", "task-1.1"),
        ("task-1.1: Title", "task-1.1"),
        ("none", ""),
        ("two words", ""),
        ("a/b", ""),
        ("../x", ""),
        ("a..b", ""),
        ("x" * 101, ""),
        ("", ""),
    ],
)
def test_an_id_is_letters_digits_dots_and_dashes(text: str, id: str):
    assert id_of(text)[0] == id
