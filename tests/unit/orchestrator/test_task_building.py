"""The task of an invocation has no more rights than its definition and its caller share."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimir.domain.globs import has_wildcard, matches
from mimir.orchestrator.delegation.response import assurance_level
from mimir.orchestrator.delegation.task_building import is_within

PARTS = st.sampled_from(["a", "b", "a*", "*", "**", "?", "[ab]", "a.py"])
GLOBS = st.lists(PARTS, min_size=1, max_size=3).map("/".join)
PATHS = st.lists(st.sampled_from(["a", "b", "ab", "a.py", "c"]), min_size=1, max_size=4).map(
    "/".join
)


@given(glob=GLOBS, allowed=GLOBS, path=PATHS)
def test_a_glob_within_another_one_matches_no_further_path(glob: str, allowed: str, path: str):
    # A name without a wildcard means a file; below it there is nothing.
    is_file = has_wildcard(glob) or path == glob
    if is_within(glob, allowed) and matches(path, (glob,)) and is_file:
        assert matches(path, (allowed,))


def test_usual_globs_are_within():
    assert is_within("src/a.py", "src/**")
    assert is_within("src/x/*.py", "src/**")
    assert not is_within("srcs/a.py", "src/**")
    assert not is_within("src/*", "src/a*")


@pytest.mark.parametrize(
    ("bases", "is_complete", "level"),
    [
        (["executed", "executed"], True, "executed"),
        (["executed", "judged"], True, "judged"),
        (["executed"], False, "none"),
        ([], True, "none"),
    ],
)
def test_the_assurance_is_that_of_the_weakest_criterion(
    bases: list[str], is_complete: bool, level: str
):
    criteria = [{"basis": basis, "state": "passed"} for basis in bases]
    assert assurance_level(criteria, is_complete=is_complete) == level
