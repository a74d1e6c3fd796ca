import asyncio
from collections.abc import Sequence

import pytest

from mimir.cli.live.follow import watch
from mimir.domain.event import Event, EventKind
from mimir.domain.run import RunResult
from mimir.errors import BusyError, Paused, StoreError
from tests.support.fake_app import CREATED, DONE, RUN, FakeMimir, event


class Seen:
    """A view that records its events; `closed`: its output is closed."""

    def __init__(self, *, closed: bool = False) -> None:
        self.events: list[Event] = []
        self.arrived = asyncio.Event()
        self.was_told_to_stop = False
        self.closed = closed

    def show(self, events: Sequence[Event]) -> None:
        self.events += events
        self.arrived.set()
        if self.closed:
            raise BrokenPipeError

    def show_pausing(self) -> None:
        self.was_told_to_stop = True


STORY = (CREATED, event(EventKind.RUN_STARTED), event(EventKind.RUN_FINISHED, outcome="completed"))


def watched(mimir: FakeMimir, view: Seen, after: int = 0) -> "asyncio.Future[RunResult]":
    async def events(seq: int) -> Sequence[Event]:
        return await mimir.events(RUN, seq)

    work = mimir.drive(RUN, workers=1, apply="auto", limits=None, resumed=False)  # pyright: ignore[reportArgumentType]
    return asyncio.ensure_future(watch(work, events, view, after=after))


async def test_every_event_is_shown_once_and_in_order_before_the_end():
    view = Seen()
    assert await watched(FakeMimir(story=STORY), view) is DONE
    assert [e.seq for e in view.events] == [1, 2, 3]


async def test_view_continues_after_the_last_shown_event():
    view = Seen()
    await watched(FakeMimir(story=STORY), view, after=2)
    assert [e.kind for e in view.events] == [EventKind.RUN_FINISHED]


async def test_cancelled_it_waits_for_the_pause_and_shows_it():
    view = Seen()
    watching = watched(FakeMimir(story=(CREATED,), hangs=True), view)
    await view.arrived.wait()
    watching.cancel()
    with pytest.raises(asyncio.CancelledError):
        await watching
    assert view.was_told_to_stop
    assert view.events[-1].data["outcome"] == "paused"


async def test_closed_view_pauses_the_run():
    mimir = FakeMimir(story=(CREATED,), hangs=True)
    with pytest.raises(BrokenPipeError):
        await watched(mimir, Seen(closed=True))
    paused = await mimir.events(RUN, 1)
    assert [e.data["outcome"] for e in paused] == ["paused"]


async def test_closed_view_does_not_change_a_finished_run():
    async def finished() -> RunResult:
        return DONE

    async def events(seq: int) -> Sequence[Event]:
        return [CREATED][seq:]

    assert await watch(finished(), events, Seen(closed=True)) is DONE


async def test_error_of_the_run_is_raised_by_watch():
    mimir = FakeMimir(raises={"drive": BusyError("running elsewhere")})
    with pytest.raises(BusyError):
        await watched(mimir, Seen())


@pytest.mark.parametrize("error", [StoreError("busy"), Paused("lost", reason="store")])
async def test_failed_read_of_events_does_not_stop_the_run(error):
    looks: list[int] = []
    looked_twice = asyncio.Event()

    async def events(seq: int) -> Sequence[Event]:
        looks.append(seq)
        if len(looks) == 1:
            raise error
        looked_twice.set()
        return [CREATED][seq:]

    async def work() -> RunResult:
        await looked_twice.wait()
        return DONE

    view = Seen()
    assert await watch(work(), events, view) is DONE
    assert [e.seq for e in view.events] == [1]
