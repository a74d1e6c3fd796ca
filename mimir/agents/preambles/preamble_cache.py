"""Cache of generated preambles: `generated-agents/<kind>-<hash>.md`, editable files.

A file is found by the hash of everything that decides it. From then on it belongs to the user: it is used as it is and never
written again.
"""

import asyncio
import contextlib
import fcntl
import hashlib
import json
import os
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from typing import Literal

from mimir.agents.preambles import frontmatter
from mimir.agents.preambles.templates import PreambleTemplate, digest
from mimir.agents.preambles.trust import OwnPreambles
from mimir.domain.estimates import role_key
from mimir.domain.value_class import value_class
from mimir.errors import Location, PlanError
from mimir.workspace.atomic_write import write_atomically
from mimir.workspace.git.discovery import read_if_exists
from mimir.workspace.paths import DirectoryTree

FOLDER = "generated-agents"
KEYS = ("role", "kind", "model", "template", "created by", "uses")
_POLL_SECONDS = 0.05

Kind = Literal["worker", "qc"]


@value_class
class PreambleKey:
    """Everything that decides a generated preamble."""

    kind: Kind
    role: str
    """As in the plan."""
    template: PreambleTemplate
    guidance: PreambleTemplate
    model: str
    """Writes the preamble; empty: the endpoint's default."""

    @property
    def key(self) -> str:
        """SHA-256 of kind, normalised role, versions and model."""
        versions = (self.template.version, self.guidance.version)
        parts = [self.kind, role_key(self.role), *versions, self.model]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    @property
    def name(self) -> str:
        """File name without its suffix."""
        return f"{self.kind}-{self.key[:12]}"

    @property
    def path(self) -> str:
        """Path relative to the project."""
        return f"{FOLDER}/{self.name}.md"


@value_class
class CachedPreamble:
    """A preamble file of the project."""

    text: str
    """Without front matter and fixed rules."""
    hash: str
    """SHA-256 of `text`, with the user's edits."""


class PreambleCache:
    """The generated preambles of one project."""

    def __init__(self, own: OwnPreambles, locks: Path, shared: Path | None = None) -> None:
        """Use the files of a project, and a directory of mimir's own for lock files.

        `shared` is the user's cache for all projects; None: there is none.
        """
        self._own = own
        self._locks = locks
        self._shared = shared

    def find(self, recipe: PreambleKey) -> CachedPreamble | None:
        """Return the cached preamble of a role; None: absent or ignored. `PlanError` if unusable."""
        text = self._own.read(recipe.path)
        if text is None:
            return None
        _, body = _read_file(text, recipe)
        return CachedPreamble(text=body, hash=digest(body))

    def adopt(self, recipe: PreambleKey) -> CachedPreamble | None:
        """Copy a preamble of the user's cache into the project; only under `lock`. None: absent."""
        data = read_if_exists(self._shared / f"{recipe.name}.md") if self._shared else None
        try:
            values, body = _read_file((data or b"").decode(), recipe)
        except (PlanError, UnicodeDecodeError):
            return None  # an unusable file of the cache is generated again
        return self.save(recipe, body, values["created by"])

    def save(self, recipe: PreambleKey, text: str, created_by: str) -> CachedPreamble:
        """Write a new file in one step; only under `lock`, and only if `find` returned None.

        A file that is ignored stays: then nothing is written.
        """
        values = {
            "role": " ".join(recipe.role.split()),  # a value is one line
            "kind": recipe.kind,
            "model": recipe.model or "default",
            "template": recipe.template.mark,
            "created by": created_by,
            "uses": recipe.guidance.mark,
        }
        text = text.strip()
        whole = frontmatter.join_frontmatter(values, text)
        if self._shared is not None and not (self._shared / f"{recipe.name}.md").exists():
            self._shared.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_atomically(self._shared / f"{recipe.name}.md", whole.encode())
        if not self.is_ignored(recipe):
            # Recorded first: a crash leaves no file that needs a question.
            self._own.remember_generated(recipe.path, whole)
            DirectoryTree(self._own.project).write(recipe.path, whole.encode())
        return CachedPreamble(text=text, hash=digest(text))

    def is_ignored(self, recipe: PreambleKey) -> bool:
        """Return whether the file of a role exists and is not trusted."""
        return self._own.is_ignored(recipe.path)

    @contextlib.asynccontextmanager
    async def lock(self, recipe: PreambleKey) -> AsyncGenerator[None]:
        """Prevent other runs and processes from generating the same preamble during the block."""
        self._locks.mkdir(mode=0o700, parents=True, exist_ok=True)
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        # O_NOFOLLOW: a link must not lead the lock to another file.
        file = os.open(self._locks / f"{recipe.name}.lock", flags, 0o600)
        # The system releases the lock when its holder dies: a crash leaves nothing to clear.
        try:
            while not _try_lock(file):  # noqa: ASYNC110  the holder is another process, without an event
                await asyncio.sleep(_POLL_SECONDS)
            yield
        finally:
            os.close(file)


def _read_file(text: str, recipe: PreambleKey) -> tuple[Mapping[str, str], str]:
    """Return front matter and text of a preamble file; `PlanError` if it is not the role's."""
    values, body = frontmatter.split_frontmatter(text, recipe.path)
    frontmatter.require_keys(values, KEYS, recipe.path)
    if values["kind"] != recipe.kind or role_key(values["role"]) != role_key(recipe.role):
        raise _unusable_error(
            recipe, f"it is the preamble of another role: {values['role'][:80]!r}"
        )
    if not body.strip():
        raise _unusable_error(recipe, "it holds no text")
    return values, body.strip()


def _try_lock(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _unusable_error(recipe: PreambleKey, why: str) -> PlanError:
    return PlanError(
        f"{recipe.path} cannot be used: {why}.",
        at=Location(file=recipe.path, line=1),
        code="unusable-preamble",
        next_step=f"Correct {recipe.path}, or delete it: it is then generated again.",
    )
