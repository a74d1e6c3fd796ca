"""A death around a program of an agent: it starts again from the tree before it, at most once a death, and there is one result."""

import os
from pathlib import Path

import pytest

from tests.support.crash.crash_points import Point
from tests.support.crash.crash_site import Scene
from tests.support.crash.process_forge import Forge
from tests.support.crash.run_checker import End
from tests.support.crash.trials import Stage, die_at, reference
from tests.support.neo4j_servers import store_uri
from tests.support.whole_run import REST

PROGRAM = """#!/usr/bin/python3
import json, os, sys
if "--version" in sys.argv:
    raise SystemExit(print("1.0"))
task = sys.stdin.read()
# What a run before it left would show here.
with open("out.txt", "a") as out:
    out.write("42\\n" if "Attempt 2" in task else "41\\n")
print(json.dumps({"type": "result", "subtype": "success", "is_error": False, "result": "Done.",
    "usage": {"input_tokens": 10, "output_tokens": 1}}))
"""
PLAN = """# Plan: One program
## Tasks
### task-1: Write
**Agent:** claude_code
**Prompt:**
<prompt>
Write 42 to out.txt.
</prompt>
**Files:** out.txt
**Dependencies:** None
**Verification Criteria:**
- [ ] c1: it is 42
**Checks:**
```yaml
- {id: unit, criteria: [c1], run: [grep, -q, "42", out.txt]}
```
"""
SCENE = Scene(plan=PLAN, play={"parts": [*REST]}, workers=1)


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    place = tmp_path_factory.mktemp("programs") / "claude"
    place.write_text(PROGRAM, encoding="utf-8")
    place.chmod(0o755)
    return {"PATH": f"{place.parent}:{os.environ['PATH']}"}


@pytest.fixture(scope="module")
def whole(
    forge: Forge, settings: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> tuple[End, list[Point]]:
    root = tmp_path_factory.mktemp("reference") / "root"
    return reference(root, SCENE, forge, settings=settings)


@pytest.mark.parametrize(
    ("point", "again"),
    [("program:task-1/1/worker:1:after", 1), ("program:task-1/2/worker:1:before", 0)],
)
def test_program_starts_at_most_once_more(
    point: str,
    again: int,
    whole: tuple[End, list[Point]],
    forge: Forge,
    settings: dict[str, str],
    tmp_path: Path,
):
    wanted, _ = whole
    root = tmp_path / "root"
    trial = die_at(
        Stage(root=root, forge=forge, scene=SCENE, wanted=wanted, settings=settings),
        Point.read(point),
    )
    assert (trial.reached, trial.problems, trial.run_again) == (True, (), again)


@pytest.mark.neo4j
@pytest.mark.timeout(240)  # the first test of a session waits for the start of the server
def test_program_starts_at_most_once_more_on_a_server(
    whole: tuple[End, list[Point]], forge: Forge, settings: dict[str, str], tmp_path: Path
):
    wanted, _ = whole
    root = tmp_path / "root"
    uri = store_uri(root)
    stage = Stage(root=root, forge=forge, scene=SCENE, wanted=wanted, uri=uri, settings=settings)
    trial = die_at(stage, Point.read("program:task-1/1/worker:1:after"))
    assert (trial.reached, trial.problems, trial.run_again) == (True, (), 1)
