"""Reach of a worker's command, in any sandbox: a back-end that is added to `BACKENDS` must pass all of it."""

import asyncio
import os
import stat
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

import pytest

from mimir.bootstrap.clock import SystemClock
from mimir.errors import SandboxError
from mimir.workspace.sandbox import process
from mimir.workspace.sandbox.process import ProcessLimits
from mimir.workspace.sandbox.sandbox import CommandResult, Sandbox, SandboxConfig
from tests.support.attack_site import SECRET, VARIABLE, Site, site
from tests.support.sandbox_probes import PROBES, Probe
from tests.support.trust_sizes import Cases, sample, size

Confine = Callable[[Path], Awaitable[Sandbox]]

LIMITS = ProcessLimits(
    processes=60,
    memory_bytes=400_000_000,
    file_bytes=50_000_000,
    tmp_bytes=150_000_000,
    cpu_seconds=60,
)
MB = 1_000_000
KILLED = 137
AT_ONCE = 2


def made(
    scratch: Path, programs: Sequence[Path] | None = None, limits: ProcessLimits = LIMITS
) -> Sandbox:
    return Sandbox(
        SandboxConfig(limits=limits), scratch=scratch, clock=SystemClock(), programs=programs
    )


async def by_default(scratch: Path) -> Sandbox:
    return made(scratch)


async def as_any_user(scratch: Path) -> Sandbox:
    """Return a sandbox built in a user namespace, whichever way the probe would choose."""
    sandbox = made(scratch)
    await sandbox.probe()
    assert sandbox._way is not None
    sandbox._way = sandbox._way[0], "user"
    return sandbox


BACKENDS: Mapping[str, Confine] = {
    "bubblewrap": by_default,
    **({"bubblewrap in a user namespace": as_any_user} if os.geteuid() == 0 else {}),
}
"""Name → how a sandbox of it is made."""


def fill_probe(probe: Probe, here: Site, mark: str) -> list[str]:
    """Return the probe's program with the site's words in it."""
    text = list(probe.program)
    for name, value in {**here.words(), "MARK": mark}.items():
        text = [word.replace(f"@{name}@", value) for word in text]
    return text


def running(mark: str) -> list[str]:
    """Name the processes of this machine that have `mark` among their arguments."""
    found: list[str] = []
    for directory in Path("/proc").iterdir():
        if directory.name.isdecimal() and int(directory.name) != os.getpid():
            try:
                words = (directory / "cmdline").read_bytes()
            except OSError:
                continue
            if mark.encode() in words:
                found.append(f"{directory.name} {words[:80]!r}")
    return found


async def tried(probe: Probe, number: int, sandbox: Sandbox, here: Site) -> None:
    """Run one probe in a workspace of its own; check its result."""
    mark = f"mimir-probe-{os.getpid()}-{number}"
    workspace = here.project / ".mimir/work/run-1" / f"attacker-{number}"
    workspace.mkdir(mode=0o700)
    ran = await sandbox.run(
        fill_probe(probe, here, mark),
        workspace=workspace,
        seconds=probe.seconds,
        project=here.project,
    )
    assert "ESCAPED" not in ran.output, ran.output[-600:]
    assert SECRET not in ran.output, ran.output[-600:]
    assert ran.backend != "none"
    # A machine that is short of memory may end the hungriest process before the engine does.
    ended = bool(ran.stop_reason) or (probe.name.startswith("memory") and ran.exit_code == KILLED)
    assert ended == (probe.ends == "stopped"), (ran.stop_reason, ran.output[-300:])
    assert running(mark) == []
    statuses = [p.lstat() for p in workspace.rglob("*")]
    assert sum(s.st_size for s in statuses if stat.S_ISREG(s.st_mode)) < 100 * MB


