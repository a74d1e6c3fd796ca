"""`mimir demo` from the command line: its output, its files, and its recovery from a kill.

The program of the first one is that of the wheel, and the guides go on where it ended.
"""

import asyncio
import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from mimir.domain.event import Event, EventKind
from tests.support import invariants
from tests.support.crash.process_forge import run_python
from tests.support.projects import git
from tests.support.run_facts import Facts, gather
from tests.support.terminal import Terminal, environment
from tests.support.wheel import ROOT, build, install, run

pytestmark = pytest.mark.timeout(
    500
)  # a performance is played before the first test that looks at it

MIMIR = Path(sys.executable).with_name("mimir")
RECORDING = "demo.jsonl"
TASKS = ("task-0", *(f"task-1.{n}" for n in range(1, 7)))
CALLS = (EventKind.MODEL_CALLED, EventKind.TOOL_CALLED, EventKind.TOOL_DENIED)
GUIDES = ("first-run", "checks", "when-a-run-stops", "automation")
MAY_FIND = {"mimir check --run": 65}
"""The plan of a completed run: its checks are green before the work."""


@dataclass(frozen=True, kw_only=True)
class Shown:
    """A demo that was played."""

    exit_code: int
    output: str
    project: Path
    facts: Facts

    def of(self, kind: EventKind, task: str = "") -> list[Event]:
        """Return the events of a kind, of one task if one is named."""
        return [e for e in self.facts.events if e.kind is kind and task in ("", e.task)]

    @property
    def files(self) -> dict[str, str]:
        """The project's own files at the end: path → text."""
        names = git(self.project, "ls-files").splitlines()
        return {name: (self.project / name).read_text(encoding="utf-8") for name in names}


