"""A changed recording, hashes included, is refused with a message or replayed with differences; it never breaks the replay."""

import copy
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast

import pytest

from mimir.bootstrap import app
from mimir.errors import MimirError, PlanError
from mimir.recordings.engine_replay.differences import ReplayResult
from mimir.recordings.format.recording_file import read_recording
from mimir.recordings.model_replay.recorded_models import RecordedModels
from mimir.recordings.server.recording_server import AnswerIndex
from tests.support.recorded_runs import Line, lines, loaded, write

SHIPPED = Path(__file__).with_name("shipped.jsonl")
ODD: tuple[object, ...] = (
    None, True, -1, 2**70, 1.5, "", "\0", "x" * 5000, "../up", [], {}, [None], {"": ""}, "2026-13-01T00:00:00.000000Z",
)  # fmt: skip
MUTANTS = 80


async def replay(place: Path, content: list[Line]) -> ReplayResult:
    write(place / "odd.jsonl", content, stamp=True)
    (one,) = await app.replay(place, loaded(place), "odd.jsonl")
    return one


def of(content: list[Line], kind: str, **wanted: object) -> Line:
    """Return the first line of a kind that holds this."""
    return next(
        line
        for line in content
        if line.get("kind") == kind and all(line.get(k) == v for k, v in wanted.items())
    )


def answered_by_git(content: list[Line], question: str) -> Line:
    return next(
        line
        for line in content
        if line.get("kind") == "git" and cast("list[object]", line["ask"])[0] == question
    )


async def test_shipped_recording_is_the_one_to_be_changed(tmp_path: Path) -> None:
    assert (await replay(tmp_path, lines(SHIPPED))).differences == ()


@pytest.mark.parametrize("answer", ["x", 7, {"text": "x"}, {"bytes": -1}, {"bytes": 2**70}])
async def test_file_that_git_cannot_return_is_a_difference(tmp_path: Path, answer: object) -> None:
    content = lines(SHIPPED)
    answered_by_git(content, "file")["answer"] = answer
    found = (await replay(tmp_path, content)).differences
    assert any("Git's answer" in one.detail for one in found)


async def test_unknown_status_is_a_difference(tmp_path: Path) -> None:
    content = lines(SHIPPED)
    moved = next(
        line
        for line in content
        if line.get("kind") == "event" and "to" in cast("Line", line["data"]) and line["task"]
    )
    cast("Line", moved["data"])["to"] = "asleep"
    assert (await replay(tmp_path, content)).differences


async def test_run_whose_roles_have_no_preamble_is_refused(tmp_path: Path) -> None:
    content = lines(SHIPPED)
    texts = of(content, "text", name="preambles")
    texts["text"] = [row for row in cast("list[list[str]]", texts["text"]) if row[0] != "qc"]
    with pytest.raises(PlanError, match="the preamble of 'Reviewer of small files' is missing"):
        await replay(tmp_path, content)


async def test_settings_of_another_form_are_ignored_by_replay(tmp_path: Path) -> None:
    content = lines(SHIPPED)
    pinned = cast("Line", of(content, "run")["pinned"])
    cast("Line", pinned["settingsJson"])["run"] = "fast"
    await replay(tmp_path, content)


@pytest.mark.parametrize("models", ["first", {"worker": 3}, ["worker"], None])
async def test_models_of_another_form_are_refused_by_their_line(
    tmp_path: Path, models: object
) -> None:
    content = lines(SHIPPED)
    event = of(content, "event")
    cast("Line", event["data"])["models"] = models
    with pytest.raises(PlanError) as error:
        await replay(tmp_path, content)
    assert error.value.at is not None
    assert error.value.at.line == content.index(event) + 1


def _places(value: object, above: tuple[object, ...] = ()) -> Iterator[tuple[object, ...]]:
    """Yield the way to everything that a value holds."""
    held = cast("dict[object, object] | list[object]", value)
    if isinstance(value, dict | list):
        for key in list(held) if isinstance(held, dict) else range(len(held)):
            way = (*above, key)
            yield way
            yield from _places(held[key], way)  # type: ignore[index]


def _mutate(line: Line, chance: random.Random) -> None:
    way = chance.choice([way for way in _places(line) if way != ("sha256",)])
    held: object = line
    for key in way[:-1]:
        held = cast("dict[object, object]", held)[key]
    if isinstance(held, dict) and chance.random() < 0.3:
        del held[way[-1]]
    else:
        cast("dict[object, object]", held)[way[-1]] = copy.deepcopy(chance.choice(ODD))


def _changed(chance: random.Random) -> list[Line]:
    """Return the shipped recording with one to three things dropped, doubled, in another place or of another form."""
    content = lines(SHIPPED)
    moves: list[Callable[[], object]] = [
        lambda: content.pop(chance.randrange(1, len(content))),
        lambda: content.insert(chance.randrange(1, len(content)), chance.choice(content)),
        *[lambda: _mutate(content[chance.randrange(1, len(content))], chance)] * 8,
    ]
    for _ in range(chance.randint(1, 3)):
        chance.choice(moves)()
    return content


async def _no_drift(*_: object) -> None:
    """Discard the message."""


@pytest.mark.parametrize("seed", range(MUTANTS))
async def test_changed_recording_is_refused_or_differs(tmp_path: Path, seed: int) -> None:
    content = _changed(random.Random(seed))
    try:
        await replay(tmp_path, content)
        tape, _ = read_recording(tmp_path / "odd.jsonl", "odd.jsonl")
    except MimirError:
        return  # in words: anything else would be ours
    # The other two that answer from it.
    RecordedModels(tape, "odd.jsonl", on_drift=_no_drift).usage()
    shelf = AnswerIndex.of(tape)
    for one in shelf.calls:
        shelf.why_not(one.question, one.lane)
