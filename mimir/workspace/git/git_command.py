"""Git commands that only the engine configures.

Configuration that could run a program or change bytes is switched off in each call.
"""

import asyncio
import contextlib
import os
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from mimir.domain.turn_hook import give_way
from mimir.domain.value_class import value_class
from mimir.errors import Paused, WorkspaceError
from mimir.workspace.child_processes import listen
from mimir.workspace.git.git_environment import ENVIRONMENT, SETTINGS
from mimir.workspace.safe_walk import disk_full

# First version with `merge-tree --write-tree`.
OLDEST = (2, 38)

_PIECE = 1 << 16


@value_class
class GitResult:
    """Exit code and output of a git command."""

    code: int
    out: bytes
    err: str
    cut: bool = False
    """True: ended because its output was longer than wanted."""

    @property
    def word(self) -> str:
        """Its output as text, without the final line end."""
        return os.fsdecode(self.out).removesuffix("\n")

    @property
    def names(self) -> list[str]:
        """Its output split at NUL, as file names."""
        return [os.fsdecode(name) for name in self.out.split(b"\0") if name]


@value_class
class GitCommand:
    """Git for one repository and its alternates."""

    directory: Path | None
    """The git directory; None: git searches from the working directory."""
    alternates: tuple[Path, ...] = ()
    """Object directories that are read, never written."""
    program: str = "git"

    def without_alternates(self) -> "GitCommand":
        """Return the repository alone, so that objects of an alternate are written too."""
        return replace(self, alternates=())

    def with_settings(self, more: Mapping[str, str]) -> dict[str, str]:
        """Return environment that adds settings; unlike arguments, other users cannot read it."""
        first = len(SETTINGS)
        pairs = list(more.items())
        return {
            "GIT_CONFIG_COUNT": str(first + len(pairs)),
            **{f"GIT_CONFIG_KEY_{first + n}": key for n, (key, _) in enumerate(pairs)},
            **{f"GIT_CONFIG_VALUE_{first + n}": value for n, (_, value) in enumerate(pairs)},
        }

    async def run(
        self,
        *arguments: str,
        tree: Path | None = None,
        index: Path | None = None,
        stdin: bytes | None = None,
        ok: Sequence[int] | None = (0,),
        literal: bool = False,
        extra: Mapping[str, str] | None = None,
        max_bytes: int | None = None,
    ) -> GitResult:
        """Run one git command in a work tree and return its result.

        Exit codes outside of `ok` (None: any) raise an error. `literal` paths are no patterns.
        After `max_bytes` of output (None: no limit) the command is ended.
        """
        named = {"GIT_WORK_TREE": tree, "GIT_INDEX_FILE": index}
        variables = {name: str(path) for name, path in named.items() if path is not None}
        if literal:
            variables["GIT_LITERAL_PATHSPECS"] = "1"
        process = await self._start(
            arguments,
            {**variables, **(extra or {})},
            where=tree,
            stdin=DEVNULL if stdin is None else PIPE,
            stdout=PIPE,
        )
        try:
            if max_bytes is None:
                out, err = await process.communicate(stdin)
                cut = False
            else:
                out, err, cut = await _read_some(process, max_bytes)
        finally:
            await end(process)
        ended = GitResult(code=process.returncode or 0, out=out, err=_text(err), cut=cut)
        if ok is not None and ended.code not in ok and not cut:
            raise failure(arguments, ended)
        return ended

    async def word(self, *arguments: str, index: Path | None = None) -> str:
        """Run a command whose output is one word."""
        return (await self.run(*arguments, index=index)).word

    async def pipe(
        self,
        arguments: Sequence[str],
        stdin: bytes,
        into: "GitCommand",
        into_arguments: Sequence[str],
    ) -> None:
        """Run a command and feed its output to a command of another repository, unbuffered."""
        read_end, write_end = os.pipe()
        try:
            reader = await into._start(into_arguments, {}, stdin=read_end, stdout=DEVNULL)
            writer = await self._start(arguments, {}, stdin=PIPE, stdout=write_end)
        finally:
            os.close(read_end)
            os.close(write_end)
        try:
            (_, writer_err), (_, reader_err) = await asyncio.gather(
                writer.communicate(stdin), reader.communicate()
            )
        finally:
            await end(writer)
            await end(reader)
        # The reader first: its refusal is the cause when the writer fails too.
        ends = ((reader, into_arguments, reader_err), (writer, arguments, writer_err))
        for process, words, err in ends:
            if process.returncode:
                raise failure(words, GitResult(code=process.returncode, out=b"", err=_text(err)))

    async def _start(
        self,
        arguments: Sequence[str],
        variables: Mapping[str, str],
        *,
        where: Path | None = None,
        stdin: int,
        stdout: int,
    ) -> asyncio.subprocess.Process:
        environment = dict(ENVIRONMENT)
        if self.directory is not None:
            environment["GIT_DIR"] = str(self.directory)
        if self.alternates:
            alternates = ":".join(map(_quote_path, self.alternates))
            environment["GIT_ALTERNATE_OBJECT_DIRECTORIES"] = alternates
        give_way()
        listen()
        try:
            return await asyncio.create_subprocess_exec(
                self.program,
                *arguments,
                env={**environment, **variables},
                # From "/" git finds no repository by chance.
                cwd=where or "/",
                stdin=stdin,
                stdout=stdout,
                stderr=PIPE,
            )
        except FileNotFoundError as error:
            if _is_missing(where):
                raise WorkspaceError(f"The directory {where} is missing.") from error
            raise WorkspaceError(
                "Git is not installed; mimir stores every result in it.",
                next_step="Install git 2.38 or newer.",
            ) from error


async def require_version(git: GitCommand) -> None:
    """Raise WorkspaceError if git is missing or older than `OLDEST`."""
    version = await git.word("version")
    numbers = version.removeprefix("git version ").split(".")
    with contextlib.suppress(ValueError, IndexError):
        if (int(numbers[0]), int(numbers[1])) >= OLDEST:
            return
    raise WorkspaceError(
        f"The installed {version!r} is too old: mimir needs 2.38 or newer.",
        next_step="Install a newer git.",
    )


def failure(arguments: Sequence[str], ended: GitResult) -> WorkspaceError | Paused:
    """Return the error of a failed git command; Paused if the disk is full."""
    if "No space left on device" in ended.err or "Disk quota exceeded" in ended.err:
        return disk_full()
    text = ended.err.strip()[-500:] or "no output"
    return WorkspaceError(f"git {arguments[0]} ended with {ended.code}: {text}")


async def end(process: asyncio.subprocess.Process) -> None:
    """Kill a process and wait for its end."""
    # The caller may be cancelled: no process stays.
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


async def _read_some(
    process: asyncio.subprocess.Process, max_bytes: int
) -> tuple[bytes, bytes, bool]:
    assert process.stdout is not None
    assert process.stderr is not None
    pieces: list[bytes] = []
    held = 0
    while held <= max_bytes and (piece := await process.stdout.read(_PIECE)):
        pieces.append(piece)
        held += len(piece)
    if held > max_bytes:
        await end(process)
        return b"".join(pieces)[:max_bytes], b"", True
    err = await process.stderr.read()
    await process.wait()
    return b"".join(pieces), err, False


def _is_missing(where: Path | None) -> bool:
    return where is not None and not where.is_dir()


def _quote_path(path: Path) -> str:
    # `:` separates the paths of the list, and a leading quote has a meaning.
    text = str(path)
    if ":" not in text and not text.startswith('"') and "\n" not in text:
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def _text(err: bytes) -> str:
    return err.decode("utf-8", errors="replace")
