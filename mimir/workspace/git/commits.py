"""Commits, created without a work tree: equal parts give an equal id."""

import re
from collections.abc import Sequence

from mimir.errors import WorkspaceError
from mimir.workspace.git.hidden_repository import DEFAULT_TIME, HiddenRepository

_ID = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


def is_object(id: str) -> bool:
    """Return whether a text has the form of an object id; the name of a ref has not."""
    return bool(_ID.fullmatch(id))


async def commit(
    hidden: HiddenRepository,
    tree: str,
    parents: Sequence[str],
    message: str,
    *,
    when: int | None = None,
) -> str:
    """Create a commit and return its id. Its time without `when` is that of its newest parent."""
    seconds = await newest(hidden, parents) if when is None else when
    date = f"@{seconds} +0000"
    ended = await hidden.git.run(
        *("commit-tree", tree, *(word for parent in parents for word in ("-p", parent)), "-F", "-"),
        stdin=message.replace("\0", "").encode("utf-8", "replace"),
        extra={"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date},
    )
    hidden.trees[ended.word] = await tree_of(hidden, tree)
    hidden.times[ended.word] = seconds
    if all(_ID.fullmatch(parent) for parent in parents):
        hidden.parents[ended.word] = tuple(parents)
    return ended.word


async def newest(hidden: HiddenRepository, commits: Sequence[str]) -> int:
    """Return the time of the newest of some commits, `DEFAULT_TIME` at least."""
    unknown = [id for id in commits if id not in hidden.times]
    if unknown:
        ended = await hidden.git.run("show", "-s", "--format=%ct", *unknown)
        times = [int(line) for line in ended.out.split()]
        if not all(_ID.fullmatch(id) for id in unknown):  # A name may mean another commit later.
            return max([DEFAULT_TIME, *times, *(hidden.times.get(id, 0) for id in commits)])
        hidden.times.update(zip(unknown, times, strict=True))
    return max([DEFAULT_TIME, *(hidden.times[id] for id in commits)])


async def tree_of(hidden: HiddenRepository, id: str) -> str:
    """Return the tree of a commit, or the tree itself; raise WorkspaceError if there is none."""
    # The content of an object id never changes, so each is looked up once.
    if id in hidden.trees:
        return hidden.trees[id]
    ended = await hidden.git.run("rev-parse", "-q", "--verify", f"{id}^{{tree}}", ok=(0, 1, 128))
    if ended.code != 0 or len(ended.word) != hidden.id_length:
        raise WorkspaceError(
            f"The history has no commit or tree {id!r}.",
            next_step="If files below .mimir/ were removed, start a new run.",
        )
    if _ID.fullmatch(id):
        hidden.trees[id] = ended.word
    return ended.word


async def trees_of(hidden: HiddenRepository, ids: Sequence[str]) -> list[str]:
    """Return the tree of each commit or tree, in this order; empty: it cannot be read."""
    asked = [id for id in dict.fromkeys(ids) if _ID.fullmatch(id)]
    found = await _lookup_trees(hidden, asked)
    # Git gives up at a damaged object: look each up alone then.
    if found is None:
        alone = [await _lookup_trees(hidden, [id]) or [""] for id in asked]
        found = [answer for one in alone for answer in one]
    known = dict(zip(asked, found, strict=True))
    return [known.get(id, "") for id in ids]


async def _lookup_trees(hidden: HiddenRepository, ids: Sequence[str]) -> list[str] | None:
    # None: git gave up at a damaged object.
    if not ids:
        return []
    ended = await hidden.git.run(
        *("cat-file", "--batch-check=%(objectname) %(objecttype)"),
        stdin="".join(f"{id}^{{tree}}\n" for id in ids).encode(),
        ok=None,
    )
    answers = [line.split(" ") for line in ended.word.split("\n")]
    if ended.code != 0 or len(answers) != len(ids):
        return None
    return [answer[0] if answer[1:] == ["tree"] else "" for answer in answers]


async def message_of(hidden: HiddenRepository, id: str) -> str:
    """Return the message of a commit; raise WorkspaceError if there is none."""
    if not _ID.fullmatch(id):
        raise WorkspaceError(f"{id[:80]!r} is not a commit id.")
    ended = await hidden.git.run("cat-file", "commit", id, ok=(0, 1, 128))
    if ended.code != 0:
        raise WorkspaceError(f"The history has no commit {id!r}.")
    return ended.out.partition(b"\n\n")[2].decode("utf-8", "replace")
