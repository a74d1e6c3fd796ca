import asyncio
import tempfile
from pathlib import Path

import pytest

from mimir.errors import UnavailableError
from mimir_bench.subprocesses import answering_process, ask


@pytest.fixture(autouse=True)
def room(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def left(room: Path) -> list[str]:
    return [path.name for path in room.iterdir()]


async def test_failed_subprocess_names_its_cause_and_leaves_no_process(room: Path):
    with pytest.raises(UnavailableError, match="JSONDecodeError"):
        await ask("mimir_bench.schedule.schedule_run", "this is no order")

    assert left(room) == []


async def test_a_part_that_is_not_waited_for_any_more_is_ended_and_cleared_away(room: Path):
    begun = asyncio.Event()
    true = asyncio.create_subprocess_exec

    async def started(*words: object, **given: object) -> object:
        begun.set()
        return await true(*words, **given)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(asyncio, "create_subprocess_exec", started)
        asking = asyncio.ensure_future(ask("mimir_bench.engine.model_server", ""))
        await begun.wait()
        assert len(left(room)) == 1
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking

    assert left(room) == []


PART = """
import sys, tempfile
from mimir_bench.subprocesses import questions
for number, line in enumerate(questions()):
    if line == "die\\n":
        sys.exit("I died.")
    print(number, tempfile.gettempdir(), line.strip(), flush=True)
if line == "last\\n":
    sys.exit("I could not end.")
"""


ONCE = """
import sys
from mimir_bench.subprocesses import question
print(question().strip(), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def part(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A part that returns the number of its calls, its temporary folder, and its argument."""
    place = tmp_path_factory.mktemp("parts")
    (place / "a_part.py").write_text(PART)
    (place / "a_part_once.py").write_text(ONCE)
    monkeypatch.setenv("PYTHONPATH", str(place))
    return "a_part"


async def test_subprocess_answers_each_call(room: Path, part: str):
    async with answering_process(part) as asked:
        answers = [(await asked(word)).split() for word in ("one", "two")]
        (place,) = left(room)

    assert answers == [["0", str(room / place), "one"], ["1", str(room / place), "two"]]
    assert left(room) == []


async def test_a_part_that_ends_before_its_answer_is_a_failure(room: Path, part: str):
    async def twice() -> None:
        async with answering_process(part) as asked:
            await asked("one")
            await asked("die")

    with pytest.raises(UnavailableError, match="I died"):
        await twice()

    assert left(room) == []


async def test_a_part_that_fails_after_its_answer_is_a_failure(room: Path, part: str):
    with pytest.raises(UnavailableError, match="I could not end"):
        await ask(part, "last")

    assert left(room) == []


async def test_subprocess_that_waits_after_its_only_call_answers(room: Path, part: str):
    assert await ask(f"{part}_once", "one") == "one\n"
