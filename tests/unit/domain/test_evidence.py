"""When a run of a check counts as green: only when the command itself ended with 0."""

import pytest

from mimir.domain.evidence import CheckRun


@pytest.mark.parametrize(
    ("exit_code", "timed_out", "missing", "green"),
    [
        (0, False, False, True),
        (1, False, False, False),
        (5, False, False, False),
        (None, False, False, False),
        (None, True, False, False),
        (0, True, False, False),
        (0, False, True, False),
        (127, False, True, False),
    ],
)
def test_only_a_command_that_ended_with_0_is_green(
    exit_code: int | None, timed_out: bool, missing: bool, green: bool
):
    run = CheckRun(
        check="K1",
        argv=("pytest",),
        phase="after",
        tree="t",
        exit_code=exit_code,
        timed_out=timed_out,
        missing=missing,
    )
    assert run.green is green
