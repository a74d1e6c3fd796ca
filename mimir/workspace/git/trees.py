"""Trees: list, compare, read and edit them without a work tree."""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal, cast

from mimir.domain.value_class import value_class
from mimir.errors import WorkspaceError
from mimir.workspace.git.commits import is_object
from mimir.workspace.git.hidden_repository import HiddenRepository

LINK = "120000"
SUBMODULE = "160000"
EXECUTABLE = "100755"

ChangeStatus = Literal["added", "modified", "deleted"]

_STATUS: Mapping[str, ChangeStatus] = {"A": "added", "D": "deleted"}
# Answers of git that are kept: a run asks about the same few trees again.
MOST_LISTINGS = 64
_RAW = re.compile(r":(\d+) (\d+) ([0-9a-f]+) ([0-9a-f]+) ([A-Z])\d*")


@value_class
class TreeEntry:
    """One file of a tree."""

    mode: str
    """Six digits, as in git."""
    blob: str
    path: str


@value_class
class TreeChange:
    """One file that differs between two trees."""

    path: str
    status: ChangeStatus
    old_blob: str | None
    """None: added."""
    new_blob: str | None
    """None: deleted."""
    old_mode: str | None
    mode: str | None
    """The new mode, six digits. None: deleted."""

    @property
    def old(self) -> TreeEntry | None:
        """The entry before."""
        if self.old_blob is None or self.old_mode is None:
            return None
        return TreeEntry(mode=self.old_mode, blob=self.old_blob, path=self.path)

    @property
    def new(self) -> TreeEntry | None:
        """The entry after."""
        if self.new_blob is None or self.mode is None:
            return None
        return TreeEntry(mode=self.mode, blob=self.new_blob, path=self.path)


async def entries(hidden: HiddenRepository, tree: str) -> list[TreeEntry]:
    """List all files of a tree, in git's order."""
    known = hidden.listings.get(tree)
    if known is not None:
        return list(cast("tuple[TreeEntry, ...]", known))
    ended = await hidden.git.run("ls-tree", "-r", "-z", "--full-tree", tree)
    found: list[TreeEntry] = []
    for line in ended.names:
        facts, path = line.split("\t", 1)
        mode, _, blob = facts.split(" ")
        found.append(TreeEntry(mode=mode, blob=blob, path=path))
    _remember(hidden, tree, tuple(found), tree)
    return found


async def diff_trees(hidden: HiddenRepository, a: str, b: str) -> tuple[TreeChange, ...]:
    """Return the files that differ from `a` to `b`, in git's order, without renames."""
    if a == b:
        return ()
    known = hidden.listings.get(f"{a}..{b}")
    if known is not None:
        return cast("tuple[TreeChange, ...]", known)
    ended = await hidden.git.run(
        "diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", a, b
    )
    found: list[TreeChange] = []
    words = iter(ended.names)
    for fact in words:
        match = _RAW.fullmatch(fact)
        if match is None:
            raise WorkspaceError(f"git diff-tree gave an unknown line: {fact[:80]!r}")
        old_mode, new_mode, old_blob, new_blob, letter = match.groups()
        found.append(
            TreeChange(
                path=next(words),
                status=_STATUS.get(letter, "modified"),
                old_blob=None if letter == "A" else old_blob,
                new_blob=None if letter == "D" else new_blob,
                old_mode=None if letter == "A" else old_mode,
                mode=None if letter == "D" else new_mode,
            )
        )
    _remember(hidden, f"{a}..{b}", tuple(found), a, b)
    return tuple(found)


def _remember(hidden: HiddenRepository, key: str, answer: tuple[object, ...], *ids: str) -> None:
    # The name of a branch may mean another commit later.
    if not all(is_object(id) for id in ids):
        return
    while len(hidden.listings) >= MOST_LISTINGS:
        del hidden.listings[next(iter(hidden.listings))]
    hidden.listings[key] = answer


async def diff(
    hidden: HiddenRepository, a: str, b: str, *, paths: Sequence[str], max_bytes: int
) -> str:
    """Return the difference as a patch, cut with a mark at `max_bytes`."""
    ended = await hidden.git.run(
        *("diff-tree", "-r", "-p", "--no-color", "--no-renames", "--no-ext-diff", "--no-textconv"),
        *(a, b, "--", *paths),
        literal=True,
        max_bytes=max_bytes,
    )
    text = ended.out.decode("utf-8", errors="replace")
    return (
        f"{text}\n… cut here: the difference is longer than {max_bytes} bytes …\n"
        if ended.cut
        else text
    )


async def file(hidden: HiddenRepository, tree: str, path: str) -> bytes | None:
    """Return the content of a file or the target of a link; None: there is none."""
    if path.startswith("/") or ".." in path.split("/") or not path:
        return None
    ended = await hidden.git.run("ls-tree", "-z", "--full-tree", tree, "--", path, literal=True)
    for line in ended.names:
        facts, name = line.split("\t", 1)
        _, kind, id = facts.split(" ")
        if name == path and kind == "blob":  # A submodule is a commit.
            return await blob(hidden, id)
    return None


async def blob(hidden: HiddenRepository, id: str) -> bytes:
    """Return the content of a blob; raise WorkspaceError if there is none."""
    return (await hidden.git.run("cat-file", "blob", id)).out


