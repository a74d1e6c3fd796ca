"""Folder names from requests."""

import pytest

from mimir.planning.format.slug import MAX_CHARS, slug


@pytest.mark.parametrize(
    ("request_text", "name"),
    [
        ("Add a rate limiter to the API", "add-rate-limiter-api"),
        ("  Écrire: les DOCS!  ", "ecrire-les-docs"),
        ("../../etc/passwd", "etc-passwd"),
        ("the", "the"),
        ("x" * 100, "x" * MAX_CHARS),
        ("word " * 40, "-".join(["word"] * 9)),
        ("a\nb\0c", "b-c"),
    ],
)
def test_a_slug_is_short_lower_case_ascii(request_text: str, name: str):
    assert slug(request_text) == name


@pytest.mark.parametrize("request_text", ["", "翻译文档", "🎯", "\ud800"])
def test_a_request_without_latin_letters_has_a_stable_name(request_text: str):
    name = slug(request_text)
    assert name.startswith("plan-")
    assert name == slug(request_text)
    assert name != slug(request_text + "x" if not request_text else request_text * 2)
