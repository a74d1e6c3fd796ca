"""Verification that the objects of a result still match their ids."""

import asyncio
import hashlib
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from mimir.workspace.git.hidden_repository import HiddenRepository

Kind = Literal["commit", "tree", "blob"]
_SUBMODULE = b"160000"
_TREE = b"40000"


@dataclass(frozen=True, slots=True)
class _RequiredObject:
    id: str
    kind: Kind
    path: str


async def verify(
    hidden: HiddenRepository, commits: Sequence[str], trees: Sequence[str] = ()
) -> list[str]:
    """Describe every object reachable from these that is missing or changed."""
    problems, elsewhere = await asyncio.to_thread(_walk, hidden, commits, trees)
    return sorted([*problems, *await _find_missing(hidden, elsewhere)])


def _walk(
    hidden: HiddenRepository, commits: Sequence[str], trees: Sequence[str]
) -> tuple[list[str], list[_RequiredObject]]:
    problems: list[str] = []
    elsewhere: list[_RequiredObject] = []
    waiting = [_RequiredObject(id, "tree", "") for id in trees]
    waiting += [_RequiredObject(id, "commit", f"commit {id[:12]}") for id in commits]
    seen = {one.id for one in waiting}
    algorithm = "sha256" if hidden.id_length == 64 else "sha1"
    while waiting:
        wanted = waiting.pop()
        file = hidden.directory / "objects" / wanted.id[:2] / wanted.id[2:]
        try:
            stored = file.read_bytes()
        except FileNotFoundError:
            elsewhere.append(wanted)
            continue
        except OSError as error:
            problems.append(f"{_describe(wanted)} cannot be read: {error.strerror}")
            continue
        # A tree is followed only after its own bytes are verified.
        content = _true_content(stored, wanted, algorithm)
        if content is None:
            problems.append(f"{_describe(wanted)} was changed: its content does not match its id")
            continue
        for child in _children(wanted, content, hidden.id_length):
            if child.id not in seen:
                seen.add(child.id)
                waiting.append(child)
    return problems, elsewhere


def _true_content(stored: bytes, wanted: _RequiredObject, algorithm: str) -> bytes | None:
    """Return the content of an object file; None: it does not match its id."""
    reader = zlib.decompressobj()
    try:
        data = reader.decompress(stored) + reader.flush()
    except zlib.error:
        return None
    # Bytes after the end of the stream are a change too.
    if not reader.eof or reader.unused_data:
        return None
    # The algorithm of git, not a choice of the engine.
    if hashlib.new(algorithm, data, usedforsecurity=False).hexdigest() != wanted.id:
        return None
    header, _, content = data.partition(b"\0")
    return content if header == f"{wanted.kind} {len(content)}".encode() else None


def _children(parent: _RequiredObject, content: bytes, id_length: int) -> Iterator[_RequiredObject]:
    match parent.kind:
        case "commit":
            yield from _commit_children(content)
        case "tree":
            yield from _tree_children(parent, content, id_length // 2)
        case "blob":
            return


def _commit_children(content: bytes) -> Iterator[_RequiredObject]:
    for line in content.partition(b"\n\n")[0].split(b"\n"):
        word, _, value = line.partition(b" ")
        if word == b"tree":
            yield _RequiredObject(value.decode(), "tree", "")
        elif word == b"parent":
            yield _RequiredObject(value.decode(), "commit", f"commit {value.decode()[:12]}")


def _tree_children(
    parent: _RequiredObject, content: bytes, width: int
) -> Iterator[_RequiredObject]:
    at = 0
    while at < len(content):
        space = content.index(b" ", at)
        end = content.index(b"\0", space)
        mode, name = content[at:space], content[space + 1 : end].decode("utf-8", "backslashreplace")
        id = content[end + 1 : end + 1 + width].hex()
        at = end + 1 + width
        if mode != _SUBMODULE:
            yield _RequiredObject(
                id, "tree" if mode == _TREE else "blob", f"{parent.path}/{name}".lstrip("/")
            )


async def _find_missing(
    hidden: HiddenRepository, elsewhere: Sequence[_RequiredObject]
) -> list[str]:
    # These objects are in packs or in the user's repository, and are not hashed here.
    if not elsewhere:
        return []
    asked = "".join(f"{one.id}\n" for one in elsewhere).encode()
    answers = (await hidden.git.run("cat-file", "--batch-check", stdin=asked)).word.split("\n")
    problems = [
        f"{_describe(one)} is missing"
        for one, answer in zip(elsewhere, answers, strict=True)
        if answer.split(" ")[1:2] != [one.kind]
    ]
    # mimir itself writes no packs here; fetches do.
    for pack in await asyncio.to_thread(hidden.packs):
        ended = await hidden.git.run("verify-pack", str(pack), ok=None)
        if ended.code != 0:
            problems.append(f"pack {pack.name} was changed")
    return problems


def _describe(one: _RequiredObject) -> str:
    return f"{one.kind} {one.id[:12]}" + (
        f" ({one.path})" if one.path and one.kind != "commit" else ""
    )
