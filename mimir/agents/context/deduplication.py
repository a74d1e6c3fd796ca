"""Saying once what would be said several times, and listing what was merged. Pure.

Three rules: a path is named once, messages that differ only in numbers and spacing are one, equal texts of dependencies are one.
Nothing is lost: what was merged away stands, word for word, in the receipt.
"""

import posixpath
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mimir.agents.context.receipt import WithheldPiece, fingerprint
from mimir.domain.usage import estimate

_NUMBER = re.compile(r"0x[0-9a-f]+|\d+(?:[.,]\d+)*", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class MergedMessage:
    """One message, and where it was said."""

    text: str
    """As it was said last: that is how things stand now."""
    where: tuple[str, ...]
    """In order, each once."""
    also: tuple[str, ...] = ()
    """The numbers of the messages that were merged into it, where they differ from its own; nothing else does."""

    @property
    def line(self) -> str:
        """The message with what was merged, on one line."""
        text = " ".join(self.text.split())
        return f"{text} — also with {'; '.join(self.also)}" if self.also else text


def messages(
    said: Sequence[tuple[str, str]], name: str
) -> tuple[tuple[MergedMessage, ...], tuple[WithheldPiece, ...]]:
    """Merge messages that are similar.

    Args:
        said: (where, text), oldest first.
        name: What they are, for the receipt: `issue`.

    Returns:
        Each message once, in the order of its last saying, and what was merged into it.
    """
    groups: dict[str, list[tuple[str, str]]] = {}
    for where, text in said:
        key = _similar(text)
        # Moved to the end: what was said last stands last, nearest to the answer.
        groups[key] = [*groups.pop(key, []), (where, text)]
    kept = tuple(
        MergedMessage(
            text=group[-1][1],
            where=tuple(dict.fromkeys(where for where, _ in group)),
            also=_other_numbers([text for _, text in group]),
        )
        for group in groups.values()
    )
    merged = tuple(
        _merged(f"{name}:{where}", text, kept=group[-1][1], equal=text == group[-1][1])
        for group in groups.values()
        for where, text in group[:-1]
    )
    return kept, merged


def paths(names: Iterable[str]) -> tuple[tuple[str, ...], tuple[WithheldPiece, ...]]:
    """Return each path once, in the order of first naming, and what was merged; `./a.py` is `a.py`."""
    kept: dict[str, str] = {}
    merged: list[WithheldPiece] = []
    for name in names:
        key = path_key(name)
        if key in kept:
            merged.append(_merged(f"path:{key}", name, kept=kept[key], equal=True))
        kept.setdefault(key, name)
    return tuple(kept.values()), tuple(merged)


def path_key(name: str) -> str:
    """Return what makes two paths the same."""
    return posixpath.normpath(name)


def changed_by(changes: Sequence[tuple[str, Sequence[str]]]) -> tuple[tuple[str, str], ...]:
    """Return each path with the tasks that changed it; `changes` are (task, paths)."""
    by: dict[str, list[str]] = {}
    for task, names in changes:
        for key in dict.fromkeys(path_key(name) for name in names):
            by.setdefault(key, []).append(task)
    return tuple((name, ", ".join(tasks)) for name, tasks in by.items())


def summaries(
    texts: Sequence[tuple[str, str]],
) -> tuple[dict[str, str], tuple[WithheldPiece, ...]]:
    """Replace a text that was already given by a word about where.

    Args:
        texts: (task, summary), in order; tasks are distinct.

    Returns:
        Task → what to show, and what was merged.
    """
    first: dict[str, str] = {}
    shown: dict[str, str] = {}
    merged: list[WithheldPiece] = []
    for task, text in texts:
        mark = fingerprint(text)
        if text.strip() and mark in first:
            shown[task] = f"(the same as of {first[mark]})"
            merged.append(_merged(f"dependency:{task}", text, kept=text, equal=True))
        else:
            first[mark] = task
            shown[task] = text
    return shown, tuple(merged)


def _similar(text: str) -> str:
    return " ".join(_NUMBER.sub("#", text).casefold().split())


def _other_numbers(texts: Sequence[str]) -> tuple[str, ...]:
    found = dict.fromkeys(", ".join(_NUMBER.findall(text)) for text in texts)
    found.pop(", ".join(_NUMBER.findall(texts[-1])))
    return tuple(found)


def _merged(name: str, text: str, *, kept: str, equal: bool) -> WithheldPiece:
    return WithheldPiece(
        name=name,
        why="duplicate" if equal else "similar",
        tokens=estimate(text),
        hash=fingerprint(kept),
        kept=kept[:200],
        text="" if equal else text,
    )
