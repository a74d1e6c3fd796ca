"""Running git so that nothing but the engine says what it does.

The rule: git directory, work tree and index are named in the environment of every call, and everything that
a repository, a work tree or a person could configure to run a program or to change bytes is switched off.
"""

import asyncio
import contextlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mimir.domain.turn_hook import give_way
from mimir.errors import Paused, WorkspaceError
from mimir.workspace.child_processes import listen

SEARCH_PATH = "/usr/local/bin:/usr/bin:/bin:/opt/homebrew/bin:/opt/local/bin"
"""Where git is looked for."""
OLDEST = (2, 38)
"""`merge-tree --write-tree` came with it."""

_SETTINGS = {
    "safe.directory": "*",
    "core.hooksPath": "/dev/null",
    "core.fsmonitor": "false",
    "core.untrackedCache": "false",
    "core.splitIndex": "false",
    "core.sparseCheckout": "false",
    "core.attributesFile": "/dev/null",
    "core.excludesFile": "/dev/null",
    "core.autocrlf": "false",
    "core.safecrlf": "false",
    "core.quotePath": "false",
    "core.logAllRefUpdates": "false",
    "core.commitGraph": "false",
    # On Linux these are names like any other; refusing them would let a worker stop every snapshot.
    "core.protectNTFS": "false",
    # A process for each core, where a tree has a hundred files or more.
    "checkout.workers": "0",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "commit.gpgSign": "false",
    "merge.renames": "false",
    "merge.directoryRenames": "false",
    "merge.conflictStyle": "merge",
    "diff.renames": "false",
    "submodule.recurse": "false",
    "advice.addEmbeddedRepo": "false",
    "protocol.allow": "never",
    "init.templateDir": "",
    "init.defaultBranch": "main",
}

_ENVIRONMENT = {
    "PATH": SEARCH_PATH,
    "HOME": "/nonexistent",
    "XDG_CONFIG_HOME": "/nonexistent",
    "LC_ALL": "C",
    "TZ": "UTC",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_AUTHOR_NAME": "mimir",
    "GIT_AUTHOR_EMAIL": "mimir@localhost",
    "GIT_COMMITTER_NAME": "mimir",
    "GIT_COMMITTER_EMAIL": "mimir@localhost",
    "GIT_CONFIG_COUNT": str(len(_SETTINGS)),
    **{f"GIT_CONFIG_KEY_{n}": key for n, key in enumerate(_SETTINGS)},
    **{f"GIT_CONFIG_VALUE_{n}": value for n, value in enumerate(_SETTINGS.values())},
}

_PIECE = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class GitResult:
    """How a git command ended."""

    code: int
    out: bytes
    err: str
    cut: bool = False
    """True: it said more than was wanted and was ended."""

    @property
    def word(self) -> str:
        """Its output as text, without the last line's end."""
        return os.fsdecode(self.out).removesuffix("\n")

    @property
    def names(self) -> list[str]:
        """Its output cut at NUL, as file names."""
        return [os.fsdecode(name) for name in self.out.split(b"\0") if name]


