"""Signals in this very process, with an end that is only noted."""

import asyncio
import logging
import os
import signal
import threading
from collections.abc import Callable

import pytest

from mimir.cli.signals import SignalHandler


class Noted:
    """Exit codes that would have ended the process."""

    def __init__(self) -> None:
        self.codes: list[int] = []
        self.times_tidied = 0

    def leave(self, code: int) -> None:
        self.codes.append(code)

    def tidy(self) -> None:
        self.times_tidied += 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_first_signal_cancels_the_work_and_waits_for_its_end(
    number: signal.Signals, request: pytest.FixtureRequest
):
    # The tests themselves may have been started by nohup.
    inherited = signal.signal(number, signal.SIG_DFL)
    request.addfinalizer(lambda: signal.signal(number, inherited))
    noted, rested = Noted(), list[str]()

    async def work() -> None:
        os.kill(os.getpid(), number)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            rested.append("paused")
            raise

    before = signal.getsignal(number)
    with pytest.raises(asyncio.CancelledError):
        SignalHandler(noted.tidy, noted.leave).run(work())
    assert rested == ["paused"]
    assert noted.codes == []
    assert signal.getsignal(number) == before


@pytest.mark.parametrize(("number", "most"), [(signal.SIGINT, 2), (signal.SIGTERM, 5)])
def test_first_signal_has_a_limit_of_two_or_five_seconds(
    number: signal.Signals, most: float, monkeypatch: pytest.MonkeyPatch
):
    given: list[float] = []

    class Timer(threading.Timer):
        def __init__(self, interval: float, function: Callable[[], object]) -> None:
            given.append(interval)
            super().__init__(interval, function)

    monkeypatch.setattr(threading, "Timer", Timer)

    async def work() -> None:
        os.kill(os.getpid(), number)
        await asyncio.Event().wait()

    noted = Noted()
    with pytest.raises(asyncio.CancelledError):
        SignalHandler(noted.tidy, noted.leave).run(work())
    assert given == [pytest.approx(most, abs=0.5)]
    assert given[0] < most


def test_the_second_signal_ends_at_once_and_leaves_the_terminal_in_order():
    noted = Noted()

    async def work() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.Event().wait()

    with pytest.raises(asyncio.CancelledError):
        SignalHandler(noted.tidy, noted.leave).run(work())
    assert noted.codes == [130]
    assert noted.times_tidied == 1


def test_signal_during_a_busy_loop_is_handled():
    noted, steps = Noted(), list[str]()

    async def work() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        steps.append("busy until here")
        await asyncio.sleep(0)
        steps.append("never reached")

    with pytest.raises(asyncio.CancelledError):
        SignalHandler(noted.tidy, noted.leave).run(work())
    assert steps == ["busy until here"]


def test_result_is_returned_without_a_signal():
    async def work() -> str:
        return "done"

    assert SignalHandler(lambda: None).run(work()) == "done"


def test_ignored_hangup_stays_ignored():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)

    async def work() -> str:
        os.kill(os.getpid(), signal.SIGHUP)
        await asyncio.sleep(0)
        return "done"

    try:
        assert SignalHandler(lambda: None).run(work()) == "done"
    finally:
        signal.signal(signal.SIGHUP, before)


def test_warning_about_an_ended_child_is_not_logged(caplog: pytest.LogCaptureFixture):
    noted = Noted()

    async def work() -> None:
        said = logging.getLogger("asyncio")
        said.warning("Unknown child process pid %d, will report returncode 255", 4711)
        said.warning("Executing took %d seconds", 3)

    SignalHandler(noted.tidy, noted.leave).run(work())

    assert caplog.messages == ["Executing took 3 seconds"]
