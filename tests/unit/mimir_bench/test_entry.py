import asyncio
import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from mimir.errors import UsageError
from mimir_bench import entry
from mimir_bench.machine import MachineInfo
from mimir_bench.result import BenchResult


class Screen:
    def __init__(self) -> None:
        self.said: list[str] = []
        self.noted: list[str] = []
        self.objects: list[Mapping[str, object]] = []

    def say(self, text: str = "") -> None:
        self.said.append(text)

    def note(self, text: str) -> None:
        self.noted.append(text)

    def json(self, value: Mapping[str, object]) -> None:
        self.objects.append(value)


def quiet() -> MachineInfo:
    return MachineInfo(cores=2, load=0.1)


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Replace all benchmarks by one; its count is the list's number."""
    held = [7]

    async def run(order: entry.BenchOptions, say: entry.Say, keep: entry.Keep) -> BenchResult:
        return BenchResult(name="stones", seeds="1", rows=({"what": "stones", "count": held[0]},))

    def lines(result: BenchResult) -> Iterator[str]:
        yield f"{result.rows[0]['count']} stones"

    monkeypatch.setattr(entry, "BENCHMARKS", {"stones": entry.Benchmark(run=run, lines=lines)})
    return held


async def test_an_unknown_benchmark_is_refused_and_the_known_ones_are_named():
    with pytest.raises(UsageError, match="Benchmark 'fault' does not exist") as refused:
        await entry.bench(Screen(), entry.BenchOptions(names=("fault",)))
    assert "faults" in refused.value.next_step


async def test_a_result_is_printed_or_written_as_json(counts: list[int]):
    plain, scripted = Screen(), Screen()
    assert await entry.bench(plain, entry.BenchOptions(), quiet) == 0
    assert await entry.bench(scripted, entry.BenchOptions(json=True), quiet) == 0
    assert plain.said == ["7 stones", ""]
    assert (scripted.said, len(scripted.objects)) == ([], 1)


async def test_a_difference_from_an_older_file_ends_with_one(counts: list[int], tmp_path: Path):
    first, old = Screen(), tmp_path / "old.json"
    await entry.bench(first, entry.BenchOptions(json=True), quiet)
    old.write_text(json.dumps(first.objects[0]), encoding="utf-8")

    same = Screen()
    assert await entry.bench(same, entry.BenchOptions(compare=old), quiet) == 0
    assert same.noted == ["no differences"]

    counts[0] = 8
    other = Screen()
    assert await entry.bench(other, entry.BenchOptions(compare=old), quiet) == 1
    assert other.noted == ["stones: stones: count: 7 before, 8 now", "1 difference"]


async def test_an_older_file_that_is_not_there_is_refused_before_anything_runs(tmp_path: Path):
    with pytest.raises(UsageError, match="cannot be read"):
        await entry.bench(Screen(), entry.BenchOptions(compare=tmp_path / "none.json"))


async def test_an_older_file_of_another_kind_is_refused_before_anything_runs(tmp_path: Path):
    old = tmp_path / "old.json"
    old.write_text('{"schema": 1, "benchmarks": [{"name": "engine", "rows": [7]}]}')
    with pytest.raises(UsageError, match="cannot be compared"):
        await entry.bench(Screen(), entry.BenchOptions(compare=old))


async def test_a_document_is_written_and_a_history_grows_by_a_line(
    counts: list[int], tmp_path: Path
):
    document, history = tmp_path / "now.json", tmp_path / "history.jsonl"
    for count in (7, 8):
        counts[0] = count
        await entry.bench(Screen(), entry.BenchOptions(output=document), quiet)
        await entry.bench(Screen(), entry.BenchOptions(output=history), quiet)

    assert json.loads(document.read_text())["benchmarks"][0]["rows"][0]["count"] == 8
    kept = [json.loads(line) for line in history.read_text().splitlines()]
    assert [one["benchmarks"][0]["rows"][0]["count"] for one in kept] == [7, 8]

    # The last line of a history is the one to compare with.
    assert await entry.bench(Screen(), entry.BenchOptions(compare=history), quiet) == 0


async def test_a_file_that_cannot_be_written_is_refused_before_anything_runs(tmp_path: Path):
    with pytest.raises(UsageError, match="cannot be written"):
        await entry.bench(
            Screen(), entry.BenchOptions(output=tmp_path / "none" / "now.json"), quiet
        )


async def test_interrupted_benchmark_keeps_its_finished_rows(
    counts: list[int], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    whole = entry.BENCHMARKS["stones"]

    async def half(order: entry.BenchOptions, say: entry.Say, keep: entry.Keep) -> BenchResult:
        keep(BenchResult(name="half", seeds="1", rows=({"what": "stones", "count": 3},)))
        # A process that is ended at once writes nothing more.
        assert json.loads(file.read_text())["benchmarks"][1]["aside"]["interrupted"]
        raise asyncio.CancelledError

    monkeypatch.setattr(
        entry, "BENCHMARKS", {"stones": whole, "half": entry.Benchmark(run=half, lines=whole.lines)}
    )
    screen, file = Screen(), tmp_path / "now.json"

    with pytest.raises(asyncio.CancelledError):
        await entry.bench(screen, entry.BenchOptions(output=file), quiet)

    assert screen.said == ["7 stones", "", "3 stones", ""]
    first, second = json.loads(file.read_text())["benchmarks"]
    assert "interrupted" not in first["aside"]
    assert second["aside"]["interrupted"]


async def test_busy_machine_is_named_in_the_result(counts: list[int]):
    screen = Screen()
    await entry.bench(screen, entry.BenchOptions(json=True), lambda: MachineInfo(cores=1, load=3.5))

    assert "one core" in screen.noted[0]
    assert "busy (load 3.5 on 1 cores)" in screen.noted[1]
    aside = screen.objects[0]["benchmarks"][0]["aside"]  # type: ignore[index]
    assert aside == {"cores": 1, "load": 3.5}


async def test_a_hash_is_the_same_on_every_machine(counts: list[int]):
    def result(ratio: float) -> BenchResult:
        rows = ({"what": "stones", "count": 1}, {"what": "time", "ratio": ratio})
        return BenchResult(name="stones", seeds="1", rows=rows, tolerances={"ratio": 0.25})

    assert result(1.0).hash == result(2.0).hash
