"""Any arguments of a model give one checked object, or a message with the usage."""

import json
import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mimir.domain.message import ToolSpec
from mimir.errors import ToolError
from mimir.tools.builtin.shell import describe_run
from mimir.tools.calls import arguments
from mimir.tools.calls.arguments import MAX_CHARS, MAX_DEPTH, parse_arguments
from mimir.tools.calls.local_tools import describe_tool

SPEC = describe_tool(
    "probe",
    "A tool.",
    {
        "path": {"type": "string", "minLength": 1},
        "count": {"type": "integer", "minimum": 1, "maximum": 9},
        "ratio": {"type": "number"},
        "deep": {"type": "boolean"},
        "mode": {"type": "string", "enum": ["in", "out"]},
        "words": {"type": "array", "items": {"type": "string"}, "maxItems": 3},
        "filters": {"type": "object"},
        "place": {
            "type": "object",
            "properties": {"line": {"type": "integer"}},
            "required": ["line"],
            "additionalProperties": False,
        },
    },
    required=("path",),
)
USAGE = (
    "probe takes path (string); count (whole number, optional); ratio (number, optional); "
    "deep (boolean, optional); mode (string, optional); words (list of strings, optional); "
    "filters (object, optional); place (object, optional)."
)

UNREAD = "The arguments of probe cannot be read, and nothing was run. "
REFUSED = {
    "half a JSON text": (
        '{"path": "a',
        UNREAD + "The JSON is not valid: Unterminated string starting at (line 1, column 10).",
    ),
    "a fence around it": (
        '```json\n{"path": "a"}\n```',
        UNREAD + "The JSON is not valid: Expecting value (line 1, column 1).",
    ),
    "two objects": (
        '{"path": "a"}{"path": "b"}',
        "The arguments of probe must be one JSON object, such as {…}.",
    ),
    "a list": ('["a"]', "The arguments of probe must be one JSON object, such as {…}."),
    "null": ("null", "The arguments of probe must be one JSON object, such as {…}."),
    "nothing": ("", "The arguments of probe must hold path."),
    "the same key twice": (
        '{"path": "a", "path": "b"}',
        UNREAD + "The key 'path' occurs twice in one object.",
    ),
    "the same key twice, deep": (
        '{"path": "a", "filters": {"x": 1, "x": 2}}',
        UNREAD + "The key 'x' occurs twice in one object.",
    ),
    "NaN": (
        '{"path": "a", "ratio": NaN}',
        UNREAD + "NaN is not a JSON number.",
    ),
    "infinity": (
        '{"path": "a", "ratio": -Infinity}',
        UNREAD + "-Infinity is not a JSON number.",
    ),
    "a float that is too large": (
        '{"path": "a", "ratio": 1e999}',
        UNREAD + "The number 1e999 is out of range.",
    ),
    "a whole number that is too large": (
        '{"path": "a", "count": ' + "9" * 60 + "}",
        UNREAD + "The number 999999999999999999999999999999 is out of range.",
    ),
    "an unknown name": (
        '{"path": "a", "cuont": 1}',
        "The arguments of probe may not hold 'cuont'. Did you mean 'count'?",
    ),
    "two other names of one": (
        '{"file_path": "a", "filename": "b"}',
        "The arguments of probe may not hold 'file_path'. Did you mean 'path'?",
    ),
    "another name beside the own": (
        '{"file_path": "a", "path": "b"}',
        "The arguments of probe may not hold 'file_path'. Did you mean 'path'?",
    ),
    "a missing name": ('{"count": 1}', "The arguments of probe must hold path."),
    "a number for a string": (
        '{"path": 7}',
        "The 'path' in the arguments of probe must be a string, not the number 7.",
    ),
    "null for a string": (
        '{"path": null}',
        "The 'path' in the arguments of probe must be a string, not null.",
    ),
    "a string for a number": (
        '{"path": "a", "count": "3 lines"}',
        "The 'count' in the arguments of probe must be a whole number, not the string '3 lines'.",
    ),
    "true for a number": (
        '{"path": "a", "count": true}',
        "The 'count' in the arguments of probe must be a whole number, not true.",
    ),
    "a broken number": (
        '{"path": "a", "count": 2.5}',
        "The 'count' in the arguments of probe must be a whole number, not the number 2.5.",
    ),
    "a number that is too large": (
        '{"path": "a", "count": 10}',
        "The 'count' in the arguments of probe must be at most 9, not 10.",
    ),
    "an empty string": (
        '{"path": ""}',
        "The length of the 'path' in the arguments of probe must be at least 1, not 0.",
    ),
    "a word that is none of those allowed": (
        '{"path": "a", "mode": "up"}',
        "The 'mode' in the arguments of probe must be one of in, out, not 'up'.",
    ),
    "a list that is too long": (
        '{"path": "a", "words": ["a", "b", "c", "d"]}',
        "The number of items of the 'words' in the arguments of probe must be at most 3, not 4.",
    ),
    "a wrong item": (
        '{"path": "a", "words": ["a", {}]}',
        "The item 2 of the 'words' in the arguments of probe must be a string, not an object.",
    ),
    "a missing member": (
        '{"path": "a", "place": {}}',
        "The 'place' in the arguments of probe must hold line.",
    ),
    "an unknown member": (
        '{"path": "a", "place": {"line": 1, "lime": 2}}',
        "The 'place' in the arguments of probe may not hold 'lime'. Did you mean 'line'?",
    ),
    "a lone surrogate": (
        '{"path": "\\ud800"}',
        UNREAD + "A text in the JSON holds half of a surrogate pair.",
    ),
    "deep nesting": (
        '{"path": ' + "[" * 100_000,
        UNREAD + "The JSON is nested more than 16 levels deep.",
    ),
}


