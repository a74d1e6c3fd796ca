"""Glob patterns of paths: the one meaning of `files`, `tests` and `protect`. Pure.

`*`, `?` and `[...]` match within one path part; `**` as a whole part matches any number of parts.
A glob without wildcard in its last part, or with a trailing `/`, also matches all paths below it.
`.` matches everything. A path equal to the glob as text always matches (`pages/[id].tsx`).
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

_WILD = frozenset("*?[")


def matches(path: str, globs: Iterable[str]) -> bool:
    """Return whether any of `globs` matches the relative path of a file."""
    return any(_glob_matches(path, glob) for glob in globs)


def is_outside(glob: str) -> bool:
    """Return whether a glob leads out of the workspace; such a glob matches nothing."""
    return glob.startswith(("/", "~/")) or ".." in glob.split("/") or "\0" in glob


def has_wildcard(glob: str) -> bool:
    """Return whether a glob has a wildcard."""
    return not _WILD.isdisjoint(glob)


class _CompiledGlob(NamedTuple):
    parts: tuple[str, ...]
    below: bool
    """True: it also matches the paths below a match."""
    literal: str
    needle: str
    """Text that every match contains; it excludes most paths quickly."""


def _glob_matches(path: str, glob: str) -> bool:
    compiled = _compile_glob(glob)
    if compiled is None or compiled.needle not in path:
        return False
    if not compiled.parts:
        return compiled.below
    literal, below = compiled.literal, compiled.below
    if path == literal or (below and path.startswith(literal + "/")):
        return True
    return _matches_parts(tuple(path.split("/")), compiled.parts, below)


@lru_cache(maxsize=1024)
def _compile_glob(glob: str) -> _CompiledGlob | None:
    """Split a glob into parts; None: it leads out of the workspace."""
    if is_outside(glob):
        return None
    parts: list[str] = []
    for part in glob.split("/"):
        if part in ("", ".") or (part == "**" and parts and parts[-1] == "**"):
            continue
        parts.append(part)
    if not parts:
        return _CompiledGlob((), glob != "", "", "")
    below = glob.endswith("/") or not has_wildcard(parts[-1])
    fixed = [run for part in parts if "[" not in part for run in re.split(r"[*?]", part)]
    return _CompiledGlob(tuple(parts), below, "/".join(parts), max(fixed, key=len, default=""))


def _matches_parts(names: tuple[str, ...], parts: tuple[str, ...], below: bool) -> bool:
    # Globs come from models: a set of positions instead of backtracking keeps this linear.
    reached = {0}
    for number, part in enumerate(parts):
        if part == "**":
            if number < len(parts) - 1:
                reached = set(range(min(reached), len(names) + 1))
        else:
            reached = {i + 1 for i in reached if i < len(names) and _matches_part(names[i], part)}
        if not reached:
            return False
    if parts[-1] == "**":
        # `src/**` names the paths inside `src`, never a file `src`.
        return min(reached) < len(names)
    return below or len(names) in reached


def _matches_part(name: str, part: str) -> bool:
    # Greedy: on a mismatch only the latest `*` takes one more character.
    tokens = _tokens(part)
    at = token = 0
    star = -1
    resume = 0
    while at < len(name):
        if token < len(tokens) and tokens[token] == "*":
            star, resume = token, at
            token += 1
        elif token < len(tokens) and _matches_character(name[at], tokens[token]):
            at += 1
            token += 1
        elif star >= 0:
            resume += 1
            at, token = resume, star + 1
        else:
            return False
    return all(rest == "*" for rest in tokens[token:])


@lru_cache(maxsize=4096)
def _tokens(part: str) -> tuple[str, ...]:
    """Split a part into `*`, `?`, `[...]` and characters; an unclosed `[` is a character."""
    tokens: list[str] = []
    at = 0
    while at < len(part):
        if part[at] == "[":
            # A `]` right after the opening (or its negation) belongs to the set.
            start = at + 2 if part[at + 1 : at + 2] in ("!", "^") else at + 1
            end = part.find("]", start + 1)
            if end > 0:
                tokens.append(part[at : end + 1])
                at = end + 1
                continue
        if not (part[at] == "*" and tokens and tokens[-1] == "*"):
            tokens.append(part[at])
        at += 1
    return tuple(tokens)


def _matches_character(character: str, token: str) -> bool:
    if token == "?":
        return True
    if len(token) == 1:
        return character == token
    body = token[1:-1]
    negated = body[0] in "!^"
    return _in_set(character, body[1:] if negated else body) != negated


def _in_set(character: str, body: str) -> bool:
    at = 0
    while at < len(body):
        if at + 2 < len(body) and body[at + 1] == "-":
            if body[at] <= character <= body[at + 2]:
                return True
            at += 3
        else:
            if body[at] == character:
                return True
            at += 1
    return False
