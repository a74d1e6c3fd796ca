"""Criteria of all forms: points, marks, ids, groups; every line is kept."""

from fractions import Fraction

import pytest

from mimir.domain.plan import Criterion, Task
from mimir.planning import parser


def task(body: str, *, checks: str = "") -> Task:
    text = f"**Task ID:** t-1\n**Prompt:** p\n**Verification Criteria:**{body}\n{checks}"
    return parser.parse_plan(text).plan.tasks[0]


def criteria(body: str, *, checks: str = "") -> list[Criterion]:
    return list(task(body, checks=checks).criteria)


def one(
    text: str, id: str = "c1", points: int | str | None = None, critical: bool = False
) -> Criterion:
    exact = None if points is None else Fraction(points)
    return Criterion(id=id, text=text, points=exact, critical=critical)


@pytest.mark.parametrize(
    ("line", "criterion"),
    [
        ("- [ ] (60 pts) [critical] c1: it works", one("it works", points=60, critical=True)),
        ("- [x] c7: it works", one("it works", id="c7")),
        ("* [critical] (60 points) it works", one("it works", points=60, critical=True)),
        ("- [60 pts] it works", one("it works", points=60)),
        ("1. (12.5%): it works", one("it works", points="12.5")),
        ("- (1/3 pts) it works", one("it works", points="1/3")),
        ("- (30 pts, critical) it works", one("it works", points=30, critical=True)),
        ("- it works (30 pts)", one("it works", points=30)),
        ("- c1 (30 points, critical): it works", one("it works", points=30, critical=True)),
        ("- **[c7]** (30 pts) it works", one("it works", id="c7", points=30)),
        ("1. it works **(30 pts)** **[CRITICAL]**", one("it works", points=30, critical=True)),
        ("- it works [critical]", one("it works", critical=True)),
        ("- CRITICAL: it works", one("it works", critical=True)),
        ("- **AC-2:** it works", one("it works", id="AC-2")),
        ("- it works (**30 points**)", one("it works", points=30)),
        ("- [ ] (30/100) c7: it works", one("it works", id="c7", points=30)),
        ("- c7 – it works – 30 pts", one("it works", id="c7", points=30)),
        ("- it works [weight: 30]", one("it works", points=30)),
        ("- (30 pts) it works **CRITICAL**", one("it works", points=30, critical=True)),
        ("- it works — critical", one("it works", critical=True)),
        ("- no load is critical", one("no load is critical")),
        ("- Security: no secrets", one("Security: no secrets")),
        ("- limiter.py: holds the class", one("limiter.py: holds the class")),
        ("- 3 passed, none failed", one("3 passed, none failed")),
        ("[ ] it works", one("it works")),
        ("☐ it works", one("it works")),
        ("it works", one("it works")),
    ],
)
def test_a_criterion_is_read_with_its_marks(line: str, criterion: Criterion):
    assert criteria(f"\n{line}") == [criterion]


def test_criteria_may_follow_each_other_on_one_line():
    read = criteria(" (60 pts) c1: it works; it is fast; (40 pts) c2: it is small")
    assert read == [one("it works; it is fast", points=60), one("it is small", id="c2", points=40)]


def test_criteria_may_be_a_table():
    table = """
| ID | Points | Critical | Criterion |
|----|:------:|----------|-----------|
| `c7` | 60 pts | yes | it works |
|c2|40||`it` is \\| `fast`|
"""
    fast = one("`it` is | `fast`", id="c2", points=40)
    assert criteria(table) == [one("it works", id="c7", points=60, critical=True), fast]
    for row in ("| c3 | many | no | x |", "| c3 | 10 | rarely | x |"):
        plan = parser.parse_plan(f"**Task ID:** t-1\n**Prompt:** p\n**Criteria:**{table}{row}\n")
        assert plan.findings[0].code == "criterion-unreadable"


