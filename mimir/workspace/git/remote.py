"""Exchange of a run's objects with processes in other directories and on other hosts, through a repository that all of them can push to.

The rules: whatever a process has made for a run is pushed before the store names it, so whoever reads a name can fetch what it names.
Each process has one ref of a run, `refs/mimir/run/<run>/<process>`, and nobody else writes it: an old holder that is still at work is in
nobody's way. Its commits only hold other objects together; they are the same wherever they are made.
"""

import asyncio
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from mimir.errors import WorkspaceError
from mimir.workspace.git.commits import commit
from mimir.workspace.git.git_command import GitResult, failure
from mimir.workspace.git.hidden_repository import DEFAULT_TIME, HiddenRepository
from mimir.workspace.git.user_refs import ref_part

SECONDS = 120.0
"""Longest time for one push or fetch."""
TRIES = 4
UNINDEXED_PACKS = 50
"""Each fetch brings a pack, and git looks through all of them for every object, unless they have an index together."""
_FIRST_DELAY_SECONDS = 0.5
_PROTOCOLS = "file:git:http:https:ssh"
"""No `ext::` or other transport that runs a command of its own."""
_CREDENTIALS = re.compile(r"(?<=//)[^/@\s]+@")
_NAME = "exchange"


@dataclass(frozen=True, slots=True, kw_only=True)
class GitRemote:
    """Where objects are exchanged."""

    url: str
    """Anything that git can push to; empty: there is no exchange."""
    environment: Mapping[str, str]
    """What git needs to log in: the person's own configuration, the agent of their keys."""
    name: str
    """Of this process; no other one has it."""


class CommitExchange:
    """One process's part in the exchange of one run."""

    def __init__(self, hidden: HiddenRepository, remote: GitRemote) -> None:
        self._hidden = hidden
        self._remote = remote
        self._run = ""
        self._trees: set[str] = set()
        self._commits: set[str] = set()
        self._shared: set[str] = set()
        self._here: set[str] = set()
        self._tip = ""
        self._indexed_packs = 0
        self._lock = asyncio.Lock()

    def serve(self, run: str) -> None:
        """Exchange the objects of this run from here on."""
        if run != self._run:
            self._run, self._tip = run, ""
            self._shared.clear()

    def queue_push(self, *, tree: str = "", commit: str = "") -> None:
        """Note what was made here; it is pushed with the next `share`."""
        for id, kind in ((tree, self._trees), (commit, self._commits)):
            if id and id not in self._shared:
                kind.add(id)

    async def share(self) -> None:
        """Push what was made since the last time; when this returns, everybody can have it.

        Raises:
            WorkspaceError: The remote cannot be reached or refuses; what was made waits for the next try.
        """
        if not self._run or not (self._trees or self._commits):
            return
        async with self._lock:
            trees, commits = set(self._trees), set(self._commits)
            if not trees and not commits:
                return
            tip = await self._held_together(sorted(trees), sorted(commits))
            ref = f"{_room(self._run)}/{ref_part(self._remote.name)}"
            await self._talk("push", "--no-verify", "-q", _NAME, f"+{tip}:{ref}")
            self._tip = tip
            self._shared |= trees | commits
            self._trees -= trees
            self._commits -= commits

    async def have(self, ids: Iterable[str]) -> None:
        """Fetch what other processes have made, if one of these objects is not here.

        Raises:
            WorkspaceError: The remote cannot be reached, or does not have it either.
        """
        unknown = [id for id in dict.fromkeys(ids) if id and id not in self._here]
        missing = await self._missing(unknown) if unknown else []
        if missing and self._run:
            await self.fetch()
            missing = await self._missing(missing)
        if missing:
            raise WorkspaceError(
                f"The object {missing[0]} is neither here nor in the remote of the run.",
                next_step="Every process that serves the run must have the same `history.remote`.",
            )
        self._here.update(unknown)

    async def fetch(self) -> None:
        """Bring everything that was made for the run."""
        room = _room(self._run)
        seen = room.replace("refs/mimir/run/", "refs/mimir/seen/", 1)
        await self._talk(
            *("fetch", "-q", "--no-tags", "--no-write-fetch-head", _NAME, f"+{room}/*:{seen}/*")
        )
        await self._index_packs()

    async def _index_packs(self) -> None:
        """Keep it quick to look for an object. They are never packed anew: `git repack` loses objects that are fetched meanwhile."""
        packs = await asyncio.to_thread(self._hidden.packs)
        if packs - self._indexed_packs < UNINDEXED_PACKS:
            return
        self._indexed_packs = packs
        # It may fail: another process does the same just now, or was killed while it did. Then it is as slow as before.
        await self._hidden.git.without_alternates().run(
            "multi-pack-index", "write", "--no-progress", ok=None
        )

    async def _held_together(self, trees: Sequence[str], commits: Sequence[str]) -> str:
        """Return a commit from which all of these and all earlier ones can be reached."""
        rows = "".join(f"040000 tree {id}\t{id}\n" for id in trees)
        made = await self._hidden.git.run("mktree", "--missing", stdin=rows.encode())
        parents = [*([self._tip] if self._tip else []), *commits]
        return await commit(
            self._hidden, made.word, parents, "Objects of a run\n", when=DEFAULT_TIME
        )

    async def _missing(self, ids: Sequence[str]) -> list[str]:
        asked = "".join(f"{id}\n" for id in ids).encode()
        said = await self._hidden.git.run("cat-file", "--batch-check", stdin=asked)
        lines = said.word.split("\n")
        return [id for id, line in zip(ids, lines, strict=True) if line.endswith(" missing")]

    async def _talk(self, *words: str) -> None:
        """Run a git command that speaks with the remote; again, if it did not get through."""
        delay = _FIRST_DELAY_SECONDS
        for left in reversed(range(TRIES)):
            try:
                async with asyncio.timeout(SECONDS):
                    ended = await self._hidden.git.run(*words, ok=None, extra=self._environment())
            except TimeoutError:
                ended = GitResult(code=124, out=b"", err=f"no answer within {SECONDS:.0f} seconds")
            if ended.code == 0:
                return
            if not left:
                raise self._lost(words, ended)
            await asyncio.sleep(delay)
            delay *= 2

    def _lost(self, words: Sequence[str], ended: GitResult) -> Exception:
        clean = GitResult(code=ended.code, out=b"", err=hide_credentials(ended.err))
        error = failure(words, clean)
        if isinstance(error, WorkspaceError):
            return WorkspaceError(
                f"The remote {hide_credentials(self._remote.url)} cannot be used: {error}",
                next_step="See that git can push to it from here: it is the setting history.remote.",
            )
        return error

    def _environment(self) -> dict[str, str]:
        """Return what differs from other calls of git: it may speak with one place, as the person would."""
        # What is fetched appears at once, as a pack: another process of this directory must not see a commit before its tree.
        settings = {f"remote.{_NAME}.url": self._remote.url, "fetch.unpackLimit": "1"}
        given = self._hidden.git.with_settings(settings)
        return {**given, "GIT_ALLOW_PROTOCOL": _PROTOCOLS, **self._remote.environment}


def hide_credentials(text: str) -> str:
    """Return a URL, or a text that holds one, without user and password."""
    return _CREDENTIALS.sub("", text)


def _room(run: str) -> str:
    return f"refs/mimir/run/{ref_part(run)}"
