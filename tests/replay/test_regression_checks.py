"""Checks on merged trees and on the final tree are replayed like any other check run."""

from pathlib import Path

import pytest

from mimir.domain.task_states import RunStatus
from tests.support.recorded_runs import bytes_of, record, replayed
from tests.support.whole_run import Curtain, check, plan, start, step, worker, writes

SAYS = check("sh", "test_a.sh")
PROJECT = {"test_a.sh": "grep -q right a.txt\n", "README.md": "Hi\n"}


@pytest.mark.parametrize("text", ["right\n", "wrong\n"])
async def test_regression_check_is_served_as_it_ran(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second task empties the first one's test: that change is left out of its deliverable."""
    Curtain(monkeypatch).hold("b", until="a")
    project = start(tmp_path, PROJECT)
    parts = [
        worker("a", writes("a.txt", "right\n"), "Done."),
        worker("b", writes("b.txt", "b\n"), writes("test_a.sh", "true\n"), "Done."),
        worker("c", writes("c.txt", "c\n"), writes("a.txt", text), "Done."),
    ]
    made = plan(step("a", checks=(SAYS,)), step("b"), step("c", "a", "b"))
    tape = tmp_path / "run.jsonl"

    ending = await record(project, made, parts, tape, workers=2)
    again = await replayed(project, str(tape))

    assert ending.outcome is (RunStatus.COMPLETED if text == "right\n" else RunStatus.FAILED)
    assert again.differences == ()
    assert bytes_of(await replayed(project, str(tape), seed=1)) == bytes_of(again)
