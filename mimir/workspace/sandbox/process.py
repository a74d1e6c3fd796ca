"""One command, from its start until nothing of it is left.

The rules: it is started from the event loop's own thread (bubblewrap ends with the thread that started it); its output
is read to the end, whatever is kept of it; on a timeout, a limit or a cancelled caller everything it started is killed,
and this comes back only when it is gone.
"""

import asyncio
import contextlib
import json
import marshal
import os
import signal
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from mimir.domain.turn_hook import give_way
from mimir.workspace.aio import to_thread_shielded
from mimir.workspace.child_processes import listen
from mimir.workspace.sandbox import cgroups, resource_usage
from mimir.workspace.sandbox.descriptors import DescriptorSet
from mimir.workspace.sandbox.output import BoundedOutput

Stop = Literal["", "timeout", "memory", "processes", "output"]
"""Why a command was ended; "": it ended by itself."""

MAX_OUTPUT_BYTES = 256_000_000
"""A command that says more is ended: reading it keeps the engine from its work."""

_GRACE_SECONDS = 5.0
_LAUNCHER = Path(__file__).with_name("launcher.py").read_bytes()


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessLimits:
    """What one command may use."""

    processes: int = 256
    """Threads included, where the system counts them."""
    memory_bytes: int = 4 << 30
    """Of all its processes together."""
    file_bytes: int = 1 << 30
    """Size of one file that it writes."""
    cpu_seconds: int = 3600
    """Of one process."""
    tmp_bytes: int = 1 << 30
    """Size of /tmp, which is kept in memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxCommand:
    """What to start, and what it becomes."""

    sandbox: str | None
    """The program that builds the sandbox. None: no sandbox."""
    options: tuple[str, ...] = ()
    """For it; `{n}` is the file descriptor of the n-th of `contents`."""
    contents: tuple[bytes, ...] = ()
    interpreter: str
    """Runs the launcher; as the sandbox has it."""
    become: tuple[str, ...]
    environment: Mapping[str, str]
    limits: Mapping[str, int]
    """For `resource`, without `RLIMIT_`."""
    user: int | None
    """User and group that the launcher takes on. None: as it is."""
    directory: str
    """Where it starts; as the sandbox has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessExit:
    """How it ended."""

    exit_code: int
    stop: Stop
    started: bool
    """False: the command was never reached; what was said is the sandbox's."""
    missing: bool
    """True: there is no such program."""


async def run(
    command: SandboxCommand,
    *,
    seconds: float,
    limits: ProcessLimits,
    output: BoundedOutput,
    on_output: Callable[[bytes], None] | None = None,
    is_bounded: bool = True,
) -> ProcessExit:
    """Run a command to its end, or end it.

    Args:
        command: What to run.
        seconds: Wall clock, the sandbox's start included.
        limits: Its memory and processes are watched from here; the rest is set inside.
        output: Takes what it says.
        on_output: Told each piece as it comes.
        is_bounded: False: it needs no control group, into which the kernel may take ten milliseconds to put it.

    Raises:
        OSError: The program could not be started at all.
    """
    descriptors = DescriptorSet()
    grouped = is_bounded and command.sandbox is not None
    group = cgroups.make(limits.memory_bytes, limits.processes) if grouped else None
    try:
        process = await _start(command, descriptors, waits=group is not None)
        one = _RunningProcess(
            process, descriptors, group, limits, is_sandboxed=command.sandbox is not None
        )
        try:
            stop = await one.follow(seconds, output, on_output)
        finally:
            await _undisturbed(one.bury())
        said = descriptors.status_now()
        if stop == "" and group is not None and group.ran_out():
            stop = "memory"
    finally:
        descriptors.close()
        if group is not None:
            group.close()
    return ProcessExit(
        exit_code=process.returncode or 0,
        stop=stop,
        started=said.startswith(b"S"),
        missing=said.endswith(b"M"),
    )


async def _start(
    command: SandboxCommand, descriptors: DescriptorSet, *, waits: bool
) -> asyncio.subprocess.Process:
    specification = {
        "argv": command.become,
        "environment": dict(command.environment),
        "limits": dict(command.limits),
        "user": command.user,
        "directory": command.directory,
    }
    launcher = f"/dev/fd/{descriptors.content(_LAUNCHER)}"
    numbers = (descriptors.content(marshal.dumps(specification)), descriptors.set_status)
    words = [command.interpreter, "-I", "-S", launcher, *map(str, numbers)]
    if command.sandbox is not None:
        words = [*_sandbox(command, descriptors, waits=waits), "--", *words]
    give_way()
    listen()
    # No environment: what bubblewrap is started with can be read inside, at /proc/1/environ.
    process = await asyncio.create_subprocess_exec(
        *words,
        env={},
        cwd="/",
        stdin=asyncio.subprocess.DEVNULL,
        stdout=descriptors.say,
        stderr=descriptors.say,
        pass_fds=descriptors.theirs,
        start_new_session=True,
    )
    descriptors.close_theirs()
    return process


