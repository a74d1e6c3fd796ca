"""Recorded questions to git with their answers, and a history that gives them again.

Trees and commits never change, so a question has one answer at any time. A replay writes no file and starts no git.
"""

import hashlib
import sys
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TypeVar, cast

from mimir.errors import RecordingMiss, StoreError
from mimir.store import codec
from mimir.store.schema import pack
from mimir.workspace.git.git_question import GitQuestion
from mimir.workspace.git.history import GitHistory, WorkspaceSnapshot

R = TypeVar("R")
Note = Callable[[Sequence[object], object], None]
"""(question, answer), both JSON values."""

_RARE = frozenset({"filtered", "oversized", "hidden_links", "unignored"})
"""Questions that are recorded only if the answer is not empty."""
MAX_FILE_BYTES = 400_000
"""Of a larger file a recording has the size alone."""


def _discard(_question: Sequence[object], _answer: object) -> None:
    """Keep nothing: no recording is written."""


class RecordingHistory(GitHistory):
    """History of a project that notes the answer to every question."""

    note: Note = staticmethod(_discard)

    async def ask(self, question: GitQuestion, compute: Callable[[], Awaitable[R]], /) -> R:
        """Ask git, and note the answer."""
        answer = await compute()
        if question.words[0] in _RARE and not answer:
            return answer
        is_file = isinstance(answer, bytes)  # JSON has no bytes
        self.note(question.words, _encode_file(answer) if is_file else codec.encode(answer))
        return answer


class RecordedHistory(GitHistory):
    """History that answers from a recording; every change does nothing."""

    def __init__(
        self, known: Mapping[str, object], inner: GitHistory | None, *, is_older: bool = False
    ) -> None:
        """Prepare the answers.

        Args:
            known: Packed question → answer.
            inner: History that answers the other questions. None: they are misses.
            is_older: True: another version of mimir recorded the answers, and asked less. Then a tree without a recorded list has no paths.
        """
        if inner is not None:
            super().__init__(inner._hidden)
        self._known = known
        self._is_live = inner is not None
        self._is_older = is_older

    async def ask(self, question: GitQuestion, compute: Callable[[], Awaitable[R]], /) -> R:
        """Answer as recorded.

        Raises:
            RecordingMiss: The answer is not recorded, or cannot be read.
        """
        key = pack(list(question.words))
        if key not in self._known and self._is_live:
            return await compute()
        value: object
        if key in self._known:
            value = self._known[key]
        elif question.words[0] in _RARE or (self._is_older and question.words[0] == "paths"):
            value = []
        elif question.words[0] == "commit":
            # A replay that differs makes other commits: their names are ones that no commit has.
            value = hashlib.sha1(key.encode(), usedforsecurity=False).hexdigest()
        else:
            raise RecordingMiss(
                f"The recording does not hold git's answer to {key[:200]}.",
                next_step="Replay it in its project: the hidden repository there has the answer.",
            )
        try:
            return cast("R", _decode(question.kind, value))
        except StoreError as error:
            raise RecordingMiss(f"Git's answer to {key[:200]} cannot be read: {error}") from None

    @property
    def is_repository(self) -> bool:
        """Return False: the user's branches stay as they are."""
        return False

    @property
    def installed_modules(self) -> Collection[str]:
        """Return no modules: a replay executes no tool."""
        return ()

    @property
    def is_away(self) -> bool:
        """Return False: no other directory is involved."""
        return False

    @property
    def is_exchanged(self) -> bool:
        """Return False: no other process serves a replay."""
        return False

    async def lineage(self) -> str:
        """Return no commits: a replay has no directory."""
        return ""

    async def serve(self, run: str, base: str) -> bool:
        """Accept any run."""
        return True

    async def fill(self, source: str, where: Path, index: Path, *, base: str | None = None) -> None:
        """Write nothing."""

    async def snapshot(
        self, where: Path, index: Path, *, files: Sequence[str] = (), base: str | None = None
    ) -> WorkspaceSnapshot:
        """Refuse: transcripts hold the trees after tool calls."""
        raise RecordingMiss("A replay takes no snapshot of a workspace.")

    async def checkout(self, source: str, where: Path) -> None:
        """Write nothing."""

    async def branch(self, name: str, commit: str) -> str:
        """Make no branch."""
        return f"mimir/{name}"


class _SizedBytes(bytes):
    """Bytes with the size of the original file: a secret was replaced, or it is too large."""

    size = 0

    def __len__(self) -> int:
        return self.size


def _encode_file(content: bytes) -> object:
    if len(content) > MAX_FILE_BYTES:
        return {"bytes": len(content)}
    try:
        return {"bytes": len(content), "text": content.decode("utf-8")}
    except UnicodeDecodeError:
        return {"bytes": len(content), "binary": True}


def _decode(kind: type[object], value: object) -> object:
    if kind is not bytes:
        return codec.decode(kind, value)
    return None if value is None else _decode_file(value)


def _decode_file(value: object) -> bytes:
    members = codec.decode(Mapping[str, object], value)
    text = members.get("text")
    # A file without text is binary or too large: an invalid byte keeps it from being read as text.
    content = _SizedBytes(text.encode("utf-8") if isinstance(text, str) else b"\xff")
    content.size = codec.decode(int, members.get("bytes"))
    if not 0 <= content.size <= sys.maxsize:
        raise StoreError(f"A file cannot have {content.size} bytes.")
    return content
