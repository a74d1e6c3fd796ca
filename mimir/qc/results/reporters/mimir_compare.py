"""Comparisons that hold with another value: in a negative control they decide nothing.

The changed tests of a control call these functions. Any Python from 3.6 on may import the module.
"""
# pyright: basic, reportMissingParameterType=false

import operator
import re
import sys

from mimir_results import is_of_the_tests

_MARK = "control"
_OFFSET = 7919
_MOST = 12
"""Most parts of a container that change one by one."""
_COLLECTIONS = (list, tuple, set, frozenset)
_ORDERS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


def holds(left, relation, right):
    """Tell whether a comparison holds with another value; errors count as no."""
    if relation == "==":
        return _accepts(_is_equal, left, right)
    if relation == "in":
        others = [_change(one) for one in right] if type(right) in _COLLECTIONS else []
        return _accepts(operator.contains, right, (left, _MARK)) or _accepts(
            operator.contains, others, left
        )
    compare = _ORDERS[relation]
    return _accepts(compare, left, (right, _MARK)) or _accepts(compare, (left, _MARK), right)


def pick(left, right):
    """Return two values that differ; equal ones if the equality holds with another value."""
    return (right, right) if holds(left, "==", right) else (left, _change(right))


def passes(method, *values):
    """Tell whether an assertion of unittest accepts two values."""
    try:
        method(*values)
    except Exception:  # noqa: BLE001
        return False
    return True


def ignores(make, *expected):
    """Tell whether a block that expects an error accepts that there is none, or another one.

    `expected` are the classes of the error and the pattern of its text, if they are known.
    """
    errors = [_OtherError(), _OtherExit()] if expected else []
    # Not by `isinstance`: a class may answer for itself.
    known = expected[0] if expected and type(expected[0]) is tuple else expected[:1]
    others = [None] + [one for one in errors if not set(type(one).__mro__) & set(known)]
    if len(expected) > 1 and not _accepts(re.search, expected[1], _MARK):
        others += [error for kind in known for error in _make_error(kind)]
    return any(_swallows(make, error) for error in others)


class _OtherError(Exception):
    pass


class _OtherExit(BaseException):
    pass


def _make_error(kind):
    try:
        return [kind(_MARK)]
    except Exception:  # noqa: BLE001
        return []


def _swallows(make, error):
    try:
        with make():
            if error is not None:
                raise error
    except BaseException:  # noqa: BLE001
        return False
    return True


def _accepts(compare, left, right):
    try:
        return bool(compare(left, right))
    except Exception:  # noqa: BLE001
        return False


def _is_equal(left, right):
    if any(_accepts(operator.eq, left, other) for other in _other_objects(right)):
        return True
    pairs = _pairs(left, right)
    if pairs is not None:
        # An expected value may hold matchers, such as `mock.ANY`: of these, all must decide nothing.
        own = [pair for pair in pairs if not any(map(_is_matcher, pair))]
        decided = any(_is_equal(one, other) for one, other in own)
        return decided or (bool(pairs) and all(_is_equal(one, other) for one, other in pairs))
    if any(_accepts(operator.eq, left, other) for other in _others(right)):
        return True
    return not _is_matcher(right) and any(_accepts(operator.eq, o, right) for o in _others(left))


def _pairs(left, right):
    """Return the values inside two containers that belong together; None: they are none."""
    if type(left) is not type(right):
        return None
    if isinstance(left, (list, tuple)):
        return [(left[at], right[at]) for at in range(min(len(left), len(right)))]
    if isinstance(left, dict):
        return [(left[key], right[key]) for key in left if key in right]
    fields = getattr(type(left), "__dataclass_fields__", ())
    return [(getattr(left, name), getattr(right, name)) for name in fields] or None


def _others(value):
    """Return values that an equality must tell from a value: neighbours, other parts."""
    others = [_change(value)]
    if type(value) in (int, float) and value + 1 != value:
        others.append(value + 1)
    elif type(value) is dict:
        others += [
            dict(value, **{key: _change(value[key])})
            for key in list(value)[:_MOST]
            if type(key) is str
        ]
    elif type(value) in (list, tuple):
        kind = type(value)
        others += [
            value[:at] + kind([_change(value[at])]) + value[at + 1 :]
            for at in range(min(len(value), _MOST))
        ]
        others += [value[::-1]] if value[::-1] != value else []
    return others


def _other_objects(value):
    """Return an object of the same class with other parts, if the class belongs to the work."""
    path = getattr(sys.modules.get(type(value).__module__), "__file__", None)
    if not path or is_of_the_tests(path, ""):
        return []
    kinds = type(value).__mro__
    names = [name for kind in kinds for name in _as_names(kind.__dict__.get("__slots__", ()))]
    try:
        other = object.__new__(type(value))
        parts = {name: getattr(value, name) for name in names if hasattr(value, name)}
        parts.update(getattr(value, "__dict__", {}))
        for name in parts:
            object.__setattr__(other, name, _change(parts[name]))
    except Exception:  # noqa: BLE001
        return []
    return [other] if parts else []


def _as_names(slots):
    return (slots,) if type(slots) is str else slots


def _change(value):
    """Return another value, of the same type if it is a plain one."""
    if type(value) is str:
        return value + _MARK
    if type(value) in (int, float) and value + _OFFSET != value:
        return value + _OFFSET
    if type(value) is bytes:
        return value + _MARK.encode()
    return (value, _MARK)


def _is_matcher(value):
    """Tell whether the tests or an installed package define the class of a value."""
    path = getattr(sys.modules.get(type(value).__module__), "__file__", None)
    return bool(path) and is_of_the_tests(path, "")
