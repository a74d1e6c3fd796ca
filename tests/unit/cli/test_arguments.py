import io
import os
from pathlib import Path

import pytest

from mimir.cli.arguments import (
    display_path,
    find_plan,
    find_plan_or_newest,
    minutes,
    nearest,
    newest_plan,
    plan_or_request,
    read_request,
    split_tasks,
)
from mimir.errors import PlanError, UsageError


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with two plans, `limiter` the newer, and one loose plan."""
    for age, slug in enumerate(["cache", "limiter"]):
        folder = tmp_path / "chains" / slug
        folder.mkdir(parents=True)
        (folder / "chain-output.md").write_text("# Plan\n")
        os.utime(folder / "chain-output.md", (1000 + age, 1000 + age))
    (tmp_path / "plan.md").write_text("# Plan\n")
    return tmp_path


def typed(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))


def test_a_request_is_its_text(project: Path):
    assert read_request(["Add a limiter"], project) == "Add a limiter"


def test_a_request_without_quotes_is_its_words(project: Path):
    assert read_request(["Add", "a", "limiter"], project) == "Add a limiter"


def test_request_is_read_from_standard_input(project: Path, monkeypatch: pytest.MonkeyPatch):
    typed(monkeypatch, "Füge\nhinzu\n".encode())
    assert read_request(["-"], project) == "Füge\nhinzu\n"


def test_request_is_read_from_a_file(project: Path):
    (project / "wish.txt").write_text("Add a limiter", encoding="utf-8")
    assert read_request(["@wish.txt"], project) == "Add a limiter"


@pytest.mark.parametrize("words", [[""], ["  \n"]])
def test_an_empty_request_is_refused(words: list[str], project: Path):
    with pytest.raises(UsageError, match="empty"):
        read_request(words, project)


def test_an_empty_input_is_refused(project: Path, monkeypatch: pytest.MonkeyPatch):
    typed(monkeypatch, b"")
    with pytest.raises(UsageError, match="empty"):
        read_request(["-"], project)


@pytest.mark.parametrize("name", ["@missing.txt", "@chains", "@", "@a\0b"])
def test_a_file_that_cannot_be_read_is_named(name: str, project: Path):
    with pytest.raises(UsageError, match="cannot be read"):
        read_request([name], project)


def test_an_input_that_is_no_text_names_its_byte(project: Path, monkeypatch: pytest.MonkeyPatch):
    typed(monkeypatch, b"one\ntw" + b"\xff")
    with pytest.raises(PlanError) as raised:
        read_request(["-"], project)
    assert str(raised.value.at) == "standard input:2:3"


def test_an_argument_that_is_no_text_is_refused(project: Path):
    with pytest.raises(UsageError, match="not UTF-8"):
        read_request([os.fsdecode(b"caf\xe9 au lait")], project)


def test_a_request_without_end_is_refused(project: Path, monkeypatch: pytest.MonkeyPatch):
    typed(monkeypatch, b"x" * 1_000_001)
    with pytest.raises(UsageError, match="longer than"):
        read_request(["-"], project)


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("plan.md", "plan.md"),
        ("limiter", "chains/limiter/chain-output.md"),
        ("limiter/", "chains/limiter/chain-output.md"),
        ("chains/limiter", "chains/limiter/chain-output.md"),
        ("chains/limiter/chain-output.md", "chains/limiter/chain-output.md"),
    ],
)
def test_a_plan_is_found_by_file_folder_and_slug(name: str, path: str, project: Path):
    assert find_plan(project, name) == project / path


@pytest.mark.parametrize("name", ["", "limitr", ".", "chains", "x" * 5000, "a\0b", "plan.md/x"])
def test_argument_that_names_no_plan_finds_none(name: str, project: Path):
    assert find_plan(project, name) is None


def test_the_newest_plan_is_meant_where_none_is_named(project: Path):
    assert newest_plan(project) == project / "chains/limiter/chain-output.md"
    assert plan_or_request([], project).plan == newest_plan(project)
    assert find_plan_or_newest(project, None) == newest_plan(project)


def test_missing_plan_is_refused_with_the_command_to_make_one(tmp_path: Path):
    with pytest.raises(UsageError) as raised:
        newest_plan(tmp_path)
    assert "mimir chain" in str(raised.value.next_step)


def test_an_existing_file_is_a_plan_also_with_spaces_in_its_name(project: Path):
    (project / "my plan.md").write_text("# Plan\n")
    assert plan_or_request(["my plan.md"], project).plan == project / "my plan.md"


def test_text_with_white_space_is_a_request(project: Path):
    named = plan_or_request(["Add a limiter"], project)
    assert named.plan is None
    assert named.request == "Add a limiter"


def test_a_request_longer_than_any_file_name_is_a_request(project: Path):
    text = "Add a limiter. " * 1000
    assert plan_or_request([text], project).request == text


def test_request_of_execute_is_read_from_a_file(project: Path):
    (project / "wish.txt").write_text("Add", encoding="utf-8")
    assert plan_or_request(["@wish.txt"], project).request == "Add"


def test_unknown_argument_names_the_nearest_plan(project: Path):
    with pytest.raises(UsageError) as raised:
        plan_or_request(["limitr"], project)
    assert raised.value.next_step == "Did you mean limiter?"


def test_unknown_plan_names_the_newest_plans(project: Path):
    with pytest.raises(UsageError) as raised:
        find_plan_or_newest(project, "zzzz")
    assert str(raised.value.next_step).startswith("Plans: cache, limiter.")


def test_second_argument_is_wrong_usage(project: Path):
    with pytest.raises(UsageError) as raised:
        plan_or_request(["Add", "a", "limiter"], project)
    assert "quotes" in str(raised.value.next_step)
    with pytest.raises(UsageError) as raised:
        plan_or_request(["limiter", "cache"], project)
    assert raised.value.next_step == "Give one plan."


@pytest.mark.parametrize(
    ("words", "only", "rest", "tasks"),
    [
        (["limiter"], ["task-1"], ["limiter"], ["task-1"]),
        (["limiter"], ["task-1", "task-2"], ["limiter"], ["task-1", "task-2"]),
        (["limiter"], ["task-1,task-2"], ["limiter"], ["task-1", "task-2"]),
        (["limiter"], ["task-1 task-2"], ["limiter"], ["task-1", "task-2"]),
        (["task-2", "limiter"], ["task-1"], ["limiter"], ["task-1", "task-2"]),
        (["limiter", "task-2"], ["task-1"], ["limiter"], ["task-1", "task-2"]),
        (["task-2"], ["task-1,"], [], ["task-1", "task-2"]),
        (["task-1"], [], ["task-1"], []),
        (["limiter"], ["task-1", "task-1"], ["limiter"], ["task-1"]),
        (["Add a limiter"], ["task-1"], ["Add a limiter"], ["task-1"]),
    ],
)
def test_arguments_are_split_into_plan_and_tasks(
    words: list[str], only: list[str], rest: list[str], tasks: list[str], project: Path
):
    assert split_tasks(words, only, project) == (rest, tasks)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [("30", 30), ("30m", 30), ("2h", 120), ("90s", 1.5), ("1h30m", 90), ("1.5h", 90), ("2 H", 120)],
)
def test_time_limit_is_in_minutes_or_in_its_unit(text: str, wanted: float):
    assert minutes(text) == wanted


@pytest.mark.parametrize("text", ["", "0", "-5", "soon", "1d", "nan", "inf", "9" * 400, "m"])
def test_invalid_time_limit_is_refused(text: str):
    with pytest.raises(UsageError, match="not a time"):
        minutes(text)


def test_a_path_is_shown_from_the_project(tmp_path: Path):
    assert display_path(tmp_path / "chains" / "x.md", tmp_path) == "chains/x.md"
    assert display_path(Path("/elsewhere/x.md"), tmp_path) == "/elsewhere/x.md"


def test_bytes_of_a_path_that_are_no_text_are_escaped(tmp_path: Path):
    assert display_path(tmp_path / os.fsdecode(b"caf\xe9.md"), tmp_path) == "caf\\xe9.md"


def test_nearest_name_is_similar():
    assert nearest("exekute", ["execute", "check"]) == "execute"
    assert nearest("zzz", ["execute", "check"]) == ""
