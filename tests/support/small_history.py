"""A history of trees and commits that are only names."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field

from mimir.errors import WorkspaceError


def object_id(name: str) -> str:
    """Return the stand-in for a git object of this name."""
    return hashlib.sha1(name.encode()).hexdigest()


@dataclass
class FakeHistory:
    """Commits and trees by id; an entry in `damaged` is reported of each object that holds it."""

    commits: dict[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])
    """Commit → (tree, message)."""
    trees_there: set[str] = field(default_factory=set[str])
    damaged: dict[str, str] = field(default_factory=dict[str, str])
    """Commit or tree → the damage of an object below it."""
    looks: int = 0

    def commit(self, name: str, tree: str, message: str = "") -> str:
        id = object_id(f"commit {name}")
        self.commits[id] = (tree, message)
        return id

    def tree(self, name: str) -> str:
        id = object_id(f"tree {name}")
        self.trees_there.add(id)
        return id

    async def trees(self, sources: Sequence[str]) -> list[str]:
        return [
            self.commits[s][0] if s in self.commits else s if s in self.trees_there else ""
            for s in sources
        ]

    async def message(self, commit: str) -> str:
        if commit not in self.commits:
            raise WorkspaceError("no such commit")
        return self.commits[commit][1]

    async def verify_objects(self, commits: Sequence[str], trees: Sequence[str] = ()) -> list[str]:
        self.looks += 1
        ids = [*commits, *trees, *(self.commits[c][0] for c in commits)]
        return sorted({self.damaged[id] for id in ids if id in self.damaged})
