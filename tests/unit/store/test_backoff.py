"""Writers that keep away from the lock for a while after they had it: fair where there are many, nothing where there is one."""

import heapq
import random

import pytest

from mimir.store.cypher.backoff import Backoff

HOLD = 0.01


class Never(Backoff):
    """Asks again at once."""

    def seconds(self, now: float) -> float:
        return 0.0


def waits(writers: int, kind: type[Backoff], turns: int = 2_000) -> tuple[list[float], float]:
    """Let writers take a lock that goes to any of those who ask; how long each turn took, ascending, and when all were over."""
    chance = random.Random(7)
    ways = [kind() for _ in range(writers)]
    begun, away, asked = [0.0] * writers, [0.0] * writers, [0.0] * writers
    coming = [(chance.random() * HOLD, who) for who in range(writers)]
    heapq.heapify(coming)
    asking: list[int] = []
    took: list[float] = []
    now = 0.0
    while len(took) < turns:
        if not asking:
            now = max(now, coming[0][0])
        while coming and coming[0][0] <= now:
            at, who = heapq.heappop(coming)
            asked[who] = at
            asking.append(who)
        who = asking.pop(chance.randrange(len(asking)))
        waited, now = now - asked[who], now + HOLD * chance.uniform(0.5, 1.5)
        took.append(now - begun[who])
        ways[who].had(away=away[who], asked=waited, now=now)
        begun[who], away[who] = now, ways[who].seconds(now)
        heapq.heappush(coming, (now + away[who], who))
    return sorted(took), now


@pytest.mark.parametrize("writers", [10, 50])
def test_the_unluckiest_of_many_writers_wait_half_as_long_and_nothing_is_lost(writers: int):
    polite, at_end = waits(writers, Backoff)
    rude, as_it_could_be = waits(writers, Never)

    ninety_nine = int(0.99 * len(polite))
    assert polite[ninety_nine] < 0.6 * rude[ninety_nine]
    assert at_end < 1.1 * as_it_could_be


def test_who_is_alone_never_keeps_away_however_far_the_server_is():
    backoff = Backoff()
    for turn in range(50):
        assert backoff.seconds(float(turn)) == 0
        backoff.had(away=0.0, asked=0.08 + 0.002 * (turn % 2), now=float(turn))


def test_what_was_done_meanwhile_counts_and_there_is_a_bound():
    backoff = Backoff()
    backoff.had(away=0.0, asked=0.0, now=0.0)
    backoff.had(away=0.0, asked=1.0, now=10.0)
    assert backoff.seconds(10.0) == pytest.approx(0.27)
    assert backoff.seconds(10.2) == pytest.approx(0.07)
    assert backoff.seconds(11.0) == 0

    for _ in range(20):
        backoff.had(away=0.0, asked=60.0, now=20.0)
    assert backoff.seconds(20.0) == 1.0


def test_who_is_alone_again_soon_asks_at_once():
    backoff = Backoff()
    for asked in (0.0, *[0.1] * 20):
        backoff.had(away=0.0, asked=asked, now=0.0)
    turns = 0
    while away := backoff.seconds(0.0):
        backoff.had(away=away, asked=0.0, now=0.0)
        turns += 1
    assert turns < 40
