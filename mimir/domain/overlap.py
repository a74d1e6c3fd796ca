"""Overlap of globs: whether some path could match two of them. Pure.

A wrong answer is always yes: then work is kept apart, never lost.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import takewhile

from mimir.domain.globs import has_wildcard, is_outside

_ANY = "**"


@lru_cache(maxsize=65_536)
def overlap(a: str, b: str) -> bool:
    """Return whether a path could match both globs, in time of the product of their lengths."""
    if is_outside(a) or is_outside(b) or not a or not b:
        return False
    return _meet(_parts(a), _parts(b), any_of=_ANY, same=_parts_meet)


def _parts(glob: str) -> tuple[str, ...]:
    """Split a glob into parts; one that matches the paths below it ends in `**`."""
    parts = [part for part in glob.split("/") if part not in ("", ".")]
    below = not parts or glob.endswith("/") or not has_wildcard(parts[-1])
    return (*parts, _ANY) if below else tuple(parts)


def _parts_meet(a: str, b: str) -> bool:
    return _meet(tuple(a), tuple(b), any_of="*", same=_characters_meet)


def _characters_meet(a: str, b: str) -> bool:
    return a == b or a in "?[" or b in "?["


def _meet(
    a: Sequence[str], b: Sequence[str], *, any_of: str, same: Callable[[str, str], bool]
) -> bool:
    """Return whether two patterns have a common match, by reachable pairs of positions."""
    if any_of == "*" and ("[" in a or "]" in a or "[" in b or "]" in b):
        return True  # A character set may match anything; exactness is not worth it.
    reached = {(0, 0)}
    waiting = [(0, 0)]
    while waiting:
        for step in _steps(*waiting.pop(), a, b, any_of, same):
            if step not in reached:
                reached.add(step)
                waiting.append(step)
    return (len(a), len(b)) in reached


def _steps(
    i: int,
    j: int,
    a: Sequence[str],
    b: Sequence[str],
    any_of: str,
    same: Callable[[str, str], bool],
) -> Iterator[tuple[int, int]]:
    """Yield the positions after one more element, or after an `any_of` that ends."""
    here, there = i < len(a), j < len(b)
    if here and a[i] == any_of:
        yield i + 1, j
        if there:
            yield i, j + 1
    if there and b[j] == any_of:
        yield i, j + 1
        if here:
            yield i + 1, j
    if here and there and any_of not in (a[i], b[j]) and same(a[i], b[j]):
        yield i + 1, j + 1


@dataclass(slots=True)
class _GlobFolder:
    """Globs whose literal part ends in this folder, and the folders below."""

    globs: Counter[str] = field(default_factory=Counter[str])
    below: dict[str, "_GlobFolder"] = field(default_factory=dict[str, "_GlobFolder"])

    def all(self) -> Iterator[str]:
        """Yield every glob of this folder and below."""
        folders: list[_GlobFolder] = [self]
        while folders:
            here = folders.pop()
            yield from here.globs
            folders.extend(here.below.values())


@dataclass(slots=True)
class GlobSet:
    """Multiset of globs with an overlap query that compares only related prefixes."""

    _root: _GlobFolder = field(default_factory=_GlobFolder)

    def add(self, globs: Iterable[str]) -> None:
        """Add globs; equal ones count separately."""
        for glob in globs:
            here = self._root
            for part in _literal(glob):
                here = here.below.setdefault(part, _GlobFolder())
            here.globs[glob] += 1

    def remove(self, globs: Iterable[str]) -> None:
        """Remove globs that were added."""
        for glob in globs:
            way = [self._root]
            parts = _literal(glob)
            for part in parts:
                way.append(way[-1].below[part])
            way[-1].globs[glob] -= 1
            way[-1].globs += Counter()  # Drops zero counts.
            for folder, part in zip(reversed(way[:-1]), reversed(parts), strict=True):
                if not folder.below[part].globs and not folder.below[part].below:
                    del folder.below[part]

    def meets(self, globs: Iterable[str]) -> bool:
        """Return whether a path could match one of these and one of the set."""
        return any(overlap(glob, other) for glob in globs for other in self._near(glob))

    def _near(self, glob: str) -> Iterator[str]:
        """Yield the globs whose literal prefix is a prefix of this one, or the reverse."""
        here: _GlobFolder | None = self._root
        for part in _literal(glob):
            yield from here.globs
            here = here.below.get(part)
            if here is None:
                return
        yield from here.all()


def _literal(glob: str) -> tuple[str, ...]:
    """Return the parts before the first wildcard."""
    return tuple(takewhile(lambda part: not has_wildcard(part), _parts(glob)))
