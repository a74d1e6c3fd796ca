"""Every row of the table of checks, end to end over trees; and which files each run sees."""

from collections.abc import Callable
from pathlib import Path

import pytest

from mimir.qc.checks.check_execution import CheckExecution
from mimir.qc.checks.check_runner import CheckRunner
from tests.support.fake_check_site import Bench, like_pytest
from tests.support.fake_trees import FakeHistory, FakeRan, FakeSandbox, Seen


@pytest.fixture
def bench(tmp_path: Path) -> Callable[..., Bench]:
    def make(program: Callable[[Seen], FakeRan] = like_pytest, **more: object) -> Bench:
        history, sandbox = FakeHistory(), FakeSandbox(program)
        room = tmp_path / "checks"
        execution = CheckExecution(history=history, sandbox=sandbox, room=room, **more)
        return Bench(history, sandbox, CheckRunner(history, execution), room)

    return make
