"""Documents of answers: a fence around the whole document is no part of it."""

import pytest

from mimir.agents.replies import strip_fence

DOCUMENT = "# Title\n\n```sh\nmake\n```\n\nThe end."


@pytest.mark.parametrize("before", ["", "Here it is:\n\n"])
@pytest.mark.parametrize("language", ["", "md", "markdown"])
def test_a_fence_around_a_document_is_left_out(before: str, language: str) -> None:
    assert strip_fence(f"{before}```{language}\n{DOCUMENT}\n```\n") == DOCUMENT


@pytest.mark.parametrize(
    "text", ["", "```", DOCUMENT, "# Title\n\n```\n# a comment\n```", "```sh\nmake\n```"]
)
def test_a_fence_inside_of_a_document_stays(text: str) -> None:
    assert strip_fence(text) == text
