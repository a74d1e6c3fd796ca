"""A recording of an earlier version replays without a difference: the text of its report is its own."""

from pathlib import Path
from typing import cast

import pytest

from mimir.bootstrap import app
from mimir.cli.output.recordings import replay_lines
from mimir.recordings.engine_replay.differences import ReplayResult
from tests.support.recorded_runs import Line, lines, loaded, write

EARLIER = Path(__file__).with_name("recording-0.1.0.jsonl")
VERSIONS = ("0.1.0", "0.2.0")
NOTE = "Requests and report texts are not compared: mimir {} recorded the run."


async def replay(file: Path, place: Path) -> ReplayResult:
    (one,) = await app.replay(place, loaded(place), str(file))
    return one


@pytest.mark.parametrize("version", VERSIONS)
async def test_recording_of_an_earlier_version_replays_without_a_difference(
    tmp_path: Path, version: str
) -> None:
    one = await replay(EARLIER.with_name(f"recording-{version}.jsonl"), tmp_path)
    assert one.differences == ()
    head, note, equal, seal = replay_lines(one, diff=False)
    assert head.startswith(f"{one.run}: completed; ")
    assert note == NOTE.format(version)
    assert equal == f"equal bytes: plan, {one.verdicts} verdicts, {one.evidence} evidence records"
    assert seal == f"seal: {one.seal}"


async def test_report_that_this_version_claims_to_have_written_is_compared(tmp_path: Path) -> None:
    content = lines(EARLIER)
    del content[0]["engine"]
    one = await replay(write(tmp_path / "run.jsonl", content, stamp=True), tmp_path)
    assert one.older_engine == ""
    assert "report" in {d.where.partition(",")[0] for d in one.differences}


@pytest.mark.parametrize("name", ["verdicts", "evidence"])
async def test_changed_fact_of_an_earlier_version_is_found(tmp_path: Path, name: str) -> None:
    content = lines(EARLIER)
    end = next(line for line in content if line.get("kind") == "end")
    node = cast("list[Line]", end[name])[0]
    changed = "score" if name == "verdicts" else "hash"
    assert changed in node
    node[changed] = "x"
    one = await replay(write(tmp_path / "run.jsonl", content, stamp=True), tmp_path)
    (found,) = one.differences
    assert found.where == f"{name.removesuffix('s')} {node['id']}"
    assert found.detail.startswith(f"{changed}: ")
    assert "recorded 'x', replayed '" in found.detail
    assert NOTE.format("0.1.0") in replay_lines(one, diff=False)
