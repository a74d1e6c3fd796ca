"""Processes that are stopped and continue, and processes that get a signal to end: their late writes, and their remains."""

import contextlib
import random
import sqlite3
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from signal import SIGCONT, SIGINT, SIGSTOP, SIGTERM

from mimir.planning.renderer import render
from mimir.store.protocol import ReadOps
from mimir.store.schema import NodeLabel
from tests.support.crash.crash_site import Ground, Scene, prepared
from tests.support.crash.process_forge import Child
from tests.support.crash.trials import Stage, Trial, first_event, judge_trial, to_the_end
from tests.support.stored_rows import run_row, task_rows
from tests.support.whole_run import REST, calls, plan, step, worker, wrote

LEASE_SECONDS = 2.0
PATIENCE_SECONDS = 100.0
BUSY, INTERRUPTED = 75, 130
SIGNALS = (SIGINT, SIGTERM)
LIMITS = {SIGINT: 2.0, SIGTERM: 5.0}
"""Seconds in which a process has to end after a signal."""

SMALL = Scene(
    plan=render(plan(step("a"), step("b", "a"), step("c", "a"), step("d", "b", "c"))),
    play={"parts": [*(wrote(task) for task in "abcd"), *REST]},
)
"""A diamond."""


def waiting(gate: Path) -> Scene:
    """Return a scene in which a worker's command waits until a file is there: its process can be met at it."""
    command = f"test -e {gate} || sleep 300; echo a > a.txt"
    turn = {"calls": [calls("run", command=command)]}
    tasks = [step("a"), step("b"), step("c", "a"), step("d", "b", "c")]
    parts = [worker("a", turn, "a.txt is written."), *(wrote(task) for task in "bcd"), *REST]
    return Scene(plan=render(plan(*tasks)), play={"parts": parts})


def gate_of(root: Path) -> Path:
    """Return the file of a stage that lets the command go on."""
    return root.with_name(f"{root.name}-gate") / "open"


def settings_of(root: Path) -> Mapping[str, str]:
    """Return the settings of a waiting scene: short leases, and a directory that its commands see."""
    room = gate_of(root).parent
    room.mkdir(parents=True, exist_ok=True)
    gate_of(root).touch()
    (room / "mimir.toml").write_text(f'[sandbox]\nread_only = ["{room}"]\n', encoding="utf-8")
    return {
        "MIMIR_RUN__LEASE_SECONDS": str(LEASE_SECONDS),
        "MIMIR_CONFIG": str(room / "mimir.toml"),
    }


def zombie(stage: Stage, seed: int) -> Trial:
    """Stop a process for two leases, let another one take its run over, and wake it up: amid the run, or when all is done."""
    chance = random.Random(seed)
    gate = gate_of(stage.root)
    gate.unlink()
    with prepared(stage.root, stage.scene, stage.forge, stage.uri, stage.settings) as ground:
        first = ground.start()
        assert _until(lambda: _running(str(gate))), first.error_tail
        time.sleep(chance.uniform(0, 0.4))
        _stop(ground, first)
        ground.died()
        time.sleep(2 * LEASE_SECONDS)
        gate.touch()
        second = _successor(ground)
        late = chance.random() < 0.5
        code = second.wait() if late else 0
        before = ground.look(lambda reads: _all(reads, ground.run)) if late else {}
        running = _running(str(gate))
        woken = time.monotonic()
        first.signal(SIGCONT)
        gone = _until(lambda: not _running(str(gate)))
        seconds = time.monotonic() - woken
        if not late:
            code = second.wait()
        left = first.wait()
        trial = judge_trial(
            ground,
            f"zombie {seed}",
            code,
            stage.wanted,
            more={
                "seconds until its tools are gone": seconds,
                "its writes that were refused": len(_refused(ground, first)),
            },
        )
        problems = list(trial.problems)
        if not running:
            problems.append("no command of the stopped process ran any more when it woke up")
        if not gone:
            problems.append("its command runs on")
        if late and ground.look(lambda reads: _all(reads, ground.run)) != before:
            problems.append("the process that woke up has written into the run that had ended")
        if left < 0:
            problems.append(f"the process that woke up did not end: {left}")
        return with_problems(trial, problems)


