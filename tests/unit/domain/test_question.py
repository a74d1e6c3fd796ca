"""Forms of questions, and the answers that fit them."""

import pytest

from mimir.domain.question import (
    FormField,
    QuestionForm,
    check_values,
    choice_form,
    find_secret,
    parse_answer,
    placeholder,
    read_default,
    read_form,
)

FIELDS = {
    "region": {"type": "string", "enum": ["eu", "us"]},
    "count": {"type": "integer"},
    "go": {"type": "boolean", "title": "Start it?"},
    "zones": {"type": "array", "items": {"type": "string", "enum": ["a", "b", "c"]}},
    "note": {"type": "string"},
}
FORM = read_form({"type": "object", "properties": FIELDS})
GIVEN = {"region": "EU", "count": "3", "go": "yes", "zones": "a, c", "note": "two\nlines"}
VALUES = {"region": "eu", "count": 3, "go": True, "zones": ["a", "c"], "note": "two\nlines"}


def test_a_form_is_read_from_its_own_schema():
    for form in (FORM, QuestionForm(), choice_form(["x", "y"])):
        assert read_form(form.as_schema()) == form


def test_each_field_is_read_by_its_type():
    assert parse_answer(FORM, None, GIVEN) == VALUES
    assert check_values(FORM, VALUES) == VALUES
    assert parse_answer(QuestionForm(), " as it is ", {}) == {"answer": " as it is "}
    assert read_default(choice_form(["x", "y"]), "y") == {"answer": "y"}
    assert placeholder(FORM).startswith("--field region=VALUE --field count=VALUE")


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"region": "mars"}, "one of eu, us"),
        ({"count": "nan"}, "a number"),
        ({"count": "many"}, "a number"),
        ({"go": "maybe"}, "yes or no"),
        ({"zones": "a,z"}, "one or more of a, b, c"),
        ({"zones": "a,a"}, "one or more of a, b, c"),
        ({"note": "  "}, "'note' must be text"),
        ({"note": "a\x1b[0m"}, "control character U\\+001B"),
        ({"note": "a\u202eb"}, "control character U\\+202E"),
        ({"note": "x" * 20_001}, "20,001 characters"),
        ({"other": "1"}, "no field 'other'"),
    ],
)
def test_an_answer_that_does_not_fit_is_refused(changed: dict[str, str], why: str):
    with pytest.raises(ValueError, match=why):
        parse_answer(FORM, None, {**GIVEN, **changed})


def test_every_field_needs_a_value_and_a_text_answers_one_field_only():
    with pytest.raises(ValueError, match="'count' has no value"):
        parse_answer(FORM, None, {"region": "eu"})
    with pytest.raises(ValueError, match="5 fields: region, count"):
        parse_answer(FORM, "eu", {})


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"properties": {}},
        {"properties": {f"f{n}": {"type": "string"} for n in range(11)}},
        {"properties": {"x": {"type": "object"}}},
        {"properties": {"x y": {"type": "string"}}},
        {"properties": {"x": {"type": "string", "enum": ["one"]}}},
        {"properties": {"x": {"type": "string", "enum": ["a", "a"]}}},
        {"properties": {"x": {"type": "array", "items": {"type": "string"}}}},
        {"properties": {"x": {"type": "array", "items": {"enum": ["a,b", "c"]}}}},
        {"properties": {"x": {"type": "string", "title": "a\x07"}}},
    ],
)
def test_another_schema_is_refused(schema: dict[str, object]):
    with pytest.raises(ValueError, match=r"schema|field|choice|options"):
        read_form(schema)


@pytest.mark.parametrize(
    "text",
    [
        "What is the password of the database?",
        "Please give me your API key.",
        "Paste the private key here",
        "I need the access token for the registry.",
    ],
)
def test_a_question_for_a_secret_is_found(text: str):
    assert find_secret("Login", text, QuestionForm())


def test_a_field_for_a_secret_is_found_and_a_question_about_one_is_none():
    secret = QuestionForm(fields=(FormField(name="db_password", kind="string"),))
    assert find_secret("Login", "Fill it in.", secret)
    about = "Should passwords be hashed with bcrypt or argon2? Which token bucket size?"
    assert find_secret("Hashing", about, QuestionForm()) == ""
