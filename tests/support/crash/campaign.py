"""Many trials and their figures: the program of `make crash`.

    make crash                              25 random kills on SQLite
    make crash KILLS=200 STORE=neo4j        on a Neo4j server that is started for it (or STORE=bolt://…: on one that is there)
    make crash POINTS=all                   a death at every point; POINTS=40: at so many, chosen by SEED
    make crash POINTS=distinct              a death at one point of each durable state: a look at the clock or at the store adds none
    make crash ZOMBIES=100                  processes that are stopped for two leases and wake up
    make crash SIGNALS=50                   SIGTERM and SIGINT, so many of each
    make crash CUTS=all STORE=neo4j         the connection cut at every commit of a small run, or at so many
    make crash LOSSES=5 STORE=neo4j         so many runs during which the server is killed every 5 to 40 seconds

A campaign that writes a LOG goes on where it was ended; with the same LOG another one adds to it.
"""

import argparse
import contextlib
import json
import random
import secrets
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue

from tests.support.crash.crash_site import APPLIED, TWELVE, Scene
from tests.support.crash.failing_servers import HOWS, How, commits, cut, lose_server, slow
from tests.support.crash.invocations import AGENT, CLI, install_program
from tests.support.crash.process_forge import Forge
from tests.support.crash.statistics import print_figures
from tests.support.crash.stopped_processes import (
    SIGNALS,
    SMALL,
    gate_of,
    interrupted,
    settings_of,
    waiting,
    zombie,
)
from tests.support.crash.trials import Stage, Trial, die_at, kill_at_random, reference

KILLS_A_RUN = 6
KINDS = ("store", "model", "tool", "program", "sandbox", "git", "clock")

Job = Callable[[Stage], Trial]
Settings = Callable[[Path], Mapping[str, str]]
"""Environment of the trials in a directory."""


def _no_settings(_: Path) -> Mapping[str, str]:
    return {}


def _with_program(root: Path) -> Mapping[str, str]:
    # One for all trials: its path is in the names of points. The directory of a trial is emptied.
    return install_program(root.parent / "programs")


SCENES: Sequence[tuple[str, Scene, Settings]] = (
    ("apply", APPLIED, _no_settings),
    ("plan", TWELVE, _no_settings),
    ("agent", AGENT, _no_settings),
    ("program", CLI, _with_program),
)
"""Name, scene and settings of the runs whose points are died at."""


