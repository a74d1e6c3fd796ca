"""Entry point of the benchmarks: the table of benchmarks, output and comparison."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

from mimir.errors import UsageError
from mimir_bench import figures, machine
from mimir_bench.checks import benchmark as checks
from mimir_bench.engine import benchmark as engine
from mimir_bench.faults import benchmark as faults
from mimir_bench.faults import tables as faults_tables
from mimir_bench.multi import benchmark as multi
from mimir_bench.result import BenchResult, Older, differences, document, older
from mimir_bench.scale import benchmark as scale
from mimir_bench.schedule import benchmark as schedule
from mimir_bench.size import Size

LINES = ".jsonl"
"""Suffix of a history file: each result is one more line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchScreen:
    """Output functions of the caller, which make text harmless."""

    say: Callable[[str], None]
    """Prints a line of the result."""
    note: Callable[[str], None]
    """Prints a line of progress."""
    json: Callable[[Mapping[str, object]], None]
    """Prints one JSON object."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchOptions:
    """Options of `mimir bench`."""

    names: tuple[str, ...] = ()
    """Benchmarks; empty: all but those of `ONLY_BY_NAME`, with few runs of planted faults."""
    size: Size = "usual"
    store: str = ""
    """URI of a second store to measure; empty: none."""
    json: bool = False
    output: Path | None = None
    """File for the results; None: none."""
    compare: Path | None = None
    """File of older results; None: no comparison."""


Say = Callable[[str], None]
Lines = Callable[[BenchResult], Iterator[str]]
Keep = Callable[[BenchResult], None]
"""Receives each intermediate result of a benchmark; `Say` receives its progress lines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Benchmark:
    """A benchmark and its printer."""

    run: Callable[[BenchOptions, Say, Keep], Awaitable[BenchResult]]
    lines: Lines
    """Prints a result."""


async def _faults(order: BenchOptions, say: Say, keep: Keep) -> BenchResult:
    # All seeds take hours of CPU time: they run only if this benchmark is asked for by name.
    is_all = order.size != "smoke" and faults.NAME in order.names
    return await faults.run(faults.FULL if is_all else faults.SMOKE, say=say, keep=keep)


async def _scale(order: BenchOptions, say: Say, keep: Keep) -> BenchResult:
    return await scale.run(order.size, store=order.store, say=say, keep=keep)


def _simple_benchmark(run: Callable[..., Awaitable[BenchResult]], lines: Lines) -> Benchmark:
    """Return a benchmark whose only option is its size."""
    return Benchmark(run=lambda order, say, keep: run(order.size, say=say, keep=keep), lines=lines)


BENCHMARKS: Mapping[str, Benchmark] = {
    # In the order of a run without names: short ones first.
    multi.NAME: _simple_benchmark(multi.run, multi.lines),
    scale.NAME: Benchmark(run=_scale, lines=partial(figures.lines, title=scale.TITLE)),
    schedule.NAME: _simple_benchmark(schedule.run, partial(figures.lines, title=schedule.TITLE)),
    engine.NAME: _simple_benchmark(engine.run, partial(figures.lines, title=engine.TITLE)),
    faults.NAME: Benchmark(run=_faults, lines=faults_tables.lines),
    checks.NAME: _simple_benchmark(checks.run, partial(figures.lines, title=checks.TITLE)),
}
ONLY_BY_NAME = (checks.NAME,)
"""Benchmarks that a run without names leaves out."""


async def bench(
    screen: BenchScreen, order: BenchOptions, look: Callable[[], machine.MachineInfo] = machine.look
) -> int:
    """Measure, print, write and compare; an interrupt keeps the finished results.

    Args:
        screen: Output that makes text harmless.
        order: Options.
        look: Reads the facts of the machine.

    Returns:
        The exit code: 1 if a figure differs from the older file.

    Raises:
        UsageError: A benchmark is unknown, or a file cannot be read or written.
        UnavailableError: The machine has no sandbox.
    """
    unknown = [name for name in order.names if name not in BENCHMARKS]
    if unknown:
        raise UsageError(
            f"Benchmark {unknown[0]!r} does not exist.",
            next_step=f"Use one of: {', '.join(BENCHMARKS)}",
        )
    # Every input is read before the first measurement: an error after hours loses them.
    old = _older(order.compare)
    _must_be_writable(order.output)
    here = look()
    for warning in here.warnings():
        screen.note(f"note: {warning}")
    results: list[BenchResult] = []
    for name in order.names or [name for name in BENCHMARKS if name not in ONLY_BY_NAME]:
        await _measure(screen, order, name, here, results)
    _finish(screen, order, results)
    return 0 if old is None else _compare(screen, old, results)


async def _measure(
    screen: BenchScreen,
    order: BenchOptions,
    name: str,
    here: machine.MachineInfo,
    results: list[BenchResult],
) -> None:
    """Run and print one benchmark; if interrupted, also write all results so far."""
    kept: list[BenchResult] = []

    def mark(result: BenchResult) -> BenchResult:
        aside = {**result.aside, "interrupted": "the result is incomplete"}
        return replace(result, aside={**aside, **asdict(here)})

    def keep(result: BenchResult) -> None:
        kept.append(result)
        # Hours of results must survive a process that is ended at once.
        if order.output is not None and not _is_history(order.output):
            _write(order.output, [*results, mark(result)])

    def done(result: BenchResult) -> None:
        results.append(replace(result, aside={**result.aside, **asdict(here)}))
        if not order.json:
            for line in (*BENCHMARKS[name].lines(results[-1]), ""):
                screen.say(line)

    try:
        done(await BENCHMARKS[name].run(order, screen.note, keep))
    except asyncio.CancelledError:
        # Only the last intermediate result: each one contains those before it.
        for result in kept[-1:]:
            done(mark(result))
        _finish(screen, order, results)
        raise


def _finish(screen: BenchScreen, order: BenchOptions, results: Sequence[BenchResult]) -> None:
    if order.json:
        screen.json(document(results))
    if order.output is not None and results:
        _write(order.output, results)
        screen.note(f"written: {order.output}")


def _write(path: Path, results: Sequence[BenchResult]) -> None:
    # A history grows by one line; any other file is replaced as a whole.
    with path.open("a" if _is_history(path) else "w", encoding="utf-8") as file:
        file.write(json.dumps(document(results), indent=None if _is_history(path) else 1) + "\n")


def _is_history(path: Path) -> bool:
    return path.suffix == LINES


def _must_be_writable(path: Path | None) -> None:
    """Raise if the output file cannot be written, before minutes of work."""
    if path is None:
        return
    try:
        # "a" creates the file but changes no content of an existing one.
        path.open("a").close()
    except OSError as error:
        raise UsageError(f"The file {path} cannot be written: {error.strerror}.") from error


def _older(path: Path | None) -> Older | None:
    """Read the older file, of a history its last line, before minutes of work."""
    if path is None:
        return None
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"The older file {path} cannot be read: {error}.",
            next_step="Create it: mimir bench --output OLD.json",
        ) from error
    rows = text.strip().splitlines()
    # The last line of a history is its newest result.
    return older(rows[-1] if _is_history(path) and rows else text)


def _compare(screen: BenchScreen, old: Older, results: Sequence[BenchResult]) -> int:
    found = differences(old, results)
    for line in found:
        screen.note(line)
    differ = f"{len(found)} difference{'s' if len(found) > 1 else ''}"
    screen.note(differ if found else "no differences")
    return 1 if found else 0
