"""The trial of a response form counts the answers until one is accepted."""

import json

import pytest

from mimir.attempts.agent_answers.form_trial import try_form

OBJECT = {"type": "object", "required": ["n", "kind", "list"], "additionalProperties": False}
PARTS = {
    "n": {"type": "integer", "minimum": 3},
    "kind": {"enum": ["a", "b"]},
    "list": {"type": "array", "minItems": 2, "items": {"$ref": "#/$defs/word"}},
}
WORD = {"$defs": {"word": {"type": "string", "minLength": 4}}}


@pytest.mark.parametrize(
    ("schema", "tries"),
    [
        (None, 1),
        ({"type": "object"}, 1),
        ({**OBJECT, "properties": PARTS, **WORD}, 2),
        ({"type": "object", "minProperties": 2, "maxProperties": 1}, None),
    ],
)
def test_answers_are_counted(schema: object, tries: int | None):
    assert try_form(json.dumps(schema) if schema else "") == tries
