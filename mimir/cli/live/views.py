"""Three ways to watch a run: drawn on a terminal, told line by line in a pipe, handed to a script as JSON."""

import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console as RichConsole
from rich.console import Group
from rich.live import Live
from rich.text import Text

from mimir.cli.console import Console, clean_line
from mimir.cli.live.board import RunBoard, fold
from mimir.cli.live.board_drawing import DrawnLine, draw
from mimir.cli.live.line_output import as_json, as_line, clock
from mimir.domain.clock import moment
from mimir.domain.event import Event

FRAMES_PER_SECOND = 4
PATIENCE_SECONDS = 0.4
"""What takes no longer is not announced."""


class LiveOutput(Protocol):
    """Where a run is watched. `show` gets each event once, in order."""

    def show(self, events: Sequence[Event]) -> None:
        """Take in what happened."""
        ...

    def show_pausing(self) -> None:
        """Say that the run is being paused."""
        ...


class JsonOutput:
    """Events for scripts: one JSON object a line, and nothing else."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def show(self, events: Sequence[Event]) -> None:
        """Print each event."""
        for event in events:
            self._console.json(as_json(event))

    def show_pausing(self) -> None:
        """Say nothing: the run's own events tell."""


class LineOutput:
    """Events for people who read a log."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._began: float | None = None

    def show(self, events: Sequence[Event]) -> None:
        """Print each event as a line."""
        for event in events:
            at = _seconds(event)
            self._began = at if self._began is None else self._began
            self._console.say(as_line(event, at - self._began))

    def show_pausing(self) -> None:
        """Say that the run is being paused."""
        self._console.note("Stopping: no new work is begun. Once more ends at once.")


class TerminalOutput:
    """The board on a terminal; `frame` is drawn by a thread of its own, so it reads one finished board and nothing else."""

    def __init__(
        self, console: Console, board: RunBoard, *, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._console = console
        self._now = now
        self._started = now()
        self._state = (board, now())
        self._is_stopping = False

    def show(self, events: Sequence[Event]) -> None:
        """Fold what happened into the board."""
        board, _ = self._state
        self._state = (fold(board, events), self._now())

    def show_pausing(self) -> None:
        """Say that the run is being paused."""
        self._is_stopping = True

    def frame(self, width: int, height: int) -> list[DrawnLine]:
        """Return the picture of this moment."""
        board, at = self._state
        elapsed = self._now() - self._started
        lines = draw(
            board,
            width=width,
            height=height - 1,
            glyphs=self._console.glyphs,
            now=board.now + (self._now() - at),
            elapsed=elapsed,
        )
        if self._is_stopping and not board.outcome:
            lines.append(DrawnLine(text="Stopping; once more ends at once."[:width], style="bold"))
        return lines


Frame = Callable[[int, int], Sequence[DrawnLine]]


def rich_console(console: Console, *, color: bool) -> RichConsole:
    """Return rich's console on the same stream: nothing in a text is markup."""
    return RichConsole(
        file=console.out,
        no_color=not color,
        markup=False,
        emoji=False,
        highlight=False,
        soft_wrap=False,
    )


def can_draw(console: Console) -> bool:
    """True if pictures may be drawn: somebody looks, and the cursor can be moved."""
    return console.is_terminal and not RichConsole(file=console.out).is_dumb_terminal


@contextmanager
def redraw_while(console: Console, frame: Frame, *, color: bool, keep: bool) -> Generator[None]:
    """Draw `frame(width, height)` again and again while the block runs; `keep`: the last one stays."""
    screen = rich_console(console, color=color)

    def picture() -> Group:
        lines = frame(screen.width, screen.height)
        return Group(
            *(Text(line.text, style=line.style, no_wrap=True, overflow="crop") for line in lines)
        )

    with (
        console.hidden_cursor(),
        Live(
            console=screen,
            get_renderable=picture,
            refresh_per_second=FRAMES_PER_SECOND,
            transient=not keep,
            redirect_stdout=False,
            redirect_stderr=False,
            vertical_overflow="crop",
        ),
    ):
        yield


@contextmanager
def show_wait_clock(console: Console, what: str, *, color: bool) -> Generator[None]:
    """Show a clock on a terminal while something takes its time; what is done at once shows nothing."""
    if not can_draw(console):
        yield
        return
    started = time.monotonic()

    def frame(width: int, height: int) -> list[DrawnLine]:
        seconds = time.monotonic() - started
        said = f"{clean_line(what)} {clock(seconds)}"
        return [DrawnLine(text=said[:width], style="dim")] if seconds > PATIENCE_SECONDS else []

    with redraw_while(console, frame, color=color, keep=False):
        yield


def _seconds(event: Event) -> float:
    try:
        return moment(event.at).timestamp()
    except ValueError:
        return 0.0
