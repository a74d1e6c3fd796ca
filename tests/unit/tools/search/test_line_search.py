"""A pattern finds its lines, or is stopped; the engine continues with any pattern."""

import json
import re
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mimir.errors import ToolError
from mimir.tools.search import matcher
from mimir.tools.search.line_search import MAX_PATTERN_CHARS, SearchHits, matching_lines

TEXTS = ["one\ntwo\nthree two\n", "", "TWO\r\ntwo\r\n"]


@pytest.mark.parametrize(
    ("pattern", "places"),
    [
        ("two", [(0, 2), (0, 3), (2, 2)]),
        ("^two$", [(0, 2), (2, 2)]),
        ("(?i)two", [(0, 2), (0, 3), (2, 1), (2, 2)]),
        (r"\bthree\b", [(0, 3)]),
        ("é", []),
        ("[x", None),
        ("(two", None),
        ("a{3}{4}", None),
    ],
)
async def test_lines_are_found_in_order(pattern: str, places: list[tuple[int, int]] | None):
    if places is None:
        with pytest.raises(ToolError, match="is no regular expression"):
            await matching_lines(pattern, TEXTS, most=10)
    else:
        found = await matching_lines(pattern, TEXTS, most=10)
        assert found == SearchHits(places=tuple(places), more=False)


@pytest.mark.parametrize("pattern", ["two", "tw[o]"])
async def test_search_marks_further_hits(pattern: str):
    found = await matching_lines(pattern, TEXTS, most=2)
    assert found == SearchHits(places=((0, 2), (0, 3)), more=True)
    assert not (await matching_lines(pattern, TEXTS, most=3)).more


@pytest.mark.parametrize(
    "pattern",
    ["(a+)+$", "(a|aa)+$", "(.*a){25}$", r"^(\w+\s?)*$"],
    ids=["nested", "ambiguous", "counted", "words"],
)
async def test_pattern_with_exponential_time_is_stopped(pattern: str):
    with pytest.raises(ToolError) as refused:
        await matching_lines(pattern, ["a" * 64 + "!"], most=1, seconds=1)
    assert (
        str(refused.value) == f"The pattern '{pattern}' took longer than 1 second and was stopped."
    )
    assert "simpler pattern" in (refused.value.next_step or "")


def test_search_process_ends_by_itself():
    asked = {
        "pattern": "(a+)+$",
        "texts": ["a" * 64 + "!"],
        "most": 1,
        "seconds": 1,
        "bytes": 10**9,
    }
    ended = subprocess.run(
        [sys.executable, "-I", "-S", matcher.__file__],
        input=json.dumps(asked).encode(),
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode != 0
    assert ended.stdout == b""


async def test_pattern_with_excessive_memory_is_stopped():
    with pytest.raises(ToolError):
        await matching_lines("(?:" * 300 + "a{9999}" + "){9999}" * 300, ["a"], most=1, seconds=1)


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("", "A pattern must have 1 to 1,000 characters."),
        ("a" * (MAX_PATTERN_CHARS + 1), "A pattern must have 1 to 1,000 characters."),
        (
            "one\ntwo",
            "A pattern is compared with one line at a time, so it cannot hold a line end.",
        ),
    ],
)
async def test_invalid_pattern_is_refused(pattern: str, said: str):
    with pytest.raises(ToolError) as refused:
        await matching_lines(pattern, TEXTS, most=1)
    assert str(refused.value) == said


async def test_a_wrong_pattern_is_explained():
    with pytest.raises(ToolError) as refused:
        await matching_lines("f(x", TEXTS, most=1)
    assert str(refused.value) == (
        "The pattern 'f(x' is no regular expression: missing ), unterminated subpattern at position 1."
    )
    assert refused.value.next_step == (
        "Put a backslash before special characters that you mean literally."
    )


@settings(max_examples=15)
@given(st.text("ab.*(|)\n", min_size=1, max_size=8), st.text("ab\n", max_size=30))
async def test_search_process_finds_the_lines_that_python_finds(pattern: str, text: str):
    try:
        wanted = [(0, n) for n, line in enumerate(text.split("\n"), 1) if re.search(pattern, line)]
    except re.error:
        return
    if "\n" not in pattern:
        assert list((await matching_lines(pattern, [text], most=100)).places) == wanted