@pytest.mark.parametrize(("raw", "said"), REFUSED.values(), ids=REFUSED)
def test_unclear_arguments_are_refused_with_a_reason(raw: str, said: str):
    with pytest.raises(ToolError) as refused:
        parse_arguments(raw, SPEC)
    assert str(refused.value) == said
    assert refused.value.next_step


def test_refused_arguments_show_the_usage_of_the_tool():
    with pytest.raises(ToolError) as refused:
        parse_arguments("{}", SPEC)
    assert refused.value.next_step == USAGE


def test_usage_of_a_tool_without_arguments_is_stated():
    with pytest.raises(ToolError) as refused:
        parse_arguments('{"a": 1}', describe_tool("now", "Tells the time.", {}))
    assert refused.value.next_step == "now takes no arguments: send {}."


def test_text_above_the_limit_is_not_read():
    with pytest.raises(ToolError, match="at most 1,000,000 are read"):
        parse_arguments('{"path": "' + "a" * MAX_CHARS + '"}', SPEC)


def test_good_arguments_are_read():
    given_ = parse_arguments(
        '{"words": ["x", "y"], "path": "a/b", "count": 3.0, "ratio": 2, "deep": false, "filters": {"k": null}}',
        SPEC,
    )
    assert given_.text("path") == "a/b"
    assert given_.number("count", 1) == 3
    assert given_.texts("words") == ("x", "y")
    assert given_.members("filters") == {"k": None}
    assert not given_.has("mode")
    assert given_.first == "a/b"


@pytest.mark.parametrize(
    ("raw", "values"),
    [
        ('{"path": "a", "count": "3", "ratio": "0.5"}', {"path": "a", "count": 3, "ratio": 0.5}),
        ('{"path": "a", "deep": "True", "mode": "IN"}', {"path": "a", "deep": True, "mode": "in"}),
        (r'{"path": "a", "words": "[\"x\"]"}', {"path": "a", "words": ["x"]}),
        (r'{"path": "a", "place": "{\"line\": 1}"}', {"path": "a", "place": {"line": 1}}),
        ('{"path": "a", "count": null, "words": null}', {"path": "a"}),
        ('{"file_path": "a", "Count": 1}', {"path": "a", "count": 1}),
        ('{"path": "a\nb", "words": ["x",],}', {"path": "a\nb", "words": ["x"]}),
    ],
)
def test_other_form_with_one_reading_is_read(raw: str, values: dict[str, object]):
    assert parse_arguments(raw, SPEC).values == values


