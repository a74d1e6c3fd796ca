"""Ends of a command in the sandbox, its limits, and the kept part of its output."""

import asyncio
import hashlib
import os
import signal
from pathlib import Path

import pytest

from mimir.workspace.sandbox import process
from mimir.workspace.sandbox.limits import cgroups
from mimir.workspace.sandbox.process import ProcessLimits
from mimir.workspace.sandbox.sandbox import Sandbox
from tests.unit.workspace.conftest import MakeSandbox, is_running, names, sh


@pytest.mark.parametrize(
    "escape",
    [
        "sleep {mark}",
        "sleep {mark} & wait",
        "setsid nohup sleep {mark} > /dev/null 2>&1 < /dev/null & (setsid setsid sleep {mark} &) & sleep {mark}",
        "trap '' TERM INT HUP; while :; do sleep {mark}; done",
    ],
)
async def test_timeout_ends_every_process(sandbox: Sandbox, workspace: Path, escape: str) -> None:
    mark = f"{100_000 + os.getpid()}.0625"
    ran = await sh(sandbox, workspace, "echo before; " + escape.format(mark=mark), seconds=0.5)
    assert (ran.timed_out, ran.exit_code, ran.stop_reason) == (True, None, "timeout")
    assert ran.output in ("before\n", "")
    assert not is_running(mark)


async def test_background_processes_end_with_their_command(
    sandbox: Sandbox, workspace: Path
) -> None:
    mark = f"{200_000 + os.getpid()}.0625"
    ran = await sh(sandbox, workspace, f"(setsid sleep {mark} &) ; sleep {mark} & echo done")
    assert (ran.exit_code, ran.output) == (0, "done\n")
    assert not is_running(mark)


async def test_cancelled_command_is_ended(sandbox: Sandbox, workspace: Path) -> None:
    mark = f"{300_000 + os.getpid()}.0625"
    # It stays the program that says so: one that becomes another has no arguments for a moment.
    stays = "import time; print('up', flush=True); time.sleep(60)"
    said = asyncio.Event()
    task = asyncio.create_task(
        sandbox.run(
            ["python", "-c", stays, mark],
            workspace=workspace,
            seconds=60,
            on_output=lambda piece: said.set(),
        )
    )
    await said.wait()
    assert is_running(mark)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not is_running(mark)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGQUIT, signal.SIGHUP])
async def test_a_signal_that_the_engine_ignores_is_not_ignored_by_its_commands(
    sandbox: Sandbox, workspace: Path, number: signal.Signals
) -> None:
    """A shell lets its background processes ignore the first two, `nohup` the third."""
    before = signal.signal(number, signal.SIG_IGN)
    try:
        ran = await sh(
            sandbox, workspace, f"sh -c 'kill -{number.value} $$; echo $((41 + 1))'; echo $?"
        )
    finally:
        signal.signal(number, before)
    assert ran.output.splitlines()[-1] == str(128 + number.value)
    assert "42" not in ran.output.splitlines()


async def test_no_descriptor_is_left_open(sandbox: Sandbox, workspace: Path) -> None:
    await sh(sandbox, workspace, "true")
    before = len(names(Path("/proc/self/fd")))
    await asyncio.gather(*(sh(sandbox, workspace, f"echo {n}") for n in range(5)))
    await sh(sandbox, workspace, "sleep 9", seconds=0.2)
    await sandbox.run(["no-such-program"], workspace=workspace, seconds=9)
    assert len(names(Path("/proc/self/fd"))) == before


# Limits.


@pytest.mark.parametrize("has_group", [True, False])
async def test_fork_bomb_is_stopped(
    make_sandbox: MakeSandbox, workspace: Path, monkeypatch: pytest.MonkeyPatch, has_group: bool
) -> None:
    if not has_group:
        monkeypatch.setattr(cgroups, "make_group", lambda *limits: None)
    sandbox = make_sandbox(limits=ProcessLimits(processes=40))
    program = """
import os, sys, time
count = 0
while True:
    try:
        if os.fork() == 0:
            time.sleep(60)
        count += 1
    except OSError as error:
        sys.exit(f"{count} {error}")
"""
    ran = await sandbox.run(["python", "-c", program], workspace=workspace, seconds=30)
    assert ran.stop_reason == "processes" or "Resource temporarily unavailable" in ran.output
    assert not ran.timed_out


