"""One trial: a run that is killed in a certain way, resumed, and judged."""

import random
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from signal import SIGKILL

from tests.support.crash.crash_points import DIED, Point, groups, one_of_each, points
from tests.support.crash.crash_site import Ground, Scene, prepared
from tests.support.crash.process_forge import Child, Forge
from tests.support.crash.run_checker import End, end_of, judge

MOST_DEATHS = 2
"""After so many in a row without an outcome a task is let go on: a third one would rightly be its end."""
EARLY = 0.2
"""Share of the kills that come before the first output of the process."""

SHORTEST = 1 / 32
"""Of the time until a kill: after this a run is too short to be killed."""
WHOLE = 0.5
"""Share of the kills that hit its git commands too, as when a container is stopped."""


@dataclass(frozen=True, kw_only=True)
class Trial:
    """The result of one trial."""

    name: str
    problems: tuple[str, ...]
    kills: int
    asked_again: int = 0
    run_again: int = 0
    lost: int = 0
    doubled: int = 0
    reached: bool = True
    """False: the run ended before it came to the point."""
    resumes: tuple[float, ...] = ()
    """Seconds from the start of a process to its first event."""
    more: Mapping[str, float] = field(default_factory=dict[str, float])

    def line(self) -> dict[str, object]:
        """Return it as JSON."""
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class Stage:
    """Where trials are made: one directory and one forge, used by one thread."""

    root: Path
    forge: Forge
    scene: Scene
    wanted: End
    uri: str = ""
    settings: Mapping[str, str] = field(default_factory=dict[str, str])


def reference(
    root: Path,
    scene: Scene,
    forge: Forge,
    uri: str = "",
    settings: Mapping[str, str] | None = None,
    *,
    distinct: bool = False,
) -> tuple[End, list[Point]]:
    """Run a scene without kills: its end, and every point that it came by; `distinct`: one for each durable state.

    Raises:
        AssertionError: It breaks an invariant already.
    """
    with prepared(root, scene, forge, uri, settings) as ground:
        trace = ground.path("trace")
        child = ground.start(trace=trace, watched=root if distinct else None)
        code = child.wait()
        assert code in (0, 1), child.error_tail
        end = end_of(ground, code)
        ruling = judge(ground, code, end)
        assert not ruling.problems, ruling.problems
        return end, one_of_each(groups(trace)) if distinct else points(trace)


def die_at(stage: Stage, point: Point) -> Trial:
    """Let the process die at a point, and go on with the run."""
    with prepared(stage.root, stage.scene, stage.forge, stage.uri, stage.settings) as ground:
        code = ground.start(die_at=point).wait()
        if code != DIED:
            return judge_trial(ground, str(point), code, stage.wanted, reached=False)
        ground.died()
        code, seconds = to_the_end(ground)
        return judge_trial(ground, str(point), code, stage.wanted, resumes=(seconds,))


def kill_at_random(stage: Stage, seed: int, most: int) -> Trial:
    """Kill the run's processes at random moments, up to `most` times, and go on with it after each.

    A run that is at its end before the first kill, as on a fast machine, is made again and killed sooner.
    """
    pace = 1.0
    trial = _kill_at_random(stage, seed, most, pace)
    while not trial.kills and pace > SHORTEST:
        pace /= 2
        trial = _kill_at_random(stage, seed, most, pace)
    return trial


def _kill_at_random(stage: Stage, seed: int, most: int, pace: float) -> Trial:
    """Do it once; moments are counted in seconds times `pace`."""
    chance = random.Random(seed)
    resumes: list[float] = []
    with prepared(stage.root, stage.scene, stage.forge, stage.uri, stage.settings) as ground:
        while len(ground.deaths) < most:
            child = ground.start()
            early = chance.random() < EARLY
            seconds = 0.0 if early else first_event(child)
            time.sleep(pace * chance.uniform(0, 0.6 if early else 1.8))
            child.signal(SIGKILL, whole=chance.random() < WHOLE)
            if child.wait() != -SIGKILL:
                break
            if ground.deaths and seconds:
                resumes.append(seconds)
            if ground.died().deaths >= MOST_DEATHS - 1:
                break
        code, seconds = to_the_end(ground)
        resumes.append(seconds)
        return judge_trial(ground, f"seed {seed}", code, stage.wanted, resumes=tuple(resumes))


def judge_trial(
    ground: Ground,
    name: str,
    code: int,
    wanted: End,
    resumes: tuple[float, ...] = (),
    reached: bool = True,
    more: Mapping[str, float] | None = None,
) -> Trial:
    """Judge a run that has come to its end."""
    ruling = judge(ground, code, wanted)
    return Trial(
        name=name,
        problems=ruling.problems,
        kills=len(ground.deaths),
        asked_again=ruling.asked_again,
        run_again=ruling.run_again,
        lost=ruling.lost,
        doubled=ruling.doubled,
        reached=reached,
        resumes=resumes,
        more=more or {},
    )


def to_the_end(ground: Ground) -> tuple[int, float]:
    """Go on with a run to its end: the exit code, and the seconds to the first event."""
    child = ground.start()
    seconds = first_event(child)
    code = child.wait()
    return code, seconds


def first_event(child: Child) -> float:
    """Wait until a process reports an event, or has ended; the seconds."""
    started = time.monotonic()
    while not child.has_ended:
        if child.out.exists() and child.out.stat().st_size:
            break
        time.sleep(0.003)
    return time.monotonic() - started


def die_again_and_again(stage: Stage, point: Point, times: int) -> Trial:
    """Let so many processes in a row die at the same point, and go on with the run."""
    with prepared(stage.root, stage.scene, stage.forge, stage.uri, stage.settings) as ground:
        for _ in range(times):
            code = ground.start(die_at=point).wait()
            assert code == DIED, code
            ground.died()
        code, seconds = to_the_end(ground)
        return judge_trial(ground, f"{point} {times} times", code, stage.wanted, resumes=(seconds,))