class Log:
    """The results, one JSON line a trial; saved in a file if one is named."""

    def __init__(self, path: Path | None) -> None:
        """Read the existing lines."""
        self._path = path
        self._guard = threading.Lock()
        there = path is not None and path.exists()
        self.lines: list[dict[str, object]] = (
            [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
            if path is not None and there
            else []
        )

    def knows(self, kind: str, store: str, name: str) -> bool:
        """True: this trial was made."""
        wanted = (kind, store, name)
        return any((line["what"], line["store"], line["name"]) == wanted for line in self.lines)

    def add(self, kind: str, store: str, trial: Trial) -> None:
        """Write one result; print a problem at once."""
        line = {"what": kind, "store": store, **trial.line()}
        with self._guard:
            self.lines.append(line)
            if self._path:
                with self._path.open("a", encoding="utf-8") as out:
                    out.write(json.dumps(line) + "\n")
            for problem in trial.problems:
                print(f"  {trial.name}: {problem}", flush=True)


def main() -> None:
    """Run the campaign that the command line names, and print its figures."""
    given = _arguments()
    log = Log(given.log)
    with (
        _server(given.store) as (uri, restart),
        tempfile.TemporaryDirectory(dir=given.room) as room,
    ):
        for campaign in _campaigns(given, Path(room), uri, restart):
            known = [job for job in campaign.jobs if log.knows(campaign.kind, _name(uri), job[0])]
            left = [job for job in campaign.jobs if job not in known]
            print(
                f"{campaign.kind} on {_name(uri)}: {len(left)} trials, {len(known)} known",
                flush=True,
            )
            _make(replace(campaign, jobs=left), Path(room), uri, log, given)
    print_figures(log.lines)
    sys.exit(any(line["problems"] for line in log.lines))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument("--store", default="sqlite", help="sqlite, neo4j, or the URI of a server")
    parser.add_argument("--points", default="", help="all, distinct, or how many")
    parser.add_argument("--kinds", default=",".join(KINDS), help="boundaries, parted by commas")
    names = ",".join(name for name, _, _ in SCENES)
    parser.add_argument("--scenes", default=names, help="runs whose points are died at")
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--zombies", type=int, default=0)
    parser.add_argument("--signals", type=int, default=0)
    parser.add_argument("--cuts", default="", help="all, or how many")
    parser.add_argument("--losses", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2, help="trials at once")
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no trial after so long")
    parser.add_argument("--log", type=Path, default=None, help="gets each trial; gone on with")
    memory = Path("/dev/shm")
    parser.add_argument("--room", type=Path, default=memory if memory.is_dir() else None)
    given = parser.parse_args()
    if not any((given.points, given.kills, given.zombies, given.signals, given.cuts, given.losses)):
        given.kills = 25
    return given


@dataclass(frozen=True, kw_only=True)
class Campaign:
    """Trials of one kind."""

    kind: str
    jobs: Sequence[tuple[str, Job]]
    scene: Callable[[Path], Scene]
    """Of a trial in this directory."""
    settings: Settings = _no_settings
    at_once: int | None = None
    """None: as many as are wanted."""


def _campaigns(
    given: argparse.Namespace, room: Path, uri: str, restart: Callable[[], None]
) -> Iterator[Campaign]:
    first = given.seed * 10_000
    if given.points:
        for kind, scene, settings in SCENES:
            if kind in given.scenes.split(","):
                jobs = _deaths(given, room, scene, uri, settings(room / "reference"))
                yield Campaign(
                    kind=f"points of {kind}", jobs=jobs, scene=_always(scene), settings=settings
                )
    if given.kills:
        seeds = range(first, first - (-given.kills // (KILLS_A_RUN // 2)))
        jobs = [(f"seed {s}", partial(kill_at_random, seed=s, most=KILLS_A_RUN)) for s in seeds]
        yield Campaign(kind="kills", jobs=jobs, scene=_always(TWELVE))
    if given.zombies:
        jobs = [
            (f"zombie {n}", partial(zombie, seed=n)) for n in range(first, first + given.zombies)
        ]
        yield Campaign(kind="zombies", jobs=jobs, scene=_waiting, settings=settings_of)
    if given.signals:
        asked = range(first, first + 2 * given.signals)
        jobs = [(f"{SIGNALS[n % 2].name} {n}", partial(interrupted, seed=n)) for n in asked]
        yield Campaign(kind="signals", jobs=jobs, scene=_always(SMALL))
    if given.cuts:
        yield Campaign(kind="cuts", jobs=_cuts(given, room, uri), scene=_always(SMALL))
    if given.losses:
        runs = range(first, first + given.losses)
        jobs = [(f"server {n}", partial(lose_server, seed=n, restart=restart)) for n in runs]
        yield Campaign(kind="losses", jobs=jobs, scene=_always(slow(TWELVE)), at_once=1)


def _always(scene: Scene) -> Callable[[Path], Scene]:
    return lambda _: scene


def _waiting(root: Path) -> Scene:
    return waiting(gate_of(root))


def _cuts(given: argparse.Namespace, room: Path, uri: str) -> list[tuple[str, Job]]:
    with Forge() as forge:
        named = _named(uri, _new())
        wanted, _ = reference(room / "reference", SMALL, forge, named)
        stage = Stage(root=room / "count", forge=forge, scene=SMALL, wanted=wanted)
        most = commits(replace(stage, uri=_named(uri, _new())))
    found: list[tuple[int, How]] = [(n, how) for n in range(1, most + 1) for how in HOWS]
    if given.cuts != "all":
        found = random.Random(given.seed).sample(found, min(len(found), int(given.cuts)))
    return [
        (f"commit {n} cut {how} the server has it", partial(cut, number=n, how=how))
        for n, how in found
    ]


def _deaths(
    given: argparse.Namespace, room: Path, scene: Scene, uri: str, settings: Mapping[str, str]
) -> list[tuple[str, Job]]:
    with Forge() as forge:
        root, named, distinct = room / "reference", _named(uri, _new()), given.points == "distinct"
        _, points = reference(root, scene, forge, named, settings, distinct=distinct)
    kinds = ["apply"] if scene is APPLIED else given.kinds.split(",")
    found = sorted({p for p in points if p.kind in kinds}, key=str)
    # In any order: a campaign that is ended early has seen a fair sample.
    random.Random(given.seed).shuffle(found)
    if given.points not in ("all", "distinct"):
        found = found[: int(given.points)]
    return [(str(point), partial(die_at, point=point)) for point in found]


def _make(campaign: Campaign, room: Path, uri: str, log: Log, given: argparse.Namespace) -> None:
    """Make trials, several at once; each thread has its own forge and directory."""
    if not campaign.jobs:
        return
    waiting_jobs: SimpleQueue[tuple[int, Job]] = SimpleQueue()
    for number, (_, job) in enumerate(campaign.jobs):
        waiting_jobs.put((number, job))
    root = room / "reference"
    scene, settings = campaign.scene(root), campaign.settings(root)
    with Forge() as forge:
        wanted, _ = reference(root, scene, forge, _named(uri, _new()), settings)
    until = time.monotonic() + given.seconds

    def work(place: int) -> None:
        root = room / f"place-{place}"
        with Forge() as forge, contextlib.suppress(Empty):
            while time.monotonic() < until:
                _, job = waiting_jobs.get_nowait()
                stage = Stage(
                    root=root,
                    forge=forge,
                    scene=campaign.scene(root),
                    wanted=wanted,
                    uri=_named(uri, _new()),
                    settings=campaign.settings(root),
                )
                log.add(campaign.kind, _name(uri), job(stage))

    places = range(campaign.at_once or given.jobs)
    threads = [threading.Thread(target=work, args=(place,)) for place in places]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _new() -> str:
    return f"crash-{secrets.token_hex(6)}"


def _name(uri: str) -> str:
    return "neo4j" if uri else "sqlite"


def _named(uri: str, store: str) -> str:
    """Give each trial a store of its own in the one database."""
    return f"{uri}?store={store}" if uri else ""


@contextlib.contextmanager
def _server(store: str) -> Generator[tuple[str, Callable[[], None]]]:
    """Return the URI of a Neo4j server, with functions that kill and start it; an empty URI: SQLite is wanted."""
    if store == "sqlite" or "://" in store:
        yield store.removeprefix("sqlite"), _not_ours
        return
    from tests.support.local_neo4j import LocalServer

    with tempfile.TemporaryDirectory() as home:
        server = LocalServer(Path(home), options=("-XX:+UseSerialGC", "-XX:-UsePerfData"))
        server.start()

        def restart() -> None:
            server.kill()
            server.start()

        try:
            yield server.uri, restart
        finally:
            server.stop()


def _not_ours() -> None:
    raise AssertionError("only a server that the campaign started itself is killed: STORE=neo4j")


if __name__ == "__main__":
    main()
