"""Deduplication of context pieces, with a list of merged pieces. Pure.

A path is named once; messages that differ only in numbers and spacing are one; equal texts of dependencies are one. The
receipt holds the merged texts word for word.
"""

import posixpath
import re
from collections.abc import Iterable, Sequence

from mimir.agents.context.receipt import WithheldPiece, fingerprint
from mimir.domain.usage import estimate
from mimir.domain.value_class import value_class

_NUMBER = re.compile(r"0x[0-9a-f]+|\d+(?:[.,]\d+)*", re.IGNORECASE)


@value_class
class MergedMessage:
    """One message and the places where it occurred."""

    text: str
    """Its latest form, which describes the current state."""
    where: tuple[str, ...]
    """In order, each once."""
    also: tuple[str, ...] = ()
    """Other numbers of the merged messages; nothing else differs."""

    @property
    def line(self) -> str:
        """The message with the merged numbers, on one line."""
        text = " ".join(self.text.split())
        return f"{text} — also with {'; '.join(self.also)}" if self.also else text


def merge_messages(
    said: Sequence[tuple[str, str]],
) -> tuple[tuple[MergedMessage, ...], tuple[WithheldPiece, ...]]:
    """Merge similar messages, given as (where, text), oldest first.

    Each is kept once, in the order of its last occurrence; the others are listed as `issue:where`.
    """
    groups: dict[str, list[tuple[str, str]]] = {}
    for where, text in said:
        key = key_of_text(text)
        # Moved to the end: the latest message is nearest to the answer.
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
        _merged_piece(f"issue:{where}", text, kept=group[-1][1], equal=text == group[-1][1])
        for group in groups.values()
        for where, text in group[:-1]
    )
    return kept, merged


def key_of_text(text: str) -> str:
    """Return the common part of similar texts: numbers, case and spacing do not count."""
    return " ".join(_NUMBER.sub("#", text).casefold().split())


def merge_paths(names: Iterable[str]) -> tuple[WithheldPiece, ...]:
    """Return the repeated paths of a list; `./a.py` is `a.py`."""
    kept: dict[str, str] = {}
    merged: list[WithheldPiece] = []
    for name in names:
        key = path_key(name)
        if key in kept:
            merged.append(_merged_piece(f"path:{key}", name, kept=kept[key], equal=True))
        kept.setdefault(key, name)
    return tuple(merged)


def path_key(name: str) -> str:
    """Return the normal form of a path, equal for all its spellings."""
    return posixpath.normpath(name)


def tasks_by_path(changes: Sequence[tuple[str, Sequence[str]]]) -> tuple[tuple[str, str], ...]:
    """Return each path with the tasks that changed it; `changes` are (task, paths)."""
    tasks: dict[str, list[str]] = {}
    for task, names in changes:
        for key in dict.fromkeys(path_key(name) for name in names):
            tasks.setdefault(key, []).append(task)
    return tuple((name, ", ".join(ids)) for name, ids in tasks.items())


def merge_summaries(
    texts: Sequence[tuple[str, str]],
) -> tuple[dict[str, str], tuple[WithheldPiece, ...]]:
    """Replace a repeated summary by a reference to the first one.

    `texts` are (task, summary) with distinct tasks; the result maps each task to its text.
    """
    first: dict[str, str] = {}
    shown: dict[str, str] = {}
    merged: list[WithheldPiece] = []
    for task, text in texts:
        mark = fingerprint(text)
        if text.strip() and mark in first:  # empty summaries are not duplicates
            shown[task] = f"(the same as of {first[mark]})"
            merged.append(_merged_piece(f"dependency:{task}", text, kept=text, equal=True))
        else:
            first[mark] = task
            shown[task] = text
    return shown, tuple(merged)


def _other_numbers(texts: Sequence[str]) -> tuple[str, ...]:
    numbers = dict.fromkeys(", ".join(_NUMBER.findall(text)) for text in texts)
    numbers.pop(", ".join(_NUMBER.findall(texts[-1])))
    return tuple(numbers)


def _merged_piece(name: str, text: str, *, kept: str, equal: bool) -> WithheldPiece:
    return WithheldPiece(
        name=name,
        why="duplicate" if equal else "similar",
        tokens=estimate(text),
        hash=fingerprint(kept),
        kept=kept[:200],
        text="" if equal else text,
    )