@pytest.mark.parametrize("has_group", [True, False])
async def test_memory_is_limited_for_all_processes_together(
    make_sandbox: MakeSandbox, workspace: Path, monkeypatch: pytest.MonkeyPatch, has_group: bool
) -> None:
    if not has_group:
        monkeypatch.setattr(cgroups, "make_group", lambda *limits: None)
    sandbox = make_sandbox(limits=ProcessLimits(memory_bytes=120_000_000))
    program = """
import os, time
os.fork(), os.fork()
hog = b"x" * 60_000_000
time.sleep(60)
"""
    ran = await sandbox.run(["python", "-c", program], workspace=workspace, seconds=30)
    assert (ran.stop_reason, ran.exit_code) == ("memory", None)


async def test_command_of_which_one_process_ran_out_of_memory_is_ended(
    make_sandbox: MakeSandbox, workspace: Path
) -> None:
    sandbox = make_sandbox(limits=ProcessLimits(memory_bytes=120_000_000))
    program = """
import os, time
if os.fork() == 0:
    hog = b"x" * 300_000_000
time.sleep(60)
"""
    ran = await sandbox.run(["python", "-c", program], workspace=workspace, seconds=30)
    assert (ran.stop_reason, ran.exit_code) == ("memory", None)


async def test_reserved_memory_is_not_used_memory(
    make_sandbox: MakeSandbox, workspace: Path
) -> None:
    sandbox = make_sandbox(limits=ProcessLimits(memory_bytes=120_000_000))
    program = "import mmap; mmap.mmap(-1, 8 << 30); print('reserved')"
    ran = await sandbox.run(["python", "-c", program], workspace=workspace, seconds=30)
    assert ran.output == "reserved\n"


async def test_files_processor_and_tmp_are_limited(
    make_sandbox: MakeSandbox, workspace: Path
) -> None:
    sandbox = make_sandbox(
        limits=ProcessLimits(file_bytes=10_000, cpu_seconds=1, tmp_bytes=100_000)
    )
    ran = await sh(sandbox, workspace, "head -c 20000 /dev/zero > big; echo $?; ulimit -c")
    assert ran.output.split()[-2:] == ["153", "0"]
    assert (workspace / "big").stat().st_size == 10_000
    ran = await sh(
        sandbox, workspace, "for n in $(seq 30); do head -c 9000 /dev/zero > /tmp/$n; done"
    )
    assert "No space left" in ran.output
    assert (await sh(sandbox, workspace, "while :; do :; done")).exit_code in (137, 152)


# Output.


async def test_long_output_has_both_ends_and_the_missing_count(
    sandbox: Sandbox, workspace: Path
) -> None:
    ran = await sandbox.run(["seq", "100000"], workspace=workspace, seconds=20, output_limit=3000)
    whole = "".join(f"{n}\n" for n in range(1, 100_001)).encode()
    assert ran.output.startswith("1\n2\n")
    assert ran.output.endswith("99999\n100000\n")
    assert f"{len(whole) - 3000} bytes are left out" in ran.output
    assert len(ran.output) < 3100
    assert ran.output_bytes == len(whole)
    assert ran.output_hash == hashlib.sha256(whole).hexdigest()


async def test_short_output_is_complete_and_invalid_bytes_are_marked(
    sandbox: Sandbox, workspace: Path
) -> None:
    ran = await sh(sandbox, workspace, "printf 'a\\377b\\303\\244'")
    assert ran.output == "a\ufffdb\u00e4"


async def test_endless_output_is_ended(
    sandbox: Sandbox, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "MAX_OUTPUT_BYTES", 1_000_000)
    ran = await sh(sandbox, workspace, "yes")
    assert (ran.stop_reason, ran.exit_code, ran.timed_out) == ("output", None, False)
