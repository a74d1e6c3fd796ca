"""One commit on the user's branch, with an otherwise unchanged index and without hooks."""

import asyncio
from collections.abc import Mapping

from mimir.errors import WorkspaceError
from mimir.workspace.git import user_refs
from mimir.workspace.git.commits import commit, newest, tree_of
from mimir.workspace.git.discovery import UserRepository
from mimir.workspace.git.hidden_repository import HiddenRepository
from mimir.workspace.git.stored_form import convert_to_stored
from mimir.workspace.git.trees import TreeEntry, entries, index_lines, put_entries

_UNDER_WAY = ("MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "rebase-merge", "rebase-apply")


async def commit_for_person(
    hidden: HiddenRepository,
    files: Mapping[str, TreeEntry | None],
    message: str,
    *,
    when: int | None,
) -> str:
    """Commit exactly these files (None: removed) on the user's branch; return the commit."""
    user = hidden.user
    if user is None:
        raise WorkspaceError(
            "Cannot commit: the project is not in a git repository.", next_step="Use --apply auto."
        )
    await asyncio.to_thread(_require_rest, user)
    prefix = f"{user.prefix}/" if user.prefix else ""
    edits = {
        prefix + path: None
        if one is None
        else TreeEntry(mode=one.mode, blob=one.blob, path=prefix + path)
        for path, one in files.items()
    }
    head = await user.head()
    theirs = await entries(hidden, head) if head else []
    new = [one for one in edits.values() if one]
    for one in await convert_to_stored(hidden, user, head, new, theirs):
        edits[one.path] = one
    with hidden.index() as index:
        await hidden.git.run("read-tree", head or "--empty", index=index)
        await put_entries(hidden, index, edits)
        tree = await hidden.git.word("write-tree", index=index)
    if head is not None and await tree_of(hidden, head) == tree:
        return head
    time = await newest(hidden, [head] if head else []) if when is None else when
    commit_id = await commit(hidden, tree, [head] if head else [], message, when=time)
    await user_refs.push_result(hidden, user, commit_id)
    # The index first: if another git has its lock, the branch is not moved.
    await user.git.run(
        *("update-index", "--add", "--replace", "-z", "--index-info"),
        tree=user.top,
        stdin=index_lines(edits, hidden.id_length),
    )
    await user.git.run(
        # With a reflog entry, so that the user can undo it.
        *("-c", "core.logAllRefUpdates=true", "update-ref", "-m", "mimir: apply"),
        *("HEAD", commit_id, head or "0" * hidden.id_length),
    )
    return commit_id


def _require_rest(user: UserRepository) -> None:
    directory = user.git.directory
    assert directory is not None
    for name in _UNDER_WAY:
        if (directory / name).exists():
            raise WorkspaceError(
                f"Cannot commit: a merge or rebase is unfinished in {user.top} ({name}).",
                next_step="Finish it, then: mimir apply",
            )
