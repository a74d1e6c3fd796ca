"""Exchange of the objects of a run between directories, through a git remote.

A process pushes its objects before the store names them, so each reader of a name can fetch them.
Each process alone writes its ref `refs/mimir/run/<run>/<process>`.
"""

import asyncio
import re
from collections.abc import Iterable, Mapping, Sequence

from mimir.domain.value_class import value_class
from mimir.errors import WorkspaceError
from mimir.workspace.git.commits import commit
from mimir.workspace.git.git_command import GitResult, failure
from mimir.workspace.git.hidden_repository import DEFAULT_TIME, HiddenRepository
from mimir.workspace.git.user_refs import ref_part

# Time limit of one push or fetch.
SECONDS = 120.0
TRIES = 4
# Packs before they get one index: each fetch adds a pack, and git searches all of them.
UNINDEXED_PACKS = 50
_FIRST_DELAY_SECONDS = 0.5
# Without `ext::` and other transports that run a command.
_PROTOCOLS = "file:git:http:https:ssh"
_CREDENTIALS = re.compile(r"(?<=//)[^/@\s]+@")
_NAME = "exchange"


@value_class
class GitRemote:
    """Remote repository for the exchange of objects."""

    url: str
    """Anything that git can push to; empty: there is no exchange."""
    environment: Mapping[str, str]
    """Variables that git needs to log in: the user's configuration and key agent."""
    name: str


class CommitExchange:
    """The part of one process in the exchange of one run."""

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
        """Queue objects that were created here; the next `share` pushes them."""
        for id, kind in ((tree, self._trees), (commit, self._commits)):
            if id and id not in self._shared:
                kind.add(id)

    async def share(self) -> None:
        """Push the objects since the last time; then every process can fetch them.

        Raises WorkspaceError if the remote fails; the objects stay queued.
        """
        if not self._run or not (self._trees or self._commits):
            return
        async with self._lock:
            trees, commits = set(self._trees), set(self._commits)
            # Another call may have pushed everything during the wait for the lock.
            if not trees and not commits:
                return
            tip = await self._bundle_commit(sorted(trees), sorted(commits))
            ref = f"{_run_refs(self._run)}/{ref_part(self._remote.name)}"
            await self._run_remote("push", "--no-verify", "-q", _NAME, f"+{tip}:{ref}")
            self._tip = tip
            self._shared |= trees | commits
            self._trees -= trees
            self._commits -= commits

    async def have(self, ids: Iterable[str]) -> None:
        """Fetch the objects of other processes if one of these is missing.

        Raises WorkspaceError if the remote fails or does not have it.
        """
        # Objects that are here stay here, so each is asked for once.
        unknown = [id for id in dict.fromkeys(ids) if id and id not in self._here]
        missing = await self._missing(unknown) if unknown else []
        if missing and self._run:
            await self.fetch()
            missing = await self._missing(missing)
        if missing:
            raise WorkspaceError(
                f"The object {missing[0]} is missing here and in the remote of the run.",
                next_step="Use the same `history.remote` for every process of the run.",
            )
        self._here.update(unknown)

    async def fetch(self) -> None:
        """Fetch everything that was created for the run."""
        room = _run_refs(self._run)
        seen = room.replace("refs/mimir/run/", "refs/mimir/seen/", 1)
        await self._run_remote(
            *("fetch", "-q", "--no-tags", "--no-write-fetch-head", _NAME, f"+{room}/*:{seen}/*")
        )
        await self._index_packs()

    async def _index_packs(self) -> None:
        # Never `git repack`: it loses objects that are fetched at the same time.
        packs = len(await asyncio.to_thread(self._hidden.packs))
        if packs - self._indexed_packs < UNINDEXED_PACKS:
            return
        self._indexed_packs = packs
        # It may fail: another process does the same, or was killed during it. That costs only time.
        await self._hidden.git.without_alternates().run(
            "multi-pack-index", "write", "--no-progress", ok=None
        )

    async def _bundle_commit(self, trees: Sequence[str], commits: Sequence[str]) -> str:
        rows = "".join(f"040000 tree {id}\t{id}\n" for id in trees)
        tree = await self._hidden.git.run("mktree", "--missing", stdin=rows.encode())
        parents = [*([self._tip] if self._tip else []), *commits]
        return await commit(
            self._hidden, tree.word, parents, "Objects of a run\n", when=DEFAULT_TIME
        )

    async def _missing(self, ids: Sequence[str]) -> list[str]:
        asked = "".join(f"{id}\n" for id in ids).encode()
        ended = await self._hidden.git.run("cat-file", "--batch-check", stdin=asked)
        lines = ended.word.split("\n")
        return [id for id, line in zip(ids, lines, strict=True) if line.endswith(" missing")]

    async def _run_remote(self, *words: str) -> None:
        # A fetch must arrive as one pack: no other process may see a commit before its tree.
        settings = {f"remote.{_NAME}.url": self._remote.url, "fetch.unpackLimit": "1"}
        extra = {
            **self._hidden.git.with_settings(settings),
            "GIT_ALLOW_PROTOCOL": _PROTOCOLS,
            **self._remote.environment,
        }
        delay = _FIRST_DELAY_SECONDS
        for left in reversed(range(TRIES)):
            try:
                async with asyncio.timeout(SECONDS):
                    ended = await self._hidden.git.run(*words, ok=None, extra=extra)
            except TimeoutError:
                ended = GitResult(code=124, out=b"", err=f"no answer within {SECONDS:.0f} seconds")
            if ended.code == 0:
                return
            if not left:
                raise self._remote_error(words, ended)
            await asyncio.sleep(delay)
            delay *= 2

    def _remote_error(self, words: Sequence[str], ended: GitResult) -> Exception:
        clean = GitResult(code=ended.code, out=b"", err=hide_credentials(ended.err))
        error = failure(words, clean)
        if isinstance(error, WorkspaceError):
            return WorkspaceError(
                f"The remote {hide_credentials(self._remote.url)} cannot be used: {error}",
                next_step="Check that git can push to it (setting history.remote).",
            )
        return error


def hide_credentials(text: str) -> str:
    """Remove user and password from the URLs in a text."""
    return _CREDENTIALS.sub("", text)


def _run_refs(run: str) -> str:
    return f"refs/mimir/run/{ref_part(run)}"
