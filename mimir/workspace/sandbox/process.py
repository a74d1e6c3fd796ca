"""One command, from its start until no process of it is left.

On a timeout, an exceeded limit or a cancelled caller every process of it is killed.
"""

import asyncio
import contextlib
import json
import marshal
import os
import signal
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import field
from pathlib import Path
from typing import Literal

from mimir.domain.turn_hook import give_way
from mimir.domain.value_class import value_class
from mimir.workspace.aio import to_thread_shielded
from mimir.workspace.child_processes import listen
from mimir.workspace.sandbox.descriptors import DescriptorSet
from mimir.workspace.sandbox.limits import cgroups, resource_usage
from mimir.workspace.sandbox.output import BoundedOutput

# Why a command was ended; "": it ended itself.
Stop = Literal["", "timeout", "memory", "processes", "output"]

# A command with more output is ended: reading it blocks the engine.
MAX_OUTPUT_BYTES = 256_000_000

_GRACE_SECONDS = 5.0
_LAUNCHER = Path(__file__).with_name("launcher.py").read_bytes()


@value_class
class ProcessLimits:
    """Limits of one command."""

    processes: int = 256
    """With threads, where the system counts them."""
    memory_bytes: int = 4 << 30
    """Of all its processes."""
    file_bytes: int = 1 << 30
    """Size of one written file."""
    cpu_seconds: int = 3600
    """Of one process."""
    tmp_bytes: int = 1 << 30
    """Size of /tmp, which is in memory."""


@value_class
class SandboxCommand:
    """Request to start a program, and the command that it becomes."""

    sandbox: str | None
    """The bubblewrap program. None: no sandbox."""
    options: tuple[str, ...] = ()
    """Of bubblewrap; `{n}` is the file descriptor of the n-th of `contents`."""
    contents: tuple[bytes, ...] = ()
    interpreter: str
    """Runs the launcher; a path inside."""
    become: tuple[str, ...]
    environment: Mapping[str, str]
    limits: Mapping[str, int]
    user: int | None
    directory: str
    stdin: bytes | None = None
    """None: standard input is empty, and standard error is part of the output."""
    grace_seconds: float = 0.0
    """From SIGTERM, at the time limit, to SIGKILL; 0: SIGKILL at once."""
    output_bytes: int = MAX_OUTPUT_BYTES
    """With more output it is ended."""


@value_class
class ProcessExit:
    """End of a command."""

    exit_code: int
    stop: Stop
    started: bool
    """False: the command was not reached; the output is from the sandbox."""
    missing: bool


