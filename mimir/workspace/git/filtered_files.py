"""Files that git stores through a filter, such as LFS or git-crypt; no filter is run."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace

from mimir.workspace.git.git_command import GitResult
from mimir.workspace.git.hidden_repository import HiddenRepository
from mimir.workspace.git.trees import entries


async def find_filtered(
    hidden: HiddenRepository, trees: Sequence[str], paths: Sequence[str]
) -> tuple[str, ...]:
    """Return those of `paths` that have a filter by the attributes of one of these trees."""
    found: set[str] = set()
    for tree in trees if hidden.user and paths else ():
        found |= await _find_in_tree(hidden, tree, paths)
    return tuple(path for path in paths if path in found)


async def _find_in_tree(hidden: HiddenRepository, tree: str, paths: Sequence[str]) -> set[str]:
    user = hidden.user
    assert user is not None
    listed = await entries(hidden, tree)
    has_attributes = any(one.path.rpartition("/")[2] == ".gitattributes" for one in listed)
    if not has_attributes and not (user.common / "info/attributes").exists():
        return set()
    # The user's repository has `info/attributes`; the hidden one switches all attributes off.
    git = replace(user.git, alternates=(hidden.directory / "objects",))
    with hidden.index() as index:
        await git.run("read-tree", tree, index=index)
        asked = ("check-attr", "--cached", "-z", "--stdin", "filter")
        return parse_filtered(await git.run(*asked, index=index, stdin=encode(paths)))


def encode(paths: Iterable[str]) -> bytes:
    """Encode paths for the standard input of `check-attr`."""
    return b"".join(os.fsencode(path) + b"\0" for path in paths)


def parse_filtered(ended: GitResult) -> set[str]:
    """Return the paths to which `check-attr -z filter` gives a filter."""
    words = ended.out.split(b"\0")
    return {
        os.fsdecode(path)
        for path, value in zip(words[0::3], words[2::3], strict=False)
        if value not in (b"unspecified", b"unset")
    }
