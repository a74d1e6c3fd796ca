from pathlib import Path

from mimir.workspace.process_locks import ProcessLocks
from mimir.workspace.stale_cleanup import remove_stale_files


def left_behind(work: Path) -> list[Path]:
    rooms = ["checks/check-1", "probe-7", ".history.git-7-1", "history.git/mimir/scratch/merge-7-2"]
    for room in rooms:
        (work / room / "deep").mkdir(parents=True)
        (work / room / "deep" / "file").write_text("x", encoding="utf-8")
    locks = ["mimir/scratch/index-7-3.lock", "HEAD.lock", "refs/heads/mimir/run-1.lock"]
    (work / "history.git/refs/heads/mimir").mkdir(parents=True)
    for lock in locks:
        (work / "history.git" / lock).touch()
    return [*(work / room for room in rooms), *(work / "history.git" / lock for lock in locks)]


def test_only_the_remains_of_killed_processes_are_removed(tmp_path: Path):
    rooms = left_behind(tmp_path)
    (tmp_path / "history.git/refs/heads/mimir/run-1").touch()
    kept = tmp_path / "run-1" / "a" / "1.1"
    kept.mkdir(parents=True)
    assert remove_stale_files(tmp_path, lambda: True) == 7
    assert [room for room in rooms if room.exists()] == []
    assert kept.is_dir()
    assert (tmp_path / "history.git/refs/heads/mimir/run-1").exists()
    assert remove_stale_files(tmp_path, lambda: True) == 0


def test_nothing_is_swept_while_another_process_lives(tmp_path: Path):
    rooms = left_behind(tmp_path)
    assert remove_stale_files(tmp_path, lambda: False) == 0
    assert all(room.exists() for room in rooms)


def test_directory_of_a_new_process_is_not_removed(tmp_path: Path):
    left_behind(tmp_path)
    new = tmp_path / "checks" / "check-new"

    def alone() -> bool:
        new.mkdir()
        return True

    remove_stale_files(tmp_path, alone)
    assert new.is_dir()


def test_process_is_alone_when_all_others_are_dead(tmp_path: Path):
    mine, other = ProcessLocks(tmp_path), ProcessLocks(tmp_path)
    mine.live("me")
    assert mine.is_alone()
    other.live("other")
    assert not mine.is_alone()
    other.leave("other", holds=True)
    assert mine.is_alone()