def _sandbox(command: SandboxCommand, descriptors: DescriptorSet, *, waits: bool) -> list[str]:
    """Name the options by a descriptor: they hold paths that the command could read in the list of processes."""
    contents = [str(descriptors.content(content)) for content in command.contents]
    options = b"".join(
        os.fsencode(contents[int(word[1:-1])] if _is_number(word) else word) + b"\0"
        for word in command.options
    )
    words = [str(command.sandbox), "--args", str(descriptors.content(options))]
    words += ["--info-fd", str(descriptors.set_info)]
    return [*words, "--block-fd", str(descriptors.wait)] if waits else words


def _is_number(word: str) -> bool:
    return word.startswith("{") and word.endswith("}") and word[1:-1].isdecimal()


class _RunningProcess:
    """A command that was started."""

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        descriptors: DescriptorSet,
        group: cgroups.ControlGroup | None,
        limits: ProcessLimits,
        *,
        is_sandboxed: bool,
    ) -> None:
        self._process = process
        self._descriptors = descriptors
        self._group = group
        self._limits = limits
        self._is_sandboxed = is_sandboxed

    async def follow(
        self, seconds: float, output: BoundedOutput, on_output: Callable[[bytes], None] | None
    ) -> Stop:
        """Read what it says until it ends or has to be ended; say why it has to."""
        flooded = asyncio.get_running_loop().create_future()

        def take(piece: bytes) -> None:
            output.add(piece)
            if on_output is not None:
                on_output(piece)
            if output.total > MAX_OUTPUT_BYTES and not flooded.done():
                flooded.set_result(None)

        reading = asyncio.ensure_future(self._descriptors.read(self._descriptors.said, take))
        guard = asyncio.ensure_future(self._guard())
        over = asyncio.ensure_future(self._process.wait())
        try:
            done, _ = await asyncio.wait(
                {over, guard, flooded}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED
            )
            await _undisturbed(self.bury())
            # What it said last may still be in the pipe.
            await asyncio.wait({reading}, timeout=_GRACE_SECONDS)
        finally:
            for task in (reading, guard, over):
                task.cancel()
            await asyncio.gather(reading, guard, over, return_exceptions=True)
        if over in done:
            return ""
        if guard in done:
            return guard.result()
        return "output" if flooded in done else "timeout"

    async def bury(self) -> None:
        """Kill what is left of it, and wait until it is gone."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        await self._process.wait()
        await self._descriptors.until_first_ended(_GRACE_SECONDS)

    async def _guard(self) -> Stop:
        """Come back when it uses too much."""
        first = await self._first() if self._is_sandboxed else self._process.pid
        if first is None:
            await self._process.wait()
            return ""
        while True:
            await asyncio.sleep(resource_usage.INTERVAL_SECONDS)
            # In the first version of control groups the system kills one process of several: the others would go on.
            if self._group is not None and self._group.ran_out():
                return "memory"
            now = resource_usage.usage(first)
            if now.processes > self._limits.processes:
                return "processes"
            most = self._limits.memory_bytes
            # What processes share was counted for each of them: look again, more exactly.
            if now.memory_bytes > most and resource_usage.own_memory(first) > most:
                return "memory"

    async def _first(self) -> int | None:
        """Learn which process is the first inside, put it under its limit, and let it go on."""
        said = bytearray()

        def take(piece: bytes) -> bool:
            said.extend(piece)
            return said.rstrip().endswith(b"}")

        await self._descriptors.read(self._descriptors.info, take)
        try:
            first = int(json.loads(said)["child-pid"])
        except (ValueError, KeyError):
            return None
        self._descriptors.hold_first(first)
        if self._group is not None:
            # The kernel takes many milliseconds for it, in which others go on.
            await to_thread_shielded(self._group.take, first)
        self._descriptors.let_go()
        return first


async def _undisturbed(work: Coroutine[None, None, None]) -> None:
    """Do this to its end, also if the caller is cancelled meanwhile."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        raise