async def put_blob(hidden: HiddenRepository, content: bytes) -> str:
    """Store the content of a blob; return its id."""
    command = ("hash-object", "-w", "--stdin", "--no-filters")
    # Whole, without the user's objects: those may be collected.
    return (await hidden.git.without_alternates().run(*command, stdin=content)).word


async def blobs(hidden: HiddenRepository, ids: Iterable[str]) -> dict[str, bytes]:
    """Return the contents of several blobs, without missing ones."""
    wanted = list(dict.fromkeys(ids))
    if not wanted:
        return {}
    ended = await hidden.git.run(
        "cat-file", "--batch", stdin="".join(f"{id}\n" for id in wanted).encode()
    )
    found: dict[str, bytes] = {}
    rest = memoryview(ended.out)
    for id in wanted:
        line_end = bytes(rest[:200]).index(b"\n")
        words = bytes(rest[:line_end]).split(b" ")
        rest = rest[line_end + 1 :]
        if words[-1] != b"missing":
            size = int(words[-1])
            found[id] = bytes(rest[:size])
            rest = rest[size + 1 :]
    return found


async def find_oversized(
    hidden: HiddenRepository, a: str, b: str, most_bytes: int
) -> tuple[str, ...]:
    """Return the largest files of `b` without which its changes since `a` fit `most_bytes`."""
    changes = await diff_trees(hidden, a, b)
    new = {one.path: one.new_blob for one in changes if one.new_blob and one.mode != SUBMODULE}
    asked = "".join(f"{id}\n" for id in dict.fromkeys(new.values())).encode()
    if not asked:
        return ()
    ended = await hidden.git.run(
        *("cat-file", "--batch-check=%(objectname) %(objectsize)"), stdin=asked
    )
    sizes = dict(line.split(" ") for line in ended.word.splitlines())
    by_path = {path: int(sizes[id]) for path, id in new.items() if sizes[id].isdigit()}
    total = sum(by_path.values())
    largest: list[str] = []
    for path in sorted(by_path, key=lambda path: -by_path[path]):
        if total <= most_bytes:
            break
        total -= by_path[path]
        largest.append(path)
    return tuple(largest)


async def edit_tree(
    hidden: HiddenRepository, tree: str, edits: Mapping[str, TreeEntry | None]
) -> str:
    """Return `tree` with each path of `edits` replaced; None: removed."""
    if not edits:
        return tree
    with hidden.index() as index:
        await hidden.git.run("read-tree", tree, index=index)
        await put_entries(hidden, index, edits)
        return hidden.remember_tree(await hidden.git.word("write-tree", index=index))


async def put_entries(
    hidden: HiddenRepository,
    index: Path,
    edits: Mapping[str, TreeEntry | None],
    *,
    tree: Path | None = None,
) -> None:
    """Write entries (None: removed) into an index file, which describes `tree` if given."""
    # Git rewrites the index. Entries as young as the old index must be compared with their files
    # before that: in a newer index they would count as unchanged. Without the tree git cannot.
    await hidden.git.run(
        *("update-index", "--add", "--replace", "-z", "--index-info"),
        tree=tree,
        index=index,
        stdin=index_lines(edits, hidden.id_length),
    )


def index_lines(edits: Mapping[str, TreeEntry | None], id_length: int) -> bytes:
    """Encode edits for `update-index --index-info`."""
    gone = "0" * id_length
    # Removals first: a file may replace a directory.
    ordered = sorted(edits.items(), key=lambda item: item[1] is not None)
    records = [
        f"0 {gone}\t{path}\0" if new is None else f"{new.mode} {new.blob}\t{path}\0"
        for path, new in ordered
    ]
    return "".join(records).encode("utf-8", "surrogateescape")


async def write_tree(hidden: HiddenRepository, files: Iterable[TreeEntry]) -> str:
    """Write a tree of exactly these files."""
    with hidden.index() as index:
        await put_entries(hidden, index, {one.path: one for one in files})
        return hidden.remember_tree(await hidden.git.word("write-tree", index=index))


async def may_hold_text(hidden: HiddenRepository, tree: str, text: str) -> bool:
    """Return whether a file of a tree holds a text; True also if git cannot tell."""
    ended = await hidden.git.run("grep", "-q", "-F", "-e", text, tree, ok=None)
    return ended.code != 1


async def links_out(
    hidden: HiddenRepository, tree: str, among: Sequence[str] | None
) -> tuple[str, ...]:
    """Return the links of a tree (of `among` only) that lead out of it."""
    wanted = None if among is None else frozenset(among)
    links = [
        one
        for one in await entries(hidden, tree)
        if one.mode == LINK and (wanted is None or one.path in wanted)
    ]
    targets = await blobs(hidden, (link.blob for link in links))
    return tuple(link.path for link in links if leads_out(link.path, targets[link.blob]))


def leads_out(path: str, target: bytes) -> bool:
    """Return whether a link at `path` may lead out of the tree."""
    # Safe is only `../…/name/…` with no `..` after a name (which could be a link itself) and no
    # more `..` than directories above. Such links lead to each other or to files, never out.
    parts = [part for part in target.split(b"/") if part not in (b"", b".")]
    climbs = 0
    while climbs < len(parts) and parts[climbs] == b"..":
        climbs += 1
    return (
        target.startswith(b"/")
        or not target
        or b".." in parts[climbs:]
        or climbs > path.count("/")
        or b".git" in (part.lower() for part in parts)
    )
