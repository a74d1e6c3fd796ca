"""Many trials, and the figures that they come to: what `make crash` runs.

    make crash                              25 random kills on SQLite
    make crash KILLS=200 STORE=neo4j        on a Neo4j server that is started for it (or STORE=bolt://…: on one that is there)
    make crash POINTS=all                   a death at every point; POINTS=40: at so many, chosen by SEED
    make crash ZOMBIES=100                  processes that are stopped for two leases and wake up
    make crash SIGNALS=50                   SIGTERM and SIGINT, so many of each
    make crash CUTS=all STORE=neo4j         the connection cut at every commit of a small run, or at so many

A campaign that writes a LOG goes on where it was ended; with the same LOG another one adds to it.
"""

import argparse
import contextlib
import json
import random
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from queue import Empty, SimpleQueue

from tests.support.crash.figures import tell
from tests.support.crash.forge import Forge
from tests.support.crash.ground import APPLIED, TWELVE, Scene
from tests.support.crash.points import Point
from tests.support.crash.trials import Stage, Trial, die_at, kill_at_random, reference

KILLS_A_RUN = 6
ORDER = ("apply", "store", "model", "tool", "sandbox", "git", "clock")
"""Which boundaries come first: those whose crossing changes the most."""

Job = Callable[[Stage], Trial]


class Log:
    """What was found, one JSON line a trial; kept in a file if one is named."""

    def __init__(self, path: Path | None) -> None:
        """Read what is there."""
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
        """Write one down; what is wrong is said at once."""
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
    with _server(given.store) as uri, tempfile.TemporaryDirectory(dir=given.room) as room:
        for kind, scene, jobs in _campaigns(given, Path(room), uri):
            left = [(n, job) for n, job in jobs if not log.knows(kind, _name(uri), n)]
            print(f"{kind} on {_name(uri)}: {len(left)} of {len(jobs)} trials to make", flush=True)
            _make(left, kind, scene, Path(room), uri, log, given)
    tell(log.lines)
    sys.exit(any(line["problems"] for line in log.lines))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument("--store", default="sqlite", help="sqlite, neo4j, or the URI of a server")
    parser.add_argument("--points", default="", help="all, or how many")
    parser.add_argument("--kinds", default=",".join(ORDER), help="boundaries, parted by commas")
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--zombies", type=int, default=0)
    parser.add_argument("--signals", type=int, default=0)
    parser.add_argument("--cuts", default="", help="all, or how many")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2, help="trials at once")
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no trial after so long")
    parser.add_argument("--log", type=Path, default=None, help="gets each trial; gone on with")
    memory = Path("/dev/shm")
    parser.add_argument("--room", type=Path, default=memory if memory.is_dir() else None)
    return parser.parse_args()


def _campaigns(
    given: argparse.Namespace, room: Path, uri: str
) -> Iterator[tuple[str, Scene, Sequence[tuple[str, Job]]]]:
    if given.points:
        for name, scene in (("points", TWELVE), ("points of apply", APPLIED)):
            yield name, scene, _deaths(given, room, scene, uri)
    if given.kills:
        runs = -(-given.kills // (KILLS_A_RUN // 2))
        seeds = range(given.seed * 10_000, given.seed * 10_000 + runs)
        yield "kills", TWELVE, [(f"seed {s}", _kills(s)) for s in seeds]


def _kills(seed: int) -> Job:
    return lambda stage: kill_at_random(stage, seed, KILLS_A_RUN)


def _deaths(given: argparse.Namespace, room: Path, scene: Scene, uri: str) -> list[tuple[str, Job]]:
    with Forge() as forge:
        _, points = reference(room / "reference", scene, forge, _named(uri, "reference"))
    kinds = given.kinds.split(",") if scene is TWELVE else ["apply", "store"]
    found = sorted({p for p in points if p.kind in kinds}, key=_rank)
    if given.points != "all":
        chance = random.Random(given.seed)
        share = int(given.points) if scene is TWELVE else int(given.points) // 10
        found = sorted(chance.sample(found, min(share, len(found))), key=_rank)
    return [(str(point), _death(point)) for point in found]


def _rank(point: Point) -> tuple[object, ...]:
    return (ORDER.index(point.kind), point.label, point.nth, point.side)


def _death(point: Point) -> Job:
    return lambda stage: die_at(stage, point)


def _make(
    jobs: Sequence[tuple[str, Job]],
    kind: str,
    scene: Scene,
    room: Path,
    uri: str,
    log: Log,
    given: argparse.Namespace,
) -> None:
    """Make trials, several at once; each thread has its own forge and directory."""
    if not jobs:
        return
    waiting: SimpleQueue[tuple[int, Job]] = SimpleQueue()
    for number, (_, job) in enumerate(jobs):
        waiting.put((number, job))
    with Forge() as forge:
        wanted, _ = reference(room / "reference", scene, forge, _named(uri, "wanted"))
    until = time.monotonic() + given.seconds

    def work(place: int) -> None:
        with Forge() as forge, contextlib.suppress(Empty):
            stage = Stage(root=room / f"place-{place}", forge=forge, scene=scene, wanted=wanted)
            while time.monotonic() < until:
                number, job = waiting.get_nowait()
                store = _named(uri, f"{kind}-{number}-{time.time_ns()}".replace(" ", "-"))
                log.add(kind, _name(uri), job(replace(stage, uri=store)))

    threads = [threading.Thread(target=work, args=(place,)) for place in range(given.jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _name(uri: str) -> str:
    return "neo4j" if uri else "sqlite"


def _named(uri: str, store: str) -> str:
    """Give each trial a store of its own in the one database."""
    return f"{uri}?store={store}" if uri else ""


@contextlib.contextmanager
def _server(store: str) -> Iterator[str]:
    """Give the URI of a Neo4j server; empty: SQLite is wanted."""
    if store == "sqlite":
        yield ""
        return
    if "://" in store:
        yield store
        return
    from tests.support.local_neo4j import LocalServer

    with tempfile.TemporaryDirectory() as home:
        server = LocalServer(Path(home), options=("-XX:+UseSerialGC", "-XX:-UsePerfData"))
        server.start()
        try:
            yield server.uri
        finally:
            server.stop()


if __name__ == "__main__":
    main()
