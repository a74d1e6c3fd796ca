"""A Neo4j server that is lost at the worst moment: the connection cut when a commit was sent, the server killed again and again."""

import contextlib
import random
import re
import threading
from collections.abc import Callable, Generator, Mapping
from dataclasses import replace
from typing import Any, Literal

import yaml

from tests.support.crash.crash_site import Scene, prepared
from tests.support.crash.trials import Stage, Trial, judge_trial
from tests.support.tcp_proxy import TcpProxy

ADDRESS = re.compile(r"(?<=[/@])([^/@:]+):(\d+)(?=[/?]|$)")
UNAVAILABLE = 69
How = Literal["before", "after"]
HOWS: tuple[How, ...] = ("before", "after")
ANSWER_SECONDS = 2.0
"""Of a model that takes its time."""


def commits(stage: Stage) -> int:
    """Count the commits of a run."""
    with _behind(stage) as (through, proxy):
        _through(through, "count")
        return proxy.commits


def cut(stage: Stage, number: int, how: How) -> Trial:
    """Cut the connection when a run's commit of this number is on its way, before or after the server has got it."""
    with _behind(stage) as (through, proxy):
        proxy.cut_at_commit, proxy.cut_number = how, number
        trial = _through(through, f"commit {number} cut {how} the server has it")
        return replace(trial, reached=proxy.cuts == 1, kills=proxy.cuts)


def _through(stage: Stage, name: str) -> Trial:
    with prepared(stage.root, stage.scene, stage.forge, stage.uri, stage.settings) as ground:
        code = ground.start().wait()
        refused = (
            code == UNAVAILABLE
        )  # cut while it tested whether the store exists: it reports that, and the user tries again
        if refused:
            code = ground.start().wait()
        return judge_trial(ground, name, code, stage.wanted, more={"started_again": int(refused)})


@contextlib.contextmanager
def _behind(stage: Stage) -> Generator[tuple[Stage, TcpProxy]]:
    found = ADDRESS.search(stage.uri)
    assert found, stage.uri
    proxy = TcpProxy(found[1], int(found[2]))
    proxy.start()
    uri = ADDRESS.sub(f"127.0.0.1:{proxy.port}", stage.uri, count=1)
    try:
        # Only the run goes through it: an observer outside does not.
        yield replace(stage, settings={**stage.settings, "MIMIR_STORE": uri}), proxy
    finally:
        proxy.stop()


def slow(scene: Scene) -> Scene:
    """Return a scene whose models take their time: a run of it outlasts a few losses of its server."""
    play: Mapping[str, Any]
    play = yaml.safe_load(scene.play) if isinstance(scene.play, str) else scene.play
    parts = [
        {**part, "turns": [{"delay_seconds": ANSWER_SECONDS, **turn} for turn in part["turns"]]}
        for part in play["parts"]
    ]
    return replace(scene, play={**play, "parts": parts})


def lose_server(stage: Stage, seed: int, restart: Callable[[], None]) -> Trial:
    """Kill the server every 5 to 40 seconds during a run; `restart` kills it and starts it again."""
    chance = random.Random(seed)
    ended = threading.Event()
    losses = 0

    with prepared(stage.root, stage.scene, stage.forge, stage.uri, stage.settings) as ground:

        def lose() -> None:
            nonlocal losses
            while not ended.wait(chance.uniform(5, 40)):
                losses += 1
                restart()

        losing = threading.Thread(target=lose)
        losing.start()
        try:
            code = ground.start().wait(600)
        finally:
            ended.set()
            losing.join()
        trial = judge_trial(ground, f"server {seed}", code, stage.wanted, reached=losses > 0)
        return replace(trial, kills=losses)
