import asyncio
import errno

import pytest

from mimir.cli.error_output import exit_code, failure
from mimir.errors import (
    AnswerError,
    BusyError,
    ConfigurationError,
    Location,
    MimirError,
    ModelError,
    Paused,
    PlanError,
    SandboxError,
    StoreError,
    UnavailableError,
    UsageError,
    WorkspaceError,
)

TABLE: list[tuple[BaseException, int]] = [
    (UsageError("x"), 2),
    (PlanError("x"), 65),
    (AnswerError("x"), 65),
    (UnavailableError("x"), 69),
    (StoreError("x"), 69),
    (SandboxError("x"), 69),
    (WorkspaceError("x"), 69),
    (ZeroDivisionError("x"), 70),
    (RecursionError("x"), 70),
    (BusyError("x"), 75),
    (Paused("x", reason="budget"), 75),
    (Paused("x", reason="configuration", exit_code=78), 78),
    (ModelError("x", scope="call"), 75),
    (ModelError("x", scope="run"), 78),
    (ModelError("x", scope="attempt"), 1),
    (ConfigurationError("x"), 78),
    (OSError(errno.ENOSPC, "No space left on device"), 75),
    (OSError(errno.EDQUOT, "Disk quota exceeded"), 75),
    (PermissionError(errno.EACCES, "Permission denied", ".mimir"), 69),
    (KeyboardInterrupt(), 130),
    (asyncio.CancelledError(), 130),
    (BrokenPipeError(), 141),
    (MimirError("x"), 1),
]


@pytest.mark.parametrize(("error", "code"), TABLE, ids=lambda v: type(v).__name__)
def test_each_error_has_its_exit_code(error: BaseException, code: int):
    assert exit_code(error) == code


@pytest.mark.parametrize("error", [error for error, _ in TABLE], ids=lambda v: type(v).__name__)
def test_no_error_has_more_than_three_lines(error: BaseException):
    told = failure(error)
    lines = told.lines() if told else []
    assert len(lines) <= 3
    assert all("\n" not in line and "Traceback" not in line for line in lines)


def test_error_has_the_lines_error_why_and_next():
    told = failure(UsageError("It is busy.\nAnother process\nholds it.", next_step="Wait."))
    assert told is not None
    assert told.lines() == ["error: It is busy.", "why: Another process holds it.", "next: Wait."]


def test_an_error_of_a_file_names_its_place_and_code():
    at = Location(file="plan.md", line=3, column=7)
    told = failure(PlanError("No tasks.", at=at, code="plan-empty"))
    assert told is not None
    assert told.lines() == ["error: plan.md:3:7: error plan-empty: No tasks."]


def test_text_of_a_model_in_an_error_is_harmless_and_bounded():
    told = failure(UsageError("\x1b[2J" + "x" * 5000 + "\n" + "y" * 5000))
    assert told is not None
    assert all("\x1b" not in line and len(line) < 420 for line in told.lines())


def test_error_group_reports_the_error_that_the_user_can_correct():
    group = ExceptionGroup("both", [ValueError("bug"), ExceptionGroup("", [BusyError("busy")])])
    told = failure(group)
    assert told is not None
    assert told.exit_code == 75
    assert told.problem == "busy"


def test_full_disk_error_proposes_resume():
    told = failure(OSError(errno.ENOSPC, "No space left on device", "/x/mimir.db"))
    assert told is not None
    assert told.lines()[0] == "error: No space left on device: /x/mimir.db"
    assert "mimir resume" in told.next_step


@pytest.mark.parametrize(
    "error", [KeyboardInterrupt(), asyncio.CancelledError(), BrokenPipeError()]
)
def test_interruption_and_closed_pipe_print_no_error(error: BaseException):
    assert failure(error) is None


def test_unexpected_error_proposes_the_debug_flag():
    told = failure(KeyError("x"))
    assert told is not None
    assert told.problem == "mimir has a bug: KeyError: 'x'"
    assert "--debug" in told.next_step
