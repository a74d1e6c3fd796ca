"""The door of the benchmarks: which there are, how they are printed and compared."""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from mimir.bench.faults import benchmark as faults
from mimir.bench.faults import tables as faults_tables
from mimir.bench.result import Result, differences, document
from mimir.errors import UsageError


class Screen(Protocol):
    """Where the person looks; to make text harmless is its business."""

    def say(self, text: str = "") -> None:
        """Print a line of the result."""
        ...

    def note(self, text: str) -> None:
        """Print a line beside the result."""
        ...

    def json(self, value: Mapping[str, object]) -> None:
        """Print one JSON object."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What a person wants measured."""

    names: tuple[str, ...] = ()
    """Benchmarks; empty: all."""
    smoke: bool = False
    """True: a few runs of each."""
    json: bool = False
    compare: Path | None = None
    """An older document; None: nothing is compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Benchmark:
    """One of them."""

    run: Callable[[bool, Callable[[str], None]], Awaitable[Result]]
    """(smoke, say how far it is) → its result."""
    lines: Callable[[Result], Iterator[str]]
    """How it is printed."""


async def _faults(smoke: bool, say: Callable[[str], None]) -> Result:
    return await faults.run(faults.SMOKE if smoke else faults.FULL, say=say)


BENCHMARKS: Mapping[str, Benchmark] = {
    faults.NAME: Benchmark(run=_faults, lines=faults_tables.lines),
}


async def bench(screen: Screen, order: Order) -> int:
    """Measure, print, compare.

    Returns:
        The exit code: 1 if something differs from the older file.

    Raises:
        UsageError: There is no such benchmark, or the older file cannot be read.
        UnavailableError: There is no sandbox on this machine.
    """
    unknown = [name for name in order.names if name not in BENCHMARKS]
    if unknown:
        raise UsageError(
            f"There is no benchmark {unknown[0]!r}.",
            next_step=f"There are: {', '.join(BENCHMARKS)}",
        )
    old = _older(order.compare)
    results: list[Result] = []
    for name in order.names or tuple(BENCHMARKS):
        result = await BENCHMARKS[name].run(order.smoke, screen.note)
        results.append(result)
        if not order.json:
            for line in BENCHMARKS[name].lines(result):
                screen.say(line)
    if order.json:
        screen.json(document(results))
    return _compare(screen, old, results) if old else 0


def _older(path: Path | None) -> str:
    if path is None:
        return ""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"The older file {path} cannot be read: {error}.",
            next_step="Write one with: mimir bench --json > OLD.json",
        ) from error


def _compare(screen: Screen, old: str, results: Sequence[Result]) -> int:
    found = differences(old, results)
    for line in found:
        screen.note(line)
    screen.note(f"{len(found)} differences" if found else "nothing differs")
    return 1 if found else 0
