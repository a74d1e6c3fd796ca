"""Outputs of a running run: a board on a terminal, lines in a pipe, JSON for a script."""

import errno
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console as RichConsole
from rich.console import Group
from rich.live import Live
from rich.text import Text

from mimir.cli.console import Console, clean_line
from mimir.cli.layout import shorten
from mimir.cli.live.board import RunBoard, event_seconds, fold
from mimir.cli.live.board_drawing import DrawnLine, draw
from mimir.cli.live.cells import clock
from mimir.cli.live.line_output import as_json, as_line
from mimir.domain.event import Event

FRAMES_PER_SECOND = 4
PATIENCE_SECONDS = 0.4
"""A shorter wait shows no clock."""


class LiveOutput(Protocol):
    """View of a run. `show` receives each event once, in order."""

    def show(self, events: Sequence[Event]) -> None:
        """Show new events."""
        ...

    def show_pausing(self) -> None:
        """Show that the run is being paused."""
        ...


class JsonOutput:
    """One JSON object a line, and nothing else."""

    def __init__(self, console: Console, *, is_read_only: bool = False) -> None:
        self._console = console
        self._is_read_only = is_read_only

    def show(self, events: Sequence[Event]) -> None:
        """Print each event."""
        for event in events:
            self._console.json(as_json(event, is_read_only=self._is_read_only))

    def show_pausing(self) -> None:
        """Print nothing: the events of the run report it."""


class LineOutput:
    """One line of text an event."""

    def __init__(self, console: Console, *, is_read_only: bool = False) -> None:
        self._console = console
        self._is_read_only = is_read_only
        self._began: float | None = None

    def show(self, events: Sequence[Event]) -> None:
        """Print each event as a line."""
        for event in events:
            # Times are relative to the first event that is shown.
            at = event_seconds(event)
            self._began = at if self._began is None else self._began
            line = as_line(event, at - self._began, is_read_only=self._is_read_only)
            self._console.say(line)

    def show_pausing(self) -> None:
        """Print that the run is being paused."""
        self._console.note("Pausing: no new work is started. A second Ctrl-C ends at once.")


class TerminalOutput:
    """The board on a terminal."""

    def __init__(self, console: Console, board: RunBoard, *, workers: int) -> None:
        self._console = console
        self._workers = workers
        self._started = time.monotonic()
        # One tuple, replaced as a whole: the thread that draws reads it without a lock.
        self._state = (board, self._started)
        self._is_stopping = False
        self._prompt: Sequence[str] = ()

    @property
    def run(self) -> str:
        """Id of the run."""
        return self._state[0].run

    @property
    def asking(self) -> Sequence[str]:
        """Questions that tasks wait for, in the order of the plan."""
        return [row.question for row in self._state[0].rows.values() if row.is_asking]

    def show_prompt(self, lines: Sequence[str]) -> None:
        """Show a question under the board, the line that is typed at its end; empty: none."""
        self._prompt = tuple(lines)

    def show(self, events: Sequence[Event]) -> None:
        """Fold new events into the board."""
        board, _ = self._state
        self._state = (fold(board, events), time.monotonic())

    def show_pausing(self) -> None:
        """Add a line to the board."""
        self._is_stopping = True

    def frame(self, width: int, height: int) -> list[DrawnLine]:
        """Return the board as it is now."""
        board, at = self._state
        # Its end is the line that is typed.
        prompt = self._prompt[-(height // 2) :]
        lines = draw(
            board,
            width=width,
            # One line is reserved for the note of a pause.
            height=height - 1 - len(prompt),
            glyphs=self._console.glyphs,
            now=board.now + (time.monotonic() - at),
            elapsed=time.monotonic() - self._started,
            workers=self._workers,
        )
        lines += [DrawnLine(text=shorten(one, width, self._console.glyphs.cut)) for one in prompt]
        # The outcome replaces the note as soon as the run is paused.
        if self._is_stopping and not board.outcome:
            text = shorten("Pausing; Ctrl-C again ends at once.", width, self._console.glyphs.cut)
            lines.append(DrawnLine(text=text, style="bold"))
        return lines


class _Screen(RichConsole):
    """A screen on which a closed terminal is an error like a closed pipe."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError(errno.EPIPE, "The output was closed")


Frame = Callable[[int, int], Sequence[DrawnLine]]


def can_draw(console: Console) -> bool:
    """Return whether the board can be drawn: on a terminal that can move its cursor."""
    return console.is_terminal and not RichConsole(file=console.out).is_dumb_terminal


@contextmanager
def redraw_while(console: Console, frame: Frame, *, color: bool, keep: bool) -> Generator[None]:
    """Redraw `frame(width, height)` while the block runs; with `keep` the last frame stays."""
    screen = _Screen(  # nothing in a text is markup
        file=console.out, no_color=not color, markup=False, emoji=False, highlight=False
    )

    def render() -> Group:
        lines = frame(screen.width, screen.height)
        return Group(
            *(Text(line.text, style=line.style, no_wrap=True, overflow="crop") for line in lines)
        )

    with (
        console.hidden_cursor(),
        Live(
            console=screen,
            get_renderable=render,
            refresh_per_second=FRAMES_PER_SECOND,
            transient=not keep,
            redirect_stdout=False,
            redirect_stderr=False,
            vertical_overflow="crop",
        ),
    ):
        yield


@contextmanager
def show_wait_clock(
    console: Console, label: str, step: Callable[[], str] = str, *, color: bool
) -> Generator[None]:
    """Show a clock and a step on a terminal while the block runs; a short wait shows nothing."""
    if not can_draw(console):
        yield
        return
    started = time.monotonic()

    def frame(width: int, height: int) -> list[DrawnLine]:
        seconds = time.monotonic() - started
        parts = [f"{label} {clock(seconds)}", step()]
        line = clean_line(f" {console.glyphs.dot} ".join(filter(None, parts)))
        return (
            [DrawnLine(text=shorten(line, width, console.glyphs.cut), style="dim")]
            if seconds > PATIENCE_SECONDS
            else []
        )

    with redraw_while(console, frame, color=color, keep=False):
        yield
