"""What was asked of a run's history, and what it said: trees and commits never change, so a question has one answer, whenever it is asked.

`RecordingHistory` is the real one and tells of every answer; `RecordedHistory` gives recorded answers, and neither writes a file nor starts git.
"""

import hashlib
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from mimir.errors import RecordingMiss, StoreError
from mimir.store import codec
from mimir.store.schema import pack
from mimir.workspace.git import merge
from mimir.workspace.git.history import (
    MAX_DIFF_BYTES,
    GitHistory,
    TreeChange,
    TreeMerge,
    WorkspaceSnapshot,
)

T = TypeVar("T")
Note = Callable[[Sequence[object], object], None]
"""(question, answer), both JSON values."""

MAX_FILE_BYTES = 400_000
"""A larger file is never shown whole: its size is kept."""
_SIDES = (merge.OURS, merge.THEIRS)


def _forget(_ask: Sequence[object], _answer: object) -> None:
    """Tell nobody."""


class RecordingHistory(GitHistory):
    """The history of a project that is being recorded."""

    note: Note = staticmethod(_forget)

    async def merge(
        self,
        ours: str,
        theirs: str,
        base: str | None = None,
        *,
        labels: tuple[str, str] = _SIDES,
    ) -> TreeMerge:
        """Merge, and tell."""
        made = await super().merge(ours, theirs, base, labels=labels)
        self.note(["merge", ours, theirs, base], codec.encode(made))
        return made

    async def restrict(
        self, tree: str, base: str, *, files: Sequence[str], touched: Sequence[str] = ()
    ) -> tuple[str, tuple[str, ...]]:
        """Restrict, and tell."""
        made = await super().restrict(tree, base, files=files, touched=touched)
        self.note(["restrict", tree, base, list(files), list(touched)], codec.encode(made))
        return made

    async def with_files(self, tree: str, from_tree: str, globs: Sequence[str]) -> str:
        """Take files over, and tell."""
        made = await super().with_files(tree, from_tree, globs)
        self.note(["with_files", tree, from_tree, list(globs)], made)
        return made

    async def diff_trees(self, a: str, b: str) -> tuple[TreeChange, ...]:
        """Compare, and tell."""
        made = await super().diff_trees(a, b)
        self.note(["changed", a, b], codec.encode(made))
        return made

    async def diff(
        self, a: str, b: str, *, paths: Sequence[str] = (), max_bytes: int = MAX_DIFF_BYTES
    ) -> str:
        """Show the difference, and tell."""
        made = await super().diff(a, b, paths=paths, max_bytes=max_bytes)
        self.note(["diff", a, b, list(paths)], made)
        return made

    async def file(self, source: str, path: str) -> bytes | None:
        """Read a file, and tell."""
        made = await super().file(source, path)
        self.note(["file", source, path], _written(made))
        return made

    async def paths(self, source: str, globs: Sequence[str] | None = None) -> tuple[str, ...]:
        """List paths, and tell."""
        made = await super().paths(source, globs)
        self.note(["paths", source, None if globs is None else list(globs)], list(made))
        return made

    async def links_out(self, source: str, among: Sequence[str] | None = None) -> tuple[str, ...]:
        """Name links, and tell."""
        made = await super().links_out(source, among)
        self.note(["links_out", source, None if among is None else list(among)], list(made))
        return made

    async def commit(
        self, tree: str, parents: Sequence[str], message: str, *, when: int | None = None
    ) -> str:
        """Commit, and tell."""
        made = await super().commit(tree, parents, message, when=when)
        self.note(["commit", tree, list(parents), message], made)
        return made


