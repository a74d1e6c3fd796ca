"""Blocking work that is cancelled: no caller continues before it is done."""

import asyncio
import threading
from pathlib import Path

import pytest

from mimir.workspace.aio import to_thread_shielded
from mimir.workspace.git import checkout as filling
from tests.unit.workspace.conftest import Place


class Slow:
    """Work that runs until it is released, and signals its start."""

    def __init__(self) -> None:
        self.has_begun = asyncio.Event()
        self.may_end = threading.Event()
        self.done = False
        self._loop = asyncio.get_running_loop()

    def __call__(self) -> str:
        self._loop.call_soon_threadsafe(self.has_begun.set)
        assert self.may_end.wait(200)
        self.done = True
        return "made"


async def _turns() -> None:
    """Let the loop turn often enough for a cancelled caller to end, if it does not wait for the work."""
    for _ in range(20):
        await asyncio.sleep(0)


async def test_value_and_error_are_returned():
    assert await to_thread_shielded(int, "7") == 7
    with pytest.raises(ValueError, match="invalid literal"):
        await to_thread_shielded(int, "seven")


async def test_cancelled_caller_waits_for_its_thread():
    slow = Slow()
    waiting = asyncio.ensure_future(to_thread_shielded(slow))
    await slow.has_begun.wait()
    for _ in range(3):
        waiting.cancel()
        await _turns()
        assert not waiting.done()
    slow.may_end.set()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert slow.done


async def test_cancelled_checkout_makes_nothing_after_it_was_cleared_away(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    slow, prepare = Slow(), filling._prepare

    def late(where: Path, index: Path) -> bool:
        slow()
        return prepare(where, index)

    monkeypatch.setattr(filling, "_prepare", late)
    where = tmp_path / "check" / "workspace"
    checkout = asyncio.ensure_future(place.history.checkout(place.base.commit, where))
    await slow.has_begun.wait()
    checkout.cancel()
    await _turns()
    assert not checkout.done()
    slow.may_end.set()
    with pytest.raises(asyncio.CancelledError):
        await checkout
    assert where.exists()  # it was made before the caller, which can remove it now, was notified
