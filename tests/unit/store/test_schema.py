import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimir.errors import StoreError
from mimir.store import row_fields, schema
from mimir.store.schema import pack, unpack

TEXT = st.text(st.characters())  # half surrogates included
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=8,
)


@given(JSON)
def test_packed_json_is_unpacked_and_fits_every_store(value):
    packed = pack(value)

    assert unpack(packed) == value
    assert packed.encode()  # no half surrogate stands in it raw
    assert json.loads(packed) == value


FLOATS = st.floats(allow_nan=False, allow_infinity=False)


@given(
    st.one_of(
        JSON, st.lists(st.sampled_from([0.00001, 1e16, 5e-324, 1.5e300, -0.0, 2**64, None])), FLOATS
    )
)
def test_output_equals_that_of_the_standard_library(value):
    """Hashes of stores and recordings are made over it: no writer may ever write it in another way."""
    text = json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )

    assert pack(value) == re.sub("[\ud800-\udfff]", lambda half: f"\\u{ord(half[0]):04x}", text)


@given(JSON | st.lists(st.integers(-(2**70), 2**70) | st.floats()), st.booleans(), st.booleans())
def test_stored_json_is_read_as_the_standard_library_reads_it(value, ascii_only, is_indented):
    """Also text of other writers that `pack` would not write: the types too, and the order of keys."""
    text = json.dumps(value, ensure_ascii=ascii_only, indent=1 if is_indented else None)

    assert repr(unpack(text)) == repr(json.loads(text))


@pytest.mark.parametrize(
    "text",
    [
        *(str(sign * 2**bits + more) for sign in (1, -1) for bits in (53, 63, 64, 200) for more in (-1, 0, 1)),
        *("-0", "-0.0", "1e400", "-1e400", "4e-324", "2e-324", "1E+2", "123456789012345678901.5", "1" * 400),
        *("NaN", "-Infinity", '{"a":1,"b":2,"a":3}', '"\\ud83d\\ude00"', '"\\ude00\\ud83d"', '"\ud800"'),
        *(" \t\r\n[ 1 , 2 ]\n", '"\\u0000\\/"', '"\u2028\x7f"', "9223372036854775808", "18446744073709551616"),
    ],
)  # fmt: skip
def test_no_number_or_text_is_read_as_another(text):
    assert repr(unpack(text)) == repr(json.loads(text))
    assert repr(unpack(f'{{"a":[{text}]}}')) == repr({"a": [json.loads(text)]})


@pytest.mark.parametrize("value", [float("nan"), float("-inf")])
def test_no_number_that_is_none_becomes_null(value):
    for holder in (value, [None, value], {"a": None, "b": {"c": (1.0, value)}}):
        with pytest.raises(StoreError, match="JSON"):
            pack(holder)


@given(st.dictionaries(TEXT, st.integers(), max_size=6), st.randoms(use_true_random=False))
def test_packed_json_does_not_depend_on_the_order_of_keys(value, random):
    shuffled = list(value.items())
    random.shuffle(shuffled)

    assert pack(dict(shuffled)) == pack(value)


def test_packed_json_is_readable():
    assert (
        pack({"b": 1, "a": "über 🧊", "c": [True, None, 1.5]})
        == '{"a":"über 🧊","b":1,"c":[true,null,1.5]}'
    )


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), {"a": object()}, b"x", {1, 2}, {(1, 2): 3}]
)
def test_value_that_is_no_json_cannot_be_packed(value):
    with pytest.raises(StoreError, match="JSON"):
        pack(value)


def test_too_deep_value_is_an_error():
    deep = []
    for _ in range(100_000):
        deep = [deep]

    with pytest.raises(StoreError):
        pack(deep)
    with pytest.raises(StoreError):
        unpack("[" * 200_000)


@pytest.mark.parametrize("text", ["", "{", "{'a': 1}", "NaN,"])
def test_text_that_is_no_json_cannot_be_unpacked(text):
    with pytest.raises(StoreError, match="JSON"):
        unpack(text)


def test_promoted_properties_are_named_in_the_phases_form():
    names = [
        *schema.PROMOTED,
        *(n for phase in schema.PHASES.values() for n in phase),
    ]

    assert [schema.property_name(name) for name in names] == names
    assert sorted(schema.PHASES) == list(range(1, 11))


ROW = {
    "id": "x", "text": "t", "whole": 3, "real": 2.5, "yes": True, "list": ["a", "b"], "map": "m",
    "mapJson": '{"a":[1]}', "listJson": "[1]", "badJson": "{",
}  # fmt: skip


def test_fields_are_read_by_their_type():
    assert row_fields.text_field(ROW, "text") == "t"
    assert row_fields.int_field(ROW, "whole") == 3
    assert (row_fields.float_field(ROW, "real"), row_fields.float_field(ROW, "whole")) == (2.5, 3)
    assert row_fields.bool_field(ROW, "yes") is True
    assert row_fields.text_list_field(ROW, "list") == ["a", "b"]
    assert row_fields.json_field(ROW, "mapJson") == {"a": [1]}
    assert row_fields.maybe_whole(ROW, "whole") == 3


def test_missing_field_has_its_default():
    assert row_fields.text_field(ROW, "none") == ""
    assert row_fields.int_field(ROW, "none") == 0
    assert row_fields.float_field(ROW, "none") == 0.0
    assert row_fields.bool_field(ROW, "none") is False
    assert row_fields.text_list_field(ROW, "none") == []
    assert row_fields.json_field(ROW, "none") == {}
    assert row_fields.maybe_whole(ROW, "none") is None


@pytest.mark.parametrize(
    ("read", "name"),
    [
        (row_fields.text_field, "whole"), (row_fields.int_field, "text"), (row_fields.int_field, "yes"), (row_fields.int_field, "real"),
        (row_fields.float_field, "text"), (row_fields.float_field, "yes"), (row_fields.bool_field, "whole"), (row_fields.text_list_field, "text"),
        (row_fields.json_field, "listJson"), (row_fields.json_field, "badJson"), (row_fields.maybe_whole, "text"),
    ],
)  # fmt: skip
def test_field_of_another_type_is_an_error(read, name):
    with pytest.raises(StoreError):
        read(ROW, name)
