import pytest

from mimir.domain import json_value

VALUE = {"a": 1}


@pytest.mark.parametrize(
    ("read", "good", "empty"),
    [
        (json_value.as_object, VALUE, {}),
        (json_value.as_array, [1, "x"], ()),
        (json_value.as_text, "x", ""),
        (json_value.as_number, 1.5, None),
        (json_value.as_whole_number, 2, None),
        (json_value.as_objects, [VALUE], []),
        (json_value.as_texts, ["x"], []),
    ],
)
def test_value_of_another_type_counts_as_absent(read, good, empty):
    others = [
        v for v in (None, True, "x", 2, 1.5, [VALUE, "x"], VALUE) if type(v) is not type(good)
    ]
    accepts_int = read is json_value.as_number

    assert read(good) == good
    for other in others:
        if not (accepts_int and type(other) is int):
            assert read(other) == empty


def test_arrays_keep_only_items_of_the_given_type():
    mixed = [VALUE, "x", 1, None]

    assert json_value.as_objects(mixed) == [VALUE]
    assert json_value.as_texts(mixed) == ["x"]


def test_only_a_known_text_is_a_member():
    options = ("auto", "never")

    assert json_value.as_member("auto", options) == "auto"
    assert json_value.as_member("other", options) is None
    assert json_value.as_member(1, (1, 2)) is None