def guided() -> list[str]:
    """Return the commands of the guides, in their order."""
    lines: list[str] = []
    for guide in GUIDES:
        text = (ROOT / f"docs/{guide}.md").read_text(encoding="utf-8")
        blocks = re.findall(r"^```sh\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
        assert blocks, guide
        lines += "".join(blocks).splitlines()
    return lines


def in_shell(program: Path, line: str, place: Path) -> "subprocess.CompletedProcess[str]":
    path = f"{program.parent}:{os.environ['PATH']}"
    return run(["bash", "-c", line], place, 380, PATH=path)


def mimir(where: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return run_python([sys.executable, "-m", "mimir", *words], cwd=where, env=os.environ)


def gathered(project: Path, done: "subprocess.CompletedProcess[str]") -> Shown:
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    run = re.search(r"^run +(\S+)$", done.stdout, re.MULTILINE)
    assert run is not None, done.stdout
    facts = asyncio.run(gather(project, run[1]))
    return Shown(exit_code=done.returncode, output=done.stdout, project=project, facts=facts)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of an environment that has the wheel and not the repository."""
    wheel = build(tmp_path_factory.mktemp("dist"))
    return install(wheel, tmp_path_factory.mktemp("environment"))


@pytest.fixture(scope="module")
def shown(program: Path, tmp_path_factory: pytest.TempPathFactory) -> Shown:
    """One performance, as the first guide begins it, looked at from several sides."""
    place = tmp_path_factory.mktemp("demo")
    done = in_shell(program, f"{guided()[0]} --record {RECORDING}", place)
    return gathered(place / "demo", done)


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Shown:
    """One performance with a kill in it."""
    where = tmp_path_factory.mktemp("crash")
    project = where / "a project of its own"
    return gathered(project, mimir(where, "demo", "--directory", str(project), "--crash"))


def test_a_recorded_demo_replays_to_the_same_bytes(shown: Shown):
    done = mimir(shown.project.parent, "replay", RECORDING)

    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("equal bytes: ") == 2  # of the plan's run and of its execution
    assert f"  mimir replay {shown.project.parent / RECORDING}  " in shown.output


def test_a_demo_that_is_killed_is_not_recorded(tmp_path: Path):
    done = mimir(tmp_path, "demo", "--crash", "--record", RECORDING)

    assert done.returncode == 2
    assert "exclude each other" in done.stderr
    assert not list(tmp_path.iterdir())


def test_request_leads_to_a_verified_result(shown: Shown):
    assert shown.facts.statuses == dict.fromkeys(TASKS, "completed")
    assert shown.of(EventKind.RUN_FINISHED)[-1].data["outcome"] == "completed"
    assert "completed: 7 of 7 tasks completed in 9 attempts" in shown.output
    assert re.search(
        r"^verify +\d\d records recomputed: every seal is valid$", shown.output, re.MULTILINE
    )
    assert invariants.broken(shown.facts) == []
    # The run before the work is that of the planning, and the one after it is the run's own.
    outcome = shown.facts.outcomes("task-0")["tests"]
    assert (outcome.before.shared, outcome.after.shared) == (True, False)


def test_prompt_of_the_reviewer_is_at_most_twice_as_long_as_the_workers(shown: Shown):
    sizes = [
        (one["estimatedContextTokens"], one["qcContextTokens"])
        for task in TASKS
        for one in shown.facts.attempts(task)
        if one.get("qcContextTokens")
    ]
    assert len(sizes) >= len(TASKS)
    assert all(qc <= 2 * worker for worker, qc in sizes), sizes


def test_demo_names_its_scripted_and_its_real_parts(shown: Shown):
    opening = " ".join(shown.output.splitlines()[:3])
    assert "models are scripted, and some of their answers are wrong on purpose" in opening
    assert "is real: store, tools, sandbox, git, checks, verdicts and seals" in opening


def test_an_attempt_that_failed_its_check_succeeds_because_of_the_failure_report(shown: Shown):
    [retried] = shown.of(EventKind.TASK_RETRIED, "task-1.1")
    assert retried.data["reason"] == "check_failed"
    assert len(shown.facts.attempts("task-1.1")) == 2
    second = shown.facts.attempts("task-1.1")[1]
    brief = json.dumps(json.loads(str(second["startJson"]))["brief"])
    assert "invalid literal for int() with base 10: '-'" in brief
    assert "attempt 1 failed its check: ValueError: invalid literal for int()" in shown.output


def test_a_claim_that_all_tests_pass_is_caught(shown: Shown):
    first = shown.facts.attempts("task-1.4")[0]
    work = json.loads(str(first["workJson"]))
    assert "all tests pass" in work["answer"]
    assert work["unsupported"] == ['[call:1] "2 passed": call 1 did not say this']
    judging = shown.of(EventKind.JUDGING_STARTED, "task-1.4")[0]
    assert judging.data["checks"] == {"tests": "failed"}
    assert shown.of(EventKind.VERDICT_GIVEN, "task-1.4")[0].data["passed"] is False
    assert "engine ran: python -m pytest -q tests/test_markdown.py -> exit 1" in shown.output
    assert 'claimed "markdown is written and all tests pass.' in shown.output


def test_a_tripped_breaker_still_delivers(shown: Shown):
    [trip] = shown.of(EventKind.BREAKER_TRIPPED)
    assert (trip.task, trip.data["toolCalls"]) == ("task-1.5", 6)
    ran = [e for e in shown.of(EventKind.TOOL_CALLED, "task-1.5") if e.data["role"] == "worker"]
    assert len(ran) == 6
    assert len(shown.facts.attempts("task-1.5")) == 1
    assert "its circuit breaker tripped: 6 of 6 tool calls used; its work up to then passed" in (
        shown.output
    )


def test_two_edits_of_one_file_are_merged_and_judged_again(shown: Shown):
    done = {e.task: e.data for e in shown.of(EventKind.TASK_COMPLETED)}
    assert done["task-1.2"]["changed"] == done["task-1.3"]["changed"] == ["tally/stats.py"]
    later = list(done)[max(list(done).index("task-1.2"), list(done).index("task-1.3"))]
    assert done[later]["merged"] is True
    lanes = {str(call["role"]) for call in shown.facts.nodes["Call"] if call["task"] == later}
    assert any(role.startswith("qc.merged-") for role in lanes)
    stats = shown.files["tally/stats.py"]
    assert "def percentile(" in stats
    assert "def busiest(" in stats
    assert "changed tally/stats.py at the same time as task-1." in shown.output
    assert "; merged, checked and judged again." in " ".join(shown.output.split())


def test_tasks_run_at_the_same_time(shown: Shown):
    first = [e.seq for e in shown.of(EventKind.ATTEMPT_STARTED) if e.task.startswith("task-1.")]
    ended = [e.seq for e in shown.of(EventKind.TASK_COMPLETED) if e.task.startswith("task-1.")]
    assert sum(seq < ended[0] for seq in first) >= 4


def test_result_of_the_demo_is_in_the_files_and_works(shown: Shown):
    assert git(shown.project, "log", "--format=%s") == "tally 0.1"
    changed = git(shown.project, "diff", "--name-only").splitlines()
    assert changed == [
        "CHANGELOG.md",
        "README.md",
        *(f"tally/{name}.py" for name in ("__main__", "records", "report", "stats")),
    ]
    ran = subprocess.run(
        [sys.executable, "-m", "tally", "access.log", "--top", "1"],
        cwd=shown.project,
        capture_output=True,
        text=True,
        check=True,
    )
    told = ran.stdout.split("\n\n")
    assert [line.split() for line in told[0].splitlines()[1:]] == [
        ["requests", "12"],
        ["errors", "1"],
        ["broken", "lines", "1"],
        ["mean", "ms", "101"],
        ["p95", "ms", "310"],
    ]
    assert told[1].split() == ["path", "requests", "/", "4"]


def test_each_path_that_the_demo_names_exists(shown: Shown):
    for name in ("plan", "report", "store"):
        named = re.search(rf"^{name} +(?:sqlite:)?(.+)$", shown.output, re.MULTILINE)
        assert named is not None
        # Relative to the project, which the demo names first.
        path = shown.project / named[1]
        assert path.is_file()
        assert path.is_relative_to(shown.project)


def test_the_commands_that_it_names_work_without_a_key(shown: Shown):
    seal = re.search(r"^seal +([0-9a-f]{64})$", shown.output, re.MULTILINE)
    assert seal is not None
    verified = mimir(shown.project, "verify", "--seal", seal[1])
    assert verified.returncode == 0, verified.stdout + verified.stderr
    report = mimir(shown.project, "report")
    assert report.returncode == 0, report.stderr
    assert "Markdown tables" in report.stdout
    status = json.loads(mimir(shown.project, "status", "--json").stdout)
    assert status["outcome"] == "completed"
    plan = re.search(r"^plan +(.+)$", shown.output, re.MULTILINE)
    assert plan is not None
    checked = json.loads(mimir(shown.project, "check", plan[1], "--json").stdout)
    # Two tasks change one file at the same time, so they name no files.
    assert [one["code"] for one in checked["findings"]] == ["files-missing"]


def test_the_commands_work_outside_of_the_repository(program: Path, tmp_path: Path):
    where = run([program.parent / "python", "-c", "import mimir; print(mimir.__file__)"], tmp_path)
    assert str(program.parents[1]) in where.stdout
    assert run([program, "--version"], tmp_path).stdout == "mimir 0.3.0\n"
    assert "Commands:" in run([program, "--help"], tmp_path).stdout
    doctor = run([program, "doctor", "--json"], tmp_path)
    assert doctor.returncode == 0, doctor.stdout + doctor.stderr
    assert "agents" in run([program, "__complete", ""], tmp_path).stdout
    assert list(tmp_path.iterdir()) == []


def test_the_guides_work_line_by_line_outside_of_the_repository(program: Path, shown: Shown):
    began, entered, *lines = guided()
    assert (began, entered) == ("mimir demo --directory demo", "cd demo")
    for line in lines:
        done = in_shell(program, line, shown.project)
        assert done.returncode in (0, MAY_FIND.get(line, 0)), f"{line}: {done.stderr}"
    seals = json.loads((shown.project / "seals.json").read_text(encoding="utf-8"))
    assert seals["ok"] is True


def test_non_empty_directory_is_refused_and_unchanged(tmp_path: Path):
    (tmp_path / "mine.txt").write_text("mine", encoding="utf-8")
    refused = mimir(tmp_path, "demo", "--directory", ".")
    assert refused.returncode == 2
    assert "is not empty: ." in refused.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_kill_during_two_tasks_loses_and_repeats_no_call(killed: Shown, shown: Shown):
    text = " ".join(killed.output.split())
    struck = re.search(r"SIGKILL ends process (\d+) during (.+?) \d+ model and tool calls", text)
    assert struck is not None
    assert len(struck[2].split(", ")) >= 2
    assert len({event.task for event in killed.of(EventKind.LEASE_TAKEN)}) >= 2
    answered = [
        (e.task, e.attempt, e.data["role"], e.data["seq"])
        for e in killed.facts.events
        if e.kind in CALLS
    ]
    assert len(set(answered)) == len(answered)
    assert not killed.of(EventKind.LANE_CUT)
    assert "none of them twice" in text
    assert invariants.broken(killed.facts) == []


def test_a_run_that_was_killed_ends_like_one_that_was_not(killed: Shown, shown: Shown):
    assert killed.files == shown.files
    assert killed.facts.statuses == shown.facts.statuses
    for task in TASKS:
        assert len(killed.facts.attempts(task)) == len(shown.facts.attempts(task))


def test_demo_of_agents_catches_a_false_citation_and_a_wrong_result(tmp_path: Path):
    done = mimir(tmp_path, "demo", "agents", "--directory", str(tmp_path / "project"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 of 2 citations verified" in done.stdout
    assert 'caught   [file:tally/records.py] "except ValueError: continue"' in done.stdout
    assert "completed, assurance executed" in done.stdout
    assert "caught   2 attempts" in done.stdout


def test_demo_of_delegation_catches_a_citation_and_refines_the_work(tmp_path: Path):
    done = mimir(tmp_path, "demo", "delegate", "--directory", str(tmp_path / "project"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 of 2 citations verified" in done.stdout
    assert "mimir recommends: refine" in done.stdout
    statuses = re.findall(r"^status +(\w+), assurance (\w+)$", done.stdout, re.MULTILINE)
    assert statuses == [("answered", "none"), ("partial", "none"), ("completed", "executed")]
    assert "3 specialists were spawned" in done.stdout


def test_people_act_asks_on_a_terminal_and_shows_each_requirement(tmp_path: Path):
    # Given a user with another limit than the default and one rejection
    command = [str(MIMIR), "demo", "people", "--directory", "new"]
    terminal = Terminal(command, tmp_path, columns=80, env=environment())
    terminal.until("empty: 200 ms):")
    terminal.type("300 ms\n")
    terminal.until("R3: when a user reads the README")
    terminal.until("(empty: yes):")
    terminal.type("no, I thought about it again\n")
    terminal.until("Approve the specification?")
    terminal.until("(empty: yes):")
    terminal.type("\n")
    terminal.until("Approve the plan?")
    terminal.until("(empty: yes):")
    terminal.type("yes\n")

    assert terminal.end() == 0, terminal.written
    assert re.findall(r"R(\d) +(executed|judged)", terminal.written) == [
        ("1", "executed"), ("2", "executed"), ("3", "judged"),
    ]  # fmt: skip
    assert "300 ms" in (tmp_path / "new" / "README.md").read_text(encoding="utf-8")


def test_people_act_without_a_terminal_is_refused_with_yes_as_next_step(tmp_path: Path):
    refused = mimir(tmp_path, "demo", "people")

    assert refused.returncode == 2
    assert "mimir demo people --yes" in refused.stderr
