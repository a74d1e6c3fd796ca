"""Search of lines with an untrusted pattern.

A pattern without special characters is searched here as plain text. Any other runs in a process of its own (`matcher`), which is
killed at its time limit: a regular expression can be written to run for years.
"""

import asyncio
import contextlib
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import cast

from mimir.domain.quoted_text import count_noun, quote_text
from mimir.domain.turn_hook import give_way
from mimir.domain.value_class import value_class
from mimir.errors import ToolError

SECONDS = 5
MAX_BYTES = 1_000_000_000
"""Address space of the matcher process."""
MAX_PATTERN_CHARS = 1_000
# A pattern without these needs no process of its own.
_SPECIAL = frozenset("\\.^$*+?{}[]|()")
_MATCHER = Path(__file__).with_name("matcher.py")


@value_class
class SearchHits:
    """Matching lines, in the order of the texts."""

    places: tuple[tuple[int, int], ...]
    """(index of the text, 1-based line)."""
    more: bool
    """True: there are more than the limit."""


async def matching_lines(
    pattern: str, texts: Sequence[str], *, most: int, seconds: int = SECONDS
) -> SearchHits:
    """Find the first `most` lines that match.

    Args:
        pattern: A regular expression of Python, from a model.
        texts: Lines end with a line feed; a carriage return before it is not part of the line.
        most: Limit of lines, at least 1.
        seconds: Limit of processor time.

    Raises:
        ToolError: The pattern is not valid, or takes too long.
    """
    if not pattern or len(pattern) > MAX_PATTERN_CHARS:
        raise ToolError(f"A pattern must have 1 to {MAX_PATTERN_CHARS:,} characters.")
    if "\n" in pattern:
        raise ToolError(
            "A pattern is compared with one line at a time, so it cannot hold a line end.",
            next_step="Search for one of the lines.",
        )
    if not _SPECIAL & set(pattern):
        return _search_plain(pattern, texts, most)
    return await _search_in_process(pattern, texts, most, seconds)


def _search_plain(text: str, texts: Sequence[str], most: int) -> SearchHits:
    places: list[tuple[int, int]] = []
    for index, body in enumerate(texts):
        if text not in body:
            continue
        for number, line in enumerate(body.split("\n"), start=1):
            if text in line:
                if len(places) == most:
                    return SearchHits(places=tuple(places), more=True)
                places.append((index, number))
    return SearchHits(places=tuple(places), more=False)


async def _search_in_process(
    pattern: str, texts: Sequence[str], most: int, seconds: int
) -> SearchHits:
    question = {
        "pattern": pattern,
        "texts": texts,
        "most": most,
        "seconds": seconds,
        "bytes": MAX_BYTES,
    }
    output = await _run_matcher(
        await asyncio.to_thread(lambda: json.dumps(question).encode()), seconds
    )
    if output is None:
        raise ToolError(
            f"The pattern {quote_text(pattern)} took longer than {count_noun(seconds, 'second')} and was stopped.",
            next_step="Use a simpler pattern, above all no repetition inside a repetition, or fewer files.",
        )
    answer: dict[str, object] = json.loads(output)
    if "error" in answer:
        raise ToolError(
            f"The pattern {quote_text(pattern)} is no regular expression: {quote_text(str(answer['error']))[1:-1]}.",
            next_step="Put a backslash before special characters that you mean literally.",
        )
    # The matcher is a module of mimir, so its answer has this form.
    places = cast("list[tuple[int, int]]", answer["hits"])
    return SearchHits(places=tuple((a, b) for a, b in places), more=answer["more"] is True)


async def _run_matcher(question: bytes, seconds: int) -> bytes | None:
    """Run a new matcher process; None if it was killed before it answered."""
    give_way()
    process = await asyncio.create_subprocess_exec(
        # Isolated: no site packages, no environment of the user.
        *(sys.executable, "-I", "-S", "-X", "utf8", str(_MATCHER)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env={},
    )
    try:
        # The process limits its own processor time; a busy machine may give it none.
        async with asyncio.timeout(seconds * 4):
            output, _ = await process.communicate(question)
    except TimeoutError:
        return None
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    return output if process.returncode == 0 else None
