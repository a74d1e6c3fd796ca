"""Runs that are recorded, and recordings that are played again."""

import asyncio
import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import yaml

from mimir.bootstrap import app
from mimir.domain.plan import Plan
from mimir.domain.run import RunBudget, RunResult
from mimir.recordings.engine_replay.differences import ReplayResult
from mimir.recordings.format.recording_file import hash_line
from mimir.recordings.model_replay.recorded_models import RecordingUsage
from mimir.recordings.model_replay.replay_session import ReplayingMimir
from mimir.settings import layers
from mimir.settings.layers import LoadedSettings
from tests.support.whole_run import PLAN_PATH, REST, Part

Line = dict[str, object]


def loaded(project: Path, model: str = "", **flags: object) -> LoadedSettings:
    """Return settings without a key, and with no endpoint that could be asked."""
    given = {"llm.model": model, **{name.replace("__", "."): v for name, v in flags.items()}}
    return layers.load(project, given, {"HOME": str(project.parent)})


async def record(
    project: Path,
    plan: Plan,
    parts: Sequence[Part],
    file: Path,
    *,
    workers: int = 3,
    play: Path | None = None,
) -> RunResult:
    """Run a plan with a model script, recorded; the script is written beside the project, or to `play`."""
    play = play or project.parent / f"{project.name}.play.yaml"
    play.write_text(yaml.safe_dump({"parts": [*parts, *REST]}), encoding="utf-8")
    async with app.open(project, loaded(project, f"play:{play}"), record=file) as mimir:
        run = await mimir.create_run(plan, PLAN_PATH, only=(), limits=RunBudget())
        return await mimir.drive(
            run, workers=workers, apply="never", limits=RunBudget(), resumed=False
        )


@dataclass(frozen=True, kw_only=True)
class Again:
    """A run whose models were a recording."""

    ending: RunResult
    used: RecordingUsage
    drifts: Sequence[Mapping[str, object]]


async def again(
    project: Path, plan: Plan, file: Path, *, only: Sequence[str] = (), workers: int = 3
) -> Again:
    """Do the work of a recorded plan again."""
    async with app.open(project, loaded(project), replay=file) as mimir:
        assert isinstance(mimir, ReplayingMimir)
        run = await mimir.create_run(plan, PLAN_PATH, only=only, limits=RunBudget())
        ending = await mimir.drive(
            run, workers=workers, apply="never", limits=RunBudget(), resumed=False
        )
        told = [dict(e.data) for e in await mimir.events(run, 0) if e.kind.value == "Drift"]
        return Again(ending=ending, used=mimir.used, drifts=told)


async def replayed(project: Path, what: str, *, seed: int | None = None) -> ReplayResult:
    """Replay a run from its record; with a seed, its outcomes are ready in a shuffled order."""
    (one,) = await app.replay(
        project, loaded(project), what, **({} if seed is None else {"delay": shuffled(seed)})
    )
    return one


def shuffled(seed: int) -> Callable[[str], "asyncio.Future[None]"]:
    """Return a delay that lets others go first, a different number of times for each outcome."""
    chance = random.Random(seed)

    async def wait(_lane: str) -> None:
        for _ in range(chance.randint(0, 20)):
            await asyncio.sleep(0)

    return wait  # type: ignore[return-value]


def bytes_of(one: ReplayResult) -> tuple[str, ...]:
    """Return all that must be the same each time."""
    return one.report, one.plan, one.verdict_rows, one.evidence_rows, one.seal


def lines(file: Path) -> list[Line]:
    """Read a recording's lines without judging them."""
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def write(file: Path, content: Sequence[Line], *, stamp: bool = False) -> Path:
    """Write lines as they are; with `stamp`, each with the hash of its current content."""
    texts = [hash_line(line) if stamp else json.dumps(line) for line in content]
    file.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    return file


def edited(file: Path, lane: str, change: Callable[[dict[str, object]], None]) -> Path:
    """Change the answer of the first model call of a lane (`task/attempt/role`); the line keeps its old hash."""
    content = lines(file)
    for line in content:
        is_it = line.get("kind") == "call" and line.get("call") == "model"
        if is_it and str(line["lane"]).endswith(f"/{lane}"):
            answer = line["answer"]
            assert isinstance(answer, dict)
            change(cast("dict[str, object]", answer))
            break
    else:
        raise AssertionError(f"no lane {lane}")
    return write(file.with_suffix(".edited.jsonl"), content)
