"""The loop is notified of ended programs: no thread for each, under any use of the loop meanwhile."""

import asyncio
import os
import sys
import threading

import pytest

from mimir.workspace.child_processes import listen
from mimir.workspace.git.git_command import GitCommand

WAITS = (sys.executable, "-I", "-S", "-c", "import sys; sys.exit(len(sys.stdin.read()))")


async def started() -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(*WAITS, stdin=asyncio.subprocess.PIPE)


async def test_end_of_a_program_is_notified_without_a_thread():
    await GitCommand(directory=None).run("version")
    before = threading.active_count()
    programs = [await started() for _ in range(5)]
    assert threading.active_count() == before
    for length, program in enumerate(programs):
        await program.communicate(b"x" * length)
    assert [program.returncode for program in programs] == [0, 1, 2, 3, 4]


async def test_end_of_a_program_is_notified_after_another_loop_was_set():
    listen()
    program = await started()
    asyncio.set_event_loop(asyncio.get_running_loop())
    await program.communicate(b"xyz")
    assert program.returncode == 3


async def test_a_killed_program_has_its_signal():
    listen()
    program = await started()
    program.kill()
    assert await program.wait() == -9


def test_each_loop_is_notified_of_its_own_programs():
    async def one(length: int) -> int | None:
        listen()
        program = await started()
        await program.communicate(b"x" * length)
        return program.returncode

    found: list[int | None] = []
    beside = threading.Thread(target=lambda: found.append(asyncio.run(one(2))))
    beside.start()
    found.append(asyncio.run(one(2)))
    beside.join()
    assert found == [2, 2]


def test_child_watcher_of_the_application_is_kept(monkeypatch: pytest.MonkeyPatch):
    chosen: list[object] = [object()]
    monkeypatch.setattr(asyncio, "get_child_watcher", lambda: chosen[-1], raising=False)
    monkeypatch.setattr(asyncio, "set_child_watcher", chosen.append, raising=False)
    listen()
    assert len(chosen) == 1


if sys.version_info < (3, 12):  # newer ones decide for themselves, as the module says

    async def test_thread_waits_for_a_program_without_a_free_descriptor(
        monkeypatch: pytest.MonkeyPatch,
    ):
        def refused(pid: int) -> int:
            raise OSError("There is no descriptor left.")

        listen()
        monkeypatch.setattr(os, "pidfd_open", refused)
        program = await started()
        await program.communicate(b"xy")
        assert program.returncode == 2