@pytest.mark.parametrize(
    ("checks", "run", "seconds"),
    [
        ("```bash\n$ cd src\n$ pytest -q\n```", "cd src\npytest -q", 300),
        ("```sh\nif a; then\n  b\nfi\n```", "if a; then\n  b\nfi", 300),
        ("```yaml\n- run: [pytest -q]\n  timeout: 2m\n```", "pytest -q", 120),
        ("- `pytest -q`", "pytest -q", 300),
        ("1. unit (c1): `pytest -q` (flip)", "pytest -q", 300),
        (
            "| ID | Criteria | Command | Timeout |\n|--|--|--|--|\n| a | c1 | `a \\| b` | 2m |",
            "a | b",
            120,
        ),
        ("```yaml\n- run:\n  - pytest -q\n  - ruff check .\n```", "pytest -q\nruff check .", 300),
    ],
)
def test_a_check_may_be_written_as_command_lines(checks: str, run: str, seconds: int):
    read = task("\n- [ ] (100 pts) c1: it works", checks=f"**Checks:**\n{checks}").checks
    assert [(one.run, one.criteria, one.timeout_seconds) for one in read] == [
        (run, ("c1",), seconds)
    ]


def test_words_in_a_list_of_checks_are_criteria():
    read = task(
        "\n- [ ] c1: it works", checks="**Checks:**\n- `pytest -q` is green\n- `ruff check`\n"
    )
    assert ([c.text for c in read.criteria][1:], read.checks) == (
        ["`pytest -q` is green", "`ruff check`"],
        (),
    )


def test_a_check_names_its_criteria_if_there_are_several():
    both = "\n- [ ] c1: it works\n- [ ] c2: it is fast"
    (check,) = task(both, checks="**Checks:**\n```yaml\n- run: pytest -q\n```").checks
    assert check.criteria == ()


def test_one_criterion_may_follow_its_label():
    assert criteria(" All tests pass.") == [one("All tests pass.")]


def test_continued_lines_belong_to_their_criterion():
    assert criteria("\n- one\n  goes on\n- two\n  - with a part\nlazily") == [
        one("one goes on"),
        one("two\n- with a part lazily", id="c2"),
    ]


def test_groups_are_kept_as_notes_and_their_mark_holds_for_all_in_them():
    read = task("\nSafety (CRITICAL):\n- no leak\n\n**Form:**\n- [ ] short\n- Style:\n  - neat")
    assert list(read.criteria) == [
        one("no leak", critical=True),
        one("short", id="c2"),
        one("neat", id="c3"),
    ]
    assert all(group in read.notes for group in ("Safety (CRITICAL):", "**Form:**", "Style:"))


def test_missing_ids_are_given_around_those_that_are_taken():
    assert [c.id for c in criteria("\n- a\n- c1: b\n- c3: c\n- d")] == ["c5", "c1", "c3", "c4"]


def test_a_word_that_a_check_names_is_an_id():
    checks = "**Checks:**\n```yaml\n- {id: k, criteria: [fast], run: [pytest]}\n```"
    assert criteria("\n- fast: under 1 s\n- safe: yes", checks=checks) == [
        one("under 1 s", id="fast"),
        one("safe: yes", id="c2"),
    ]


def test_criteria_may_be_a_yaml_list():
    body = '\n```yaml\n- {id: fast, text: "under: 1 s", points: 1/3, critical: true}\n- (20 pts) safe\n```'
    assert criteria(body) == [
        one("under: 1 s", id="fast", points="1/3", critical=True),
        one("safe", id="c2", points=20),
    ]


def test_criteria_of_two_labels_are_merged_without_duplicates():
    read = task("\n- works\n- fast\n\n**Success Criteria:**\n- Works\n- small")
    assert [c.text for c in read.criteria] == ["works", "fast", "small"]


@pytest.mark.parametrize("label", ["Checks", "Criteria", "Acceptance Criteria", "Success Criteria"])
def test_criteria_have_synonyms(label: str):
    text = f"**Task ID:** t-1\n**Prompt:** p\n**{label}:**\n- works"
    assert [c.text for c in parser.parse_plan(text).plan.tasks[0].criteria] == ["works"]


@pytest.mark.parametrize(
    "item",
    [
        "{id: a}",
        "{text: a, points: many}",
        "{text: a, colour: red}",
        "[a, b]",
        "{text: a, critical: maybe}",
    ],
)
def test_a_criterion_of_the_wrong_shape_is_named(item: str):
    text = f"**Task ID:** t-1\n**Prompt:** p\n**Criteria:**\n```yaml\n- {item}\n```"
    findings = parser.parse_plan(text).findings
    assert [(f.code, f.line) for f in findings] == [("criterion-unreadable", 5)]