def _stop(ground: Ground, child: Child) -> None:
    """Stop a process, but not amid a transaction of the embedded store: no process can write until such a one continues or dies."""
    child.signal(SIGSTOP)
    while _is_locked(ground.project / ".mimir" / "mimir.db"):
        child.signal(SIGCONT)
        time.sleep(0.01)
        child.signal(SIGSTOP)


def _is_locked(file: Path) -> bool:
    if not file.exists():  # the store is a server
        return False
    connection = sqlite3.connect(file, timeout=0, isolation_level=None)
    try:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("ROLLBACK")
    except sqlite3.OperationalError:
        return True
    finally:
        connection.close()
    return False


def interrupted(stage: Stage, seed: int) -> Trial:
    """Ask a process to end at a random moment, by SIGINT or SIGTERM in turn, and go on with its run."""
    chance = random.Random(seed)
    number = SIGNALS[seed % 2]
    with prepared(stage.root, stage.scene, stage.forge, stage.uri, stage.settings) as ground:
        child = ground.start()
        first_event(child)
        time.sleep(chance.uniform(0, 0.6))
        asked = time.monotonic()
        child.signal(number)
        code = child.wait()
        seconds = time.monotonic() - asked
        if code != INTERRUPTED:  # it had ended before
            return judge_trial(ground, f"{number.name} {seed}", code, stage.wanted, reached=False)
        ground.died()
        problems = _not_given_back(ground)
        _until(lambda: not _running(str(stage.root)), seconds=2.0)
        problems += [f"still running: {line}" for line in _running(str(stage.root))]
        code, resumed = to_the_end(ground)
        measured = {f"seconds to the end after {number.name}": seconds}
        name = f"{number.name} {seed}"
        trial = judge_trial(ground, name, code, stage.wanted, resumes=(resumed,), more=measured)
        return with_problems(trial, [*problems, *trial.problems])


def with_problems(trial: Trial, problems: list[str]) -> Trial:
    """Return a trial with these problems."""
    return replace(trial, problems=tuple(problems))


def _successor(ground: Ground) -> Child:
    """Start a process that continues the run, as soon as the leases allow it; return when it works on a task."""
    until = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < until:
        child = ground.start()
        if _begins(child) or child.wait() != BUSY:
            return child
    raise AssertionError("the leases of a process that was stopped never ended")


def _begins(child: Child) -> bool:
    """Wait until a process works on a task; False: it has ended before."""

    def has_begun() -> bool:
        return child.out.exists() and '"LeaseTaken"' in child.out.read_text(encoding="utf-8")

    _until(lambda: child.has_ended or has_begun())
    return has_begun()


def _until(true: Callable[[], object], seconds: float = PATIENCE_SECONDS) -> bool:
    """Wait until something is true; False: it never was."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if true():
            return True
        time.sleep(0.01)
    return False


def _running(word: str) -> list[str]:
    """Return the command lines of processes that have this word in them: of a sandbox, of git."""
    found: list[str] = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            line = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
            if word in line:
                found.append(line[:200])
    return found


def _refused(ground: Ground, child: Child) -> list[str]:
    path = ground.path("refused")
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [line for line in lines if line.startswith(f"{child.pid} ")]


def _not_given_back(ground: Ground) -> list[str]:
    rows, run = ground.look(
        lambda reads: (task_rows(reads, ground.run), run_row(reads, ground.run))
    )
    held = [str(row["taskId"]) for row in rows if row.get("lockedBy")]
    problems = [f"the leases of {held} were not given back"] if held else []
    if run["status"] != "paused" or run.get("coordinator"):
        problems.append(f"the run stands at {run['status']}, led by {run.get('coordinator')}")
    return problems


def _all(reads: ReadOps, run: str) -> dict[str, list[dict[str, object]]]:
    """Return all that a run has in the store."""
    kinds = (
        NodeLabel.TASK,
        NodeLabel.ATTEMPT,
        NodeLabel.CALL,
        NodeLabel.EVENT,
        NodeLabel.EVIDENCE,
        NodeLabel.VERDICT,
    )
    return {
        "Run": [dict(run_row(reads, run))],
        **{k: [dict(r) for r in reads.find(k, {"runId": run}, order=("id",))] for k in kinds},
    }