async def run(
    command: SandboxCommand,
    *,
    seconds: float,
    limits: ProcessLimits,
    output: BoundedOutput,
    on_output: Callable[[bytes], None] | None = None,
    on_error: Callable[[bytes], None] = lambda _: None,
    is_bounded: bool = True,
) -> ProcessExit:
    """Run a command to its end, or end it after `seconds`, the start of the sandbox included.

    `on_error` receives standard error, if the command has an own standard input. Without `is_bounded` it gets no control group, which can take ten milliseconds.
    """
    descriptors = DescriptorSet()
    grouped = is_bounded and command.sandbox is not None
    group = cgroups.make_group(limits.memory_bytes, limits.processes) if grouped else None
    try:
        process = await _start(command, descriptors, waits=group is not None)
        one = _RunningProcess(
            process=process,
            descriptors=descriptors,
            group=group,
            limits=limits,
            command=command,
        )
        try:
            stop = await one.follow(seconds, output, on_output, on_error)
        finally:
            await _await_to_end(one.bury())
        status = descriptors.status_now()
        if stop == "" and group is not None and group.ran_out():
            stop = "memory"
    finally:
        descriptors.close()
        if group is not None:
            group.close()
    return ProcessExit(
        exit_code=process.returncode or 0,
        stop=stop,
        started=status.startswith(b"S"),
        missing=status.endswith(b"M"),
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
    # From the thread of the event loop: bubblewrap ends with the thread that started it.
    # No environment: inside, /proc/1/environ shows that of bubblewrap.
    process = await asyncio.create_subprocess_exec(
        *words,
        env={},
        cwd="/",
        stdin=asyncio.subprocess.DEVNULL
        if command.stdin is None
        else descriptors.content(command.stdin),
        stdout=descriptors.say,
        stderr=descriptors.say if command.stdin is None else descriptors.open_errors(),
        pass_fds=descriptors.theirs,
        # Its own process group, so that all of it can be killed at once.
        start_new_session=True,
    )
    descriptors.close_theirs()
    return process


def _sandbox(command: SandboxCommand, descriptors: DescriptorSet, *, waits: bool) -> list[str]:
    # Options go through a descriptor: the command could read paths in the list of processes.
    contents = [str(descriptors.content(content)) for content in command.contents]
    # One conversion for all: a command has up to a thousand words.
    options = os.fsencode(
        "".join(
            f"{contents[int(word[1:-1])] if _is_number(word) else word}\0"
            for word in command.options
        )
    )
    words = [str(command.sandbox), "--args", str(descriptors.content(options))]
    words += ["--info-fd", str(descriptors.set_info)]
    return [*words, "--block-fd", str(descriptors.wait)] if waits else words


def _is_number(word: str) -> bool:
    return word.startswith("{") and word.endswith("}") and word[1:-1].isdecimal()


@value_class
class _RunningProcess:
    process: asyncio.subprocess.Process
    descriptors: DescriptorSet
    group: cgroups.ControlGroup | None
    limits: ProcessLimits
    command: SandboxCommand
    inside: list[int] = field(default_factory=list[int])
    """The first process inside, once it is known."""

    async def follow(
        self,
        seconds: float,
        output: BoundedOutput,
        on_output: Callable[[bytes], None] | None,
        on_error: Callable[[bytes], None],
    ) -> Stop:
        """Read its output until it ends or must be ended; return why."""
        flooded = asyncio.get_running_loop().create_future()

        def take(piece: bytes) -> None:
            output.add(piece)
            if on_output is not None:
                on_output(piece)
            if output.total > self.command.output_bytes and not flooded.done():
                flooded.set_result(None)

        reading = asyncio.ensure_future(self.descriptors.read(self.descriptors.said, take))
        errors = asyncio.ensure_future(self._read_errors(on_error))
        guard = asyncio.ensure_future(self._guard())
        over = asyncio.ensure_future(self.process.wait())
        try:
            done, _ = await asyncio.wait(
                {over, guard, flooded}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED
            )
            if not done and self.command.grace_seconds:
                self._ask_to_end()
                await asyncio.wait({over, flooded}, timeout=self.command.grace_seconds)
            await _await_to_end(self.bury())
            # The last output may still be in the pipe.
            await asyncio.wait({reading, errors}, timeout=_GRACE_SECONDS)
        finally:
            for task in (reading, errors, guard, over):
                task.cancel()
            await asyncio.gather(reading, errors, guard, over, return_exceptions=True)
        if over in done:
            return ""
        if guard in done:
            return guard.result()
        return "output" if flooded in done else "timeout"

    async def _read_errors(self, on_error: Callable[[bytes], None]) -> None:
        if self.descriptors.errors is not None:
            await self.descriptors.read(self.descriptors.errors, on_error)

    def _ask_to_end(self) -> None:
        """Send SIGTERM to all its processes."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if self.command.sandbox is None:
                os.killpg(self.process.pid, signal.SIGTERM)
        # The group of the sandbox must live: with it, the processes inside are killed at once.
        for number in (one for first in self.inside for one in resource_usage.family(first)):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(number, signal.SIGTERM)

    async def bury(self) -> None:
        """Kill its processes, and wait until they are gone."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        await self.process.wait()
        await self.descriptors.until_first_ended(_GRACE_SECONDS)

    async def _guard(self) -> Stop:
        is_sandboxed = self.command.sandbox is not None
        first = await self._first() if is_sandboxed else self.process.pid
        if first is None:
            await self.process.wait()
            return ""
        while True:
            await asyncio.sleep(resource_usage.INTERVAL_SECONDS)
            # Control groups of version 1 kill one process of several: the others would continue.
            if self.group is not None and self.group.ran_out():
                return "memory"
            now = resource_usage.usage(first)
            if now.processes > self.limits.processes:
                return "processes"
            most = self.limits.memory_bytes
            # Shared memory was counted for each process: measure exactly now.
            if now.memory_bytes > most and resource_usage.own_memory(first) > most:
                return "memory"

    async def _first(self) -> int | None:
        """Find the first process inside, put it under its limit, and let it continue."""
        output = bytearray()

        def take(piece: bytes) -> bool:
            output.extend(piece)
            return output.rstrip().endswith(b"}")

        await self.descriptors.read(self.descriptors.info, take)
        try:
            first = int(json.loads(output)["child-pid"])
        except (ValueError, KeyError):
            return None
        self.descriptors.hold_first(first)
        self.inside.append(first)
        if self.group is not None:
            # On a thread: the kernel takes many milliseconds for it.
            await to_thread_shielded(self.group.take, first)
        self.descriptors.let_go()
        return first


async def _await_to_end(work: Coroutine[None, None, None]) -> None:
    # The work must end even if the caller is cancelled.
    task = asyncio.ensure_future(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        raise