@pytest.mark.parametrize(
    ("raw", "values"),
    [
        ('{"command": ["pytest", "-q"]}', {"argv": ["pytest", "-q"]}),
        (
            '{"argv": "pytest -q", "timeout_seconds": "90"}',
            {"command": "pytest -q", "timeout_seconds": 90},
        ),
        ('{"cmd": "ls"}', {"command": "ls"}),
        (r'{"argv": "[\"ls\", \"-l\"]"}', {"argv": ["ls", "-l"]}),
    ],
)
def test_a_command_is_read_from_a_list_and_a_line_from_a_text(raw: str, values: dict[str, object]):
    spec = describe_run("run", "", max_seconds=100, read_only=False)
    assert parse_arguments(raw, spec).values == values


def test_brackets_in_strings_are_no_nesting():
    assert (
        parse_arguments(json.dumps({"path": "[" * 500 + '\\"{' * 5}), SPEC)
        .text("path")
        .startswith("[[[")
    )


def test_a_nesting_at_the_bound_is_read():
    value: object = 1
    for _ in range(MAX_DEPTH - 2):
        value = [value]
    assert parse_arguments(json.dumps({"path": "a", "filters": {"k": value}}), SPEC).has("filters")


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=True)
    | st.text(st.characters(), max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=20,
)
NAMES = st.sampled_from([*SPEC.input_schema["properties"], "x"])  # type: ignore[misc]


def sound(value: object) -> bool:
    match value:
        case str():
            return value.encode() is not None
        case float():
            return math.isfinite(value)
        case list():
            return all(map(sound, value))
        case dict():
            return all(sound(k) and sound(v) for k, v in value.items())
        case _:
            return True


def read_or_refusal(raw: str) -> arguments.ToolArguments | ToolError:
    try:
        return parse_arguments(raw, SPEC)
    except ToolError as error:
        return error


@given(
    st.one_of(
        st.text(max_size=200),
        st.dictionaries(NAMES, JSON, max_size=5).map(json.dumps),
        st.dictionaries(NAMES, JSON, max_size=5).map(lambda d: json.dumps(d)[:-1]),
        st.text('{}[]":,\\ntruefalsNI0123456789.eE+- path', max_size=200),
        st.binary(max_size=60).map(lambda b: b.decode("utf-8", "surrogateescape")),
    )
)
@example('{"path": "a"}')
@example("\ud800")
@example('"\\')
@example('{"path": 1' + "0" * 5000 + "}")
@example('{"path": "a", "count": 1e400}')
def test_every_text_of_arguments_is_parsed_or_refused(raw: str):
    given_ = read_or_refusal(raw)
    if isinstance(given_, ToolError):
        assert str(given_)
        assert given_.next_step
        assert str(given_).isprintable()
        return
    assert set(given_.values) <= set(SPEC.input_schema["properties"])  # type: ignore[call-overload]
    assert given_.text("path")
    assert 1 <= given_.number("count", 1) <= 9
    assert all(isinstance(w, str) for w in given_.texts("words"))
    assert sound(dict(given_.values))


@given(st.text('[{"\\]}', max_size=4000))
def test_nesting_is_measured_without_recursion(raw: str):
    with pytest.raises(ToolError):
        parse_arguments(raw + "x", SPEC)


def test_every_tool_accepts_its_required_arguments(all_specs: tuple[ToolSpec, ...]):
    for spec in all_specs:
        assert arguments.parse_arguments(json.dumps(example_of(spec)), spec)


def example_of(spec: ToolSpec) -> dict[str, object]:
    made = {"string": "x", "integer": 1, "array": ["x"], "object": {}}
    properties = spec.input_schema["properties"]
    return {name: made[properties[name]["type"]] for name in spec.input_schema["required"]}  # type: ignore[index]
