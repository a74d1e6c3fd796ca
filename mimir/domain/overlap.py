"""Whether two globs could name one and the same path. Pure; errs on the side of yes, so that work is kept apart, never lost."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import takewhile

from mimir.domain.globs import has_wildcard, is_outside

_ANY = "**"


@lru_cache(maxsize=65_536)
def overlap(a: str, b: str) -> bool:
    """Say whether a path could match both globs.

    Two character sets count as overlapping; everything else is exact. Time is the product of the globs' lengths.
    """
    if is_outside(a) or is_outside(b) or not a or not b:
        return False
    return _meet(_parts(a), _parts(b), any_of=_ANY, same=_parts_meet)


def _parts(glob: str) -> tuple[str, ...]:
    """Split a glob into parts; one that names what is below it gets a `**`, which here may stand for no part."""
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
    """Walk both patterns at once; the set of reachable pairs of positions is all that is remembered."""
    if any_of == "*" and ("[" in a or "]" in a or "[" in b or "]" in b):
        return True  # a set may hold anything, also what is not a set: not worth being exact about
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
    """Yield where two patterns can stand after one more element, or after an `any_of` that ends."""
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
    """The globs whose first wildcard comes right behind this folder, or that end in it; and the folders below."""

    globs: Counter[str] = field(default_factory=Counter[str])
    below: dict[str, "_GlobFolder"] = field(default_factory=dict[str, "_GlobFolder"])

    def all(self) -> Iterator[str]:
        """Yield every glob from here on down."""
        folders: list[_GlobFolder] = [self]
        while folders:
            here = folders.pop()
            yield from here.globs
            folders.extend(here.below.values())


@dataclass(slots=True)
class GlobSet:
    """Globs that can be asked whether another one overlaps any of them, at the price of those that begin like it."""

    _root: _GlobFolder = field(default_factory=_GlobFolder)

    def add(self, globs: Iterable[str]) -> None:
        """Put globs in; one that is in already is in twice."""
        for glob in globs:
            here = self._root
            for part in _literal(glob):
                here = here.below.setdefault(part, _GlobFolder())
            here.globs[glob] += 1

    def remove(self, globs: Iterable[str]) -> None:
        """Take out what was put in."""
        for glob in globs:
            way = [self._root]
            parts = _literal(glob)
            for part in parts:
                way.append(way[-1].below[part])
            way[-1].globs[glob] -= 1
            way[-1].globs += Counter()  # drops what is not there any more
            for folder, part in zip(reversed(way[:-1]), reversed(parts), strict=True):
                if not folder.below[part].globs and not folder.below[part].below:
                    del folder.below[part]

    def meets(self, globs: Iterable[str]) -> bool:
        """Say whether a path could match one of these and one of the set."""
        return any(overlap(glob, other) for glob in globs for other in self._near(glob))

    def _near(self, glob: str) -> Iterator[str]:
        """Yield the globs whose literal beginning is one of this one's, or goes on from it: no other can meet it."""
        here: _GlobFolder | None = self._root
        for part in _literal(glob):
            yield from here.globs
            here = here.below.get(part)
            if here is None:
                return
        yield from here.all()


def _literal(glob: str) -> tuple[str, ...]:
    """Return the parts of a glob before the first one with a wildcard."""
    return tuple(takewhile(lambda part: not has_wildcard(part), _parts(glob)))
