"""Refs of mimir in the user's repository, with the objects that they need; no hook runs."""

import asyncio
import itertools
import json
import re
from collections.abc import Mapping

from mimir.domain.value_class import value_class
from mimir.errors import WorkspaceError
from mimir.workspace.aio import gather_both
from mimir.workspace.git.commits import commit, tree_of
from mimir.workspace.git.discovery import UserRepository
from mimir.workspace.git.git_command import GitCommand
from mimir.workspace.git.hidden_repository import HiddenRepository
from mimir.workspace.git.stored_form import convert_to_stored
from mimir.workspace.git.trees import TreeEntry, entries, write_tree

FOLDERS = ("mimir", "mimir-runs")
"""Folders of the branches; a later one is used if the user has a branch of that name."""
_BAD = re.compile(r"(?:[^A-Za-z0-9._-]|\.{2,})+")


@value_class
class _BranchOrigin:
    head: str | None
    left_out: tuple[str, ...]


def ref_part(name: str) -> str:
    """Make any text one part of the name of a ref."""
    part = _BAD.sub("-", name).strip("-.")
    return part.removesuffix(".lock") or "unnamed"


async def pin_commit(
    hidden: HiddenRepository, ref: str, id: str, *, head: str | None = None
) -> None:
    """Point a ref at a commit, where the user's garbage collection respects it."""
    await gather_both(_set(hidden.git, ref, id), _pin_there(hidden, ref, id, head))
    hidden.pins[ref] = id


async def _pin_there(hidden: HiddenRepository, ref: str, id: str, head: str | None) -> None:
    if hidden.user is None:
        return
    if id != head:
        await push_result(hidden, hidden.user, id)
    await _set(hidden.user.git, ref, id)


async def branch(hidden: HiddenRepository, name: str, id: str) -> str:
    """Create or move the branch `mimir/<name>` to a commit of the run branch; return its name.

    If the user has a branch `mimir`, git cannot have `mimir/<name>`: then it is `mimir-runs/<name>`.
    Files outside of the base or of the project are restored in it: it can be merged.
    WorkspaceError: it is checked out; the commit stays at `refs/mimir/result/<name>`.
    """
    part = ref_part(name)
    await pin_commit(hidden, f"refs/mimir/result/{part}", id)
    user = hidden.user
    short = f"{await _free_folder(user)}/{part}"
    if user is None:
        await _set(hidden.git, f"refs/heads/{short}", id)
        return short
    exported = await export_commit(hidden, user, id)
    if exported != id:  # `pin_commit` copied the commit itself
        await push_result(hidden, user, exported)
    if await _is_checked_out(user, f"refs/heads/{short}", exported):
        raise WorkspaceError(
            f"The branch {short} is checked out, so it is not moved.",
            next_step=f"Check out another branch, then: git branch -f {short} {exported[:12]}",
        )
    await _set(user.git, f"refs/heads/{short}", exported)
    return short


async def _free_folder(user: UserRepository | None) -> str:
    """Return the first folder of branches whose name is no branch of the user."""
    taken: set[str] = set()
    if user is not None:
        listed = await user.git.run("for-each-ref", "--format=%(refname)", "refs/heads/mimir*")
        # A branch that is checked out may have no commit yet.
        taken = {*listed.word.split("\n"), f"refs/heads/{await user.branch()}"}
    names = itertools.chain(FOLDERS, (f"{FOLDERS[-1]}-{n}" for n in itertools.count(2)))
    return next(name for name in names if f"refs/heads/{name}" not in taken)


async def pin_ref(hidden: HiddenRepository, name: str, id: str) -> str:
    """Pin a commit without a branch; return the name that the branch has elsewhere."""
    part = ref_part(name)
    await _set(hidden.git, f"refs/mimir/result/{part}", id)
    return f"mimir/{part}"


async def export_commit(hidden: HiddenRepository, user: UserRepository, id: str) -> str:
    """Return a commit that fits into the user's repository.

    If the project is a part of it, this is a commit on the user's commit with all else unchanged.
    """
    origin = await _origin(hidden, id)
    if origin is None or origin.head is None:
        if not user.prefix:
            return id
        origin = origin or _BranchOrigin(head=None, left_out=())
    prefix = f"{user.prefix}/" if user.prefix else ""
    theirs = await entries(hidden, origin.head) if origin.head else []
    kept = [
        one
        for one in theirs
        if not one.path.startswith(prefix) or _is_left_out(one.path, prefix, origin.left_out)
    ]
    tree = await tree_of(hidden, id)
    ours = [
        TreeEntry(mode=one.mode, blob=one.blob, path=prefix + one.path)
        for one in await entries(hidden, tree)
        if not _is_left_out(prefix + one.path, prefix, origin.left_out)
    ]
    stored = await convert_to_stored(hidden, user, origin.head, ours, theirs)
    if not prefix and not kept and stored == ours:
        return id
    message = await hidden.git.run("show", "-s", "--format=%B", id)
    time = await hidden.git.word("show", "-s", "--format=%ct", id)
    return await commit(
        hidden,
        await write_tree(hidden, [*kept, *stored]),
        [origin.head] if origin.head else [],
        message.out.decode("utf-8", "replace").rstrip("\n") + "\n",
        when=int(time),
    )


def _is_left_out(path: str, prefix: str, left_out: tuple[str, ...]) -> bool:
    return path.startswith(prefix) and path[len(prefix) :].split("/", 1)[0] in left_out


async def left_out_of(hidden: HiddenRepository, id: str) -> tuple[str, ...]:
    """Return the top-level names that the base of a commit left out."""
    origin = await _origin(hidden, id)
    return origin.left_out if origin else ()


async def _origin(hidden: HiddenRepository, id: str) -> _BranchOrigin | None:
    notes = await asyncio.to_thread(_notes, hidden)
    if not notes:
        return None
    history = await hidden.git.run("rev-list", "--first-parent", "--max-count=20000", id)
    for ancestor in history.word.split("\n"):
        if ancestor in notes:
            return notes[ancestor]
    return None


def _notes(hidden: HiddenRepository) -> Mapping[str, _BranchOrigin]:
    found: dict[str, _BranchOrigin] = {}
    for file in (hidden.engine_dir / "bases").glob("*.json"):
        note = json.loads(file.read_text())
        found[file.stem] = _BranchOrigin(head=note["head"], left_out=tuple(note["left_out"]))
    return found


async def push_result(hidden: HiddenRepository, user: UserRepository, id: str) -> None:
    """Copy a commit and all that it reaches into the user's repository."""
    head = await user.head()
    if id == head:
        return
    # Only objects that the user's repository lacks are packed.
    known = await user.git.run("for-each-ref", "--format=%(objectname)", "refs/mimir")
    known_ids = {*known.word.split(), *([head] if head else [])}
    if id in known_ids:
        return
    wanted = "".join([f"{id}\n", *(f"^{one}\n" for one in sorted(known_ids))])
    await hidden.git.pipe(
        ("pack-objects", "--revs", "--stdout", "-q", "--missing=allow-any"),
        wanted.encode(),
        user.git,
        ("unpack-objects", "-q"),
    )


async def _set(repository: GitCommand, ref: str, id: str) -> None:
    await repository.run("update-ref", ref, id)


async def _is_checked_out(user: UserRepository, ref: str, id: str) -> bool:
    # A branch must not move under a work tree of the user.
    now = await user.git.run("rev-parse", "-q", "--verify", ref, ok=None)
    if now.code != 0 or now.word == id:
        return False
    trees = await user.git.run("worktree", "list", "--porcelain", "-z", ok=None)
    return f"branch {ref}" in trees.names
