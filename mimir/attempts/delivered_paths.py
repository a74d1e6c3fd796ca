"""Bounds of deliverables: embedded repositories, reserved names, number and size of files."""

import posixpath
from collections.abc import Callable, Collection, Mapping, Sequence

from mimir.domain.value_class import value_class
from mimir.workspace.user_tree.user_file import LEFTOVER

_HEAD, _OBJECTS, _REFS, _COMMON = "HEAD", "objects", "refs", "commondir"
REPOSITORY_NAMES = frozenset({_HEAD, _OBJECTS, _REFS, _COMMON})


@value_class
class DeliverableLimits:
    """Largest deliverable."""

    files: int = 5_000
    megabytes: int = 100

    @property
    def most_bytes(self) -> int:
        """The limit in bytes."""
        return self.megabytes * 1_000_000


DEFAULT_LIMITS = DeliverableLimits()


def find_repositories(paths: Collection[str]) -> tuple[str, ...]:
    """Return the directories of a tree that git takes for a repository; "." is the top."""
    # Git asks for HEAD, and for objects and refs there or in the directory that `commondir` names.
    heads = {posixpath.dirname(path) for path in paths if posixpath.basename(path) == _HEAD}
    if not heads:
        return ()
    known = set(paths)
    for path in paths:
        parent = posixpath.dirname(path)
        while parent and parent not in known:
            known.add(parent)
            parent = posixpath.dirname(parent)
    return tuple(sorted(top or "." for top in heads if is_repository(top, known.__contains__)))


def is_repository(directory: str, exists: Callable[[str], bool]) -> bool:
    """Return whether git takes a directory for a repository; "" is the top."""

    def has(name: str) -> bool:
        return exists(posixpath.join(directory, name))

    return has(_HEAD) and (has(_COMMON) or (has(_OBJECTS) and has(_REFS)))


def find_completed_repository(path: str, exists: Callable[[str], bool]) -> str:
    """Return the directory that a new file would make a repository; empty: none."""
    parts = path.split("/")
    folders = {"/".join(parts[: number + 1]) for number in range(len(parts))}
    for number, part in enumerate(parts):
        top = "/".join(parts[:number])
        if part in REPOSITORY_NAMES and is_repository(top, lambda p: p in folders or exists(p)):
            return top or "."
    return ""


def may_touch_repository(changed: Sequence[str]) -> bool:
    """Return whether a change of these paths can make a repository, or change one."""
    return any(not REPOSITORY_NAMES.isdisjoint(path.split("/")) for path in changed)


def find_left_out(
    changed: Sequence[str], paths: Sequence[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the changed paths that a deliverable leaves out, and a note for each group.

    `paths` are those of its tree; they are needed only if `may_touch_repository`.
    """
    inside = find_inside(changed, find_repositories(paths))
    groups: dict[str, list[str]] = {}
    for path, top in inside.items():
        groups.setdefault(top, []).append(path)
    notes = [
        f"{found[0]!r} is not in the deliverable: git would take {top!r} for a repository and run the commands that its "
        f"configuration names. Left out there: {len(found)} changed files."
        for top, found in groups.items()
    ]
    reserved = find_reserved(changed)
    notes += [f"{path!r} is not in the deliverable: its name is reserved." for path in reserved]
    return (*inside, *reserved), tuple(notes)


def find_inside(changed: Sequence[str], repositories: Sequence[str]) -> Mapping[str, str]:
    """Return the changed paths inside of embedded repositories, with the repository."""
    own = {_HEAD, _OBJECTS, _REFS, _COMMON, "config", "config.worktree", "hooks", "info"}
    inside: dict[str, str] = {}
    for path in changed:
        for top in repositories:
            # At the top only git's own files: all others are the project's.
            if path.startswith(f"{top}/") or (top == "." and path.split("/")[0] in own):
                inside[path] = top
                break
    return inside


def find_reserved(changed: Sequence[str]) -> tuple[str, ...]:
    """Return the changed paths with a name that only the application of a result may use."""
    return tuple(
        path for path in changed if any(part.startswith(LEFTOVER) for part in path.split("/"))
    )
