"""Recordings for the tests, and replays of long runs with figures.

`python -m scripts.recordings ship` records the run that the tests replay. `python -m
scripts.recordings many` records the demo and a run of 100 tasks with retries, breaker trips and two
kills, and replays each twenty times.
"""

import asyncio
import os
import socket
import sys
import tempfile
from pathlib import Path

from tests.support import shipped_recording
from tests.support.projects import make_project
from tests.support.recorded_runs import record


def ship() -> None:
    """Record the shipped run, without any data of this machine."""
    socket.gethostname = lambda: "recorder"
    made, parts = shipped_recording.run()
    with tempfile.TemporaryDirectory() as name:
        project = make_project(Path(name) / "project", shipped_recording.README)
        os.chdir(name)
        file = Path(name) / "shipped.jsonl"
        ending = asyncio.run(
            record(project, made, parts, file, workers=1, play=Path("shipped.play.yaml"))
        )
        assert ending.exit_code == 0, ending
        shipped_recording.FILE.write_bytes(file.read_bytes())
    print(f"{shipped_recording.FILE}: {shipped_recording.FILE.stat().st_size} bytes")


def main() -> None:
    """Run the requested command."""
    match sys.argv[1:]:
        case ["ship"]:
            ship()
        case ["many", *rest]:
            from tests.support import many_replays

            many_replays.main(rest)
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()
