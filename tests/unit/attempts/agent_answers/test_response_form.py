"""The response form is read strictly, and the structured part is compared with its schema."""

import json

import pytest

from mimir.attempts.agent_answers.response_form import read_answer
from mimir.domain.json_schema import find_mismatch
from mimir.errors import AnswerError
from tests.support.agent_corpus import answer


def test_answer_may_be_inside_other_text():
    read = read_answer(f"Here it is:\n```json\n{answer('Right.')}\n```")

    assert (read.analysis, read.confidence, read.self_reported) == ("Right.", "high", "complete")


def test_line_feeds_last_commas_and_capitals_are_read():
    text = answer(
        "One.#Two.", metadata={"confidence_level": "High", "task_completion_status": "Complete"}
    )

    read = read_answer(f"Done.\n{text.replace('#', chr(10))[:-1]},}}")

    assert (read.analysis, read.confidence, read.self_reported) == (
        "One.\nTwo.",
        "high",
        "complete",
    )


@pytest.mark.parametrize(
    "text",
    [
        "It is right.",
        answer("One.") + answer("Two."),
        '{"deliverables": {"analysis": "a", "analysis": "b"}}',
        '{"analysis": "a"}',
        '{"deliverables": {"analysis": ["a"]}}',
        answer("a", memory_operations=[{"operation": "delete_all"}]),
        "[" + answer("a") + "]",
        answer("a")[:-2],
    ],
)
def test_another_form_is_refused(text: str):
    with pytest.raises(AnswerError):
        read_answer(text)


def test_at_most_fifty_justified_memory_operations_are_kept():
    many = [{"operation": "create_entities", "data": {"n": n}} for n in range(60)]

    read = read_answer(answer("a", memory_operations=many, justification="All are new."))

    assert len(read.memory_operations) == 50
    assert [code for code, _ in read.findings] == ["memory-operations"]
    assert len({one["id"] for one in read.memory_operations}) == 50


TREE = {
    "type": "object",
    "required": ["name"],
    "additionalProperties": False,
    "properties": {
        "name": {"type": "string", "minLength": 2},
        "kind": {"enum": ["a", 1]},
        "size": {"type": "integer", "maximum": 3},
        "parts": {"type": "array", "items": {"$ref": "#"}, "maxItems": 2},
        "any": {"anyOf": [{"type": "null"}, {"type": "number", "exclusiveMinimum": 0}]},
    },
}


@pytest.mark.parametrize(
    ("value", "is_right"),
    [
        ({"name": "ab"}, True),
        ({"name": "ab", "parts": [{"name": "cd"}], "kind": 1, "size": 3, "any": 0.5}, True),
        ({}, False),
        ({"name": "a"}, False),
        ({"name": "ab", "other": 1}, False),
        ({"name": "ab", "parts": [{"name": 3}]}, False),
        ({"name": "ab", "kind": True}, False),
        ({"name": "ab", "size": 2.5}, False),
        ({"name": "ab", "any": 0}, False),
        ({"name": "ab", "parts": [{"name": "cd"}] * 3}, False),
    ],
)
def test_a_value_is_compared_with_its_schema(value: dict[str, object], is_right: bool):
    assert (find_mismatch(value, TREE, "answer") == "") is is_right


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"anyOf": [{"$ref": "#"}, {"$ref": "#"}]},
        {"$ref": "#/$defs/none"},
        {"not": {"$ref": "#"}},
    ],
)
def test_a_schema_without_an_end_matches_nothing(schema: dict[str, object]):
    assert find_mismatch(json.loads("{}"), schema, "answer")
