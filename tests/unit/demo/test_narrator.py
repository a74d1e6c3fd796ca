"""The narrator prints the readable events; the run reports a failure of the store."""

import asyncio

import pytest

from mimir.demo.narrator import Narrator
from mimir.errors import Paused


class Lost:
    """A store that is lost for good."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()

    async def events(self, run: str, after: int):
        assert (run, after) == ("run-1", 0)
        self.asked.set()
        raise Paused("The store was lost.", reason="store")


async def test_lost_store_is_reported_by_the_run_alone():
    lost = Lost()

    async def work() -> None:
        await lost.asked.wait()
        raise Paused("The work has lost its store.", reason="store")

    with pytest.raises(Paused, match="The work has lost"):
        await Narrator(None, lost).watch("run-1", work())


async def test_run_continues_while_the_narrator_has_no_store():
    lost = Lost()

    async def work() -> str:
        await lost.asked.wait()
        return "done"

    assert await Narrator(None, lost).watch("run-1", work()) == "done"
