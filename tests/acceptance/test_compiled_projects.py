"""Go and Rust projects with a dependency complete at the first run, without any setting."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.compiled_projects import (
    Shape,
    enter_home,
    go_project,
    require_program,
    rust_project,
    user_runs,
)
from tests.support.projects import git
from tests.support.whole_run import plan, step, travel, worker, writes


@pytest.mark.timeout(400)  # a cold build cache compiles the standard library
@pytest.mark.parametrize(("program", "shape"), [("go", go_project), ("cargo", rust_project)])
async def test_first_run_of_a_compiled_project_completes(
    program: str, shape: Callable[[Path], Shape], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    require_program(program)
    enter_home(tmp_path / "home", monkeypatch)
    project, path, right, unit = shape(tmp_path)
    # The user has run the tests before, so that the caches are warm.
    user_runs(project, *unit.run, expect=(1, 101))
    task = step("a", files=(path,), checks=(unit,))

    journey = await travel(
        project, plan(task), [worker("a", writes(path, right), "Done.")], apply="auto"
    )

    assert journey.statuses == {"a": "completed"}, journey.report
    assert (project / path).read_text() == right
    assert git(project, "diff", "--name-only", "HEAD").split() == [path]
