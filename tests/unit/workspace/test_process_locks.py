import subprocess
import sys
from pathlib import Path

from mimir.workspace.process_locks import ProcessLocks

HOLD = (
    "import sys; from pathlib import Path; from mimir.workspace.process_locks import ProcessLocks;"
    "o = ProcessLocks(Path(sys.argv[1])); o.live('other'); print('held', flush=True); sys.stdin.read()"
)


def test_owner_lives_as_long_as_its_process_and_is_dead_after_a_kill(tmp_path: Path):
    mine = ProcessLocks(tmp_path)
    mine.live("me")
    other = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        assert mine.find_dead() == frozenset()
        other.kill()
    assert mine.find_dead() == {"other"}
    assert "me" not in mine.find_dead()


def test_owner_that_leaves_is_forgotten(tmp_path: Path):
    owners = ProcessLocks(tmp_path)
    owners.live("me")
    owners.leave("me")
    assert ProcessLocks(tmp_path).find_dead() == frozenset()


def test_process_that_left_with_leases_counts_as_dead(tmp_path: Path):
    owners = ProcessLocks(tmp_path)
    owners.live("me")
    owners.leave("me", holds=True)
    assert owners.find_dead() == {"me"}
