"""Trial of a definition's response form with scripted answers, for the matrix. Pure."""

import json
from collections.abc import Mapping

from mimir.attempts.agent_answers.response_form import read_answer
from mimir.domain.json_value import as_array, as_object, as_text, as_whole_number, is_object
from mimir.errors import AnswerError

MAX_DEPTH = 10
_EMPTY: Mapping[str, object] = {
    "object": {},
    "array": [],
    "string": "",
    "boolean": False,
    "null": None,
    "number": 0,
    "integer": 0,
}


def try_form(output_schema: str) -> int | None:
    """Return the number of answers until one has the form: 1, or 2; None: neither has it.

    The first answer has the common form, without a structured part. The second one is made from the schema.
    """
    schema = as_object(json.loads(output_schema)) if output_schema else None
    answers = [json.dumps({"deliverables": {"analysis": "Done."}})]
    if schema is not None:
        answers.append(json.dumps(_sample(schema, schema, 0)))
    for number, one in enumerate(answers, 1):
        try:
            read_answer(one, schema)
        except AnswerError:
            continue
        return number
    return None


def _sample(schema: object, root: Mapping[str, object], depth: int) -> object:
    """Return a small value that should match a schema."""
    rules = as_object(schema)
    if depth > MAX_DEPTH:
        return None
    for name in ("const", "default"):
        if name in rules:
            return rules[name]
    if choices := as_array(rules.get("enum")):
        return choices[0]
    if reference := as_text(rules.get("$ref")):
        target: object = root
        for part in reference.removeprefix("#").split("/")[1:]:
            target = as_object(target).get(part.replace("~1", "/").replace("~0", "~"))
        return _sample(target, root, depth + 1)
    parts = next((p for n in ("allOf", "anyOf", "oneOf") if (p := as_array(rules.get(n)))), ())
    if parts and "type" not in rules:
        return _sample(parts[0], root, depth + 1)
    kinds = [rules["type"]] if isinstance(rules.get("type"), str) else as_array(rules.get("type"))
    kind = as_text(kinds[0]) if kinds else "object"
    return _fill(_EMPTY.get(kind), rules, root, depth)


def _fill(
    value: object, rules: Mapping[str, object], root: Mapping[str, object], depth: int
) -> object:
    if is_object(value):
        members = as_object(rules.get("properties"))
        needed = [str(name) for name in as_array(rules.get("required"))]
        return {name: _sample(members.get(name), root, depth + 1) for name in needed}
    if isinstance(value, list):
        count = min(20, as_whole_number(rules.get("minItems")) or 0)
        return [_sample(rules.get("items"), root, depth + 1) for _ in range(count)]
    if isinstance(value, str):
        return "x" * min(1_000, as_whole_number(rules.get("minLength")) or 1)
    if value == 0 and value is not False:
        low = as_whole_number(rules.get("minimum"))
        above = as_whole_number(rules.get("exclusiveMinimum"))
        return low if low is not None else (above + 1 if above is not None else 0)
    return value
