"""Long runs recorded, with kills in the middle, and replayed many times: identical bytes, and the cost of a call.

For `make replays`; the tests replay a small run.
"""

import argparse
import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import yaml

from mimir.bootstrap import app
from mimir.demo import setup as demo
from mimir.demo.acts import REQUEST
from mimir.domain.plan import Plan, Task
from mimir.planning.renderer import render
from mimir.recordings.engine_replay.differences import ReplayResult
from tests.support import recorded_runs
from tests.support.projects import make_project
from tests.support.recorded_runs import bytes_of, loaded, record, shuffled
from tests.support.whole_run import REST, Part, calls, plan, step, worker, writes, wrote

TASKS = 100
KILLS = 2
TIMES = 20
MIMIR = (sys.executable, "-m", "mimir")


def hundred() -> tuple[Plan, Sequence[Part]]:
    """Return 100 tasks in layers of ten: every seventh is tried twice, every ninth trips its breaker."""
    tasks: list[Task] = []
    parts: list[Part] = []
    for number in range(TASKS):
        id = f"t{number:03d}"
        needs = [f"t{number - 10:03d}"] if number >= 10 else []
        tasks.append(step(id, *needs, max_retries=1, estimated_tool_calls=8))
        if number % 7 == 3:
            wrong = writes(f"{id}.txt", "wrong\n")
            parts += [worker(id, wrong, "Done.", attempt=1), wrote(id, attempt=2)]
        elif number % 9 == 4:
            same = {"calls": [calls("read_file", path="README.md")], "repeat": 3}
            parts.append(worker(id, writes(f"{id}.txt", f"{id}\n"), same, "It is written."))
        else:
            look = {"calls": [calls("list_files", glob="*"), calls("read_file", path="README.md")]}
            parts.append(worker(id, look, writes(f"{id}.txt", f"{id}\n"), "It is written."))
    return plan(*tasks, title="A hundred files"), parts


def record_hundred(room: Path, kills: int) -> tuple[Path, Path, float]:
    """Record it by the command line, killed in between; the project, the file, and the seconds of processor time."""
    made, parts = hundred()
    project = make_project(room / "project", {"README.md": "# A hundred files\n"})
    (project / "plan.md").write_text(render(made), encoding="utf-8")
    play = room / "hundred.play.yaml"
    play.write_text(yaml.safe_dump({"parts": [*parts, *REST]}), encoding="utf-8")
    common = ["--model", f"play:{play}", "--record", "run.jsonl", "--workers", "8", "--json"]
    words = ["execute", "plan.md", "--yes", *common]
    before = os.times()
    for kill in range(kills):
        _killed(project, words, 400 * (kill + 1))
        words = ["resume", *common]
    ended = subprocess.run(
        [*MIMIR, *words], cwd=project, env=_env(room), capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr[-2000:]
    after = os.times()
    spent = sum(after[2:4]) - sum(before[2:4])
    return project, project / "run.jsonl", spent


def record_demo(room: Path) -> tuple[Path, Path]:
    """Record the demo: its request planned and executed; both runs are in one file."""
    project = asyncio.run(demo.build(room / "demo"))
    words = ["execute", REQUEST, "--ecko", "--yes", "--record", "demo.jsonl", "--apply", "never"]
    ended = subprocess.run(
        [*MIMIR, *words, "--model", f"play:{demo.PLAY}"],
        cwd=project,
        env=_env(room),
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode in (0, 1), ended.stderr[-2000:]
    return project, project / "demo.jsonl"


def _killed(project: Path, words: Sequence[str], lines: int) -> None:
    process = subprocess.Popen(
        [*MIMIR, *words],
        cwd=project,
        env=_env(project.parent),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    for number, _ in enumerate(process.stdout, start=1):
        if number >= lines:
            process.send_signal(signal.SIGKILL)
            break
    process.wait()
    assert process.returncode == -signal.SIGKILL, process.returncode


def _env(room: Path) -> Mapping[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("OPENAI_", "MIMIR_"))}
    return {**kept, "HOME": str(room), "PYTHONPATH": str(Path.cwd())}


def _replays(project: Path, file: Path, times: int) -> list[Mapping[str, object]]:
    async def once(seed: int) -> Sequence[ReplayResult]:
        return await app.replay(project, loaded(project), str(file), delay=shuffled(seed))

    first = asyncio.run(once(0))
    spent: list[float] = []
    for seed in range(1, times + 1):
        before = time.process_time()
        found = asyncio.run(once(seed))
        spent.append(time.process_time() - before)
        for one, other in zip(first, found, strict=True):
            assert other.differences == (), other.differences[:3]
            assert bytes_of(one) == bytes_of(other), f"seed {seed}"
    whole = sum(one.calls for one in first)
    return [
        {
            "recording": file.name,
            "runs": len(first),
            "events": sum(one.events for one in first),
            "calls": whole,
            "checks": sum(one.checks for one in first),
            "replays": times,
            "identical": True,
            "cpu_seconds_median": round(sorted(spent)[len(spent) // 2], 3),
            "cpu_seconds_per_1000_calls": round(sorted(spent)[len(spent) // 2] * 1000 / whole, 3),
        }
    ]


def cost(room: Path, times: int) -> Mapping[str, object]:
    """Compare the time of a replay with the same run on scripted answers: tasks that only read and answer, no check, no command.

    Both in this process, after a first small run of each: processor time, the durable store of the run included.
    """
    look = {"calls": [calls("read_file", path="README.md")]}

    def made(count: int) -> tuple[Plan, Sequence[Part]]:
        tasks = [step(f"t{n:03d}", checks=(), files=()) for n in range(count)]
        return plan(*tasks, title="Answers"), [worker("*", look, "It says so.")]

    def once(name: str, count: int) -> tuple[float, float, int]:
        project, file = make_project(room / name, {"README.md": "# It\n"}), room / f"{name}.jsonl"
        of_plan, parts = made(count)
        before = time.process_time()
        asyncio.run(record(project, of_plan, parts, file, workers=8))
        between = time.process_time()
        spent: list[float] = []
        found: ReplayResult | None = None
        for _ in range(times):
            start = time.process_time()
            found = asyncio.run(recorded_runs.replayed(project, str(file)))
            spent.append(time.process_time() - start)
        assert found is not None
        assert found.differences == ()
        return between - before, sorted(spent)[len(spent) // 2], found.calls

    once("warm", 4)
    scripted, again, served = once("cost", 250)
    return {
        "calls": served,
        "cpu_seconds_scripted_and_recorded": round(scripted, 2),
        "cpu_seconds_replay": round(again, 2),
        "above_scripted_per_1000_calls": round((again - scripted) * 1000 / served, 2),
    }


def main(arguments: Sequence[str]) -> None:
    """Record, replay, print the figures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--times", type=int, default=TIMES)
    parser.add_argument("--only", choices=["demo", "hundred", "cost"])
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="mimir-replays-") as name:
        room = Path(name)
        if given.only in (None, "cost"):
            print(json.dumps(cost(room, min(given.times, 3)), indent=1))
        if given.only in (None, "demo"):
            print(json.dumps(_replays(*record_demo(room), given.times), indent=1))
        if given.only in (None, "hundred"):
            project, file, spent = record_hundred(room, KILLS)
            print(json.dumps({"cpu_seconds_of_the_recorded_run": round(spent, 1), "kills": KILLS}))
            print(json.dumps(_replays(project, file, given.times), indent=1))
