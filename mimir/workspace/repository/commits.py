"""Commits: made without a work tree, the same from the same parts."""

from collections.abc import Sequence

from mimir.errors import WorkspaceError
from mimir.workspace.repository.hidden import DEFAULT_TIME, Hidden


async def commit(
    hidden: Hidden, tree: str, parents: Sequence[str], message: str, *, when: int | None = None
) -> str:
    """Make a commit object; the same parts give the same id.

    Args:
        hidden: The repository.
        tree: Its tree.
        parents: Its parents, first the line that it continues.
        message: Any text; NUL, which git refuses, is dropped.
        when: Seconds since 1970. None: the time of the newest parent, so that no child is older than its parent.
    """
    seconds = await newest(hidden, parents) if when is None else when
    date = f"@{seconds} +0000"
    ended = await hidden.git.run(
        *("commit-tree", tree, *(word for parent in parents for word in ("-p", parent)), "-F", "-"),
        stdin=message.replace("\0", "").encode("utf-8", "replace"),
        extra={"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date},
    )
    return ended.word


async def newest(hidden: Hidden, commits: Sequence[str]) -> int:
    """Return the committer's time of the newest of some commits, `DEFAULT_TIME` at least."""
    if not commits:
        return DEFAULT_TIME
    ended = await hidden.git.run("show", "-s", "--format=%ct", *commits)
    return max(DEFAULT_TIME, *(int(line) for line in ended.out.split()))


async def tree_of(hidden: Hidden, id: str) -> str:
    """Return the tree of a commit, or the tree itself.

    Raises:
        WorkspaceError: There is no such commit or tree.
    """
    ended = await hidden.git.run("rev-parse", "-q", "--verify", f"{id}^{{tree}}", ok=(0, 1, 128))
    if ended.code != 0 or len(ended.word) != hidden.id_length:
        raise WorkspaceError(
            f"The history has no commit or tree {id!r}.",
            next_step="If files below .mimir/ were removed, start a new run.",
        )
    return ended.word


async def parents_of(hidden: Hidden, id: str) -> tuple[str, ...]:
    """Return the parents of a commit."""
    return tuple((await hidden.git.word("show", "-s", "--format=%P", id)).split())
