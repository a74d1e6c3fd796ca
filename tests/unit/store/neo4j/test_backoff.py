"""Writers that keep away from the lock for a while after they had it: fair where there are many, nothing where there is one."""

import heapq
import random

import pytest

from mimir.store.neo4j.backoff import LockBackoff, LockTurn

HOLD = 0.01


class Never(LockBackoff):
    """Asks again at once."""

    def seconds(self, now: float) -> float:
        return 0.0


def waits(writers: int, kind: type[LockBackoff], turns: int = 500) -> tuple[list[float], float]:
    """Let writers take a lock that goes to any waiting one, to the last one half of the time; all begin at once.

    Returned are how long each turn took from the wish to its end, ascending, and when all were over.
    """
    chance = random.Random(7)
    ways = [kind() for _ in range(writers)]
    begun, asked = [0.0] * writers, [0.0] * writers
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
        who = asking.pop(-1 if chance.random() < 0.5 else chance.randrange(len(asking)))
        waited, held = now - asked[who], HOLD * chance.uniform(0.5, 1.5)
        now += held
        took.append(now - begun[who])
        ways[who].record_turn(LockTurn(asked=waited, held=held, writers=writers), now)
        begun[who] = now
        heapq.heappush(coming, (now + ways[who].seconds(now), who))
    return sorted(took), now


@pytest.mark.parametrize("writers", [10, 50])
def test_backoff_halves_the_longest_wait_without_a_lost_write(writers: int):
    polite, at_end = waits(writers, LockBackoff)
    rude, as_it_could_be = waits(writers, Never)

    ninety_nine = int(0.99 * len(polite))
    assert polite[ninety_nine] < 2.5 * writers * HOLD
    assert polite[ninety_nine] < 0.5 * rude[ninety_nine]
    assert at_end < 1.1 * as_it_could_be


def test_single_writer_never_backs_off():
    backoff = LockBackoff()
    for turn in range(50):
        assert backoff.seconds(float(turn)) == 0
        asked = 0.08 + 0.002 * (turn % 2)
        backoff.record_turn(LockTurn(asked=asked, held=0.3, writers=1), float(turn))


def test_first_backoff_follows_the_number_of_writers():
    backoff = LockBackoff()
    backoff.record_turn(LockTurn(asked=0.0, held=HOLD, writers=10), now=0.0)
    assert backoff.seconds(0.0) == pytest.approx(0.9 * 0.9 * 9 * HOLD)


def test_backoff_is_reduced_by_other_work_and_bounded():
    backoff = LockBackoff()
    for _ in range(20):
        backoff.record_turn(LockTurn(asked=0.0, held=HOLD, writers=10), now=0.0)
        backoff.record_turn(LockTurn(asked=1.0, held=HOLD, writers=10), now=10.0)
    away = backoff.seconds(10.0)
    assert 0.05 < away < 0.1
    assert backoff.seconds(10.05) == pytest.approx(away - 0.05)
    assert backoff.seconds(11.0) == 0

    for _ in range(20):
        backoff.record_turn(LockTurn(asked=60.0, held=60.0, writers=50), now=20.0)
    assert backoff.seconds(20.0) == 1.0


def test_single_long_turn_does_not_change_the_backoff():
    backoff = LockBackoff()
    for held in (*[HOLD] * 10, 100 * HOLD):
        backoff.record_turn(
            LockTurn(asked=1.0 if held > HOLD else 0.0, held=held, writers=2), now=0.0
        )
    usual = LockBackoff()
    usual.record_turn(LockTurn(asked=0.0, held=HOLD, writers=2), now=0.0)
    assert backoff.seconds(0.0) < 1.5 * usual.seconds(0.0)


def test_backoff_ends_within_forty_turns():
    backoff = LockBackoff()
    turns = 0
    backoff.record_turn(LockTurn(asked=0.0, held=HOLD, writers=10), now=0.0)
    while backoff.seconds(0.0):
        backoff.record_turn(LockTurn(asked=0.0, held=HOLD, writers=10), now=0.0)
        turns += 1
    assert turns < 40


def test_last_writer_does_not_back_off():
    backoff = LockBackoff()
    for writers in (*[10] * 20, 1):
        backoff.record_turn(LockTurn(asked=0.1, held=HOLD, writers=writers), now=0.0)
    assert backoff.seconds(0.0) == 0