@dataclass(frozen=True, slots=True, kw_only=True)
class GitCommand:
    """One repository, and where else its objects are."""

    directory: Path | None
    """The git directory; None: git looks for it from the working directory."""
    alternates: tuple[Path, ...] = ()
    """Object directories that are read too, never written."""
    objects: Path | None = None
    """Object directory instead of the repository's own."""
    program: str = "git"

    def without_alternates(self) -> "GitCommand":
        """Return the same repository without its alternates.

        What is written then is written whole: git leaves out objects that an alternate holds, also those that
        nothing there keeps from being collected.
        """
        return replace(self, alternates=())

    def with_settings(self, more: Mapping[str, str]) -> dict[str, str]:
        """Return environment that adds settings to those of every call; in no command line, so that nobody reads them there."""
        first = len(_SETTINGS)
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
        """Run one git command to its end.

        Args:
            arguments: Without "git".
            tree: Work tree; also the working directory.
            index: Index file; a relative one would be taken from the work tree.
            stdin: What it reads. None: nothing.
            ok: Exit codes that are no error. None: any.
            literal: Take path arguments as names, not as patterns.
            extra: More environment.
            max_bytes: End it when it has said so much. None: all is read.

        Raises:
            WorkspaceError: Git is missing or refused.
            Paused: The disk is full.
        """
        process = await self._start(
            arguments,
            environment=self._environment(tree, index, literal, extra),
            where=tree,
            stdin=asyncio.subprocess.DEVNULL if stdin is None else asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
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
        """Run a command that answers with one word."""
        return (await self.run(*arguments, index=index)).word

    async def pipe(
        self,
        arguments: Sequence[str],
        stdin: bytes,
        into: "GitCommand",
        into_arguments: Sequence[str],
    ) -> None:
        """Run a command whose output another repository's command reads; nothing is held in memory.

        Raises:
            WorkspaceError: One of them refused.
            Paused: The disk is full.
        """
        read_end, write_end = os.pipe()
        try:
            reader = await into._start(
                into_arguments,
                environment=into._environment(None, None, False, None),
                stdin=read_end,
                stdout=asyncio.subprocess.DEVNULL,
            )
            writer = await self._start(
                arguments,
                environment=self._environment(None, None, False, None),
                stdin=asyncio.subprocess.PIPE,
                stdout=write_end,
            )
        finally:
            os.close(read_end)
            os.close(write_end)
        try:
            (_, said), (_, answered) = await asyncio.gather(
                writer.communicate(stdin), reader.communicate()
            )
        finally:
            await end(writer)
            await end(reader)
        for process, words, err in (
            (reader, into_arguments, answered),
            (writer, arguments, said),
        ):
            if process.returncode:
                raise failure(words, GitResult(code=process.returncode, out=b"", err=_text(err)))

    def _environment(
        self,
        tree: Path | None,
        index: Path | None,
        literal: bool,
        extra: Mapping[str, str] | None,
    ) -> dict[str, str]:
        environment = dict(_ENVIRONMENT)
        if self.directory is not None:
            environment["GIT_DIR"] = str(self.directory)
        if self.objects is not None:
            environment["GIT_OBJECT_DIRECTORY"] = str(self.objects)
        if self.alternates:
            environment["GIT_ALTERNATE_OBJECT_DIRECTORIES"] = ":".join(
                map(_quoted, self.alternates)
            )
        if tree is not None:
            environment["GIT_WORK_TREE"] = str(tree)
        if index is not None:
            environment["GIT_INDEX_FILE"] = str(index)
        if literal:
            environment["GIT_LITERAL_PATHSPECS"] = "1"
        return {**environment, **(extra or {})}

    async def _start(
        self,
        arguments: Sequence[str],
        *,
        environment: Mapping[str, str],
        where: Path | None = None,
        stdin: int,
        stdout: int,
    ) -> asyncio.subprocess.Process:
        give_way()
        listen()
        try:
            return await asyncio.create_subprocess_exec(
                self.program,
                *arguments,
                env=environment,
                cwd=where or "/",
                stdin=stdin,
                stdout=stdout,
                stderr=asyncio.subprocess.PIPE,
            )
        except FileNotFoundError as error:
            if _is_gone(where):
                raise WorkspaceError(f"The directory {where} is gone.") from error
            raise WorkspaceError(
                "Git is not installed, and mimir keeps every result in it.",
                next_step="Install git 2.38 or newer.",
            ) from error


async def require_version(git: GitCommand) -> None:
    """Refuse a git that is too old.

    Raises:
        WorkspaceError: It is missing or older than `OLDEST`.
    """
    said = await git.word("version")
    numbers = said.removeprefix("git version ").split(".")
    with contextlib.suppress(ValueError, IndexError):
        if (int(numbers[0]), int(numbers[1])) >= OLDEST:
            return
    raise WorkspaceError(
        f"This is {said!r}; mimir needs 2.38 or newer.", next_step="Install a newer git."
    )


def failure(arguments: Sequence[str], ended: GitResult) -> WorkspaceError | Paused:
    """Say what git refused."""
    if "No space left on device" in ended.err or "Disk quota exceeded" in ended.err:
        return Paused(
            "There is no space left on the disk.",
            reason="disk",
            next_step="Free some space, then resume the run.",
        )
    said = ended.err.strip()[-500:] or "it said nothing"
    return WorkspaceError(f"git {arguments[0]} ended with {ended.code}: {said}")


async def end(process: asyncio.subprocess.Process) -> None:
    """Make sure that a process is gone, also when its caller is cancelled."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


async def _read_some(
    process: asyncio.subprocess.Process, max_bytes: int
) -> tuple[bytes, bytes, bool]:
    """Read at most so much of what a process says, then end it."""
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


def _is_gone(where: Path | None) -> bool:
    return where is not None and not where.is_dir()


def _quoted(path: Path) -> str:
    """Write a path for a list of object directories, where `:` and a leading quote mean something."""
    text = str(path)
    if ":" not in text and not text.startswith('"') and "\n" not in text:
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def _text(err: bytes) -> str:
    return err.decode("utf-8", errors="replace")