@pytest.mark.parametrize("backend", BACKENDS)
async def test_no_command_escapes_the_sandbox(
    backend: str, cases: Cases, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv(VARIABLE, SECRET)
    monkeypatch.setattr(process, "MAX_OUTPUT_BYTES", 20 * MB)
    probes = PROBES
    if size() == "small":
        first = backend == "bubblewrap"
        probes = [p for p in sample(PROBES, 24) if p.seconds in (20, 1)][0 if first else 1 :: 2]
    with site(tmp_path / "site") as here:
        sandbox = await BACKENDS[backend](tmp_path / "scratch")
        before = here.fingerprint()
        free = asyncio.Semaphore(AT_ONCE)

        async def one(number: int, probe: Probe) -> CommandResult | None:
            async with free:
                with cases.case(probe.name):
                    await tried(probe, number, sandbox, here)

        await asyncio.gather(*(one(number, probe) for number, probe in enumerate(probes)))
        with cases.case("files around the workspace"):
            now = here.fingerprint()
            assert {k: v for k, v in now.items() if before.get(k) != v} == {}
            assert before.keys() == now.keys()
        with cases.case("reached listeners"):
            assert here.reached() == []


async def test_attack_site_records_an_attack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Without a sandbox the same probes get through: the battery can fail."""
    monkeypatch.setenv(VARIABLE, SECRET)
    bare = Sandbox(SandboxConfig(mode="none"), scratch=tmp_path / "scratch", clock=SystemClock())
    names = ("other workspaces", "store", "home written", "loopback of the host", "abstract sockets", "sockets of the engine", "datagrams")  # fmt: skip
    with site(tmp_path / "site") as here:
        before = here.fingerprint()
        for number, probe in enumerate(p for p in PROBES if p.name in names):
            if size() == "small" and probe.name in ("store", "sockets of the engine"):
                continue
            workspace = here.project / f".mimir/work/run-1/attacker-{number}"
            workspace.mkdir()
            ran = await bare.run(fill_probe(probe, here, "mark"), workspace=workspace, seconds=20)
            noticed = SECRET in ran.output or "ESCAPED" in ran.output or here.reached()
            assert noticed or here.fingerprint() != before, probe.name


# A sandbox that is missing or breaks: nothing runs.


def script(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


BROKEN = {
    "is not there": "",
    "fails": "echo no permission >&2; exit 1",
    "does nothing": "exit 0",
    "says that it works": "echo works; exit 0",
    "is killed": "kill -9 $$",
    "is no program": "\0\0\0",
}


@pytest.mark.parametrize("how", BROKEN)
async def test_a_sandbox_that_is_broken_runs_nothing(how: str, cases: Cases, tmp_path: Path):
    programs = [script(tmp_path / "bwrap", BROKEN[how])] if BROKEN[how] else []
    if how == "is not there":
        programs = [tmp_path / "nowhere"]
    workspace = tmp_path / "ws"
    workspace.mkdir()
    with cases.case(how):
        sandbox = made(tmp_path / "scratch", programs)
        assert not (await sandbox.probe()).ok
        for _ in range(2):
            with pytest.raises(SandboxError) as caught:
                await sandbox.run(["touch", "ran"], workspace=workspace, seconds=20)
            assert caught.value.next_step
        assert not (workspace / "ran").exists()


@pytest.mark.parametrize("how", BROKEN)
async def test_broken_sandbox_runs_no_further_command(how: str, cases: Cases, tmp_path: Path):
    found = made(tmp_path / "scratch")
    assert (await found.probe()).ok
    assert found._way is not None
    program = tmp_path / "bwrap"
    program.symlink_to(found._way[0])
    workspace = tmp_path / "ws"
    workspace.mkdir(mode=0o777)
    with cases.case(how):
        sandbox = made(tmp_path / "scratch", [program])
        ran = await sandbox.run(["sh", "-c", "echo it ran"], workspace=workspace, seconds=20)
        assert ran.output == "it ran\n"
        program.unlink()
        if how != "is not there":
            script(program, BROKEN[how])
        with pytest.raises(SandboxError):
            await sandbox.run(["touch", str(workspace / "ran")], workspace=workspace, seconds=20)
        assert not (workspace / "ran").exists()


async def test_a_sandbox_that_is_ended_from_outside_ends_the_command(cases: Cases, tmp_path: Path):
    workspace = tmp_path / "ws"
    workspace.mkdir()
    sandbox = made(tmp_path / "scratch")
    mark, up = f"mimir-ended-{os.getpid()}", asyncio.Event()
    # It stays the program that says so: one that becomes another has no arguments for a moment.
    stays = "import time; print('up', flush=True); time.sleep(600)"
    command = ["python", "-c", stays, mark]
    work = asyncio.create_task(
        sandbox.run(command, workspace=workspace, seconds=60, on_output=lambda _: up.set())
    )
    await up.wait()
    with cases.case("killed"):
        [line] = running(mark)
        os.kill(int(line.split()[0]), 9)
        ran = await work
        assert ran.exit_code not in (0, None)
        assert running(mark) == []


def test_sandbox_has_at_least_sixty_probes():
    assert len(PROBES) >= 60
    assert len({probe.name for probe in PROBES}) == len(PROBES)
    assert sys.platform == "linux"
