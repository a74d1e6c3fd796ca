"""Exit codes of the command line, error by error, as in the contract's table."""

import pytest

from mimir import errors


@pytest.mark.parametrize(
    ("error", "exit_code"),
    [
        (errors.UsageError("x"), 2),
        (errors.PlanError("x"), 65),
        (errors.UnavailableError("x"), 69),
        (errors.StoreError("x"), 69),
        (errors.SandboxError("x"), 69),
        (errors.WorkspaceError("x"), 69),
        (errors.BusyError("x"), 75),
        (errors.Paused("x", reason="budget"), 75),
        (errors.Paused("x", reason="configuration", exit_code=78), 78),
        (errors.Paused("x", reason="interrupted", exit_code=130), 130),
        (errors.ConfigurationError("x"), 78),
    ],
)
def test_each_error_ends_the_command_with_its_own_code(error: errors.MimirError, exit_code: int):
    assert error.exit_code == exit_code


def test_error_has_its_message_and_next_step():
    error = errors.ConfigurationError("No model is set.", next_step="Set MIMIR_MODEL.")
    assert str(error) == "No model is set."
    assert error.next_step == "Set MIMIR_MODEL."


def test_a_place_is_written_as_editors_read_it():
    at = errors.Location(file="chains/a b/chain-output.md", line=12, column=3)
    assert str(at) == "chains/a b/chain-output.md:12:3"


def test_every_error_has_one_base_class():
    raised = [
        kind
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, Exception)
    ]
    assert len(raised) > 10
    assert all(issubclass(kind, errors.MimirError) for kind in raised)
