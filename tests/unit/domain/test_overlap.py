import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimir.domain.globs import matches
from mimir.domain.overlap import overlap


@pytest.mark.parametrize(
    ("a", "b", "answer"),
    [
        ("a.py", "a.py", True),
        ("a.py", "b.py", False),
        ("src", "src/a.py", True),
        ("src/", "lib/a.py", False),
        ("src/*.py", "src/a.py", True),
        ("src/*.py", "src/deep/a.py", False),
        ("src/**", "src/deep/a.py", True),
        ("**/*.py", "docs/*.md", False),
        ("**/test_*.py", "tests/**", True),
        ("a*c", "*b*", True),
        ("a*.py", "b*.py", False),
        ("/etc/passwd", "**", False),
        ("..", "**", False),
        ("[ab].py", "c.py", True),
    ],
)
def test_overlap_of_two_globs(a: str, b: str, answer: bool) -> None:
    assert overlap(a, b) is answer
    assert overlap(b, a) is answer


names = st.sampled_from(["a", "b", "ab"])
paths = st.lists(names, min_size=1, max_size=3).map("/".join)
globs = st.lists(st.sampled_from(["a", "b", "*", "a*", "?", "**"]), min_size=1, max_size=3).map(
    "/".join
)


@given(paths, globs, globs)
def test_globs_that_name_one_path_overlap(path: str, a: str, b: str) -> None:
    if matches(path, [a]) and matches(path, [b]):
        assert overlap(a, b)
