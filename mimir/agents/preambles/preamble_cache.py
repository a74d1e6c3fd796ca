"""The cache of generated preambles: `generated-agents/<kind>-<hash>.md`, readable and editable.

The file of a role is found by the hash of everything that went into it. Once it is there it belongs to the user: it is used as it
stands and never written again.
"""

import asyncio
import contextlib
import fcntl
import hashlib
import json
import os
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from mimir.agents.preambles import frontmatter
from mimir.agents.preambles.templates import PreambleTemplate, digest, read_own
from mimir.domain.estimates import role_key
from mimir.errors import Location, PlanError
from mimir.workspace.paths import DirectoryTree

FOLDER = "generated-agents"
KEYS = ("role", "kind", "model", "template", "created by", "uses")
"""Of a file's head; all of them, and no other."""
_POLL_SECONDS = 0.05

Kind = Literal["worker", "qc"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PreambleKey:
    """Everything that decides a preamble."""

    kind: Kind
    role: str
    """As the plan writes it."""
    template: PreambleTemplate
    guidance: PreambleTemplate
    model: str
    """That writes it; empty: the endpoint's default."""

    @property
    def key(self) -> str:
        """SHA-256 over kind, normalised role, versions and model."""
        parts = [
            self.kind,
            role_key(self.role),
            self.template.version,
            self.guidance.version,
            self.model,
        ]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    @property
    def name(self) -> str:
        """Name of the file, without its ending."""
        return f"{self.kind}-{self.key[:12]}"

    @property
    def path(self) -> str:
        """Of the file, relative to the project."""
        return f"{FOLDER}/{self.name}.md"


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedPreamble:
    """A preamble in the library."""

    text: str
    """Without its head and without the fixed rules."""
    hash: str
    """SHA-256 of `text`: as it is now, also when the user changed it."""


class PreambleCache:
    """The generated preambles of one project."""

    def __init__(self, project: Path, locks: Path) -> None:
        """Stand at a project.

        Args:
            project: Its top; the caller vouches for it.
            locks: A directory of mimir's own for lock files; made when it is needed.
        """
        self._project = project
        self._locks = locks

    def find(self, recipe: PreambleKey) -> CachedPreamble | None:
        """Return the preamble of a role as its file stands; None: there is none.

        Raises:
            PlanError: The file is there and cannot be used; the message names file and line.
        """
        text = read_own(self._project, recipe.path)
        if text is None:
            return None
        values, body = frontmatter.split_frontmatter(text, recipe.path)
        frontmatter.require(values, KEYS, recipe.path)
        if values["kind"] != recipe.kind or role_key(values["role"]) != role_key(recipe.role):
            raise _unusable(recipe, f"it is the preamble of another role: {values['role'][:80]!r}")
        if not body.strip():
            raise _unusable(recipe, "it holds no text")
        body = body.strip()
        return CachedPreamble(text=body, hash=digest(body))

    def keep(self, recipe: PreambleKey, text: str, created_by: str) -> CachedPreamble:
        """Write a new file in one step; only under `lock`, and only where `find` gave None.

        Raises:
            ToolError: The folder is a link, or no directory.
            Paused: The disk is full.
        """
        values = {
            "role": " ".join(recipe.role.split()),
            "kind": recipe.kind,
            "model": recipe.model or "default",
            "template": recipe.template.mark,
            "created by": created_by,
            "uses": recipe.guidance.mark,
        }
        text = text.strip()
        DirectoryTree(self._project).write(
            recipe.path, frontmatter.join_frontmatter(values, text).encode()
        )
        return CachedPreamble(text=text, hash=digest(text))

    @contextlib.asynccontextmanager
    async def lock(self, recipe: PreambleKey) -> AsyncGenerator[None]:
        """Keep every other run, in this process or another, from making the same preamble meanwhile.

        The system releases it when its holder dies, so a crash leaves nothing to clear.
        """
        self._locks.mkdir(mode=0o700, parents=True, exist_ok=True)
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        file = os.open(self._locks / f"{recipe.name}.lock", flags, 0o600)
        try:
            while not _taken(file):  # noqa: ASYNC110  another process holds it, which can set no event
                await asyncio.sleep(_POLL_SECONDS)
            yield
        finally:
            os.close(file)


def _taken(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _unusable(recipe: PreambleKey, why: str) -> PlanError:
    return PlanError(
        f"{recipe.path} cannot be used: {why}.",
        at=Location(file=recipe.path, line=1),
        code="unusable-preamble",
        next_step=f"Correct {recipe.path}, or delete it: it is then made anew.",
    )
