"""The task of an invocation has no more rights than its definition and its caller share."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimir.domain.globs import matches
from mimir.orchestrator.delegation.response import assurance_level
from mimir.orchestrator.delegation.task_building import may_overlap

PARTS = st.sampled_from(["a", "b", "a*", "*", "**", "?", "[ab]", "a.py"])
GLOBS = st.lists(PARTS, min_size=1, max_size=3).map("/".join)
PATHS = st.lists(st.sampled_from(["a", "b", "ab", "a.py", "c"]), min_size=1, max_size=4).map(
    "/".join
)


@given(glob=GLOBS, other=GLOBS, path=PATHS)
def test_globs_without_overlap_share_no_path(glob: str, other: str, path: str):
    if matches(path, (glob,)) and matches(path, (other,)):
        assert may_overlap(glob, other)


def test_globs_of_other_folders_do_not_overlap():
    assert may_overlap("src", "src/**")
    assert may_overlap("src/*", "src/a*")
    assert not may_overlap("srcs/a.py", "src/**")
    assert not may_overlap("docs/**", "src/*.py")


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
