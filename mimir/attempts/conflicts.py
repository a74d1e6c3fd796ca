"""Settlement of the merge conflicts that an attempt starts with. Pure.

The engine writes conflict markers, or keeps one side of a file that has no lines. The attempt must settle each such path.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence

from mimir.agents.tool_log import iterate_turns
from mimir.domain.message import Message
from mimir.domain.value_class import value_class

SIDES = ("head", "attempt")
"""Labels of the two sides in markers, and in names such as `NAME~head`."""
_MARKS = _START, _MIDDLE, _END = f"<<<<<<< {SIDES[0]}", "=======", f">>>>>>> {SIDES[1]}"


@value_class
class ConflictedFile:
    """The contents of one path in conflict; None: there is no file."""

    path: str
    ours: bytes | None
    """On the run branch."""
    theirs: bytes | None
    """In the attempt before."""
    written: bytes | None
    """As the engine wrote it."""
    delivered: bytes | None
    is_unchanged: bool
    """True: content and mode are still those that the engine wrote."""

    @property
    def is_settled_by_change(self) -> bool:
        """True if the delivered file differs, without markers of the engine."""
        return not self.is_unchanged and not has_markers(self)

    @property
    def is_renamed(self) -> bool:
        """True if the engine invented the name, because a directory has the real one."""
        return self.ours is None and self.theirs is None


def original_path(path: str) -> str:
    """Return the path whose file the engine may have renamed to `path`."""
    name, mark, side = path.rpartition("~")
    return name if mark and side in SIDES else path


def find_unsettled(files: Iterable[ConflictedFile], messages: Sequence[Message]) -> tuple[str, ...]:
    """Return the paths that are neither changed without markers nor confirmed by a call."""
    effects = [
        call.arguments
        for turn in iterate_turns(messages)
        for call, result, _ in turn
        if result.tree  # reading tools leave it empty
    ]
    return tuple(
        file.path
        for file in files
        if not file.is_settled_by_change
        and (file.is_renamed or has_markers(file) or not _is_named(file.path, effects))
    )


def has_markers(file: ConflictedFile) -> bool:
    """Return whether a marker of the engine is left, apart from equal lines of the sides."""
    delivered, written = _lines(file.delivered), _lines(file.written)
    sides = [Counter(_lines(side)) for side in (file.ours, file.theirs)]
    counts = Counter(delivered)
    more = {one for one in _MARKS if counts[one] > max(side[one] for side in sides)}
    if more & {_START, _END}:
        return True
    # A bare middle line may be a heading's rule: it is a marker beside a neighbour of the engine's.
    conflict_path = _beside_middle(written)
    return _MIDDLE in more and not conflict_path.isdisjoint(_beside_middle(delivered))


def _lines(content: bytes | None) -> list[str]:
    return (content or b"").decode("utf-8", "replace").splitlines()


def _beside_middle(lines: Sequence[str]) -> set[tuple[int, str]]:
    """Return the lines before (-1) and after (1) each middle marker."""
    plain = [one for one in lines if one not in (_START, _END)]
    places = [at for at, line in enumerate(plain) if line == _MIDDLE]
    around = [(step, at + step) for at in places for step in (-1, 1)]
    return {(step, plain[at]) for step, at in around if 0 <= at < len(plain) and plain[at].strip()}


def _is_named(path: str, arguments: Iterable[str]) -> bool:
    # JSON may write a path in two ways, and a longer name must not count.
    forms = {path, json.dumps(path)[1:-1]}
    pattern = "|".join(re.escape(form) for form in sorted(forms))
    exact = re.compile(rf"(?<![\w/~.-])(?:\./)?(?:{pattern})(?![\w/~-]|\.\w)")
    return any(exact.search(text) for text in arguments)
