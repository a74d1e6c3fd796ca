import asyncio
import tempfile
from pathlib import Path

import pytest

from mimir.bench.processes import ask
from mimir.errors import UnavailableError


@pytest.fixture(autouse=True)
def room(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def left(room: Path) -> list[str]:
    return [path.name for path in room.iterdir()]


async def test_a_part_that_fails_says_why_and_leaves_nothing_behind(room: Path):
    with pytest.raises(UnavailableError, match="JSONDecodeError"):
        await ask("mimir.bench.schedule.stage", "this is no order")

    assert left(room) == []


async def test_a_part_that_is_not_waited_for_any_more_is_ended_and_cleared_away(room: Path):
    begun = asyncio.Event()
    true = asyncio.create_subprocess_exec

    async def started(*words: object, **given: object) -> object:
        begun.set()
        return await true(*words, **given)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(asyncio, "create_subprocess_exec", started)
        asking = asyncio.ensure_future(ask("mimir.bench.engine.server", ""))
        await begun.wait()
        assert len(left(room)) == 1
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking

    assert left(room) == []
