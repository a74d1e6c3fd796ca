"""Files of started commands in the state directory."""

import os
from pathlib import Path

from mimir.mcp_server.project_access import DAY_SECONDS, KEPT_LOGS, ProjectAccess


def test_old_output_of_commands_is_removed_and_new_output_stays(tmp_path: Path):
    access = ProjectAccess(tmp_path)
    newest = access.write_text("new")
    others = [newest.with_name(f"mcp-{number}.log") for number in range(KEPT_LOGS + 5)]
    now = newest.stat().st_mtime
    for number, path in enumerate(others):
        path.touch()
        # The last ten are of the last day.
        age = 60 if number >= KEPT_LOGS - 5 else DAY_SECONDS + 60
        os.utime(path, (now - age, now - age - number / 1000))

    written = access.write_text("newer")

    left = set(newest.parent.iterdir())
    assert len(left) == KEPT_LOGS
    assert {newest, written, *others[-10:]} <= left
