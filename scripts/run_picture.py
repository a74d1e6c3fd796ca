"""Draw the picture of the README: the live view in the middle of a recorded run, as SVG.

`python -m scripts.run_picture` writes docs/run.svg; equal recordings give equal pictures.
"""

import re
from io import StringIO
from pathlib import Path

from rich.console import Console
from rich.text import Text

from mimir.cli.live.board import begin, event_seconds, fold
from mimir.cli.live.board_drawing import draw
from mimir.cli.symbols import UNICODE
from mimir.domain.event import Event, EventKind
from mimir.domain.tool_call_limit import call_limit
from mimir.recordings.format.recording_file import read_recording

ROOT = Path(__file__).resolve().parents[1]
RECORDING = ROOT / "tests/replay/shipped.jsonl"
PICTURE = ROOT / "docs/run.svg"
WIDTH, HEIGHT = 100, 16


def picture() -> str:
    """Return the view after the last rejection of the recorded run."""
    recording, _ = read_recording(RECORDING, RECORDING.name)
    run = next(one for one in recording.runs.values() if one.plan is not None)
    assert run.plan is not None
    events: list[Event] = sorted(run.events, key=lambda one: one.seq)
    rejected = [n for n, one in enumerate(events) if one.kind is EventKind.TASK_RETRIED]
    shown = events[: rejected[-1] + 1] if rejected else events[: len(events) // 2]
    tasks = [
        {
            "id": task.id,
            "title": task.title,
            "dependencies": task.dependencies,
            "limit": call_limit(task.estimated_tool_calls),
        }
        for task in run.plan.tasks
    ]
    board = fold(begin({"run": run.id, "title": run.plan.title, "tasks": tasks}), shown)
    elapsed = event_seconds(shown[-1]) - event_seconds(shown[0])
    lines = draw(
        board, width=WIDTH, height=HEIGHT, glyphs=UNICODE, now=board.now, elapsed=elapsed, workers=4
    )
    screen = Console(record=True, width=WIDTH, file=StringIO())
    for line in lines:
        screen.print(Text(line.text, style=line.style, no_wrap=True))
    svg = screen.export_svg(title="mimir execute", unique_id="mimir")
    # The fonts would come from another server; the reader's own are good enough.
    return re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)


def main() -> None:
    """Write the picture."""
    PICTURE.write_text(picture(), encoding="utf-8")


if __name__ == "__main__":
    main()