class RecordedHistory(GitHistory):
    """A recorded history: whatever would change something does nothing."""

    def __init__(self, known: Mapping[str, object], inner: GitHistory | None) -> None:
        """Stand on what is recorded.

        Args:
            known: Packed question → answer.
            inner: Asked for what is not in `known`. None: nobody is.
        """
        self._known = known
        self._inner = inner

    @property
    def is_repository(self) -> bool:
        """Nothing is ever brought to the person's branch."""
        return False

    @property
    def is_away(self) -> bool:
        """It is nobody's directory."""
        return False

    @property
    def is_exchanged(self) -> bool:
        """Nobody else serves a replay."""
        return False

    async def lineage(self) -> str:
        """Name no commits: the replay is of no directory."""
        return ""

    async def serve(self, run: str, base: str) -> bool:
        """Stand on the recording, whichever run it was."""
        return True

    async def _said(
        self,
        ask: Sequence[object],
        read: Callable[[object], T],
        live: Callable[[GitHistory], Awaitable[T]],
    ) -> T:
        key = pack(list(ask))
        if key in self._known:
            try:
                return read(self._known[key])
            except StoreError as error:
                raise RecordingMiss(
                    f"What git answered to {key[:200]} cannot be read: {error}"
                ) from None
        if self._inner is None:
            raise RecordingMiss(
                f"The recording does not say what git answers to {key[:200]}.",
                next_step="Replay it where its project is: the history there knows it.",
            )
        return await live(self._inner)

    async def fill(self, source: str, where: Path, index: Path, *, base: str | None = None) -> None:
        """Write nothing."""

    async def snapshot(
        self, where: Path, index: Path, *, files: Sequence[str] = (), base: str | None = None
    ) -> WorkspaceSnapshot:
        """Refuse: trees after effects stand in the lanes."""
        raise RecordingMiss("A replay takes no snapshot of a workspace.")

    async def checkout(self, source: str, where: Path) -> None:
        """Write nothing."""

    async def branch(self, name: str, commit: str) -> str:
        """Make nothing."""
        return f"mimir/{name}"

    async def keep(self, name: str, commit: str) -> str:
        """Make nothing."""
        return f"mimir/{name}"

    async def merge(
        self,
        ours: str,
        theirs: str,
        base: str | None = None,
        *,
        labels: tuple[str, str] = _SIDES,
    ) -> TreeMerge:
        """Say how it was merged."""
        return await self._said(
            ["merge", ours, theirs, base],
            lambda value: codec.decode(TreeMerge, value),
            lambda inner: inner.merge(ours, theirs, base, labels=labels),
        )

    async def restrict(
        self, tree: str, base: str, *, files: Sequence[str], touched: Sequence[str] = ()
    ) -> tuple[str, tuple[str, ...]]:
        """Say what it was restricted to."""
        return await self._said(
            ["restrict", tree, base, list(files), list(touched)],
            lambda value: codec.decode(tuple[str, tuple[str, ...]], value),
            lambda inner: inner.restrict(tree, base, files=files, touched=touched),
        )

    async def with_files(self, tree: str, from_tree: str, globs: Sequence[str]) -> str:
        """Say which tree it made."""
        return await self._said(
            ["with_files", tree, from_tree, list(globs)],
            _text,
            lambda inner: inner.with_files(tree, from_tree, globs),
        )

    async def diff_trees(self, a: str, b: str) -> tuple[TreeChange, ...]:
        """Say what differed."""
        return await self._said(
            ["changed", a, b],
            lambda value: codec.decode(tuple[TreeChange, ...], value),
            lambda inner: inner.diff_trees(a, b),
        )

    async def diff(
        self, a: str, b: str, *, paths: Sequence[str] = (), max_bytes: int = MAX_DIFF_BYTES
    ) -> str:
        """Show the difference as it was shown."""
        return await self._said(
            ["diff", a, b, list(paths)],
            _text,
            lambda inner: inner.diff(a, b, paths=paths, max_bytes=max_bytes),
        )

    async def file(self, source: str, path: str) -> bytes | None:
        """Give the file as it was read."""
        return await self._said(
            ["file", source, path], _read, lambda inner: inner.file(source, path)
        )

    async def paths(self, source: str, globs: Sequence[str] | None = None) -> tuple[str, ...]:
        """List the paths as they were listed."""
        return await self._said(
            ["paths", source, None if globs is None else list(globs)],
            _texts,
            lambda inner: inner.paths(source, globs),
        )

    async def links_out(self, source: str, among: Sequence[str] | None = None) -> tuple[str, ...]:
        """Name the links as they were named."""
        return await self._said(
            ["links_out", source, None if among is None else list(among)],
            _texts,
            lambda inner: inner.links_out(source, among),
        )

    async def commit(
        self, tree: str, parents: Sequence[str], message: str, *, when: int | None = None
    ) -> str:
        """Say which commit it was; one that was never made gets a name that no commit has, so that a replay that differs can go on."""
        ask = ["commit", tree, list(parents), message]
        known = self._known.get(pack(ask))
        if isinstance(known, str):
            return known
        if self._inner is not None:
            return await self._inner.commit(tree, parents, message, when=when)
        return hashlib.sha1(pack(ask).encode(), usedforsecurity=False).hexdigest()


class _SizedBytes(bytes):
    """Bytes that stand for a file of another size: a secret in it was replaced, or it was too large to be kept."""

    size = 0

    def __len__(self) -> int:
        return self.size


def _written(content: bytes | None) -> object:
    """Return a file as it stands in a recording: its text where it is one and not too long."""
    if content is None:
        return None
    if len(content) > MAX_FILE_BYTES:
        return {"bytes": len(content)}
    try:
        return {"bytes": len(content), "text": content.decode("utf-8")}
    except UnicodeDecodeError:
        return {"bytes": len(content), "binary": True}


def _read(value: object) -> bytes | None:
    if value is None:
        return None
    row = codec.decode(Mapping[str, object], value)
    text = row.get("text")
    content = _SizedBytes(text.encode("utf-8") if isinstance(text, str) else b"\xff")
    content.size = codec.decode(int, row.get("bytes"))
    if not 0 <= content.size <= sys.maxsize:
        raise StoreError(f"A file cannot have {content.size} bytes.")
    return content


def _text(value: object) -> str:
    return codec.decode(str, value)


def _texts(value: object) -> tuple[str, ...]:
    return codec.decode(tuple[str, ...], value)
