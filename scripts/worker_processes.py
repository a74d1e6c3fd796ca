"""Test run of several processes, some of which are killed; `make fleet` runs it.

`python -m scripts.worker_processes --tasks 100`. One process executes a plan and coordinates; two
more serve the run in its directory, a third one in a clone, through a git remote. One worker
process is killed twice, the coordinator once. It prints the duration, the idle time of agents, and
whether anything was done twice. The model is a server of this process that delays each answer.
"""

import argparse
import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from mimir.planning.renderer import render
from mimir.store.schema import NodeLabel
from tests.support import invariants
from tests.support.killed_processes import repeated
from tests.support.process_group import Fleet, doubled, fleet, holders
from tests.support.run_facts import Facts, load, store_of
from tests.support.script_server import PlayServer
from tests.support.whole_run import REST, plan, start, step, worker, writes

AGENTS = 4
ANSWER_SECONDS = 0.5
"""Time of the model for each answer of a worker."""
LANES = 24
"""Parallel chains of tasks; each task depends on the one before in its chain."""
PATIENCE_SECONDS = 3600.0


def main() -> int:
    """Run the test and print its figures."""
    parser = argparse.ArgumentParser(prog="make fleet", description=__doc__)
    parser.add_argument("--tasks", type=int, default=100)
    parser.add_argument("--keep", action="store_true", help="keep the project, to look at it")
    asked = parser.parse_args()
    root = Path(tempfile.mkdtemp(prefix="mimir-fleet-"))
    try:
        return _run(root, asked.tasks)
    finally:
        if asked.keep:
            print(f"kept: {root}")
        else:
            shutil.rmtree(root, ignore_errors=True)


def _run(root: Path, count: int) -> int:
    names = [f"t{number:03d}" for number in range(count)]
    made = plan(*(step(n, *_needs(names, i)) for i, n in enumerate(names)))
    project = start(root)
    (project / "plan.md").write_text(render(made), encoding="utf-8")
    there, remote, log = root / "there", root / "remote.git", root / "requests.jsonl"
    subprocess.run(["git", "clone", "--quiet", str(project), str(there)], check=True)
    subprocess.run(["git", "init", "--quiet", "--bare", str(remote)], check=True)
    given = {
        "MIMIR_STORE": str(project / ".mimir" / "mimir.db"),
        "MIMIR_HISTORY_REMOTE": remote.as_uri(),
    }
    (project / ".mimir").mkdir()
    play = {"parts": [*(_part(name) for name in names), *REST]}
    with PlayServer(play, log=log) as server, fleet(root, server.url, **given) as processes:
        begun = time.monotonic()
        kills = _serve(processes, project, there, count)
        seconds = time.monotonic() - begun
        shape = _status(processes, project)
    # The clone may have ended the run, after the coordinator's death: its objects come from the remote.
    history = f"--git-dir={project}/.mimir/work/history.git"
    everything = ("fetch", "--quiet", "--no-auto-gc", str(remote), "+refs/*:refs/fleet/*")
    objects = {"GIT_ALTERNATE_OBJECT_DIRECTORIES": str(project / ".git" / "objects")}
    subprocess.run(["git", history, *everything], check=True, env={**os.environ, **objects})
    facts = load(project, str(shape["run"]))
    return _tell(facts, shape, seconds, kills, repeated(log))


def _needs(names: Sequence[str], number: int) -> Sequence[str]:
    return [names[number - LANES]] if number >= LANES else []


def _part(name: str) -> Mapping[str, object]:
    first = {**writes(f"{name}.txt", f"{name}\n"), "delay_seconds": ANSWER_SECONDS}
    last = {"text": f"{name}.txt is written.", "delay_seconds": ANSWER_SECONDS}
    return worker(name, first, last)


def _serve(processes: Fleet, project: Path, there: Path, count: int) -> int:
    """Serve the run to its end; return the number of kills."""
    agents = ["--concurrency", str(AGENTS)]
    coordinator = processes.start(project, "execute", "plan.md", "--yes", "--workers", str(AGENTS))
    _until(lambda: bool(_done(project)), coordinator, processes)
    steady = processes.start(project, "worker", *agents)
    away = processes.start(there, "worker", *agents)
    victim = processes.start(project, "worker", *agents)
    for share, which in ((0.2, "victim"), (0.4, "coordinator"), (0.6, "victim")):
        wanted = int(count * share)
        _until(lambda: _done(project) >= wanted, steady, processes)  # noqa: B023  used at once
        one = victim if which == "victim" else coordinator
        one.kill()
        one.wait()
        print(
            f"killed: the {which}, with {_done(project)} of {count} tasks completed",
            flush=True,
        )
        if which == "victim" and _done(project) < count:
            victim = processes.start(project, "worker", *agents)
    for process in (steady, away, victim):
        code = process.wait(PATIENCE_SECONDS)
        if code > 0:
            raise SystemExit(f"A process ended with {code}:\n{processes.said(process)[-3000:]}")
    return 3


def _until(is_so: Callable[[], bool], process: "subprocess.Popen[str]", processes: Fleet) -> None:
    while not is_so():
        if process.poll() not in (None, 0):
            raise SystemExit(f"A process has ended:\n{processes.said(process)[-3000:]}")
        time.sleep(0.5)


def _done(project: Path) -> int:
    if not (project / ".mimir" / "mimir.db").exists():
        return 0
    return asyncio.run(_completed(project))


async def _completed(project: Path) -> int:
    async with store_of(project) as store:
        where = {"status": "completed"}
        return len(await store.read(lambda reads: reads.find(NodeLabel.TASK, where)))


def _status(processes: Fleet, project: Path) -> Mapping[str, object]:
    words = [sys.executable, "-m", "mimir", "status", "--workers", "--json"]
    done = subprocess.run(
        words, cwd=project, env=dict(processes.env), capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout)


def _tell(facts: Facts, shape: Mapping[str, object], seconds: float, kills: int, again: int) -> int:
    statuses = Counter(facts.statuses.values())
    metrics = shape["metrics"]
    assert isinstance(metrics, dict)
    broken = [*doubled(facts.events), *invariants.broken(facts)]
    print(f"tasks: {dict(statuses)}; done twice or broken: {broken or 'nothing'}")
    print(f"makespan: {seconds:.0f} s; idle share of the agents: {_share(metrics['idleShare'])}")
    print(
        f"claims: {metrics['claims']}; that found others faster: {_share(metrics['lockContention'])}"
    )
    print(f"tasks begun or taken over, by process: {_counts(holders(facts.events))}")
    print(f"kills: {kills}; model calls made again: {again}, at most {kills * AGENTS}")
    good = set(statuses) == {"completed"} and not broken and again <= kills * AGENTS
    return 0 if good else 1


def _share(value: object) -> str:
    return f"{value:.1%}" if isinstance(value, int | float) else "unknown"


def _counts(counted: Mapping[str, int]) -> Sequence[int]:
    return sorted(counted.values(), reverse=True)


if __name__ == "__main__":
    sys.exit(main())
